//! The cases that AWS publishes: its suite for version 4, and the examples of S3's reference.

use super::*;
use std::time::Duration;

const SUITE: Keys<'_> = Keys {
    id: "AKIDEXAMPLE",
    secret: b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    region: "us-east-1",
    service: "service",
};
const S3_EXAMPLES: Keys<'_> = Keys {
    id: "AKIAIOSFODNN7EXAMPLE",
    secret: b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    region: "us-east-1",
    service: S3,
};
const FORM: &str = "application/x-www-form-urlencoded";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Signs a request as it would be sent, and gives the names of what is signed with the signature.
fn signed(
    keys: &Keys<'_>,
    seconds: u64,
    (method, url): (Method, &str),
    headers: &[(&'static str, &str)],
    body: BodyDigest,
) -> (String, String) {
    let destination = Destination::of_url(url).expect("a URL");
    let destination = strict(&destination).expect("a URL");
    let header = |(name, value): &(&'static str, &str)| {
        let value = HeaderValue::from_str(value).expect("a value");
        (HeaderName::from_static(name), value)
    };
    let headers: HeaderMap = headers.iter().map(header).collect();
    let name = TOKEN;
    let token = headers.get(&name).map(|token| (&name, token));
    let unsigned = Unsigned {
        method: &method,
        destination: &destination,
        body,
        headers: &headers,
        set: token.into_iter().collect(),
    };
    let set = keys.sign(&unsigned, at(seconds)).expect("signed");
    let (_, authorization) = set.last().expect("a signature");
    let text = authorization.to_str().expect("a text");
    let (_, rest) = text.split_once("SignedHeaders=").expect("names");
    let (names, signature) = rest.split_once(", Signature=").expect("a signature");
    (names.into(), signature.into())
}

/// 2015-08-30T12:36:00Z, the time of all of the suite.
const SUITE_SECONDS: u64 = 1_440_938_160;

fn get(path: &str) -> String {
    let url = format!("https://example.amazonaws.com{path}");
    signed(
        &SUITE,
        SUITE_SECONDS,
        (Method::GET, &url),
        &[],
        BodyDigest::Empty,
    )
    .1
}

#[test]
fn the_suites_paths_and_queries() {
    let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    for (path, signature) in [
        ("/", vanilla),
        ("/example/..", vanilla),
        ("/example1/example2/../..", vanilla),
        ("/./", vanilla),
        ("//", vanilla),
        (
            "/./example",
            "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
        ),
        (
            "//example//",
            "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
        ),
        (
            "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        ),
        (
            "/?Param1=value1",
            "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
        ),
        (
            "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
            "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
        ),
        (
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
        ),
        (
            "/?ሴ=bar",
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
        ),
    ] {
        assert_eq!(get(path), signature, "{path}");
    }
}

#[test]
fn the_suites_bodies_and_tokens() {
    let url = "https://example.amazonaws.com/";
    let post = |headers: &[(&'static str, &str)], body| {
        signed(&SUITE, SUITE_SECONDS, (Method::POST, url), headers, body)
    };
    let (names, signature) = post(&[], BodyDigest::Empty);
    assert_eq!(names, "host;x-amz-date");
    assert_eq!(
        signature,
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
    );
    // The guest's own of what is set do not count, nor do headers that others may change.
    let own = [
        ("x-amz-date", "20000101T000000Z"),
        ("authorization", "AWS4"),
        ("accept", "a"),
    ];
    assert_eq!(post(&own, BodyDigest::Empty).1, signature);
    let token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
    let (names, signature) = signed(
        &SUITE,
        SUITE_SECONDS,
        (Method::GET, url),
        &[("x-amz-security-token", token)],
        BodyDigest::Empty,
    );
    assert_eq!(names, "host;x-amz-date;x-amz-security-token");
    assert_eq!(
        signature,
        "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"
    );
}

/// The suite signs headers that we leave to the HTTP client, so that those cases start one step later.
#[test]
fn the_suites_headers() {
    let body = hex::encode(Sha256::digest("Param1=value1"));
    let empty = hex::encode(Sha256::digest(""));
    for (method, headers, payload, signature) in [
        (
            "GET",
            vec![("my-header1", "value2,value2,value1")],
            &empty,
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
        ),
        (
            "GET",
            vec![("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
            &empty,
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
        (
            "POST",
            vec![("my-header1", "VALUE1")],
            &empty,
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
        ),
        (
            "POST",
            vec![
                ("content-type", FORM),
                ("content-length", "13"),
                ("x-amz-content-sha256", body.as_str()),
            ],
            &body,
            "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
        ),
    ] {
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name, trimmed(value.as_bytes())));
        let mut headers: BTreeMap<&str, Vec<u8>> = headers.collect();
        headers.insert("host", b"example.amazonaws.com".to_vec());
        headers.insert("x-amz-date", b"20150830T123600Z".to_vec());
        let authorization = SUITE.authorization(&Canonical {
            method,
            path: "/".into(),
            query: String::new(),
            headers,
            payload: payload.clone(),
            stamp: stamp(at(SUITE_SECONDS)),
        });
        assert!(authorization.ends_with(signature), "{authorization}");
    }
}

#[test]
fn s3s_examples() {
    let sign = |path: &str| {
        let url = format!("https://examplebucket.s3.amazonaws.com/{path}");
        // 2013-05-24T00:00:00Z
        signed(
            &S3_EXAMPLES,
            1_369_353_600,
            (Method::GET, &url),
            &[],
            BodyDigest::Empty,
        )
    };
    let (names, lifecycle) = sign("?lifecycle");
    assert_eq!(names, "host;x-amz-content-sha256;x-amz-date");
    assert_eq!(
        lifecycle,
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    );
    let (_, list) = sign("?max-keys=2&prefix=J");
    assert_eq!(
        list,
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    );
}

/// S3 takes bodies that nobody has a digest of; others are refused one.
#[test]
fn a_body_is_signed_or_said_not_to_be() {
    assert_eq!(
        S3_EXAMPLES.payload(BodyDigest::Unknown).ok().as_deref(),
        Some("UNSIGNED-PAYLOAD")
    );
    let refused = SUITE.payload(BodyDigest::Unknown);
    assert!(matches!(refused, Err(Problem::BodyUnknown(service)) if service == "service"));
    let digest = SUITE.payload(BodyDigest::Sha256([0xab; 32]));
    assert_eq!(digest.ok(), Some("ab".repeat(32)));
}

/// What is sent has one spelling, and means what it meant.
#[test]
fn a_destination_is_spelled_out() {
    for (from, to) in [
        ("https://a.com", "https://a.com/"),
        (
            "https://a.com:8443/a(b)/@c:d",
            "https://a.com:8443/a%28b%29/%40c%3Ad",
        ),
        ("https://a.com/%7ea%2fb/%2525", "https://a.com/~a%2Fb/%2525"),
        (
            "https://a.com/a+b?a+b=%2b&c&d=",
            "https://a.com/a%2Bb?a%20b=%2B&c&d=",
        ),
        ("https://a.com/?a=b=c", "https://a.com/?a=b%3Dc"),
        ("https://a.com/x//y/", "https://a.com/x//y/"),
    ] {
        let destination = Destination::of_url(from).expect("a URL");
        let strict = strict(&destination).expect("a URL");
        assert_eq!(strict.url().map(url::Url::as_str), Some(to));
        let again = super::strict(&strict);
        assert_eq!(again.as_ref(), Some(&strict), "once is enough");
    }
    assert_eq!(SUITE.path("/a%2Fb//c/"), "/a%252Fb/c/");
    assert_eq!(S3_EXAMPLES.path("/a%2Fb//c/"), "/a%2Fb//c/");
}

#[test]
fn times_are_written_by_the_calendar() {
    for (seconds, text) in [
        (0, "19700101T000000Z"),
        (951_782_399, "20000228T235959Z"),
        (951_782_400, "20000229T000000Z"),
        (1_440_938_160, "20150830T123600Z"),
        (4_107_542_400, "21000301T000000Z"),
        (1_798_761_599, "20261231T235959Z"),
    ] {
        assert_eq!(stamp(at(seconds)), text);
    }
}
