//! Every bound of this crate, in one table: the only place that says a default and what happens beyond it.
//!
//! `docs/codemode.md` has the same table, made by [`limits_table_markdown`]; a test compares the two.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What the documentation and the configuration say of a limit.
#[derive(Clone, Copy, Debug)]
pub struct LimitSpec {
    /// The name as it is spelled everywhere.
    pub name: &'static str,
    /// What the number counts.
    pub unit: &'static str,
    /// What holds where nobody said anything.
    pub default: usize,
    /// What happens beyond it.
    pub outcome: &'static str,
    /// What it limits, in one sentence.
    pub description: &'static str,
}

/// Something is larger than it may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} has {value} {unit}, {max} are allowed ({limit})")]
pub struct LimitExceeded {
    /// The limit's name.
    pub limit: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// How many are allowed.
    pub max: usize,
    /// How many there are, or the first that was too many where counting ended there.
    pub value: usize,
    /// Where.
    pub place: String,
}

macro_rules! limits {
    ($($name:ident, $unit:literal, $default:expr, $outcome:literal, $description:literal;)*) => {
        /// The limits in force. Whatever is not set has its default.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits {
            $(#[doc = $description] pub $name: usize,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            /// What an error or a table says of a limit.
            #[must_use]
            pub fn spec(name: &str) -> Option<&'static LimitSpec> {
                LIMIT_SPECS.iter().find(|spec| spec.name == name)
            }

            $(
                #[doc = concat!("Refuses more than `", stringify!($name), "`.\n\n# Errors\n\nIt is more.")]
                pub fn $name(&self, value: usize, place: &str) -> Result<(), LimitExceeded> {
                    if value <= self.$name {
                        return Ok(());
                    }
                    Err(LimitExceeded {
                        limit: stringify!($name),
                        unit: $unit,
                        max: self.$name,
                        value,
                        place: place.to_owned(),
                    })
                }
            )*
        }

        /// Every limit, in the order of the documentation.
        pub const LIMIT_SPECS: &[LimitSpec] = &[
            $(LimitSpec {
                name: stringify!($name),
                unit: $unit,
                default: $default,
                outcome: $outcome,
                description: $description,
            },)*
        ];
    };
}

limits! {
    program_chars_max, "characters", 262_144, "refused", "A program that is to be run.";
    result_chars_max, "characters", 24_000, "shortened", "What a model is shown of a result, as JSON; the caller keeps the whole.";
    preview_depth_max, "levels", 64, "shortened", "Nesting of what a model is shown of a result.";
    name_bytes_max, "bytes", 128, "shortened", "The name that a program calls a tool by.";
    tools_max, "tools", 100_000, "refused", "Tools of one namespace.";
    schema_depth_max, "levels", 64, "refused", "Nesting of one JSON Schema, not counting what it refers to.";
    schema_nodes_max, "values", 100_000, "refused", "Values in one JSON Schema of a tool.";
    pattern_bytes_max, "bytes", 4_096, "not checked", "A regular expression of a schema.";
    pattern_compiled_bytes_max, "bytes", 262_144, "not checked", "A regular expression of a schema, compiled.";
    patterns_max, "patterns", 250, "not checked", "Regular expressions of one schema and what it refers to.";
    arguments_depth_max, "levels", 64, "refused", "Nesting of a call's arguments.";
    arguments_nodes_max, "values", 100_000, "refused", "Values in a call's arguments.";
    validation_steps_max, "steps", 1_000_000, "refused", "Steps of validating one call's arguments: a schema met by a value, or a value compared.";
    validation_nesting_max, "levels", 256, "refused", "Schemas within schemas that are underway at once while validating.";
    problems_max, "problems", 16, "left out", "Problems that are told of one call's arguments or one document.";
    types_tokens_max, "tokens", 6_000, "shortened", "Declarations that are shown at once, by estimate.";
    types_references_max, "types", 2_000, "shortened", "Named types in the declarations of one namespace.";
    description_chars_max, "characters", 4_000, "shortened", "A description in declarations and in search results.";
    document_bytes_max, "bytes", 33_554_432, "refused", "An OpenAPI document.";
    document_depth_max, "levels", 128, "refused", "Nesting of an OpenAPI document.";
    document_nodes_max, "values", 4_000_000, "refused", "Values in an OpenAPI document, those that YAML aliases repeat counted each time.";
    operations_max, "operations", 20_000, "refused", "Operations of an OpenAPI document.";
    parameters_max, "parameters", 256, "skipped", "Parameters of one operation.";
    reference_hops_max, "references", 32, "skipped", "References that lead to references.";
    url_bytes_max, "bytes", 65_536, "refused", "The URL of a request.";
    body_bytes_max, "bytes", 33_554_432, "refused", "The body of a request.";
    query_chars_max, "characters", 1_000, "shortened", "What is searched for.";
    query_words_max, "words", 32, "shortened", "Words of what is searched for.";
    search_results_max, "tools", 50, "shortened", "Tools on one page of search results.";
    suggestions_max, "tools", 5, "left out", "Names that are suggested where one is not found.";
    rules_max, "rules", 1_000, "refused", "Rules of a policy, and budgets of single tools.";
    glob_bytes_max, "bytes", 256, "refused", "A glob of a policy.";
    calls_max, "calls", 1_000, "refused", "Calls of tools in one run.";
    calls_in_flight_max, "calls", 32, "queued", "Calls of tools in one run that are underway at once.";
    call_arguments_bytes_max, "bytes", 1_048_576, "refused", "The arguments of a call, as JSON.";
    call_result_bytes_max, "bytes", 4_194_304, "refused", "The result of a call, as JSON.";
    unawaited_ms_max, "milliseconds", 5_000, "given up", "What calls that a program has not waited for get to end after it.";
    server_connect_ms_max, "milliseconds", 30_000, "given up", "What an MCP server gets to start, greet and list its tools.";
    server_call_ms_max, "milliseconds", 60_000, "given up", "A call of an MCP server's tool.";
    server_message_bytes_max, "bytes", 8_388_608, "dropped", "One message of an MCP server's.";
    server_pages_max, "pages", 1_000, "refused", "Pages of an MCP server's list of tools.";
    server_list_bytes_max, "bytes", 33_554_432, "refused", "An MCP server's list of tools, as JSON.";
    log_chars_max, "characters", 6_000, "shortened", "What a model is shown of a run's console output.";
}

/// The table as `docs/codemode.md` has it.
#[must_use]
pub fn limits_table_markdown() -> String {
    let mut table = String::from(
        "| limit | unit | default | beyond it | what it limits |\n|---|---|---:|---|---|\n",
    );
    for spec in LIMIT_SPECS {
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} |",
            spec.name,
            spec.unit,
            grouped(spec.default),
            spec.outcome,
            spec.description
        );
    }
    table
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Two sets of bounds with a name, for a program and for what is shown of its result.
impl Limits {
    /// Those of the article that made Code Mode known: 20,000 characters of program and 12,000 of result.
    #[must_use]
    pub fn article() -> Self {
        Self {
            program_chars_max: 20_000,
            result_chars_max: 12_000,
            ..Self::default()
        }
    }

    /// Refuses a program that is too long.
    ///
    /// # Errors
    ///
    /// It has more than `program_chars_max` characters.
    pub fn check_program(&self, program: &str) -> Result<(), LimitExceeded> {
        // Counting bytes first spares reading a program that is far too long.
        if program.len() <= self.program_chars_max {
            return Ok(());
        }
        self.program_chars_max(program.chars().count(), "the program")
    }
}
