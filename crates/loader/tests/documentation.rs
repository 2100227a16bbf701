//! docs/limits.md says what the code says.

use coracle_loader::{
    CORE_CONFIG_SPECS, LimitName, MODULE_NAME_BYTES_MAX, MODULES_MAX, PROBLEMS_MAX,
    core_config_table_markdown, limits_table_markdown,
};

const LIMITS_MD: &str = include_str!("../../../docs/limits.md");

#[track_caller]
fn assert_documented(table: &str) {
    assert!(
        LIMITS_MD.contains(table),
        "docs/limits.md should contain this table:\n\n{table}"
    );
}

#[test]
fn the_table_of_limits_is_the_one_in_the_code() {
    assert_documented(&limits_table_markdown());
}

#[test]
fn the_table_of_server_wide_limits_is_the_one_in_the_code() {
    assert_documented(&core_config_table_markdown());
}

#[test]
fn the_table_of_fixed_limits_is_the_one_in_the_code() {
    assert_documented(&format!(
        "| limit | value | beyond it |\n\
         |---|---:|---|\n\
         | modules of a worker | {MODULES_MAX} | load refused |\n\
         | bytes of a module's name | {MODULE_NAME_BYTES_MAX} | load refused |\n\
         | problems listed in a refusal | {PROBLEMS_MAX} | the rest is counted |\n"
    ));
}

/// The server's own, which the loader knows nothing of: `ServerConfig` and `coracle_transport::Bounds`.
const OF_A_CONNECTION: [&str; 6] = [
    "connections_max",
    "message_bytes_max",
    "connection_bytes_max",
    "connections_bytes_max",
    "questions_max",
    "pipelined_max",
];

#[test]
fn no_limit_is_mentioned_that_does_not_exist() {
    let names: Vec<&str> = LimitName::ALL
        .map(LimitName::as_str)
        .into_iter()
        .chain(CORE_CONFIG_SPECS.iter().map(|spec| spec.text))
        .chain(OF_A_CONNECTION)
        .collect();
    for mentioned in LIMITS_MD
        .split('`')
        .filter(|text| text.ends_with("_max") && !text.contains(' '))
    {
        assert!(names.contains(&mentioned), "{mentioned}");
    }
}
