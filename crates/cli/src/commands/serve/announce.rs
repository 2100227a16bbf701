//! What a server says of itself when it has started.

use crate::{commands::version::VERSION, logging::LogFormat, terminal, text::milliseconds};
use coracle_client::Address;
use coracle_loader::limits::grouped;
use std::{net::SocketAddr, time::Duration};

pub(super) struct Announcement<'a> {
    pub(super) addresses: &'a [Address],
    pub(super) web_addresses: &'a [SocketAddr],
    pub(super) admin: Option<SocketAddr>,
    pub(super) tokens_required: bool,
    pub(super) isolates_max: u64,
    pub(super) guest: &'a str,
    /// How long the start took.
    pub(super) start: Duration,
}

/// Enough of a hash to tell two guests apart.
const HASH_SHOWN: usize = 16;

impl Announcement<'_> {
    /// One line for people whatever the log filter says, or for programs an event in the log; and a
    /// warning where the addresses and the tokens don't fit together.
    pub(super) fn make(&self, format: LogFormat) {
        match format {
            LogFormat::Text => terminal::write_stderr(&format!("{}\n", self.line())),
            LogFormat::Json => tracing::info!(
                version = VERSION,
                listen = self.listen(),
                listen_web = self.listen_web(),
                admin = self.admin.map(|address| address.to_string()),
                tokens_required = self.tokens_required,
                isolates_max = self.isolates_max,
                guest = &self.guest[..HASH_SHOWN],
                start_ms = self.start.as_millis() as u64,
                "listening"
            ),
        }
        for address in self.open_without_tokens() {
            tracing::warn!(
                %address,
                "reachable from other machines, whose clients are all turned away without --token-file"
            );
        }
    }

    fn line(&self) -> String {
        let listen = self.listen();
        let web = match self.web_addresses {
            [] => String::new(),
            _ => format!("; web on {}", self.listen_web()),
        };
        let admin = self.admin.map_or("no admin endpoint".into(), |address| {
            format!("admin on {address}")
        });
        let logins = match self.tokens_required {
            true => "every login needs a token",
            false => "logins without a token from this machine only",
        };
        let isolates = grouped(self.isolates_max);
        let guest = &self.guest[..HASH_SHOWN];
        let start = milliseconds(self.start.as_micros() as u64);
        format!(
            "coracle {VERSION} listens on {listen}{web}; {admin}; {logins}; at most {isolates} isolates; guest {guest}; \
             started in {start}"
        )
    }

    fn listen(&self) -> String {
        self.addresses
            .iter()
            .map(Address::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn listen_web(&self) -> String {
        self.web_addresses
            .iter()
            .map(SocketAddr::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Addresses beyond loopback, if nobody there can log in.
    fn open_without_tokens(&self) -> impl Iterator<Item = Address> {
        let web = self.web_addresses.iter().copied().map(Address::Tcp);
        let beyond = |address: &Address| matches!(address, Address::Tcp(address) if !address.ip().is_loopback());
        self.addresses
            .iter()
            .cloned()
            .chain(web)
            .filter(|_| !self.tokens_required)
            .filter(beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: &str = "0123456789abcdef0123456789abcdef";

    fn addresses() -> Vec<Address> {
        ["127.0.0.1:7070", "unix:/run/c.sock", "0.0.0.0:7071"]
            .map(|text| text.parse().expect("good"))
            .into()
    }

    fn announcement(addresses: &[Address], tokens_required: bool) -> Announcement<'_> {
        Announcement {
            addresses,
            web_addresses: &[],
            admin: None,
            tokens_required,
            isolates_max: 1_000,
            guest: GUEST,
            start: Duration::from_micros(41_230),
        }
    }

    #[test]
    fn the_line_says_where_who_and_how_many() {
        let line = announcement(&addresses(), false).line();
        let expected = format!(
            "coracle {VERSION} listens on 127.0.0.1:7070, unix:/run/c.sock, 0.0.0.0:7071; no admin endpoint; logins \
             without a token from this machine only; at most 1,000 isolates; guest 0123456789abcdef; started in 41.23 ms"
        );
        assert_eq!(line, expected);
        let addresses = addresses();
        let with_tokens = Announcement {
            admin: Some(([127, 0, 0, 1], 9090).into()),
            ..announcement(&addresses, true)
        };
        assert!(
            with_tokens
                .line()
                .contains("; admin on 127.0.0.1:9090; every login needs a token; ")
        );
    }

    #[test]
    fn addresses_that_nobody_can_use_are_found() {
        let addresses = addresses();
        let open: Vec<_> = announcement(&addresses, false)
            .open_without_tokens()
            .collect();
        assert_eq!(open, addresses[2..]);
        assert_eq!(
            announcement(&addresses, true).open_without_tokens().count(),
            0
        );
    }
}
