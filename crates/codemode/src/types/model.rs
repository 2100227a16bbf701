//! Types of TypeScript as values, simplified as they are put together and printed with the parentheses that they need.

use super::doc::Doc;
use crate::{json::quoted, names::is_identifier};
use std::fmt::Write;

/// How long an object's type may be to stand on one line.
const LINE_CHARS: usize = 90;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Unknown,
    Never,
    /// A keyword, a name, or a literal: what needs no parentheses anywhere.
    Atom(String),
    Array(Box<Type>),
    Tuple(Tuple),
    Object(ObjectType),
    Union(Vec<Type>),
    Intersection(Vec<Type>),
}

/// A tuple's elements: those that must be there, those that can, and what any others are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub(crate) required: Vec<Type>,
    pub(crate) optional: Vec<Type>,
    pub(crate) rest: Option<Box<Type>>,
}

/// An object's members, and what any others are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectType {
    pub(crate) members: Vec<Member>,
    pub(crate) index: Option<Index>,
}

/// What the members are that are not named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) doc: Doc,
    pub(crate) value: Box<Type>,
}

/// A named member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) is_optional: bool,
    pub(crate) value: Type,
    pub(crate) doc: Doc,
}

impl Type {
    pub(crate) fn atom(text: &str) -> Self {
        Self::Atom(text.to_owned())
    }

    pub(crate) fn array(items: Self) -> Self {
        Self::Array(Box::new(items))
    }

    /// One of several types.
    pub(crate) fn union(types: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        for one in types {
            match one {
                Self::Unknown => return Self::Unknown,
                Self::Never => {}
                Self::Union(within) => within.into_iter().for_each(|one| push_new(&mut all, one)),
                other => push_new(&mut all, other),
            }
        }
        match all.len() {
            0 => Self::Never,
            1 => all.swap_remove(0),
            _ => Self::Union(all),
        }
    }

    /// All of several types at once.
    pub(crate) fn intersection(types: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<Self> = Vec::new();
        for one in types {
            match one {
                Self::Unknown => {}
                Self::Never => return Self::Never,
                Self::Intersection(within) => {
                    within
                        .into_iter()
                        .for_each(|one| push_narrow(&mut all, one));
                }
                other => push_narrow(&mut all, other),
            }
        }
        match all.len() {
            0 => Self::Unknown,
            1 => all.swap_remove(0),
            _ => Self::Intersection(all),
        }
    }

    /// Whether an empty object could be of this type, as far as its shape says.
    pub(crate) fn is_all_optional(&self) -> bool {
        match self {
            Self::Object(object) => object.members.iter().all(|member| member.is_optional),
            _ => false,
        }
    }

    /// Prints the type. `indent` is that of the line on which it begins.
    pub(crate) fn print(&self, out: &mut String, indent: usize) {
        match self {
            Self::Unknown => out.push_str("unknown"),
            Self::Never => out.push_str("never"),
            Self::Atom(text) => out.push_str(text),
            Self::Array(items) => {
                items.print_within(out, indent);
                out.push_str("[]");
            }
            Self::Tuple(tuple) => tuple.print(out, indent),
            Self::Object(object) => object.print(out, indent),
            Self::Union(types) => {
                for (index, one) in types.iter().enumerate() {
                    if index > 0 {
                        out.push_str(" | ");
                    }
                    one.print(out, indent);
                }
            }
            Self::Intersection(types) => {
                for (index, one) in types.iter().enumerate() {
                    if index > 0 {
                        out.push_str(" & ");
                    }
                    one.print_within(out, indent);
                }
            }
        }
    }

    fn fits(&self, room: &mut usize) -> bool {
        match self {
            Self::Unknown | Self::Never => take(room, 7),
            Self::Atom(text) => take(room, text.len() + 2),
            Self::Array(items) => take(room, 2) && items.fits(room),
            Self::Tuple(tuple) => {
                let rest = tuple.rest.as_deref();
                let all = tuple.required.iter().chain(&tuple.optional).chain(rest);
                take(room, 2) && { all }.all(|one| take(room, 3) && one.fits(room))
            }
            Self::Object(object) => take(room, 4) && object.fits(room),
            Self::Union(types) | Self::Intersection(types) => {
                types.iter().all(|one| take(room, 3) && one.fits(room))
            }
        }
    }

    /// Prints the type as a part of another that binds more closely than `|` and `&`.
    fn print_within(&self, out: &mut String, indent: usize) {
        let is_loose = matches!(self, Self::Union(_) | Self::Intersection(_));
        if is_loose {
            out.push('(');
        }
        self.print(out, indent);
        if is_loose {
            out.push(')');
        }
    }
}

fn push_new(all: &mut Vec<Type>, one: Type) {
    if !all.contains(&one) {
        all.push(one);
    }
}

/// Adds a type to an intersection, as a part of one that is there where that says the same.
fn push_narrow(all: &mut Vec<Type>, one: Type) {
    for other in all.iter_mut() {
        if *other == one || is_narrower(other, &one) {
            return;
        }
        if is_narrower(&one, other) {
            *other = one;
            return;
        }
        if let (Type::Object(object), Type::Object(more)) = (&mut *other, &one)
            && object.index.is_none()
            && more.index.is_none()
        {
            object.merge(more);
            return;
        }
    }
    all.push(one);
}

/// Whether a type of literals and keywords says more than a keyword: `"a" | "b"` than `string`.
fn is_narrower(one: &Type, keyword: &Type) -> bool {
    let Type::Atom(keyword) = keyword else {
        return false;
    };
    let is_of = |literal: &Type| match (literal, keyword.as_str()) {
        (Type::Atom(text), "string") => text.starts_with('"') || text == "string",
        (Type::Atom(text), "number") => {
            text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
                || text == "number"
        }
        (Type::Atom(text), "boolean") => matches!(text.as_str(), "true" | "false" | "boolean"),
        _ => false,
    };
    match one {
        Type::Union(types) => types.iter().all(is_of),
        other => is_of(other),
    }
}

impl ObjectType {
    /// Adds the members of another: what both have must be of both types.
    fn merge(&mut self, more: &Self) {
        for member in &more.members {
            match self.members.iter_mut().find(|own| own.name == member.name) {
                None => self.members.push(member.clone()),
                Some(own) => {
                    own.is_optional &= member.is_optional;
                    let both = [own.value.clone(), member.value.clone()];
                    own.value = Type::intersection(both);
                    if own.doc.is_empty() {
                        own.doc = member.doc.clone();
                    }
                }
            }
        }
    }

    fn print(&self, out: &mut String, indent: usize) {
        if self.members.is_empty() && self.index.is_none() {
            out.push_str("{}");
            return;
        }
        if self.fits(&mut LINE_CHARS.clone()) {
            out.push_str("{ ");
            self.print_members(out, indent, " ");
            // Without the last semicolon.
            out.truncate(out.len() - 2);
            out.push_str(" }");
            return;
        }
        out.push_str("{\n");
        let within = indent + 1;
        push_indent(out, within);
        self.print_members(out, within, &format!("\n{}", "  ".repeat(within)));
        // The last separator was an indent too far.
        out.truncate(out.trim_end().len());
        out.push('\n');
        push_indent(out, indent);
        out.push('}');
    }

    /// Whether it fits on one line, about. Looks no further than that, so that nested objects are not measured over and
    /// over.
    fn fits(&self, room: &mut usize) -> bool {
        let members = self.members.iter().map(|member| {
            let chars = member.name.len() + 4;
            (chars, &member.value, &member.doc)
        });
        let index = self
            .index
            .iter()
            .map(|index| (18, &*index.value, &index.doc));
        members
            .chain(index)
            .all(|(chars, value, doc)| doc.is_empty() && take(room, chars) && value.fits(room))
    }

    fn print_members(&self, out: &mut String, indent: usize, separator: &str) {
        for member in &self.members {
            member.doc.print(out, indent);
            if is_identifier(&member.name) {
                out.push_str(&member.name);
            } else {
                out.push_str(&quoted(&member.name));
            }
            out.push_str(if member.is_optional { "?: " } else { ": " });
            member.value.print(out, indent);
            let _ = write!(out, ";{separator}");
        }
        if let Some(index) = &self.index {
            index.doc.print(out, indent);
            out.push_str("[key: string]: ");
            index.value.print(out, indent);
            let _ = write!(out, ";{separator}");
        }
    }
}

impl Tuple {
    fn print(&self, out: &mut String, indent: usize) {
        out.push('[');
        let mut separator = "";
        for one in &self.required {
            out.push_str(separator);
            one.print(out, indent);
            separator = ", ";
        }
        for one in &self.optional {
            out.push_str(separator);
            one.print_within(out, indent);
            out.push('?');
            separator = ", ";
        }
        if let Some(rest) = &self.rest {
            out.push_str(separator);
            out.push_str("...");
            rest.print_within(out, indent);
            out.push_str("[]");
        }
        out.push(']');
    }
}

fn take(room: &mut usize, chars: usize) -> bool {
    let left = room.checked_sub(chars);
    *room = left.unwrap_or(0);
    left.is_some()
}

pub(crate) fn push_indent(out: &mut String, indent: usize) {
    for _ in 0..indent {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(one: &Type) -> String {
        let mut out = String::new();
        one.print(&mut out, 0);
        out
    }

    fn string() -> Type {
        Type::atom("string")
    }

    fn number() -> Type {
        Type::atom("number")
    }

    fn object(name: &str, is_optional: bool, value: Type) -> Type {
        Type::Object(ObjectType {
            members: vec![Member {
                name: name.into(),
                is_optional,
                value,
                doc: Doc::default(),
            }],
            index: None,
        })
    }

    /// What binds loosely is in parentheses where something binds more closely.
    #[test]
    fn parentheses_are_where_they_must_be() {
        let both = Type::union([string(), number()]);
        assert_eq!(printed(&Type::array(both.clone())), "(string | number)[]");
        let name = Type::atom("A");
        let all = Type::intersection([name.clone(), both.clone()]);
        assert_eq!(printed(&all), "A & (string | number)");
        assert_eq!(
            printed(&Type::array(all.clone())),
            "(A & (string | number))[]"
        );
        let tuple = Type::Tuple(Tuple {
            required: vec![both.clone()],
            optional: vec![both.clone()],
            rest: Some(Box::new(both)),
        });
        assert_eq!(
            printed(&tuple),
            "[string | number, (string | number)?, ...(string | number)[]]"
        );
        assert_eq!(printed(&Type::array(Type::array(string()))), "string[][]");
    }

    /// Unions and intersections say nothing twice, and nothing that another part says already.
    #[test]
    fn types_are_simplified() {
        assert_eq!(Type::union([string(), Type::Never, string()]), string());
        assert_eq!(Type::union([string(), Type::Unknown]), Type::Unknown);
        assert_eq!(Type::union([]), Type::Never);
        assert_eq!(Type::intersection([Type::Unknown, string()]), string());
        assert_eq!(Type::intersection([string(), Type::Never]), Type::Never);
        let literals = Type::union([Type::atom("\"a\""), Type::atom("\"b\"")]);
        assert_eq!(
            Type::intersection([string(), literals.clone()]),
            literals.clone()
        );
        assert_eq!(Type::intersection([literals.clone(), string()]), literals);
    }

    /// Objects without an index are one object, in which what either requires is required.
    #[test]
    fn objects_are_merged() {
        let all = Type::intersection([
            object("a", true, string()),
            object("b", false, number()),
            object("a", false, Type::Unknown),
        ]);
        assert_eq!(printed(&all), "{ a: string; b: number }");
    }

    /// Names that are no identifiers are quoted.
    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, expected) in [
            ("a", "{ a: string }"),
            ("delete", "{ delete: string }"),
            ("x-y", "{ \"x-y\": string }"),
            ("1", "{ \"1\": string }"),
            ("", "{ \"\": string }"),
            ("a\"\\\n", "{ \"a\\\"\\\\\\n\": string }"),
        ] {
            assert_eq!(printed(&object(name, false, string())), expected);
        }
    }
}
