//! The admin endpoint, read as a kubelet or Prometheus reads it.

use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// What is alive in a server, connections aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    pub connections: u64,
    pub sessions: u64,
    pub workers: u64,
    pub isolates: u64,
    pub calls: u64,
}

pub(super) async fn gauges(admin: SocketAddr) -> Gauges {
    let (_, text) = get(admin, "/metrics").await;
    let read = |series| series_in(&text, series) as u64;
    Gauges {
        connections: read("coracle_connections"),
        sessions: read("coracle_sessions_live"),
        workers: read("coracle_workers_live"),
        isolates: read("coracle_isolates_live"),
        calls: read("coracle_calls_in_flight"),
    }
}

pub(super) async fn metric(admin: SocketAddr, series: &str) -> f64 {
    let (_, text) = get(admin, "/metrics").await;
    series_in(&text, series)
}

fn series_in(text: &str, series: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let value = line.unwrap_or_else(|| panic!("{series} is not among the metrics:\n{text}"));
    value
        .parse()
        .unwrap_or_else(|_| panic!("{series} is {value:?}"))
}

/// The status and body of `path`.
pub async fn get(admin: SocketAddr, path: &str) -> (u16, String) {
    let exchange = async {
        let mut stream = TcpStream::connect(admin).await?;
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\n\r\n").as_bytes())
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = super::within(Duration::from_secs(10), path, exchange)
        .await
        .expect("the admin endpoint answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}
