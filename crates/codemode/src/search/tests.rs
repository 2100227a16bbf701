use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::cell::Cell;

fn entry(path: &str, description: &str, parameters: &[&str]) -> ToolEntry {
    let (namespace, identifier) = path.split_once('.').unwrap();
    ToolEntry {
        namespace: namespace.into(),
        identifier: identifier.into(),
        description: description.into(),
        parameters: parameters.iter().map(|name| (*name).into()).collect(),
    }
}

fn index() -> Index {
    Index::new([
        entry(
            "github.list_issues",
            "Lists the issues of a repository.",
            &["owner", "repo", "state"],
        ),
        entry(
            "github.createIssue",
            "Opens a new issue.",
            &["owner", "repo", "title"],
        ),
        entry(
            "github.merge_pull_request",
            "Merges a pull request.",
            &["owner", "pull_number"],
        ),
        entry(
            "mail.send",
            "Sends a message to somebody.",
            &["to", "subject"],
        ),
        entry(
            "mail.search",
            "Finds messages. Can also find messages about an issue, a bill or a delivery, or anything else \
                              that somebody has written.",
            &["query"],
        ),
        entry(
            "stripe.create_refund",
            "Gives money back.",
            &["charge", "amount"],
        ),
    ])
}

fn everything(_: &ToolEntry) -> bool {
    true
}

fn paths(found: &Found<'_>) -> Vec<String> {
    found.tools.iter().map(|tool| tool.path()).collect()
}

fn search(query: &str) -> Vec<String> {
    paths(&index().search(query, 0, &Limits::default(), &everything))
}

/// Names count more than descriptions, and however a name is written, its words are found.
#[test]
fn names_go_before_descriptions() {
    assert_eq!(
        search("issue"),
        ["github.createIssue", "github.list_issues", "mail.search"]
    );
    assert_eq!(search("create issue")[0], "github.createIssue");
    assert_eq!(search("issues list")[0], "github.list_issues");
}

/// Descriptions, parameters, namespaces and beginnings of words are found.
#[test]
fn every_field_is_found() {
    assert_eq!(search("money")[0], "stripe.create_refund");
    assert_eq!(search("subject")[0], "mail.send");
    assert_eq!(search("stripe"), ["stripe.create_refund"]);
    assert_eq!(search("refu"), ["stripe.create_refund"]);
    assert_eq!(search("pull number")[0], "github.merge_pull_request");
}

/// Who writes a path gets that tool first.
#[test]
fn an_exact_path_goes_first() {
    assert_eq!(search("mail.search")[0], "mail.search");
    assert_eq!(search("send")[0], "mail.send");
}

/// A miss says what was nearly asked for.
#[test]
fn a_miss_has_suggestions() {
    let index = index();
    let limits = Limits::default();
    let found = index.search("lst_isues", 0, &limits, &everything);
    assert_eq!(
        (found.total, found.suggestions.as_slice()),
        (0, &["github.list_issues".to_owned()][..])
    );
    assert_eq!(
        index.suggest("mial.send", &limits, &everything),
        ["mail.send"]
    );
    assert!(
        index
            .suggest("something_else_entirely", &limits, &everything)
            .is_empty()
    );
}

/// What a policy denies is in no result, no count, no suggestion and no description.
#[test]
fn what_is_hidden_does_not_exist() {
    let index = index();
    let limits = Limits::default();
    let is_visible = |tool: &ToolEntry| tool.namespace != "github";
    let found = index.search("issue", 0, &limits, &is_visible);
    assert_eq!(
        (paths(&found), found.total),
        (vec!["mail.search".to_owned()], 1)
    );
    assert!(
        index
            .suggest("github.list_isues", &limits, &is_visible)
            .is_empty()
    );
    let described = index.describe(
        &["github.list_issues", "github"],
        &Source::default(),
        &limits,
        &is_visible,
    );
    assert_eq!(described.declarations.text, "");
    assert_eq!(described.missing.len(), 2);
}

/// Pages follow one another without a gap and without anything twice.
#[test]
fn pages_make_the_whole() {
    let tools = (0..120).map(|number| entry(&format!("big.get_thing_{number:03}"), "", &[]));
    let index = Index::new(tools);
    let limits = Limits::default();
    for query in ["thing", ""] {
        let mut all = Vec::new();
        let mut at = Some(0);
        while let Some(offset) = at {
            let found = index.search(query, offset, &limits, &everything);
            assert_eq!(found.total, 120);
            all.extend(paths(&found));
            at = found.next;
        }
        assert_eq!(all.len(), 120);
        let mut sorted = all.clone();
        sorted.sort();
        assert_eq!(all, sorted, "equal scores are in the order of paths");
    }
    assert_eq!(index.search("thing", 500, &limits, &everything).next, None);
}

#[derive(Default)]
struct Source {
    read: Cell<usize>,
}

impl SchemaSource for Source {
    fn schemas(&self, tool: &ToolEntry) -> Result<ToolSchemas, String> {
        self.read.set(self.read.get() + 1);
        if tool.identifier == "send" {
            return Err("the server is gone".into());
        }
        let properties: serde_json::Map<_, _> = tool
            .parameters
            .iter()
            .map(|name| (name.clone(), json!({"type": "string"})))
            .collect();
        let input = Schema::new(
            json!({"type": "object", "properties": properties}),
            &Limits::default(),
        );
        Ok(ToolSchemas {
            input: input.ok(),
            ..ToolSchemas::default()
        })
    }
}

/// Schemas are read of the tools that are described, and of no others; a tool whose schemas are gone is described without.
#[test]
fn schemas_are_read_when_they_are_asked_for() {
    let index = index();
    let limits = Limits::default();
    let source = Source::default();
    let _ = index.search("issue", 0, &limits, &everything);
    assert_eq!(source.read.get(), 0);
    let described = index.describe(
        &["github.createIssue", "mail", "mail.nothing"],
        &source,
        &limits,
        &everything,
    );
    assert_eq!(source.read.get(), 3);
    let text = &described.declarations.text;
    assert!(
        text.contains(
            "function createIssue(input?: { owner?: string; repo?: string; title?: string })"
        ),
        "{text}"
    );
    assert!(text.contains("declare namespace mail {"), "{text}");
    assert!(text.contains("function send(): Promise<unknown>"), "{text}");
    assert_eq!(
        described.untyped,
        [("mail.send".to_owned(), "the server is gone".to_owned())]
    );
    assert_eq!(described.missing[0].0, "mail.nothing");
}

/// A hundred thousand tools are searched, and one of them is found.
#[test]
fn a_hundred_thousand_tools_are_searched() {
    let tools = (0..100_000).map(|number| {
        let words = ["alpha", "beta", "gamma", "delta", "omega"];
        let word = words[number % 5];
        entry(
            &format!("n{}.{word}_thing_{number}", number % 100),
            "Does a thing with a thing.",
            &["id"],
        )
    });
    let index = Index::new(tools);
    assert_eq!(index.len(), 100_000);
    let limits = Limits::default();
    let found = index.search("gamma thing 77777", 0, &limits, &everything);
    assert_eq!(found.tools[0].path(), "n77.gamma_thing_77777");
    assert_eq!(found.tools.len(), 50);
    let found = index.search("n77.gama_thing_7777", 0, &limits, &everything);
    assert!(found.total > 0 || !found.suggestions.is_empty());
}

/// Queries from a model can be anything.
#[test]
fn odd_queries_are_searched_too() {
    let index = index();
    let long = "issue ".repeat(10_000);
    let limits = Limits::default();
    assert!(index.search(&long, 0, &limits, &everything).total > 0);
    assert_eq!(index.search("", 0, &limits, &everything).total, 6);
    assert_eq!(index.search("--", 0, &limits, &everything).total, 6);
    assert!(
        Index::default()
            .search("x", 0, &limits, &everything)
            .tools
            .is_empty()
    );
    assert_eq!(
        index.search("x", usize::MAX, &limits, &everything).next,
        None
    );
}

proptest! {
    /// What rules a candidate out by its letters never rules out one that is near enough.
    #[test]
    fn letters_never_rule_out_a_near_text(one in "[a-e._]{0,12}", other in "[a-e._]{0,12}") {
        let distance = strsim::osa_distance(&one, &other);
        prop_assert!(letters_differing(&one, &other) <= 2 * distance);
    }
}
