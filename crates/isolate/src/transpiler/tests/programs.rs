//! Programs are made modules; what they compute then is for `tests/programs.rs` to see.

use super::*;

/// A module that has been made of a program stays as it is.
#[test]
fn doing_it_twice_is_doing_it_once() {
    for program in [
        "",
        "async () => 1;",
        "const a = 1; a + 1",
        "{ a: 1 }",
        "async function () {}",
        "export default 42; f()",
        "export default async () => 1",
        "import a from 'a';\nimport 'b';\nexport default function () { a() }",
        "const a = b(c);\nimport b, { c } from 'd';",
        "Text\n```js\nimport a from 'a';\na\n```",
        "#!/bin/x\n'text'",
        "export const a = () => 1;\nexport { a as b };",
    ] {
        let (once, _) = code_of("a.program.ts", program);
        let (twice, mappings) = code_of("a.program.ts", &once);
        assert_eq!(twice, once, "{program}");
        assert!(mappings.is_empty(), "{program}");
    }
}

/// A CommonJS module of that name, and another name, is no program.
#[test]
fn only_the_name_makes_a_program() {
    assert_eq!(code_of("program.ts", "1 + 1").0, "1 + 1");
    assert_eq!(
        Language::of("a.program.ts", abi::ModuleKind::CommonJs),
        Some(Language::TypeScript)
    );
}
