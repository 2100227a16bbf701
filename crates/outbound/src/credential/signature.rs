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
        let Self {
            id,
            region,
            service,
            ..
        } = self;
        let names: Vec<&str> = canonical.headers.keys().copied().collect();
        let names = names.join(";");
        let Canonical {
            method,
            path,
            query,
            payload,
            stamp,
            ..
        } = canonical;
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
            key = code(&key, part);
        }
        let signature = hex::encode(&*code(&key, &to_sign));
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
    let texts: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
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

#[cfg(test)]
mod tests;
