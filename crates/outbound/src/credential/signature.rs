//! AWS's signature of a request, version 4
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>).
//!
//! The server computes the signature over what it reads, and reads escapes in a way of its own. So a request is sent with
//! the one spelling of its path and query that leaves nothing to read differently; see [`strict`].

use super::{BodyDigest, error::Problem, value::ESCAPED};
use crate::Destination;
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header::AUTHORIZATION};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};
use zeroize::Zeroizing;

/// The session's token.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT: HeaderName = HeaderName::from_static("x-amz-content-sha256");
/// What a guest does not set.
pub(super) const OURS: [HeaderName; 4] = [AUTHORIZATION, TOKEN, DATE, CONTENT];
/// What is signed beside `host` and all that starts with `x-amz-`. No other: the HTTP client may still change those.
const SIGNED: [&str; 2] = ["content-md5", "content-type"];

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The one service whose paths are escaped once, and whose bodies may stay unsigned.
const S3: &str = "s3";

/// Who signs, and for what.
pub(super) struct Keys<'a> {
    pub(super) id: &'a str,
    pub(super) secret: &'a [u8],
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// What is signed.
pub(super) struct Unsigned<'a> {
    pub(super) method: &'a Method,
    /// As [`strict`] gives it.
    pub(super) destination: &'a Destination,
    pub(super) body: BodyDigest,
    /// The guest's headers, of which [`OURS`] do not count.
    pub(super) headers: &'a HeaderMap,
    /// The headers that are set in their place.
    pub(super) set: Vec<(&'a HeaderName, &'a HeaderValue)>,
}

/// The texts that a signature is computed over.
struct Canonical<'a> {
    method: &'a str,
    path: String,
    query: String,
    /// By name in lower case; values trimmed.
    headers: BTreeMap<&'a str, Vec<u8>>,
    /// The body's digest, or what stands for one.
    payload: String,
    /// When, as in `20150830T123600Z`.
    stamp: String,
}

impl Keys<'_> {
    /// The headers to set on a request so that it is signed.
    pub(super) fn sign(
        &self,
        unsigned: &Unsigned<'_>,
        at: SystemTime,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Problem> {
        let payload = self.payload(unsigned.body)?;
        let stamp = stamp(at);
        let sendable = |text: &str| HeaderValue::from_str(text).map_err(|_| Problem::NotSendable);
        let mut set = vec![(DATE, sendable(&stamp)?)];
        if self.service == S3 {
            set.push((CONTENT, sendable(&payload)?));
        }
        let host = host(unsigned.destination);
        let mut headers = BTreeMap::from([("host", host.into_bytes())]);
        let guests = unsigned.headers.iter().filter(|(name, _)| is_signed(name));
        let ours = set.iter().map(|(name, value)| (name, value));
        for (name, value) in guests.chain(unsigned.set.iter().copied()).chain(ours) {
            let value = trimmed(value.as_bytes());
            let of_name = headers.entry(name.as_str()).or_default();
            if !of_name.is_empty() {
                of_name.push(b',');
            }
            of_name.extend(value);
        }
        let url = unsigned.destination.url();
        let query = url.and_then(url::Url::query).unwrap_or_default();
        let canonical = Canonical {
            method: unsigned.method.as_str(),
            path: self.path(unsigned.destination.path().unwrap_or_default()),
            query: sorted(query),
            headers,
            payload,
            stamp,
        };
        let mut authorization = sendable(&self.authorization(&canonical))?;
        authorization.set_sensitive(true);
        set.push((AUTHORIZATION, authorization));
        Ok(set)
    }

    fn payload(&self, body: BodyDigest) -> Result<String, Problem> {
        match body {
            BodyDigest::Empty => Ok(hex::encode(Sha256::digest([]))),
            BodyDigest::Sha256(digest) => Ok(hex::encode(digest)),
            BodyDigest::Unknown if self.service == S3 => Ok("UNSIGNED-PAYLOAD".into()),
            BodyDigest::Unknown => Err(Problem::BodyUnknown(self.service.into())),
        }
    }

    /// A path as it is signed: by S3 as it is, by others escaped once more and without empty parts.
    fn path(&self, path: &str) -> String {
        if self.service == S3 {
            return path.into();
        }
        let mut signed = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            signed.push('/');
            signed.extend(percent_encoding::utf8_percent_encode(part, ESCAPED));
        }
        if path.ends_with('/') || signed.is_empty() {
            signed.push('/');
        }
        signed
    }

    fn authorization(&self, canonical: &Canonical<'_>) -> String {
        let Self { id, region, service, .. } = self;
        let names: Vec<&str> = canonical.headers.keys().copied().collect();
        let names = names.join(";");
        let Canonical { method, path, query, payload, stamp, .. } = canonical;
        let mut request = format!("{method}\n{path}\n{query}\n").into_bytes();
        for (name, value) in &canonical.headers {
            request.extend([name.as_bytes(), b":", value, b"\n"].concat());
        }
        request.extend(format!("\n{names}\n{payload}").bytes());
        let date = stamp.split('T').next().unwrap_or_default();
        let scope = format!("{date}/{region}/{service}/aws4_request");
        let digest = hex::encode(Sha256::digest(request));
        let to_sign = format!("{ALGORITHM}\n{stamp}\n{scope}\n{digest}");
        let start = Zeroizing::new([b"AWS4", self.secret].concat());
        let mut key = code(&start, date);
        for part in [region, service, "aws4_request"] {
            key = code(&*key, part);
        }
        let signature = hex::encode(&*code(&*key, &to_sign));
        format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
    }
}

fn code(key: &[u8], text: &str) -> Zeroizing<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("keys of any length are taken");
    mac.update(text.as_bytes());
    Zeroizing::new(mac.finalize().into_bytes().to_vec())
}

fn is_signed(name: &HeaderName) -> bool {
    let is_amazons = name.as_str().starts_with("x-amz-") && !OURS.contains(name);
    is_amazons || SIGNED.contains(&name.as_str())
}

/// The header `host` as the HTTP client writes it: the port where it is not the scheme's own.
fn host(destination: &Destination) -> String {
    let port = destination.url().and_then(url::Url::port);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", destination.host())
}

/// A header's value without blanks around it, and with one where there are many.
fn trimmed(value: &[u8]) -> Vec<u8> {
    let words = value.split(|byte| byte.is_ascii_whitespace());
    let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
    words.join(&b' ')
}

/// The same destination, with a path and a query in which all is escaped but what never needs it: the one spelling that
/// has the same signature however it is read. A `+` in the query is a blank, as in forms; `%2F` stays one.
pub(super) fn strict(destination: &Destination) -> Option<Destination> {
    let mut url = destination.url()?.clone();
    let path: Vec<String> = url.path().split('/').map(respelled).collect();
    url.set_path(&path.join("/"));
    if let Some(query) = url.query() {
        let parameter = |part: &str| {
            let part = part.replace('+', "%20");
            match part.split_once('=') {
                Some((name, value)) => format!("{}={}", respelled(name), respelled(value)),
                None => respelled(&part),
            }
        };
        let query: Vec<String> = query.split('&').map(parameter).collect();
        url.set_query(Some(&query.join("&")));
    }
    let strict = Destination::of_url(url.as_str()).ok()?;
    strict.is_same_origin(destination).then_some(strict)
}

fn respelled(part: &str) -> String {
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(part).collect();
    percent_encoding::percent_encode(&bytes, ESCAPED).to_string()
}

/// The parameters of a query in order, each with its `=`.
fn sorted(query: &str) -> String {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let mut pairs: Vec<(&str, &str)> = parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .collect();
    pairs.sort_unstable();
    let texts: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    texts.join("&")
}

/// A time as in `20150830T123600Z`; times before 1970 are its start.
fn stamp(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Of the calendar that is the same every 400 years, or 146,097 days, counted from a first of March.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The cases that AWS publishes: its suite for version 4, and the examples of S3's reference.
#[cfg(test)]
mod tests {
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
        signed(&SUITE, SUITE_SECONDS, (Method::GET, &url), &[], BodyDigest::Empty).1
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
            ("/./example", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"),
            ("//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
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
            ("/?ሴ=bar", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
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
        assert_eq!(signature, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        // The guest's own of what is set do not count, nor do headers that others may change.
        let own = [("x-amz-date", "20000101T000000Z"), ("authorization", "AWS4"), ("accept", "a")];
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
        assert_eq!(signature, "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
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
            let headers = headers.into_iter().map(|(name, value)| (name, trimmed(value.as_bytes())));
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
            signed(&S3_EXAMPLES, 1_369_353_600, (Method::GET, &url), &[], BodyDigest::Empty)
        };
        let (names, lifecycle) = sign("?lifecycle");
        assert_eq!(names, "host;x-amz-content-sha256;x-amz-date");
        assert_eq!(lifecycle, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
        let (_, list) = sign("?max-keys=2&prefix=J");
        assert_eq!(list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    }

    /// S3 takes bodies that nobody has a digest of; others are refused one.
    #[test]
    fn a_body_is_signed_or_said_not_to_be() {
        assert_eq!(S3_EXAMPLES.payload(BodyDigest::Unknown).ok().as_deref(), Some("UNSIGNED-PAYLOAD"));
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
            ("https://a.com:8443/a(b)/@c:d", "https://a.com:8443/a%28b%29/%40c%3Ad"),
            ("https://a.com/%7ea%2fb/%2525", "https://a.com/~a%2Fb/%2525"),
            ("https://a.com/a+b?a+b=%2b&c&d=", "https://a.com/a%2Bb?a%20b=%2B&c&d="),
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
}
