//! `docs/attacks.md` and `docs/parsers.md`: the tests that they name are there.

use crate::{cells, document, repository};
use std::{collections::BTreeSet, fs};

/// The tests that a cell names, with the file of each: `test` and `test` in `path`; `test` in `path`.
fn guards(cell: &str) -> Vec<(String, String)> {
    let mut guards = Vec::new();
    for part in cell.split("; ") {
        let quoted: Vec<&str> = part.split('`').skip(1).step_by(2).collect();
        let Some((path, tests)) = quoted.split_last() else {
            panic!("no test is named in {cell:?}");
        };
        assert!(!tests.is_empty(), "no test is named in {part:?}");
        guards.extend(
            tests
                .iter()
                .map(|test| (test.to_string(), path.to_string())),
        );
    }
    guards
}

/// Fails where a file has no such test. A test of Rust is a function after an attribute of one; a case is a file.
fn assert_is_there(test: &str, path: &str, row: &str) {
    let file = repository().join(path);
    let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}\n{row}"));
    let is_test = ["#[test]", "#[tokio::test"].iter().any(|attribute| {
        source.split(attribute).skip(1).any(|after| {
            let head = after.split('{').next().unwrap_or_default();
            head.contains(&format!("fn {test}()"))
        })
    });
    let is_property = source.contains("proptest!") && source.contains(&format!("fn {test}("));
    assert!(is_test || is_property, "{test} is no test of {path}\n{row}");
}

/// Every invariant has a number of its own, in order, and tests that are there.
#[test]
fn every_invariant_names_tests_that_there_are() {
    let page = document("docs/attacks.md");
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| A"))
        .collect();
    assert!(rows.len() >= 60, "{} invariants", rows.len());
    for (index, row) in rows.iter().enumerate() {
        let cells = cells(row);
        let [number, invariant, tests] = &cells[..] else {
            panic!("three cells: {row}");
        };
        assert_eq!(*number, format!("A{}", index + 1));
        assert!(invariant.ends_with('.') && invariant.len() > 20, "{row}");
        for (test, path) in guards(tests) {
            assert_is_there(&test, &path, row);
        }
    }
}

/// The layers of `docs/security.md` and the parsers of `docs/parsers.md` name tests, too.
#[test]
fn every_parser_names_tests_that_there_are() {
    let mut named = BTreeSet::new();
    for page in ["docs/parsers.md", "docs/security.md"] {
        for row in document(page).lines() {
            let cells = cells(row);
            let is_row = cells.len() >= 3 && !cells[0].starts_with("---");
            let tests = cells
                .last()
                .filter(|cell| is_row && cell.contains("` in `"));
            for (test, path) in tests.map_or_else(Vec::new, |cell| guards(cell)) {
                assert_is_there(&test, &path, row);
                named.insert((test, path));
            }
        }
    }
    assert!(named.len() >= 10, "{named:?}");
}
