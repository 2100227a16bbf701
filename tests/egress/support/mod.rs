//! A world to send requests into: servers, DNS and a proxy on this machine, which write down what reaches them.

mod certificates;
mod dns;
mod http;
mod proxy;
mod raw;

pub(crate) use certificates::Authority;
pub(crate) use dns::DnsServer;
pub(crate) use http::{Server, answer, redirect, with_body};
pub(crate) use proxy::ProxyServer;
pub(crate) use raw::{RawServer, read_head};

use bytes::Bytes;
use coracle_outbound::{
    Ask, Asked, Audit, Body, Channel, Config, Error, Outbound, OwnAddresses, Question, Received,
    Record, Redirect, Request, Response, Sender,
};
use futures::{StreamExt, future::BoxFuture};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

/// An outbound as an operator sets it up, and what it meets.
pub(crate) struct World {
    pub(crate) dns: DnsServer,
    pub(crate) authority: Authority,
    pub(crate) outbound: Outbound,
    pub(crate) own: OwnAddresses,
    pub(crate) records: Arc<Records>,
    _folder: tempfile::TempDir,
}

impl World {
    /// With this configuration, besides where its DNS is and whom it trusts.
    pub(crate) async fn with(config: Value) -> Self {
        let (dns, authority) = (DnsServer::start().await, Authority::new());
        let folder = tempfile::tempdir().expect("a folder");
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, authority.pem()).expect("a file");
        let mut whole = json!({
            "dns": {"nameservers": [dns.address.to_string()], "lookup_ms_max": 1_000},
            "ca_file": ca_file,
            "limits": {"connect_ms_max": 3_000, "response_ms_max": 3_000, "idle_ms_max": 3_000},
        });
        merge(&mut whole, config);
        let config = Config::of_json(&whole.to_string()).expect("a configuration");
        let (own, records) = (OwnAddresses::default(), Arc::<Records>::default());
        let audit = Arc::clone(&records) as Arc<dyn Audit>;
        let outbound = Outbound::new(config, own.clone(), audit).expect("an outbound");
        Self {
            dns,
            authority,
            outbound,
            own,
            records,
            _folder: folder,
        }
    }

    /// With one policy, of these rules, for everybody.
    pub(crate) async fn of(rules: Value) -> Self {
        Self::with(one_policy(rules)).await
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel_of("acme")
    }

    pub(crate) fn channel_of(&self, tenant: &str) -> Channel {
        let channel = self.outbound.channel(tenant, Asked::Session, None);
        channel.expect("a channel")
    }

    pub(crate) fn asking(&self, ask: Arc<dyn Ask>) -> Channel {
        let channel = self.outbound.channel("acme", Asked::Session, Some(ask));
        channel.expect("a channel")
    }
}

pub(crate) fn one_policy(rules: Value) -> Value {
    json!({"default_policy": "main", "policies": {"main": {"rules": rules}}})
}

/// Puts what is in one value into the other, deeply.
pub(crate) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Keeps all records.
#[derive(Default)]
pub(crate) struct Records {
    list: Mutex<Vec<Record>>,
    added: Notify,
}

impl Audit for Records {
    fn record(&self, record: Record) {
        self.list.lock().expect("no panic").push(record);
        self.added.notify_one();
    }
}

impl Records {
    pub(crate) fn all(&self) -> Vec<Record> {
        self.list.lock().expect("no panic").clone()
    }

    /// The only one.
    pub(crate) fn one(&self) -> Record {
        let all = self.all();
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().expect("one")
    }

    /// Waits until there are so many.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Record> {
        within(async {
            while self.all().len() < count {
                self.added.notified().await;
            }
        })
        .await;
        self.all()
    }
}

/// Answers questions, and keeps them.
pub(crate) struct Answerer {
    answer: Result<(), String>,
    pub(crate) asked: Mutex<Vec<Question>>,
}

impl Answerer {
    pub(crate) fn new(answer: Result<(), &str>) -> Arc<Self> {
        Arc::new(Self {
            answer: answer.map_err(Into::into),
            asked: Mutex::default(),
        })
    }
}

impl Ask for Answerer {
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<(), String>> {
        self.asked.lock().expect("no panic").push(question);
        let answer = self.answer.clone();
        Box::pin(async { answer })
    }
}

/// Fails a test that would hang.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(std::time::Duration::from_secs(20), future).await;
    outcome.expect("it hangs")
}

pub(crate) fn sender() -> Sender {
    Sender {
        tenant: "acme".into(),
        worker: 7,
        invocation: 11,
    }
}

pub(crate) fn request(method: &str, url: impl Into<String>) -> Request {
    Request {
        method: method.into(),
        url: url.into(),
        headers: Vec::new(),
        body: Body::Empty,
        redirect: Redirect::Follow,
    }
}

pub(crate) fn with_headers(mut request: Request, headers: &[(&str, &str)]) -> Request {
    let pairs = headers.iter();
    let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    request.headers.extend(pairs);
    request
}

pub(crate) fn with_request_body(mut request: Request, body: &'static [u8]) -> Request {
    request.body = Body::Bytes(Bytes::from_static(body));
    request
}

pub(crate) fn streamed(pieces: &[&'static str]) -> Body {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
        .collect();
    Body::Stream(futures::stream::iter(pieces).boxed())
}

pub(crate) async fn fetch(channel: &Channel, request: Request) -> Result<Response, Error> {
    within(channel.fetch(request, &sender())).await
}

pub(crate) async fn get(channel: &Channel, url: impl Into<String>) -> Result<Response, Error> {
    fetch(channel, request("GET", url)).await
}

/// What it failed with.
pub(crate) async fn refused(channel: &Channel, request: Request) -> Error {
    match fetch(channel, request).await {
        Ok(response) => panic!("{} from {}", response.status, response.url),
        Err(error) => error,
    }
}

pub(crate) async fn get_refused(channel: &Channel, url: impl Into<String>) -> Error {
    refused(channel, request("GET", url)).await
}

/// A whole body.
pub(crate) async fn read(response: Response) -> Result<Bytes, Error> {
    read_body(response.body.expect("a body")).await
}

pub(crate) async fn read_body(mut body: Received) -> Result<Bytes, Error> {
    let mut whole = Vec::new();
    while let Some(piece) = within(body.next()).await {
        whole.extend_from_slice(&piece?);
    }
    Ok(whole.into())
}

pub(crate) async fn text(response: Response) -> String {
    let body = read(response).await.expect("a body");
    String::from_utf8(body.to_vec()).expect("a text")
}

pub(crate) fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let mut headers = response.headers.iter();
    let found = headers.find(|(other, _)| other == name)?;
    Some(&found.1)
}

/// `http://name:port/path` of a server.
pub(crate) fn url(scheme: &str, name: &str, server: SocketAddr, path: &str) -> String {
    format!("{scheme}://{name}:{}{path}", server.port())
}
