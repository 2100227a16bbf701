//! docs/codemode.md has the table of limits that the crate makes.

use coracle_codemode::{LIMIT_SPECS, Limits, limits_table_markdown};

const CODEMODE_MD: &str = include_str!("../../../docs/codemode.md");

#[test]
fn the_table_of_limits_is_the_one_in_the_code() {
    let table = limits_table_markdown();
    assert!(
        CODEMODE_MD.contains(&table),
        "docs/codemode.md should contain this table:\n\n{table}"
    );
}

/// Limits can be configured by the names of the table, and by no others.
#[test]
fn limits_are_configured_by_their_names() {
    let all: serde_json::Value = serde_json::to_value(Limits::default()).unwrap();
    assert_eq!(all.as_object().unwrap().len(), LIMIT_SPECS.len());
    for spec in LIMIT_SPECS {
        assert_eq!(all[spec.name], spec.default, "{}", spec.name);
    }
    let read: Limits = serde_json::from_str("{\"calls_max\": 5}").unwrap();
    assert_eq!(
        read,
        Limits {
            calls_max: 5,
            ..Limits::default()
        }
    );
    assert!(serde_json::from_str::<Limits>("{\"call_max\": 5}").is_err());
}
