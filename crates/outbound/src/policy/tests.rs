//! What policies decide, and what they say.

use super::*;
use crate::Budget;
use serde_json::{Value, json};

fn read(origin: Origin, rules: Value) -> Result<Policy, PolicyError> {
    Policy::of_json("test", origin, &json!({ "rules": rules }).to_string())
}

fn policy(rules: Value) -> Policy {
    read(Origin::Operator, rules).expect("a policy")
}

fn url(text: &str) -> Destination {
    Destination::of_url(text).expect("a URL")
}

fn effect(policy: &Policy, method: &str, text: &str) -> Effect {
    policy.decide(&url(text), Some(method)).effect()
}

fn problems(origin: Origin, rules: Value) -> Vec<String> {
    let error = read(origin, rules).expect_err("no policy");
    error.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(json!([
        {"deny": ["https://a.com"], "paths": ["/admin/**"]},
        {"ask": ["https://a.com"], "methods": ["POST"]},
        {"allow": ["https://a.com"]},
        {"deny": ["https://a.com"]},
    ]));
    assert_eq!(effect(&policy, "GET", "https://a.com/"), Effect::Allow);
    assert_eq!(effect(&policy, "POST", "https://a.com/"), Effect::Ask);
    assert_eq!(
        effect(&policy, "POST", "https://a.com/admin/x"),
        Effect::Deny
    );
    assert_eq!(effect(&policy, "GET", "https://b.com/"), Effect::Deny);
    let destination = url("https://a.com/");
    let decision = policy.decide(&destination, Some("GET"));
    assert_eq!(decision.decider().and_then(Decider::rule_index), Some(2));
}

/// N10: an empty list denies all.
#[test]
fn nothing_matches_nothing() {
    for rules in [json!([]), json!([{"allow": []}])] {
        assert_eq!(
            effect(&policy(rules), "GET", "https://a.com/"),
            Effect::Deny
        );
    }
}

#[test]
fn a_rule_with_methods_allows_those_only() {
    let policy = policy(json!([{"allow": ["a.com"], "methods": ["GET", "PATCH"]}]));
    assert_eq!(effect(&policy, "GET", "https://a.com/"), Effect::Allow);
    for method in ["POST", "get", "patch", "GETS", ""] {
        assert_eq!(
            effect(&policy, method, "https://a.com/"),
            Effect::Deny,
            "{method}"
        );
    }
    assert!(!policy.decide(&url("https://a.com/"), None).is_allowed());
}

/// What is denied is not let through by another spelling of its method.
#[test]
fn a_denial_is_of_a_method_however_it_is_written() {
    let policy = policy(json!([{"deny": ["a.com"], "methods": ["PATCH"]}, {"allow": ["a.com"]}]));
    assert_eq!(effect(&policy, "patch", "https://a.com/"), Effect::Deny);
    assert_eq!(effect(&policy, "GET", "https://a.com/"), Effect::Allow);
    assert!(!policy.decide(&url("https://a.com/"), None).is_allowed());
}

#[test]
fn a_path_that_can_be_read_twice_is_allowed_by_no_path_and_denied_by_each() {
    let allowing = policy(json!([{"allow": ["a.com"], "paths": ["/**"]}]));
    let denying = policy(json!([{"deny": ["a.com"], "paths": ["/admin"]}, {"allow": ["a.com"]}]));
    let any = policy(json!([{"allow": ["a.com"]}]));
    for path in [
        "/x%2f..%2fadmin",
        "/%252e%252e/admin",
        "//admin",
        "/a;/admin",
        "/%00",
        "/a%5cb",
        "/%c0%ae/",
    ] {
        let text = format!("https://a.com{path}");
        assert_eq!(effect(&allowing, "GET", &text), Effect::Deny, "{path}");
        assert_eq!(effect(&denying, "GET", &text), Effect::Deny, "{path}");
        // A rule that looks at no paths is of all of them.
        assert_eq!(effect(&any, "GET", &text), Effect::Allow, "{path}");
    }
    for path in ["/x", "/administration", "/admin/x"] {
        let text = format!("https://a.com{path}");
        assert_eq!(effect(&allowing, "GET", &text), Effect::Allow, "{path}");
        assert_eq!(effect(&denying, "GET", &text), Effect::Allow, "{path}");
    }
    for path in [
        "/admin",
        "/ADMIN/",
        "/x/../admin",
        "/%2e/admin",
        "/%61dmin",
        "/.\\admin",
    ] {
        assert_eq!(
            effect(&denying, "GET", &format!("https://a.com{path}")),
            Effect::Deny,
            "{path}"
        );
    }
}

#[test]
fn an_address_to_connect_to_has_no_method_and_no_path() {
    let policy = policy(json!([
        {"allow": ["a.com:5432"], "methods": ["GET"]},
        {"allow": ["tcp://*.a.com:5432"]},
    ]));
    let decide = |text| {
        policy
            .decide(&Destination::of_address(text).expect("an address"), None)
            .effect()
    };
    assert_eq!(decide("db.a.com:5432"), Effect::Allow);
    assert_eq!(decide("a.com:5432"), Effect::Deny);
    assert_eq!(decide("db.a.com:5433"), Effect::Deny);
}

/// Everything that is wrong is said at once, with its place.
#[test]
fn all_problems_are_said_with_their_place() {
    assert_eq!(
        problems(
            Origin::Operator,
            json!([
                {"allow": ["a.com"]},
                {"allow": ["a.com", "ftp://a.com", 1], "methods": ["get", "PUT"], "paths": ["x"], "alow": 1},
                {},
                {"allow": [], "deny": []},
                {"deny": ["a.com"], "private": true, "credential": "c", "budget": {"bytes_max": 1, "per_seconds": 1}},
                {"allow": ["a.com"], "budget": {"per_seconds": 60}, "name": "", "methods": []},
                {"allow": ["a.com"], "budget": {"requests_max": 0, "bytes_max": 1.5, "per_seconds": 10_000_000}},
                {"allow": ["tcp://a.com:1"], "paths": ["/"], "credential": "c"},
                {"allow": ["*", "http://10.0.0.0/8", "0.0.0.0/0"], "private": true},
                7,
            ])
        ),
        [
            "rules[1]: there is no \"alow\": there are allow, ask, deny, name, methods, paths, private, credential, budget",
            "rules[1].methods[0]: \"get\" is no method in upper case",
            "rules[1].allow[1]: \"ftp://a.com\" does not say where to: the scheme is none of https, http and tcp",
            "rules[1].allow[2]: it is a number, and not a text",
            "rules[1].paths[0]: \"x\" is no pattern of paths: a path starts with /",
            "rules[2]: it has neither \"allow\" nor \"ask\" nor \"deny\"",
            "rules[3]: it has more than one of \"allow\", \"ask\" and \"deny\"",
            "rules[4].private: a rule that denies gives nothing",
            "rules[4].credential: a rule that denies gives nothing",
            "rules[4].budget: a rule that denies gives nothing",
            "rules[5].name: \"\" is no name of 1 to 128 bytes",
            "rules[5].methods: there is nothing in it, so the rule never matches: leave it out for all",
            "rules[5].budget: it has neither \"requests_max\" nor \"bytes_max\"",
            "rules[6].budget.requests_max: 0 is not from 1 to 9007199254740991",
            "rules[6].budget.bytes_max: it is a number, and not a whole number from 1",
            "rules[6].budget.per_seconds: 10000000 is not from 1 to 2678400",
            "rules[7].allow[0]: tcp has no methods and no paths, so the rule never matches it",
            "rules[7].allow[0]: tcp carries no credentials",
            "rules[8].allow[0]: private addresses are reached by rules that name their hosts only",
            "rules[8].allow[2]: private addresses are reached by rules that name their hosts only",
            "rules[9]: it is a number, and not an object",
        ]
    );
}

#[test]
fn what_is_no_policy_is_said_too() {
    let problem = |text: &str| {
        let error = Policy::of_json("test", Origin::Operator, text).expect_err("no policy");
        error.to_string()
    };
    assert_eq!(
        problem("{\"rules\": [}"),
        "the policy \"test\" can't be read: it is no JSON: expected value at line 1 column 12"
    );
    assert_eq!(
        problem("[]"),
        "the policy \"test\" can't be read: it is a list, and not an object"
    );
    assert!(problem("{}").contains("it has no \"rules\""));
    assert!(problem("{\"rules\": [], \"rule\": []}").contains("there is no \"rule\""));
    assert!(problem("{\"rules\": {}}").ends_with("rules: it is an object, and not a list"));
    // Of two the second would have been the only one.
    let twice = "{\"rules\": [{\"deny\": [\"a.com\"], \"deny\": []}]}";
    assert!(problem(twice).ends_with("rules[0]: \"deny\" is given twice"));
    assert!(problem(&"[".repeat(100_000)).contains("recursion limit"));
    assert!(Policy::of_json("a\nb", Origin::Operator, "{\"rules\": []}").is_err());
}

#[test]
fn policies_have_limits() {
    let rules = |count: usize| Value::from(vec![json!({"allow": []}); count]);
    assert!(read(Origin::Operator, rules(RULES_MAX)).is_ok());
    assert_eq!(
        problems(Origin::Operator, rules(RULES_MAX + 1)),
        ["rules: it has 1001 items, 1000 are allowed"]
    );
    let patterns = |count: usize| json!([{"allow": vec!["a.com"; count]}]);
    assert!(read(Origin::Operator, patterns(PATTERNS_MAX)).is_ok());
    assert_eq!(
        problems(Origin::Operator, patterns(PATTERNS_MAX + 1)),
        ["rules[0].allow: it has 1001 items, 1000 are allowed"]
    );
    let paths = |count: usize| json!([{"allow": ["a.com"], "paths": vec!["/"; count]}]);
    assert!(read(Origin::Operator, paths(PATTERNS_MAX)).is_ok());
    assert!(read(Origin::Operator, paths(PATTERNS_MAX + 1)).is_err());
    let methods = |count: usize| json!([{"allow": ["a.com"], "methods": vec!["GET"; count]}]);
    assert!(read(Origin::Operator, methods(METHODS_MAX)).is_ok());
    assert!(read(Origin::Operator, methods(METHODS_MAX + 1)).is_err());
    let name = |bytes: usize| json!([{"allow": ["a.com"], "name": "x".repeat(bytes)}]);
    assert!(read(Origin::Operator, name(NAME_BYTES_MAX)).is_ok());
    assert!(read(Origin::Operator, name(NAME_BYTES_MAX + 1)).is_err());
    let pattern = json!([{"allow": ["x".repeat(PATTERN_BYTES_MAX + 1)]}]);
    assert_eq!(
        problems(Origin::Operator, pattern),
        ["rules[0].allow[0]: it has 1025 bytes, 1024 are allowed"]
    );
    for (origin, bytes_max) in [
        (Origin::Operator, POLICY_BYTES_MAX),
        (Origin::Client, POLICY_CLIENT_BYTES_MAX),
    ] {
        let text = |bytes: usize| "{\"rules\": []}".to_owned() + &" ".repeat(bytes - 13);
        assert!(Policy::of_json("test", origin, &text(bytes_max)).is_ok());
        assert!(Policy::of_json("test", origin, &text(bytes_max + 1)).is_err());
    }
    let wrong = Value::from(vec![json!(0); 500]);
    let error = read(Origin::Operator, wrong).expect_err("no policy");
    assert_eq!(error.problems().len(), 100);
    assert!(error.to_string().ends_with("and 400 more"));
}

/// What came with a load makes narrower what the operator allows, and gives nothing.
#[test]
fn a_client_can_only_narrow() {
    assert_eq!(
        problems(
            Origin::Client,
            json!([{"allow": ["a.com"], "private": true, "credential": "c"}])
        ),
        [
            "rules[0].private: only a policy of the server's operator can give it",
            "rules[0].credential: only a policy of the server's operator can give it",
        ]
    );
    let operators = Policies::from(Arc::new(policy(json!([
        {"allow": ["a.com"], "private": true, "credential": "c", "budget": {"requests_max": 1, "per_seconds": 1}},
        {"allow": ["b.com"]},
        {"ask": ["c.com"]},
    ]))));
    let clients = read(
        Origin::Client,
        json!([
            {"allow": ["a.com"], "budget": {"bytes_max": 2, "per_seconds": 2}},
            {"deny": ["b.com"]},
            {"allow": ["**.com", "c.com"]},
        ]),
    );
    let both = operators
        .and(Arc::new(clients.expect("a policy")))
        .expect("room");

    let destination = url("https://a.com/");
    let decision = both.decide(&destination, Some("GET"));
    assert!(decision.is_allowed() && decision.is_private_named());
    assert_eq!(decision.credentials(), ["c"]);
    let budgets: Vec<Budget> = decision.budgets().map(|(_, budget)| budget).collect();
    assert_eq!(
        budgets
            .iter()
            .map(|budget| budget.per_seconds)
            .collect::<Vec<_>>(),
        [1, 2]
    );

    for (text, effect) in [
        ("b.com", Effect::Deny),
        ("c.com", Effect::Ask),
        ("d.com", Effect::Deny),
    ] {
        let destination = url(&format!("https://{text}/"));
        let decision = both.decide(&destination, Some("GET"));
        assert_eq!(decision.effect(), effect, "{text}");
        assert!(!decision.is_private_named() && decision.credentials().is_empty());
    }
}

/// N20: without a policy of the server's nothing is allowed.
#[test]
fn no_policy_is_a_denial_that_says_how_to_allow() {
    let destination = url("https://a.com/x?secret=1");
    let none = Policies::default();
    let explained = none.decide(&destination, Some("GET")).explain();
    assert_eq!(
        explained,
        "GET https://a.com/x is not allowed, for there is no policy and so nothing is: give one, such as \
         {\"rules\": [{\"allow\": [\"https://a.com\"]}]}"
    );
    let client = read(Origin::Client, json!([{"allow": ["a.com"]}])).expect("a policy");
    let clients = none.and(Arc::new(client)).expect("room");
    assert_eq!(
        clients.decide(&destination, Some("GET")).effect(),
        Effect::Deny
    );
}

/// Private addresses are named if each operator's policy names them.
#[test]
fn operators_have_to_agree() {
    let private = |is_private: bool, credential: &str| {
        Arc::new(policy(
            json!([{"allow": ["a.com"], "private": is_private, "credential": credential}]),
        ))
    };
    let destination = url("https://a.com/");
    let both = |one, other| Policies::from(one).and(other).expect("room");
    let mixed = both(private(true, "one"), private(false, "two"));
    assert!(!mixed.decide(&destination, None).is_private_named());
    assert_eq!(
        mixed.decide(&destination, None).credentials(),
        ["one", "two"]
    );
    let agreed = both(private(true, "one"), private(true, "one"));
    assert!(agreed.decide(&destination, None).is_private_named());
    assert_eq!(agreed.decide(&destination, None).credentials(), ["one"]);

    let mut many = Policies::default();
    for _ in 0..POLICIES_MAX {
        many = many.and(private(true, "one")).expect("room");
    }
    assert_eq!(
        many.and(private(true, "one")).map(|_| ()),
        Err(PoliciesTooMany)
    );
}

/// The query may hold what is secret, and is in no sentence.
#[test]
fn a_decision_says_which_rule_and_what_to_do() {
    let policy = policy(json!([
        {"name": "no admin", "deny": ["a.com"], "paths": ["/admin/**"]},
        {"allow": ["a.com"], "methods": ["GET"]},
        {"ask": ["b.com"]},
        {"allow": ["a.com"], "methods": ["POST"], "paths": ["/x"]},
    ]));
    let explained = |method: &str, text: &str| {
        let text = format!("{text}?secret=1");
        policy.decide(&url(&text), Some(method)).explain()
    };
    assert_eq!(
        explained("GET", "https://a.com/"),
        "rule 2 of the policy \"test\" allows GET https://a.com/"
    );
    assert_eq!(
        explained("GET", "https://a.com/admin"),
        "rule 1 \"no admin\" of the policy \"test\" denies GET https://a.com/admin: narrow that rule, or allow the \
         request in a rule before it"
    );
    assert_eq!(
        explained("GET", "https://b.com/"),
        "rule 3 of the policy \"test\" leaves GET https://b.com/ to the client to decide"
    );
    assert_eq!(
        explained("GET", "https://x.com/"),
        "no rule of the policy \"test\" allows GET https://x.com/: add one, such as {\"allow\": [\"https://x.com\"]}"
    );
    assert_eq!(
        explained("PUT", "https://a.com/"),
        "no rule of the policy \"test\" allows PUT https://a.com/: rule 2 is nearest (another method, it is for GET), \
         widen it or add one, such as {\"allow\": [\"https://a.com\"]}"
    );
    assert_eq!(
        explained("POST", "https://a.com/y"),
        "no rule of the policy \"test\" allows POST https://a.com/y: rule 4 is nearest (another path, it is for /x), \
         widen it or add one, such as {\"allow\": [\"https://a.com\"]}"
    );
    let long = explained(
        &"X\n".repeat(100),
        &format!("https://x.com/{}", "y".repeat(20_000)),
    );
    assert!(long.len() < 1_000 && !long.contains('\n'), "{long}");
}

/// What is given as an example is a rule that would do.
#[test]
fn the_example_allows_what_was_denied() {
    for text in [
        "https://a.com/x",
        "http://a.com:81/",
        "http://[::1]:8080/",
        "https://10.0.0.1/",
    ] {
        let destination = url(text);
        let explained = policy(json!([])).decide(&destination, None).explain();
        let (_, example) = explained.split_once("such as ").expect("an example");
        let text = format!("{{\"rules\": [{example}]}}");
        let policy = Policy::of_json("test", Origin::Operator, &text).expect("a policy");
        assert!(policy.decide(&destination, None).is_allowed(), "{text}");
    }
}

#[test]
fn an_explanation_says_what_each_rule_makes_of_a_request() {
    let policy = policy(json!([
        {"name": "no admin", "deny": ["a.com"], "paths": ["/admin/**"]},
        {"allow": ["b.com", "c.com", "d.com", "e.com"]},
        {"allow": ["http://a.com"]},
        {"allow": ["a.com:8443"]},
        {"allow": ["a.com"], "methods": ["POST"]},
        {"allow": ["a.com", "*"], "credential": "key", "budget": {"requests_max": 5, "bytes_max": 9, "per_seconds": 60}},
        {"ask": ["a.com"]},
    ]));
    let destination = url("https://a.com/x?secret=1");
    let explanation = policy.explain(&destination, Some("GET"));
    assert_eq!(
        explanation.misses(),
        [
            Some(Miss::Path),
            Some(Miss::Host),
            Some(Miss::Scheme),
            Some(Miss::Port),
            Some(Miss::Method),
            None,
            None,
        ]
    );
    assert_eq!(
        explanation.to_string(),
        "the policy \"test\": GET https://a.com/x\n  \
         rule 1 \"no admin\"  deny   no: another path, it is for /admin/**\n  \
         rule 2             allow  no: another host, it is for https://b.com, https://c.com, https://d.com and 1 more\n  \
         rule 3             allow  no: another scheme, it is for http://a.com\n  \
         rule 4             allow  no: another port, it is for https://a.com:8443\n  \
         rule 5             allow  no: another method, it is for POST\n  \
         rule 6             allow  yes, and decides\n  \
         rule 7             ask    yes, but an earlier rule decides\n\
         allowed: rule 6 of the policy \"test\" allows GET https://a.com/x\n  \
         with the credential \"key\"\n  \
         within 5 requests and 9 bytes in 60 seconds\n  \
         if its name is of a public address"
    );
    let destination = url("https://169.254.169.254/");
    assert!(policy.explain(&destination, None).to_string().ends_with(
        "refused all the same: the address 169.254.169.254 is metadata: no rule reaches such an address"
    ));
}

/// How long deciding by a policy of a client's can take is bounded when it is given, and not when it is too late.
#[test]
fn a_policy_of_a_clients_that_is_slow_to_decide_by_is_refused() {
    let text = |count: usize| {
        let paths: Vec<String> = (0..count)
            .map(|index| format!("/**/a/a/{index}/**"))
            .collect();
        json!({"rules": [{"allow": ["*"], "paths": paths}]}).to_string()
    };
    // Five segments and the end, with each of 128; and the pattern of hosts.
    let count_max = (POLICY_CLIENT_STEPS_MAX - 1) / (6 * 128);
    assert!(Policy::of_json("given", Origin::Client, &text(count_max)).is_ok());
    let refused = Policy::of_json("given", Origin::Client, &text(count_max + 1));
    let problem = refused.expect_err("too slow").to_string();
    assert!(
        problem.contains("could take 100609 comparisons, 100000 are allowed"),
        "{problem}"
    );
    assert!(Policy::of_json("own", Origin::Operator, &text(count_max + 1)).is_ok());
}
