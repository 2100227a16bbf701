//! Requests that leave: however a destination is written, it is judged by the one form that it has; a policy that is read
//! decides the same for every spelling; what is said of a decision never has the query in it.

use crate::{Reached, Source};
use coracle_outbound::{
    AddressClass, Config, Destination, Effect, Host, Pattern, Policies, Policy, PolicyOrigin,
    Redactor, Refused, Scheme, Secret, admit, classify,
};
use std::{net::IpAddr, sync::Arc};
use url::Url;

pub(crate) const REACHES: &[&str] = &[
    "destination",
    "refused",
    "address",
    "redirected",
    "pattern",
    "policy",
    "not a policy",
    "config",
    "not a config",
    "allow",
    "ask",
    "deny",
    "redacted",
];

pub(crate) fn run(input: &[u8]) -> Reached {
    let mut reached = Reached::default();
    let mut source = Source::new(input);
    // As it came, then as we would write it.
    let raw = String::from_utf8_lossy(input).into_owned();
    for text in [raw, url_text(&mut source), address_text(&mut source)] {
        judge_url(&text, &mut source, &mut reached);
        judge_address(&text, &mut reached);
        judge_pattern(&text, &mut reached);
    }
    judge_policy(&mut source, &mut reached);
    judge_config(&mut source, &mut reached);
    judge_redaction(&mut source, &mut reached);
    reached
}

// --- generators ---

/// Pieces that URLs are made of, and those that they are broken with.
const PIECES: &[&str] = &[
    "http:",
    "https:",
    "ws:",
    "wss:",
    "HTTP:",
    "file:",
    "tcp:",
    "/",
    "//",
    "\\",
    "@",
    ":",
    "::",
    "[",
    "]",
    ".",
    "..",
    "?",
    "#",
    "%",
    "%2e",
    "%2F",
    "%00",
    "%40",
    "%31",
    "%e2%80%8b",
    "%252e",
    "\t",
    "\n",
    " ",
    "\0",
    "a",
    "A",
    "example.com",
    "EXAMPLE",
    ".com",
    "xn--",
    "xn--bcher-kva",
    "ü",
    "ß",
    "ſ",
    "ａ",
    "。",
    "．",
    "①",
    "１",
    "\u{200b}",
    "\u{200d}",
    "\u{ad}",
    "\u{202e}",
    "127.0.0.1",
    "127.1",
    "0x7f",
    "0177",
    "2130706433",
    "4294967296",
    "1",
    "0",
    "256",
    "::1",
    "ffff:",
    "64:ff9b::",
    "2002:",
    "-",
    "_",
    "*",
    "**",
    ",",
    ";",
    "|",
    "80",
    "443",
    "8080",
    "65536",
    "user",
    "localhost",
    "path",
    "..;",
    "admin",
];

fn pieces(source: &mut Source<'_>, count_max: usize) -> String {
    let count = source.below(count_max);
    (0..count).map(|_| source.pick(PIECES)).collect()
}

fn host(source: &mut Source<'_>) -> String {
    match source.below(6) {
        0 => IpAddr::from((source.number() as u32).to_be_bytes()).to_string(),
        1 => format!(
            "[::ffff:{}]",
            std::net::Ipv4Addr::from_bits(source.number() as u32)
        ),
        2 => format!(
            "[{}]",
            std::net::Ipv6Addr::from_bits(u128::from(source.number()) << source.below(65))
        ),
        3 => source
            .pick(&["a.example.com", "example.com", "127.0.0.1", "localhost"])
            .into(),
        _ => {
            let labels = ["a", "n", "x1", "example", "com", "internal"];
            let count = 1 + source.below(3);
            let labels: Vec<_> = (0..count).map(|_| source.pick(&labels)).collect();
            labels.join(".")
        }
    }
}

fn url_text(source: &mut Source<'_>) -> String {
    match source.below(4) {
        0 => pieces(source, 12),
        1 => format!("http://{}", pieces(source, 10)),
        2 => format!("https://{}/{}", host(source), pieces(source, 6)),
        _ => format!("wss://{}.:443/{}?x#y", host(source), pieces(source, 4)),
    }
}

fn address_text(source: &mut Source<'_>) -> String {
    format!(
        "{}:{}",
        host(source),
        source.pick(&["1", "443", "0", "65536", "+1", "x", ""])
    )
}

/// A document that is a policy more often than not.
fn policy_text(source: &mut Source<'_>) -> String {
    let rules: Vec<String> = (0..source.below(5)).map(|_| rule_text(source)).collect();
    let mut text = format!(r#"{{"rules": [{}]}}"#, rules.join(", "));
    damage(source, &mut text);
    text
}

fn rule_text(source: &mut Source<'_>) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    let pattern = |source: &mut Source<'_>| {
        let host = host(source);
        let pattern = match source.below(6) {
            0 => "*".to_owned(),
            1 => format!("*.{host}"),
            2 => format!("**.{host}"),
            3 => format!("https://{host}:*"),
            _ => host,
        };
        format!("{pattern:?}")
    };
    let path = |source: &mut Source<'_>| {
        let parts = ["a", "*", "**", "admin", "a*", "%2e", ".."];
        let parts: Vec<_> = (0..source.below(6)).map(|_| source.pick(&parts)).collect();
        format!("\"/{}\"", parts.join("/"))
    };
    let effect = source.pick(&["allow", "deny", "ask"]);
    let mut fields = vec![format!(
        "\"{effect}\": {}",
        list((0..source.below(4)).map(|_| pattern(source)).collect())
    )];
    if source.once_in(2) {
        fields.push(format!(
            "\"paths\": {}",
            list((0..source.below(4)).map(|_| path(source)).collect())
        ));
    }
    if source.once_in(3) {
        fields.push(r#""methods": ["GET", "HEAD"]"#.into());
    }
    for field in [
        r#""name": "a rule""#,
        r#""private": true"#,
        r#""budget": {"requests_max": 3, "per_seconds": 10}"#,
        r#""surprise": 1"#,
    ] {
        if source.once_in(12) {
            fields.push(field.into());
        }
    }
    format!("{{{}}}", fields.join(", "))
}

/// Cuts something out of a text or puts something in, sometimes.
fn damage(source: &mut Source<'_>, text: &mut String) {
    if !source.once_in(3) {
        return;
    }
    let mut chars: Vec<char> = text.chars().collect();
    let at = source.below(chars.len() + 1);
    let end = chars.len().min(at + source.below(6));
    let pieces = [
        "",
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        "null",
        "1e999",
        "\\ud800",
        "[[[[[[[[[[",
        "{\"rules\":",
    ];
    chars.splice(at..end, source.pick(&pieces).chars());
    *text = chars.into_iter().collect();
}

// --- oracles ---

/// Either it is refused or there is one form of it, which is read as itself and says what the parser of URLs says.
fn judge_url(text: &str, source: &mut Source<'_>, reached: &mut Reached) {
    let (read, url) = (Destination::of_url(text), Url::parse(text));
    let destination = match read {
        Ok(destination) => destination,
        Err(refused) => {
            if let Refused::Unreadable(error) = refused {
                assert_eq!(url, Err(error), "{text:?}");
            }
            reached.note("refused");
            return;
        }
    };
    reached.note("destination");
    let url = url.unwrap_or_else(|error| panic!("{text:?} is no URL: {error}"));
    let host = match url.host() {
        Some(url::Host::Domain(name)) => Host::Name(name.strip_suffix('.').unwrap_or(name).into()),
        Some(url::Host::Ipv4(address)) => Host::Address(address.into()),
        Some(url::Host::Ipv6(address)) => Host::Address(address.into()),
        None => panic!("{text:?} has no host"),
    };
    assert_eq!(destination.host(), &host, "{text:?}");
    assert_eq!(Some(destination.port()), url.port_or_known_default());
    assert_ne!(destination.port(), 0);
    let is_secure = matches!(url.scheme(), "https" | "wss");
    assert_eq!(destination.scheme() == Scheme::Https, is_secure);
    let own = destination.url().map(Url::as_str).unwrap_or_default();
    assert_eq!(Destination::of_url(own).as_ref(), Ok(&destination));
    let is_of_origin = Destination::of_url(&destination.origin());
    assert!(
        is_of_origin.is_ok_and(|origin| origin.is_same_origin(&destination)),
        "{text:?}"
    );
    if let Host::Name(name) = destination.host() {
        // No name is one that a resolver takes for a number, or that has something in it that a name has not.
        assert!(
            name.parse::<IpAddr>().is_err() && !name.contains(".."),
            "{name}"
        );
        let is_known =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        assert!(name.bytes().all(is_known), "{name:?}");
    }
    // A redirect leads where the same text would, as seen from there.
    let location = url_text(source);
    if let Ok(to) = destination.redirected(&location) {
        reached.note("redirected");
        let joined = Url::parse(own).and_then(|base| base.join(&location));
        let joined = joined.unwrap_or_else(|error| panic!("{location:?} leads nowhere: {error}"));
        assert_eq!(Destination::of_url(joined.as_str()), Ok(to));
    }
}

fn judge_address(text: &str, reached: &mut Reached) {
    if let Ok(destination) = Destination::of_address(text) {
        reached.note("address");
        let shown = format!("{}:{}", destination.host(), destination.port());
        assert_eq!(Destination::of_address(&shown).as_ref(), Ok(&destination));
    }
    // What may not be reached may not be reached in the spellings that IPv6 has for it.
    if let Ok(IpAddr::V4(address)) = text.split(':').next().unwrap_or_default().parse() {
        let (class, bits) = (classify(address.into()), u128::from(address.to_bits()));
        for within in [
            0xffff << 32 | bits,
            0x64_ff9b << 96 | bits,
            0x2002 << 112 | bits << 80,
        ] {
            let within = std::net::Ipv6Addr::from_bits(within).into();
            let is_admitted = admit(within, false).is_ok();
            assert!(
                !is_admitted || class == AddressClass::Public,
                "{address} in {within}"
            );
        }
    }
}

/// Patterns print as they are read.
fn judge_pattern(text: &str, reached: &mut Reached) {
    let Ok(pattern) = text.parse::<Pattern>() else {
        return;
    };
    reached.note("pattern");
    assert_eq!(pattern.to_string().parse().as_ref(), Ok(&pattern));
}

fn judge_policy(source: &mut Source<'_>, reached: &mut Reached) {
    let text = policy_text(source);
    let origin = source.pick(&[PolicyOrigin::Operator, PolicyOrigin::Client]);
    let policy = match Policy::of_json("generated", origin, &text) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(!error.problems().is_empty(), "{text}");
            reached.note("not a policy");
            return;
        }
    };
    reached.note("policy");
    let (host, path) = (
        host(source),
        source.pick(&["/", "/a", "/admin/x", "/a/n/a", "/A//x"]),
    );
    let (Ok(plain), Ok(asked)) = (
        Destination::of_url(&format!("https://{host}{path}")),
        Destination::of_url(&format!(
            "HTTPS:\\\\{}:443{path}?secret=1#x",
            host.to_ascii_uppercase()
        )),
    ) else {
        return;
    };
    let method = source.pick(&[Some("GET"), Some("DELETE"), None]);
    let (decision, other) = (policy.decide(&plain, method), policy.decide(&asked, method));
    assert_eq!(decision.effect(), other.effect(), "{text} {plain}");
    let rule = |decision: &coracle_outbound::Decision<'_>| {
        decision.decider().and_then(|decider| decider.rule_index())
    };
    assert_eq!(rule(&decision), rule(&other), "{text} {plain}");
    reached.note(decision.effect().to_string());
    for said in [other.explain(), policy.explain(&asked, method).to_string()] {
        assert!(!said.contains("secret"), "{said}");
    }
    // What came with a load is never wider than what the operator gave, and alone it gives nothing.
    let policy = Arc::new(policy);
    let alone = Policies::from(Arc::clone(&policy));
    if origin == PolicyOrigin::Client {
        assert_eq!(alone.decide(&plain, method).effect(), Effect::Deny);
    }
    let deny = Policy::of_json("nothing", PolicyOrigin::Operator, r#"{"rules": []}"#);
    let nothing = Policies::from(Arc::new(deny.unwrap_or_else(|error| panic!("{error}"))));
    let both = nothing
        .and(policy)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(both.decide(&plain, method).effect(), Effect::Deny);
}

fn judge_config(source: &mut Source<'_>, reached: &mut Reached) {
    let policy = policy_text(source);
    let mut text = format!(
        r#"{{"default_policy": "p", "policies": {{"p": {policy}}}, "tenants": {{"t": {{"policy": "p", "may_name": []}}}}, "dns": {{"search": ["a"], "lookups_max": {}}}}}"#,
        source.small()
    );
    damage(source, &mut text);
    match Config::of_json(&text) {
        Ok(_) => reached.note("config"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            reached.note("not a config");
        }
    }
}

/// However a response is cut into pieces, no secret is in what is passed on.
fn judge_redaction(source: &mut Source<'_>, reached: &mut Reached) {
    let secrets = ["sesame-open", "abcabcabd", "\u{e9}t\u{e9}-secret"];
    let secret = source.pick(&secrets);
    let Ok(mut redactor) =
        Redactor::new(&[Secret::new(secret.into()).unwrap_or_else(|error| panic!("{error}"))])
    else {
        return;
    };
    let mut body = Vec::new();
    for _ in 0..source.below(8) {
        match source.below(3) {
            0 => body.extend(source.bytes(12)),
            1 => body.extend(secret.as_bytes()),
            _ => body.extend(&secret.as_bytes()[..source.below(secret.len())]),
        }
    }
    let mut passed = Vec::new();
    let mut rest = &body[..];
    while !rest.is_empty() {
        let (chunk, left) = rest.split_at(rest.len().min(1 + source.below(9)));
        passed.extend(redactor.push(chunk.to_vec().into()));
        rest = left;
    }
    passed.extend(redactor.finish());
    let has = |bytes: &[u8]| {
        bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes())
    };
    assert!(!has(&passed), "{secret:?} got through");
    if has(&body) {
        assert!(redactor.count() > 0);
        reached.note("redacted");
    } else {
        assert_eq!(passed, body, "without a secret nothing changes");
    }
}
