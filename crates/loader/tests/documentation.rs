//! docs/limits.md has the tables that the loader makes. (`tests/documents` compares all other numbers.)

use coracle_loader::{core_config_table_markdown, limits_table_markdown};

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
