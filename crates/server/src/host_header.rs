//! Which `Host` a request may name.
//!
//! A page in an operator's browser can let its own name resolve to an address of ours and then read us as its own
//! origin (DNS rebinding). The `Host` header has that name in it. An address can't be rebound, `localhost` belongs to
//! the machine, and other names are for the operator to allow.

use axum::http::{HeaderMap, Uri, header::HOST};
use std::net::{Ipv4Addr, Ipv6Addr};

/// What is wrong with a request's host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HostProblem {
    /// There is no header, more than one, or not an ASCII one.
    Malformed,
    /// Not a name of ours.
    Unknown(String),
}

/// Checks the `Host` header, and the target if that names a host too: a server goes by the target then, a browser by
/// the header.
pub(crate) fn check(
    uri: &Uri,
    headers: &HeaderMap,
    hosts_allowed: &[String],
) -> Result<(), HostProblem> {
    let mut values = headers.get_all(HOST).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(HostProblem::Malformed);
    };
    let from_header = value.to_str().map_err(|_| HostProblem::Malformed)?;
    let from_target = uri.authority().map(|authority| authority.as_str());
    for host in [Some(from_header), from_target].into_iter().flatten() {
        if !allowed(host, hosts_allowed) {
            return Err(HostProblem::Unknown(host.to_owned()));
        }
    }
    Ok(())
}

fn allowed(host: &str, hosts_allowed: &[String]) -> bool {
    if let Some(bracketed) = host.strip_prefix('[') {
        return bracketed
            .split_once(']')
            .is_some_and(|(address, rest)| address.parse::<Ipv6Addr>().is_ok() && is_port(rest));
    }
    let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
    let name = name.strip_suffix('.').unwrap_or(name);
    let known = name.parse::<Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || hosts_allowed
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name));
    known && is_port(rest)
}

/// Nothing, or a colon and digits. Which port is not looked at: behind a port forward it is not ours.
fn is_port(rest: &str) -> bool {
    rest.is_empty()
        || rest
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed_here(host: &str) -> bool {
        allowed(host, &["coracle.monitoring.svc".to_owned()])
    }

    #[test]
    fn addresses_localhost_and_listed_names_are_allowed() {
        for host in [
            "127.0.0.1",
            "10.1.2.3:9090",
            "[::1]",
            "[fd00::1]:9090",
            "localhost",
            "LocalHost:9090",
            "localhost.:9090",
            "coracle.monitoring.svc",
            "Coracle.Monitoring.SVC:9090",
        ] {
            assert!(allowed_here(host), "{host}");
        }
    }

    #[test]
    fn what_could_be_rebound_is_not() {
        for host in [
            "",
            ":9090",
            "evil.example",
            "evil.example:9090",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "coracle.monitoring.svc.evil.example",
            "xcoracle.monitoring.svc",
            "localhost@evil.example",
            "localhost:9090@evil.example",
            "127.0.0.1:80:80",
            "2130706433",
            "0x7f.1",
            "127.1",
            "::1",
            "[::1",
            "[::1]evil.example",
            "[evil.example]",
            "localhost..",
            "localhost:http",
        ] {
            assert!(!allowed_here(host), "{host}");
        }
    }

    #[test]
    fn the_target_and_the_header_must_both_be_known() {
        let check_with = |target: &'static str, hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().expect("a header value"));
            }
            check(&Uri::from_static(target), &headers, &[])
        };
        let unknown = || Err(HostProblem::Unknown("evil.example".to_owned()));
        assert_eq!(check_with("/metrics", &["127.0.0.1"]), Ok(()));
        assert_eq!(
            check_with("http://127.0.0.1/metrics", &["127.0.0.1"]),
            Ok(())
        );
        assert_eq!(check_with("/metrics", &["evil.example"]), unknown());
        assert_eq!(
            check_with("http://evil.example/metrics", &["127.0.0.1"]),
            unknown()
        );
        assert_eq!(
            check_with("http://127.0.0.1/metrics", &["evil.example"]),
            unknown()
        );
        assert_eq!(check_with("/metrics", &[]), Err(HostProblem::Malformed));
        let two = ["127.0.0.1", "evil.example"];
        assert_eq!(check_with("/metrics", &two), Err(HostProblem::Malformed));
    }
}
