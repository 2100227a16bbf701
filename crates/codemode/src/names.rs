//! What tools and namespaces are called in a program.
//!
//! Names come from outside, as anything. Here they become identifiers, so that a program writes `github.list_issues`. A tool
//! whose own name is an identifier keeps it, always; the others are spelled anew, and where two would be spelled alike each
//! of those gets a suffix made of its own name. So what a tool is called does not depend on the order in which tools are
//! listed, and hardly on which others there are.

use crate::{LimitExceeded, Limits};
use std::collections::{BTreeMap, BTreeSet};

/// Words that can't name a function, or would mean something else in a namespace: a promise is what has `then`, and
/// `JSON.stringify` calls `toJSON`.
const RESERVED: &[&str] = &[
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "abstract",
    "any",
    "arguments",
    "as",
    "async",
    "await",
    "boolean",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constructor",
    "continue",
    "debugger",
    "declare",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "get",
    "hasOwnProperty",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "isPrototypeOf",
    "let",
    "new",
    "null",
    "of",
    "package",
    "private",
    "propertyIsEnumerable",
    "protected",
    "prototype",
    "public",
    "return",
    "set",
    "static",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "toJSON",
    "toLocaleString",
    "toString",
    "true",
    "try",
    "typeof",
    "undefined",
    "valueOf",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Globals of a program that no namespace may hide.
const GLOBALS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "Array",
    "ArrayBuffer",
    "BigInt",
    "Blob",
    "Boolean",
    "Buffer",
    "DataView",
    "Date",
    "Error",
    "Event",
    "EventTarget",
    "File",
    "FormData",
    "Function",
    "Headers",
    "Infinity",
    "Intl",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "ReadableStream",
    "Reflect",
    "RegExp",
    "Request",
    "Response",
    "Set",
    "String",
    "Symbol",
    "TextDecoder",
    "TextEncoder",
    "TransformStream",
    "URL",
    "URLSearchParams",
    "Uint8Array",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "WebAssembly",
    "WebSocket",
    "WritableStream",
    "atob",
    "btoa",
    "clearInterval",
    "clearTimeout",
    "codemode",
    "console",
    "crypto",
    "env",
    "exports",
    "fetch",
    "global",
    "globalThis",
    "isFinite",
    "isNaN",
    "module",
    "navigator",
    "parseFloat",
    "parseInt",
    "performance",
    "process",
    "queueMicrotask",
    "require",
    "scheduler",
    "self",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "window",
];

/// Why names can't be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Two tools of one namespace have the same name of their own.
    #[error("two tools are called {0:?}")]
    ToolTwice(String),
    /// Too many tools.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A namespace that is called like something else in a program.
    #[error("a namespace can't be called {0:?}, which means something else in a program")]
    NamespaceReserved(String),
    /// Two namespaces would be spelled alike.
    #[error("the namespaces {0:?} and {1:?} would both be called {2}: rename one of them")]
    NamespaceTwice(String, String, String),
    /// A namespace without a name.
    #[error("a namespace needs a name")]
    NamespaceEmpty,
}

/// Blocks of letters that Unicode has added nothing to for long. Engines and compilers have tables of different versions, so a
/// letter of last year's is an identifier to one and an error to another.
const LETTERS: [(char, char); 11] = [
    ('\0', '\u{24f}'),        // Latin
    ('\u{370}', '\u{3ff}'),   // Greek
    ('\u{400}', '\u{52f}'),   // Cyrillic
    ('\u{590}', '\u{5ff}'),   // Hebrew
    ('\u{600}', '\u{6ff}'),   // Arabic
    ('\u{900}', '\u{97f}'),   // Devanagari
    ('\u{e00}', '\u{e7f}'),   // Thai
    ('\u{3040}', '\u{30ff}'), // Japanese
    ('\u{3400}', '\u{4dbf}'), // Chinese
    ('\u{4e00}', '\u{9fff}'), // Chinese
    ('\u{ac00}', '\u{d7a3}'), // Korean
];

/// Whether a text is an identifier of JavaScript to all engines. (Reserved words are too.)
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(is_start) && characters.all(is_continue)
}

pub(crate) fn is_start(character: char) -> bool {
    matches!(character, '_' | '$')
        || is_of_letters(character) && unicode_ident::is_xid_start(character)
}

pub(crate) fn is_continue(character: char) -> bool {
    character == '$' || is_of_letters(character) && unicode_ident::is_xid_continue(character)
}

fn is_of_letters(character: char) -> bool {
    LETTERS
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&character))
}

fn is_reserved(name: &str) -> bool {
    RESERVED.binary_search(&name).is_ok()
}

/// A name spelled as an identifier: what can't be in one becomes `_`, and so does what keeps it from being one.
#[must_use]
pub fn sanitize(name: &str, limits: &Limits) -> String {
    let mut out = String::new();
    for character in name.chars() {
        let spelled = if is_continue(character) {
            character
        } else {
            '_'
        };
        if out.is_empty() && !is_start(spelled) {
            out.push('_');
        }
        // Room for a suffix is left.
        if out.len() + spelled.len_utf8() + 10 > limits.name_bytes_max {
            break;
        }
        out.push(spelled);
    }
    if out.is_empty() || is_reserved(&out) {
        out.push('_');
    }
    out
}

/// The names of a namespace's tools, both ways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNames {
    by_identifier: BTreeMap<String, String>,
    by_own: BTreeMap<String, String>,
}

impl ToolNames {
    /// Gives each of a namespace's tools an identifier of its own.
    ///
    /// # Errors
    ///
    /// Two have the same name of their own, or there are too many.
    pub fn new<'a>(
        own_names: impl IntoIterator<Item = &'a str>,
        limits: &Limits,
    ) -> Result<Self, NameError> {
        let mut spelled: BTreeMap<&str, String> = BTreeMap::new();
        let mut count_by_spelling: BTreeMap<String, usize> = BTreeMap::new();
        for own in own_names {
            let identifier = sanitize(own, limits);
            *count_by_spelling.entry(identifier.clone()).or_default() += 1;
            if spelled.insert(own, identifier).is_some() {
                return Err(NameError::ToolTwice(own.to_owned()));
            }
            limits.tools_max(spelled.len(), "the namespace")?;
        }
        // Those that are free to choose come last; a suffix can be taken by a tool that has such a name itself.
        let mut taken: BTreeSet<String> = spelled
            .iter()
            .filter(|(own, identifier)| {
                *own == identifier || count_by_spelling[identifier.as_str()] == 1
            })
            .map(|(_, identifier)| identifier.clone())
            .collect();
        let mut names = Self::default();
        for (own, identifier) in spelled {
            let identifier = if own == identifier || count_by_spelling[&identifier] == 1 {
                identifier
            } else {
                let suffixed = (0..)
                    .map(|round| format!("{identifier}_{}", suffix(own, round)))
                    .find(|suffixed| !taken.contains(suffixed));
                suffixed.unwrap_or(identifier)
            };
            taken.insert(identifier.clone());
            names
                .by_identifier
                .insert(identifier.clone(), own.to_owned());
            names.by_own.insert(own.to_owned(), identifier);
        }
        Ok(names)
    }

    /// A tool's own name.
    #[must_use]
    pub fn own(&self, identifier: &str) -> Option<&str> {
        self.by_identifier.get(identifier).map(String::as_str)
    }

    /// What a tool is called in a program.
    #[must_use]
    pub fn identifier(&self, own: &str) -> Option<&str> {
        self.by_own.get(own).map(String::as_str)
    }

    /// All tools, as (identifier, own name), by identifier.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_identifier
            .iter()
            .map(|(identifier, own)| (identifier.as_str(), own.as_str()))
    }
}

/// Four hexadecimal digits that a name always has, and eight where those are taken.
fn suffix(own: &str, round: u32) -> String {
    // FNV-1a. Nothing depends on its quality: what is taken is looked up.
    let hash = |seed: u32| {
        own.bytes().fold(0x811c_9dc5 ^ seed, |hash: u32, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
    };
    match round {
        0 => format!("{:04x}", hash(0) & 0xffff),
        round => format!("{:08x}", hash(round - 1)),
    }
}

/// What each namespace is called in a program, in the given order.
///
/// Whoever configures namespaces chooses their names, so what collides is refused and not renamed.
///
/// # Errors
///
/// One is empty or reserved, or two would be called alike.
pub fn namespace_names<'a>(
    own_names: impl IntoIterator<Item = &'a str>,
    limits: &Limits,
) -> Result<Vec<String>, NameError> {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    let mut names = Vec::new();
    for own in own_names {
        if own.is_empty() {
            return Err(NameError::NamespaceEmpty);
        }
        let name = sanitize(own, limits);
        if is_reserved(own) || GLOBALS.binary_search(&name.as_str()).is_ok() {
            return Err(NameError::NamespaceReserved(own.to_owned()));
        }
        if let Some(other) = owners.insert(name.clone(), own) {
            return Err(NameError::NamespaceTwice(
                other.to_owned(),
                own.to_owned(),
                name,
            ));
        }
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(own: &[&str]) -> ToolNames {
        ToolNames::new(own.iter().copied(), &Limits::default()).unwrap()
    }

    /// Looking words up wants them sorted.
    #[test]
    fn the_lists_are_sorted() {
        assert!(RESERVED.is_sorted());
        assert!(GLOBALS.is_sorted());
    }

    /// What a name becomes is for people to foresee.
    #[test]
    fn names_become_identifiers() {
        for (own, expected) in [
            ("list_issues", "list_issues"),
            ("github.list-issues", "github_list_issues"),
            ("get user", "get_user"),
            ("123abc", "_123abc"),
            ("delete", "delete_"),
            ("日本", "日本"),
            ("straße", "straße"),
            ("\u{113c2}a", "_a"),
            ("😀", "_"),
            ("", "_"),
            ("then", "then_"),
            ("toJSON", "toJSON_"),
            ("constructor", "constructor_"),
            ("__proto__", "__proto___"),
            ("a/b:c", "a_b_c"),
            ("$ref", "$ref"),
        ] {
            assert_eq!(sanitize(own, &Limits::default()), expected, "{own}");
        }
    }

    /// A tool whose own name is an identifier keeps it, whoever else would be spelled so.
    #[test]
    fn identifiers_keep_their_names() {
        let names = names(&["get-x", "get_x", "get.x"]);
        assert_eq!(names.identifier("get_x"), Some("get_x"));
        assert_eq!(names.own("get_x"), Some("get_x"));
        let renamed = names.identifier("get-x").unwrap();
        assert!(renamed.starts_with("get_x_") && renamed.len() == 10);
        assert_eq!(names.own(renamed), Some("get-x"));
    }

    /// The order in which a server lists its tools means nothing.
    #[test]
    fn the_order_means_nothing() {
        assert_eq!(names(&["a-b", "a.b", "c"]), names(&["c", "a.b", "a-b"]));
    }

    /// Two tools of one name are refused by that name.
    #[test]
    fn a_tool_listed_twice_is_refused() {
        let error = ToolNames::new(["a", "b", "a"], &Limits::default()).unwrap_err();
        assert_eq!(error, NameError::ToolTwice("a".into()));
    }

    /// No namespace hides what a program needs, and none is renamed silently.
    #[test]
    fn namespaces_are_named_or_refused() {
        let limits = Limits::default();
        let given = |own: &[&str]| namespace_names(own.iter().copied(), &limits);
        assert_eq!(
            given(&["github", "my-server"]),
            Ok(vec!["github".into(), "my_server".into()])
        );
        for reserved in [
            "console",
            "fetch",
            "Promise",
            "__proto__",
            "await",
            "codemode",
            "then",
        ] {
            assert_eq!(
                given(&[reserved]),
                Err(NameError::NamespaceReserved(reserved.into()))
            );
        }
        let twice = given(&["a-b", "a.b"]).unwrap_err().to_string();
        assert!(twice.contains("\"a-b\" and \"a.b\""), "{twice}");
        assert_eq!(given(&[""]), Err(NameError::NamespaceEmpty));
    }

    proptest! {
        /// Every name becomes an identifier of bounded length that is not reserved, no two become the same, and each leads
        /// back to its tool.
        #[test]
        fn names_are_identifiers_and_lead_back(
            own in proptest::collection::btree_set(
                prop_oneof!["[a-c_.-]{0,4}", "\\PC{0,6}", "(then|get|__proto__|a_[0-9a-f]{4})", ".{120,200}"],
                0..40,
            ),
        ) {
            let limits = Limits::default();
            let names = ToolNames::new(own.iter().map(String::as_str), &limits).unwrap();
            prop_assert_eq!(names.iter().count(), own.len());
            for own in &own {
                let identifier = names.identifier(own).unwrap();
                prop_assert!(is_identifier(identifier) && !is_reserved(identifier), "{identifier}");
                prop_assert!(identifier.len() <= limits.name_bytes_max, "{identifier}");
                prop_assert_eq!(names.own(identifier), Some(own.as_str()));
            }
        }
    }
}
