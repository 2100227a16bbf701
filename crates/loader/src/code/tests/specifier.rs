//! The rule for specifiers, line by line.

use super::*;
use serde_json::Value;

/// Importers, specifiers and the names that they mean; data, so that the guest's copy of the rule
/// can be held to it.
const SPECIFIERS: &str = include_str!("../../../tests/specifiers.json");

#[test]
fn specifiers_resolve_by_the_table() {
    let table: Value = serde_json::from_str(SPECIFIERS).unwrap();
    let groups = table["rows"].as_object().unwrap();
    let rows = groups.values().flat_map(|group| group.as_array().unwrap());
    let mut rows_count = 0;
    for row in rows {
        let (Some(importer), Some(specifier)) = (row[0].as_str(), row[1].as_str()) else {
            panic!("{row}")
        };
        let name = resolve_specifier(importer, specifier);
        assert_eq!(name.as_deref(), row[2].as_str(), "{row}");
        rows_count += 1;
    }
    assert!(rows_count > 30, "{rows_count}");
}

proptest! {
    #[test]
    fn a_path_never_leaves_the_map(importer in "[a:/\\\\~]{0,12}", specifier in "(\\./|\\.\\./|/)[a./:]{0,12}") {
        if let Some(name) = resolve_specifier(&importer, &specifier) {
            for segment in name.split('/') {
                prop_assert!(!["", ".", ".."].contains(&segment), "{name}");
            }
            prop_assert_eq!(resolve_specifier("main.js", &format!("/{name}")), Some(name));
        }
    }
}
