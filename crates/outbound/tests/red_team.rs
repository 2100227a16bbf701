//! What becomes of each URL of `red-team.txt`, from its text to the address that would be connected to.

use coracle_outbound::{
    AddressClass, Destination, Effect, Host, Policy, PolicyOrigin, admit, classify,
};
use std::{collections::BTreeMap, net::IpAddr};

const URLS: &str = include_str!("red-team.txt");
const NARROW: &str = r#"{"rules": [
    {"deny": ["https://*.example.com"], "paths": ["/admin/**"]},
    {"allow": ["https://*.example.com", "https://allowed.com", "https://bücher.example"]},
    {"allow": ["http://allowed.test:8080"], "methods": ["GET"], "paths": ["/public/**"]}
]}"#;
const WIDE: &str = r#"{"rules": [{"allow": ["https://*:*", "http://*:*"]}]}"#;

struct Attempt {
    line: usize,
    expected: &'static str,
    kind: &'static str,
    url: String,
}

fn attempts() -> Vec<Attempt> {
    let lines = URLS.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let attempt = |(index, line): (usize, &'static str)| {
        let (head, rest) = line.split_at(line.find('"').expect("a URL"));
        let mut words = head.split_whitespace();
        let mut urls = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let url = urls.next().expect("a URL").expect("a text of JSON");
        let reason = rest[urls.byte_offset()..].trim();
        assert!(!reason.is_empty(), "line {} has no reason", index + 1);
        Attempt {
            line: index + 1,
            expected: words.next().expect("what is expected"),
            kind: words.next().expect("a kind"),
            url,
        }
    };
    lines.map(attempt).collect()
}

fn policy(text: &str) -> Policy {
    Policy::of_json("red team", PolicyOrigin::Operator, text).expect("a policy")
}

/// What became of a URL, in the words of the file, as far as it matters for what is expected.
fn outcome(url: &str, expected: &str, narrow: &Policy, wide: &Policy) -> String {
    let Ok(destination) = Destination::of_url(url) else {
        return "url".into();
    };
    let effect = |policy: &Policy| policy.decide(&destination, Some("GET")).effect();
    assert_eq!(effect(wide), Effect::Allow, "{url}");
    let refused = |address: IpAddr| {
        let refused = admit(address, wide.decide(&destination, None).is_private_named());
        refused.map_err(|refused| refused.class)
    };
    match (
        effect(narrow),
        destination.host(),
        expected.strip_prefix("dns="),
    ) {
        (_, Host::Name(_), Some(resolved)) => {
            let address = resolved.parse().expect("an address");
            match refused(address) {
                Err(_) => expected.into(),
                Ok(()) => format!("connected to {address}"),
            }
        }
        (Effect::Allow, ..) => format!("allow={}", destination.origin()),
        (_, Host::Address(address), _) => match refused(*address) {
            Err(class) => class.to_string(),
            Ok(()) => "rule".into(),
        },
        (_, Host::Name(_), _) => "rule".into(),
    }
}

#[test]
fn every_url_becomes_what_it_has_to() {
    let (narrow, wide) = (policy(NARROW), policy(WIDE));
    let mut wrong = Vec::new();
    for Attempt {
        line,
        expected,
        url,
        ..
    } in attempts()
    {
        let outcome = outcome(&url, expected, &narrow, &wide);
        if outcome != expected {
            wrong.push(format!(
                "line {line}: {url:?} became {outcome}, and not {expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The file has what it is to have: many URLs, of many kinds, each once.
#[test]
fn there_are_many_of_each_kind() {
    let attempts = attempts();
    let is_attack = |attempt: &&Attempt| !attempt.expected.starts_with("allow=");
    assert!(attempts.iter().filter(is_attack).count() >= 120);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for attempt in &attempts {
        *kinds.entry(attempt.kind).or_default() += 1;
        let before = lines.insert(&attempt.url, attempt.line);
        assert_eq!(before, None, "{} is there twice", attempt.url);
    }
    assert!(kinds.values().all(|count| *count >= 5), "{kinds:?}");
}

/// A rule that names everything and private addresses is refused when it is read, so that no wide rule reaches them; and
/// one that names hosts reaches no metadata.
#[test]
fn naming_private_addresses_opens_no_other() {
    let everything = r#"{"rules": [{"allow": ["http://*:*"], "private": true}]}"#;
    assert!(Policy::of_json("red team", PolicyOrigin::Operator, everything).is_err());
    for attempt in attempts() {
        let Ok(destination) = Destination::of_url(&attempt.url) else {
            continue;
        };
        let Host::Address(address) = destination.host() else {
            continue;
        };
        let is_admitted = admit(*address, true).is_ok();
        let class = classify(*address);
        let may_be = class == AddressClass::Public || class.may_be_named();
        assert_eq!(is_admitted, may_be, "line {}", attempt.line);
        if [
            "metadata",
            "multicast",
            "reserved",
            "unspecified",
            "broadcast",
        ]
        .contains(&attempt.expected)
        {
            assert!(!is_admitted, "line {}", attempt.line);
        }
    }
}
