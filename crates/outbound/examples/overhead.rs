//! What a policy costs: small GETs on a warm connection of loopback, one by one, through a channel and through hyper's
//! client alone, in turn. Prints the medians and their ratio twice: with the server on a thread of its own, as servers are,
//! and with all on one thread, where nothing is the time of waking another.
//!
//! `cargo run --release -p coracle-outbound --example overhead -- 20000`

use bytes::Bytes;
use coracle_outbound::{
    Asked, Audit, Body, Channel, Config, Outbound, OwnAddresses, Record, Redirect, Request, Sender,
};
use futures::TryStreamExt;
use http_body_util::{BodyExt, Empty, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use serde_json::json;
use std::{
    convert::Infallible,
    error::Error,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::TcpListener;

const BODY: &[u8] = b"{\"price\": 42}";
const RULES: usize = 20;
/// Requests of one kind before those of the other: so many that each finds its own code in the processor's caches, and so
/// few that both have the same share of what else the machine does.
const TURN: usize = 50;

struct Nobody;

impl Audit for Nobody {
    fn record(&self, _: Record) {}
}

type Hyper = Client<HttpConnector, Empty<Bytes>>;

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(20_000), |text| text.parse())?;
    let apart = runtime()?;
    let listener = apart.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let server = listener.local_addr()?;
    std::thread::spawn(move || apart.block_on(serve(listener)));
    print!("the server on a thread of its own: ");
    runtime()?.block_on(measure(server, count))?;
    print!("all on one thread: ");
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = listener.local_addr()?;
        tokio::spawn(serve(listener));
        measure(server, count).await
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build()
}

async fn serve(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answer = service_fn(async |_: http::Request<Incoming>| {
            let response = http::Response::new(Full::new(Bytes::from_static(BODY)));
            Ok::<_, Infallible>(response)
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

/// The last of twenty rules is the one that decides.
fn channel(server: SocketAddr) -> Result<Channel, Box<dyn Error>> {
    let other = |index| json!({"allow": [format!("https://*.service-{index}.example.com")], "methods": ["GET", "POST"]});
    let mut rules: Vec<_> = (1..RULES).map(other).collect();
    rules.push(
        json!({"allow": [format!("http://localhost:{}", server.port())], "paths": ["/prices/**"], "private": true}),
    );
    let config = json!({
        "default_policy": "main",
        "policies": {"main": {"rules": rules}},
        "dns": {"nameservers": ["127.0.0.1"]},
    });
    let config = Config::of_json(&config.to_string())?;
    let outbound = Outbound::new(config, OwnAddresses::default(), Arc::new(Nobody))?;
    Ok(outbound.channel("acme", Asked::Session, None)?)
}

async fn measure(server: SocketAddr, count: usize) -> Result<(), Box<dyn Error>> {
    let channel = channel(server)?;
    let sender = Sender {
        tenant: "acme".into(),
        worker: 1,
        invocation: 1,
    };
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let hyper: Hyper = Client::builder(TokioExecutor::new()).build(connector);
    let url = format!("http://localhost:{}/prices/42?currency=eur", server.port());
    let (mut alone, mut policed) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for index in 0..count.div_ceil(TURN) + 10 {
        let (mut by_hyper_now, mut by_channel_now) = (Vec::new(), Vec::new());
        for _ in 0..TURN {
            by_hyper_now.push(by_hyper(&hyper, &url).await?);
        }
        for _ in 0..TURN {
            by_channel_now.push(by_channel(&channel, &sender, &url).await?);
        }
        // The first turns warm up.
        if index >= 10 {
            alone.append(&mut by_hyper_now);
            policed.append(&mut by_channel_now);
        }
    }
    let (alone, policed) = (median(alone), median(policed));
    let ratio = policed.as_secs_f64() / alone.as_secs_f64();
    println!(
        "hyper alone: {alone:?}, by a policy of {RULES} rules: {policed:?}, ratio {ratio:.3} ({count} each)"
    );
    Ok(())
}

async fn by_hyper(client: &Hyper, url: &str) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    // With the headers that a channel adds, so that the same bytes are sent.
    let request = http::Request::get(url)
        .header("accept", "application/json")
        .header("user-agent", "Coracle")
        .header("accept-encoding", "gzip, deflate");
    let response = client.request(request.body(Empty::new())?).await?;
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, Bytes::len);
    }
    assert_eq!(bytes, BODY.len());
    Ok(begun.elapsed())
}

async fn by_channel(
    channel: &Channel,
    sender: &Sender,
    url: &str,
) -> Result<Duration, Box<dyn Error>> {
    // (In a server these are made where the worker's message is read.)
    let request = Request {
        method: "GET".into(),
        url: url.into(),
        headers: vec![("accept".into(), "application/json".into())],
        body: Body::Empty,
        redirect: Redirect::Follow,
    };
    let begun = Instant::now();
    let response = channel.fetch(request, sender).await?;
    let mut body = response.body.ok_or("no body")?;
    let mut bytes = 0;
    while let Some(piece) = body.try_next().await? {
        bytes += piece.len();
    }
    assert_eq!(bytes, BODY.len());
    Ok(begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
