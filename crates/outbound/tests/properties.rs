//! What holds for every URL, every pattern and every spelling.

use coracle_outbound::{
    Destination, Host, Pattern, Policy, PolicyOrigin, Refused, Scheme, classify,
};
use proptest::{prelude::*, sample::select};
use std::net::IpAddr;
use url::Url;

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
    "\\\\",
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
    "0",
    "65536",
    "user",
    "localhost",
    "path",
    "..;",
    "%252e",
];

fn text() -> impl Strategy<Value = String> {
    let pieces =
        || proptest::collection::vec(select(PIECES), 0..10).prop_map(|pieces| pieces.concat());
    prop_oneof![
        ".{0,60}",
        pieces(),
        pieces().prop_map(|rest| format!("http://{rest}")),
        pieces().prop_map(|rest| format!("https://{rest}/path")),
        "https?://[a-zA-Z0-9._\\-]{1,20}\\.?(:[0-9]{1,5})?(/[ -~]{0,12})?",
        "http://[0-9xXa-f.]{1,16}/",
        "http://\\[[0-9a-f:.]{2,30}\\]/",
        host().prop_map(|host| format!("HTTP://{host}./x")),
        host().prop_map(|host| format!("wss://{host}:443/?x#y")),
    ]
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,3})?(\\.[a-z][a-z0-9]{0,5}){0,3}",
        any::<[u8; 4]>().prop_map(|octets| IpAddr::from(octets).to_string()),
        any::<[u16; 8]>().prop_map(|segments| format!("[{}]", IpAddr::from(segments))),
        any::<u32>().prop_map(|bits| format!("[::ffff:{:x}:{:x}]", bits >> 16, bits & 0xffff)),
        any::<u32>().prop_map(|bits| format!("[64:ff9b::{}]", std::net::Ipv4Addr::from_bits(bits))),
    ]
}

fn pattern() -> impl Strategy<Value = String> {
    let scheme = select(&["", "https://", "http://", "tcp://", "wss://", "ws://"][..]);
    let port = prop_oneof![
        Just(":*".to_owned()),
        (1u16..).prop_map(|port| format!(":{port}"))
    ];
    let host = prop_oneof![
        host(),
        host().prop_map(|host| format!("*.{host}")),
        host().prop_map(|host| format!("**.{host}")),
        Just("*".to_owned()),
        (any::<u32>(), 0u32..=32).prop_map(|(bits, prefix)| {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            format!("{}/{prefix}", std::net::Ipv4Addr::from_bits(bits & mask))
        }),
        (any::<u128>(), 0u32..=128).prop_map(|(bits, prefix)| {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            format!("[{}]/{prefix}", std::net::Ipv6Addr::from_bits(bits & mask))
        }),
    ];
    (scheme, host, proptest::option::of(port))
        .prop_map(|(scheme, host, port)| format!("{scheme}{host}{}", port.unwrap_or_default()))
}

/// One URL in several spellings: what is done to the plain one changes nothing of what it means.
fn respelled(host: &str, path: &str, how: &[bool]) -> String {
    let is = |index: usize| how.get(index).copied().unwrap_or_default();
    let mut scheme = "https".to_owned();
    let mut host = host.to_owned();
    if is(0) {
        scheme = "HttpS".into();
    }
    if is(1) {
        host = host.to_ascii_uppercase();
    }
    if is(2) && !host.ends_with(']') {
        host.push('.');
    }
    if is(3) {
        host.push_str(":443");
    }
    let slashes = if is(4) { "\\\\" } else { "//" };
    let mut path = path.to_owned();
    if is(5) {
        path = path.replace('a', "%61").replace('n', "%6E");
    }
    if is(6) {
        path = format!("/x/..{path}");
    }
    if is(7) {
        path = format!("/%2E{path}");
    }
    if is(8) {
        path.push_str("#fragment");
    }
    let mut text = format!("{scheme}:{slashes}{host}{path}");
    if is(9) {
        text = format!(" {}\t{}\n", &text[..7], &text[7..]);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Whatever is written, either it is refused or there is one form of it, which is read as itself.
    #[test]
    fn a_destination_is_read_as_itself(text in text()) {
        let Ok(destination) = Destination::of_url(&text) else {
            return Ok(());
        };
        let url = destination.url().expect("a URL").clone();
        prop_assert_eq!(Destination::of_url(url.as_str()), Ok(destination.clone()));
        prop_assert_eq!(destination.redirected(url.as_str()), Ok(destination.clone()));
        prop_assert_eq!(url.username(), "");
        prop_assert_eq!(url.password(), None);
        prop_assert_eq!(url.fragment(), None);
        prop_assert_eq!(url.port_or_known_default(), Some(destination.port()));
        prop_assert!(destination.port() != 0);
        if let Host::Name(name) = destination.host() {
            prop_assert_eq!(url.host_str(), Some(name.as_str()));
            let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
            prop_assert!(name.bytes().all(is_known), "{}", name);
            prop_assert!(!name.ends_with('.') && !name.starts_with('.') && !name.contains(".."), "{}", name);
            // No name is one that a resolver takes for a number.
            prop_assert!(name.parse::<IpAddr>().is_err());
        }
        // Its origin alone leads to the same place.
        let origin = Destination::of_url(&destination.origin()).expect("an origin");
        prop_assert!(origin.is_same_origin(&destination));
    }

    /// It says of the host and the port what the parser of URLs says, apart from the dot at the end.
    #[test]
    fn a_destination_agrees_with_the_url_that_was_read(text in text()) {
        let (read, url) = (Destination::of_url(&text), Url::parse(&text));
        match (read, url) {
            (Ok(destination), Ok(url)) => {
                let host = match url.host().expect("a host") {
                    url::Host::Domain(name) => Host::Name(name.strip_suffix('.').unwrap_or(name).into()),
                    url::Host::Ipv4(address) => Host::Address(address.into()),
                    url::Host::Ipv6(address) => Host::Address(address.into()),
                };
                prop_assert_eq!(destination.host(), &host);
                prop_assert_eq!(Some(destination.port()), url.port_or_known_default());
                prop_assert_eq!(destination.path(), Some(url.path()));
                prop_assert_eq!(destination.url().and_then(Url::query), url.query());
                let is_secure = matches!(url.scheme(), "https" | "wss");
                prop_assert_eq!(destination.scheme() == Scheme::Https, is_secure);
            }
            (Ok(_), Err(error)) => prop_assert!(false, "{} is no URL: {}", text, error),
            (Err(Refused::Unreadable(error)), url) => prop_assert_eq!(url, Err(error)),
            (Err(_), _) => {}
        }
    }

    #[test]
    fn addresses_to_connect_to_are_read_as_themselves(text in prop_oneof![
        text(),
        (host(), any::<u16>()).prop_map(|(host, port)| format!("{host}:{port}")),
    ]) {
        let Ok(destination) = Destination::of_address(&text) else {
            return Ok(());
        };
        let shown = format!("{}:{}", destination.host(), destination.port());
        prop_assert_eq!(Destination::of_address(&shown), Ok(destination));
    }

    /// Patterns print as they are read.
    #[test]
    fn patterns_print_what_they_are(text in prop_oneof![pattern(), text()]) {
        let Ok(pattern) = text.parse::<Pattern>() else {
            return Ok(());
        };
        prop_assert_eq!(pattern.to_string().parse(), Ok(pattern));
    }

    /// A pattern of an origin is of that origin, and of no other scheme or port.
    #[test]
    fn the_pattern_of_an_origin_is_of_it(host in host(), port in 1u16..) {
        let destination = Destination::of_url(&format!("http://{host}:{port}/x")).expect("a URL");
        let pattern: Pattern = destination.origin().parse().expect("a pattern");
        prop_assert!(pattern.matches(&destination));
        let other = Destination::of_url(&format!("http://{host}:{}/x", port ^ 2 | 1)).expect("a URL");
        prop_assert_eq!(pattern.matches(&other), destination.is_same_origin(&other));
        let other = Destination::of_url(&format!("https://{host}:{port}/x")).expect("a URL");
        prop_assert!(!pattern.matches(&other));
    }

    /// No spelling of a URL is decided on in another way.
    #[test]
    fn a_decision_does_not_change_with_the_spelling(
        (host, path) in (
            prop_oneof![Just("a.example.com".to_owned()), Just("example.com".to_owned()), Just("127.0.0.1".to_owned()), host()],
            "(/(admin|users|a|n|public|A)){1,4}/?",
        ),
        how in proptest::collection::vec(any::<bool>(), 10),
    ) {
        let rules = r#"{"rules": [
            {"deny": ["*.example.com", "127.0.0.1"], "paths": ["/admin/**", "/*/users"]},
            {"allow": ["**.example.com", "127.0.0.0/8"], "paths": ["/*/a*", "/public/**"]},
            {"ask": ["example.com"]},
            {"allow": ["*"], "paths": ["/a/**/n"]}
        ]}"#;
        let policy = Policy::of_json("test", PolicyOrigin::Operator, rules).expect("a policy");
        let plain = Destination::of_url(&format!("https://{host}{path}")).expect("a URL");
        let text = respelled(&host, &path, &how);
        let respelled = Destination::of_url(&text).expect("a URL");
        prop_assert!(respelled.is_same_origin(&plain), "{}", text);
        let decide = |destination| {
            let decision = policy.decide(destination, Some("GET"));
            let rule = decision.decider().and_then(|decider| decider.rule_index());
            (decision.effect(), rule)
        };
        prop_assert_eq!(decide(&respelled), decide(&plain), "{}", text);
        // What is said of it never has its query.
        let asked = Destination::of_url(&format!("https://{host}{path}?secret=1")).expect("a URL");
        prop_assert!(!policy.decide(&asked, None).explain().contains("secret"));
        prop_assert!(!policy.explain(&asked, None).to_string().contains("secret"));
    }

    /// Reading a policy ends with one, or with what is wrong.
    #[test]
    fn any_text_is_a_policy_or_says_what_is_wrong(
        text in prop_oneof![
            ".{0,80}",
            "\\{\"rules\": ?\\[(\\{(\"(allow|deny|ask|name|paths|methods|budget)\": ?(\\[\\]|\"a\"|\\[\"/[*a]\"\\]|1|\\{\\}),?){0,3}\\},?){0,3}\\]\\}",
        ],
    ) {
        for origin in [PolicyOrigin::Operator, PolicyOrigin::Client] {
            if let Err(error) = Policy::of_json("test", origin, &text) {
                prop_assert!(!error.problems().is_empty());
            }
        }
    }

    /// An IPv4 address that is not public is so in every spelling that IPv6 has for it.
    #[test]
    fn an_address_is_no_more_public_within_ipv6(bits in any::<u32>()) {
        let address = std::net::Ipv4Addr::from_bits(bits);
        let class = classify(address.into());
        let bits = u128::from(bits);
        for spelled in [0xffff << 32 | bits, 0x64_ff9b << 96 | bits, 0x2002 << 112 | bits << 80] {
            let within = classify(std::net::Ipv6Addr::from_bits(spelled).into());
            let is_less = within == class || class == coracle_outbound::AddressClass::Public;
            prop_assert!(is_less, "{} is {}, {} within", address, class, within);
        }
    }
}
