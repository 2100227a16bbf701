//! What models are shown of tools: declarations of TypeScript.
//!
//! Each namespace becomes a `declare namespace` with a function for each tool. Types stand where they are used; what a schema
//! refers to becomes a named type, so that cycles are what they are. Declarations fit a budget of tokens: where they do not,
//! less is said in steps, always the same, and a comment says what was left out.
//!
//! Types say what a program may rely on and what it should send. They are not what is checked before a call; that is
//! [`crate::validate`].

mod convert;
mod doc;
mod model;

pub(crate) use convert::{is_bytes as is_bytes_schema, is_of_type};

use crate::{Limits, Schema};
use convert::{Converter, Detail, Direction};
use doc::{Doc, Words};
use model::{Type, push_indent};
use std::fmt::Write;

/// A tool to be declared.
#[derive(Clone, Debug)]
pub struct ToolSignature<'a> {
    /// What it is called in a program; see [`crate::ToolNames`].
    pub identifier: &'a str,
    /// What it does.
    pub description: &'a str,
    /// Whether it should not be used any more.
    pub is_deprecated: bool,
    /// What it takes. Without one, nothing.
    pub input: Option<&'a Schema>,
    /// What comes back. Without one, nobody knows.
    pub output: Option<&'a Schema>,
}

/// The tools of a namespace to be declared.
#[derive(Clone, Debug)]
pub struct NamespaceSignature<'a> {
    /// What it is called in a program.
    pub name: &'a str,
    /// What it is for.
    pub description: &'a str,
    /// Its tools, the most important first: the last are the first to be left out.
    pub tools: Vec<ToolSignature<'a>>,
}

/// Declarations of TypeScript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declarations {
    /// The text.
    pub text: String,
    /// How many tokens that is, by [`tokens_estimated`].
    pub tokens: usize,
    /// What was left out to fit, in words; empty where nothing was.
    pub cuts: Vec<&'static str>,
    /// How many tools, the last ones, were left out.
    pub tools_omitted: usize,
}

/// How many tokens a text is, about: three and a half bytes each, which is on the high side for code and English. Tokenizers
/// differ, and a budget needs no exact one.
#[must_use]
pub fn tokens_estimated(text: &str) -> usize {
    (text.len() * 2).div_ceil(7)
}

/// The least that a budget is.
const TOKENS_LEAST: usize = 64;
/// What a tool takes at least.
const TOOL_TOKENS_LEAST: usize = 8;

/// A step in which less is said.
struct Step {
    /// What it leaves out that the step before does not.
    cut: &'static str,
    /// What it and those before leave out, for whoever reads the declarations.
    note: &'static str,
    detail: Detail,
}

/// The steps, from all to little.
const STEPS: [Step; 6] = [
    Step {
        cut: "",
        note: "",
        detail: Detail {
            tool_words: Words::All,
            words: Words::All,
            enum_values: usize::MAX,
            distance: usize::MAX,
            nesting: usize::MAX,
            has_outputs: true,
        },
    },
    Step {
        cut: "descriptions beyond their first sentence",
        note: "all but the first sentence of descriptions is left out",
        detail: Detail {
            tool_words: Words::All,
            words: Words::Sentence,
            enum_values: usize::MAX,
            distance: 8,
            nesting: 16,
            has_outputs: true,
        },
    },
    Step {
        cut: "descriptions of properties, and long enumerations",
        note: "descriptions of properties and long enumerations are left out",
        detail: Detail {
            tool_words: Words::Sentence,
            words: Words::None,
            enum_values: 24,
            distance: 3,
            nesting: 8,
            has_outputs: true,
        },
    },
    Step {
        cut: "types that are far away",
        note: "descriptions of properties and types that are far away are left out",
        detail: Detail {
            tool_words: Words::Sentence,
            words: Words::None,
            enum_values: 12,
            distance: 1,
            nesting: 4,
            has_outputs: true,
        },
    },
    Step {
        cut: "types of results",
        note: "descriptions of properties and types of results are left out",
        detail: Detail {
            tool_words: Words::Sentence,
            words: Words::None,
            enum_values: 12,
            distance: 1,
            nesting: 3,
            has_outputs: false,
        },
    },
    Step {
        cut: "types within arguments, and descriptions",
        note: "descriptions and most types are left out",
        detail: Detail {
            tool_words: Words::None,
            words: Words::None,
            enum_values: 6,
            distance: 0,
            nesting: 1,
            has_outputs: false,
        },
    },
];

/// Declares tools within `types_tokens_max`, or 64 tokens if that is less.
#[must_use]
pub fn declare(namespaces: &[NamespaceSignature<'_>], limits: &Limits) -> Declarations {
    let tokens_max = limits.types_tokens_max.max(TOKENS_LEAST);
    let tool_count: usize = namespaces.iter().map(|one| one.tools.len()).sum();
    // More than could be shown are not looked at, however many there are.
    let considered = considered(namespaces, tokens_max / TOOL_TOKENS_LEAST);
    let considered_count: usize = considered.iter().map(|one| one.tools.len()).sum();
    if considered_count == tool_count {
        for step in 0..STEPS.len() {
            if let Some(found) = attempt(&considered, step, 0, tokens_max, limits) {
                return found;
            }
        }
    }
    // As many of the first as fit: between what fits and what does not.
    let last_step = STEPS.len() - 1;
    let (mut fits, mut fits_not) = (0, considered_count + 1);
    let mut best = None;
    while fits_not - fits > 1 {
        let count = usize::midpoint(fits, fits_not);
        let first = self::considered(&considered, count);
        match attempt(&first, last_step, tool_count - count, tokens_max, limits) {
            Some(found) => {
                best = Some(found);
                fits = count;
            }
            None => fits_not = count,
        }
    }
    let none = || attempt(&[], last_step, tool_count, usize::MAX, limits);
    best.or_else(none).unwrap_or_else(|| Declarations {
        text: String::new(),
        tokens: 0,
        cuts: Vec::new(),
        tools_omitted: tool_count,
    })
}

/// The namespaces with the first tools of them.
fn considered<'a>(
    namespaces: &[NamespaceSignature<'a>],
    mut count: usize,
) -> Vec<NamespaceSignature<'a>> {
    let mut considered = Vec::new();
    for namespace in namespaces {
        let tools = &namespace.tools[..namespace.tools.len().min(count)];
        count -= tools.len();
        if !tools.is_empty() {
            considered.push(NamespaceSignature {
                tools: tools.to_vec(),
                ..*namespace
            });
        }
    }
    considered
}

/// The declarations at one step, if they fit.
fn attempt(
    namespaces: &[NamespaceSignature<'_>],
    step: usize,
    tools_omitted: usize,
    tokens_max: usize,
    limits: &Limits,
) -> Option<Declarations> {
    let mut body = String::new();
    let mut is_cut = false;
    for namespace in namespaces {
        let detail = &STEPS[step].detail;
        is_cut |= print_namespace(namespace, detail, tokens_max, limits, &mut body)?;
    }
    let mut cuts: Vec<_> = STEPS[1..=step].iter().map(|step| step.cut).collect();
    let mut note = STEPS[step].note;
    if cuts.is_empty() && is_cut {
        cuts.push("some of the types");
        note = "some of the types are left out";
    }
    let mut text = String::new();
    if !cuts.is_empty() {
        let _ = writeln!(text, "// Shortened: {note}.");
    }
    if tools_omitted > 0 {
        let _ = writeln!(
            text,
            "// {tools_omitted} more tools are not shown; search for them."
        );
    }
    text.push_str(&body);
    let tokens = tokens_estimated(&text);
    (tokens <= tokens_max).then_some(Declarations {
        text,
        tokens,
        cuts,
        tools_omitted,
    })
}

/// Prints a namespace and says whether types were left out of it; nothing where it is too long already.
fn print_namespace(
    namespace: &NamespaceSignature<'_>,
    detail: &Detail,
    tokens_max: usize,
    limits: &Limits,
    out: &mut String,
) -> Option<bool> {
    let mut converter = Converter::new(*detail, limits);
    let is_too_long = |out: &String| tokens_estimated(out) > tokens_max;
    let description = limits.description_chars_max;
    Doc::of_text(namespace.description, detail.tool_words, description).print(out, 0);
    let start = out.trim_end().len();
    out.truncate(start);
    if start > 0 {
        out.push('\n');
    }
    let _ = writeln!(out, "declare namespace {} {{", namespace.name);
    for tool in &namespace.tools {
        print_tool(tool, detail, &mut converter, limits, out);
        if is_too_long(out) {
            return None;
        }
    }
    let mut printed = 0;
    while converter.make_next() {
        let alias = &converter.aliases[printed];
        push_indent(out, 1);
        alias.doc.print(out, 1);
        let _ = write!(out, "type {} = ", alias.name);
        let body = alias.body.as_ref().unwrap_or(&Type::Unknown);
        body.print(out, 1);
        out.push_str(";\n");
        printed += 1;
        if is_too_long(out) {
            return None;
        }
    }
    out.push_str("}\n");
    Some(converter.is_cut)
}

fn print_tool<'a>(
    tool: &ToolSignature<'a>,
    detail: &Detail,
    converter: &mut Converter<'a>,
    limits: &Limits,
    out: &mut String,
) {
    let input = tool
        .input
        .map(|schema| converter.of_schema(schema, Direction::Input, tool.identifier));
    let output = match tool.output {
        Some(schema) if detail.has_outputs => {
            converter.of_schema(schema, Direction::Output, tool.identifier)
        }
        _ => Type::Unknown,
    };
    let chars_max = limits.description_chars_max;
    let mut doc = Doc::of_text(tool.description, detail.tool_words, chars_max);
    if tool.is_deprecated {
        doc.tag("deprecated", "");
    }
    push_indent(out, 1);
    doc.print(out, 1);
    let _ = write!(out, "function {}(", tool.identifier);
    match input {
        Some(input) if !takes_nothing(&input) => {
            let is_optional = input.is_all_optional();
            out.push_str(if is_optional { "input?: " } else { "input: " });
            input.print(out, 1);
        }
        _ => {}
    }
    out.push_str("): Promise<");
    output.print(out, 1);
    out.push_str(">;\n");
}

/// Whether there is nothing that could be sent.
fn takes_nothing(input: &Type) -> bool {
    match input {
        Type::Object(object) => {
            let has_others = object
                .index
                .as_ref()
                .is_some_and(|index| *index.value != Type::Never);
            object.members.is_empty() && !has_others
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
