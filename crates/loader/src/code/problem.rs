//! What [`check`](crate::check) reports: every problem with its place, a code for programs and a
//! text for people.
//!
//! The texts quote names of a stranger's choosing, so they are shortened and escaped here, in one
//! place.

use std::fmt;

/// How many problems are reported one by one; of the rest only the number.
pub const PROBLEMS_MAX: usize = 100;

/// How much of a name is quoted.
const QUOTE_CHARS_MAX: usize = 120;

/// One thing that is wrong with a worker's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: a JSON pointer into the worker's code, such as `/modules/lib~1a.js` or
    /// `/compatibilityFlags/0`.
    pub path: String,
    /// What, for programs.
    pub code: ProblemCode,
    /// What, for people: word for word workerd's text where it has one.
    pub message: String,
    /// What to do about it; empty where the message says it already.
    pub fix: String,
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProblemCode {
    /// The compatibility date is not a date.
    CompatibilityDateInvalid,
    /// The compatibility date is newer than what this server knows.
    CompatibilityDateTooNew,
    /// No compatibility flag has this name.
    CompatibilityFlagUnknown,
    /// A compatibility flag stands there twice.
    CompatibilityFlagRepeated,
    /// There is no module.
    ModulesMissing,
    /// There are more modules than [`MODULES_MAX`](crate::MODULES_MAX).
    ModulesTooMany,
    /// The modules are larger than `code_bytes_max` together.
    CodeTooLarge,
    /// A module's name is empty, too long, or has characters that no name may have.
    ModuleNameInvalid,
    /// A module's name belongs to the runtime.
    ModuleNameReserved,
    /// Two modules have the same name.
    ModuleNameRepeated,
    /// A module has no body.
    ModuleBodyMissing,
    /// A module is WebAssembly.
    ModuleWasm,
    /// A JSON module does not parse.
    ModuleJsonInvalid,
    /// The main module is not among the modules.
    MainModuleMissing,
    /// The main module is not an ES module.
    MainModuleNotEsModule,
    /// `env` is a value other than an object.
    EnvNotObject,
    /// `env` is larger than `env_bytes_max`.
    EnvTooLarge,
    /// `env` is not well-formed, or is nested too deeply.
    EnvInvalid,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path, message, fix, ..
        } = self;
        write!(f, "{path}: {message}")?;
        if !fix.is_empty() {
            write!(f, " ({fix})")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a worker's code; one line each when displayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    problems: Vec<Problem>,
    unlisted: usize,
}

impl Problems {
    /// The problems, in the order in which they were found; at most [`PROBLEMS_MAX`].
    pub fn listed(&self) -> &[Problem] {
        &self.problems
    }

    /// How many more there are than are listed.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn push(&mut self, path: String, code: ProblemCode, message: String, fix: String) {
        if self.problems.len() == PROBLEMS_MAX {
            self.unlisted += 1;
        } else {
            self.problems.push(Problem {
                path,
                code,
                message,
                fix,
            });
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{problem}")?;
        }
        if self.unlisted > 0 {
            write!(f, "\nand {} more", self.unlisted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A stranger's text, fit for an error: shortened, with control characters escaped so that it stays
/// on its line.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == QUOTE_CHARS_MAX {
            shown.push('…');
            break;
        }
        push_visible(&mut shown, character);
    }
    shown
}

/// The JSON pointer to the member `name` of `parent`.
pub(super) fn pointer(parent: &str, name: &str) -> String {
    let mut pointer = format!("{parent}/");
    for character in shown(name).chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
    pointer
}

fn push_visible(text: &mut String, character: char) {
    // U+2028 and U+2029 end a line too, and U+202A to U+202E turn the writing direction of what
    // follows.
    if character.is_control() || ('\u{2028}'..='\u{202e}').contains(&character) {
        text.extend(character.escape_unicode());
    } else {
        text.push(character);
    }
}
