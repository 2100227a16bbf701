//! A DNS server that counts what it is asked.

use hickory_proto::{
    op::{Message, MessageType, ResponseCode},
    rr::{
        RData, Record, RecordType,
        rdata::{A, AAAA},
    },
};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};
use tokio::{net::UdpSocket, task::AbortHandle};

pub(crate) struct DnsServer {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: AbortHandle,
}

#[derive(Default)]
struct State {
    zone: HashMap<String, Zone>,
    queries: Vec<(String, RecordType)>,
}

enum Zone {
    /// The addresses that each lookup is answered with in turn; the last ones again and again.
    Addresses(Vec<Vec<IpAddr>>, u32),
    Code(ResponseCode),
    Silence,
}

impl DnsServer {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let address = socket.local_addr().expect("an address");
        let state = Arc::<Mutex<State>>::default();
        let served = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 2048];
            while let Ok((bytes, peer)) = socket.recv_from(&mut buffer).await {
                let query = Message::from_vec(&buffer[..bytes]).expect("a query");
                let answer = served.lock().expect("no panic").answer(&query);
                if let Some(answer) = answer {
                    let answer = answer.to_vec().expect("an answer");
                    socket.send_to(&answer, peer).await.expect("it is sent");
                }
            }
        });
        Self {
            address,
            state,
            task: task.abort_handle(),
        }
    }

    /// What a name leads to, from now on. Not to be kept.
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        self.set_each(name, &[addresses]);
    }

    /// What a name leads to the first time, the second, and so on.
    pub(crate) fn set_each(&self, name: &str, answers: &[&[&str]]) {
        let parsed = answers.iter().map(|addresses| addresses_of(addresses));
        self.put(name, Zone::Addresses(parsed.collect(), 0));
    }

    /// What a name leads to for some seconds.
    pub(crate) fn set_kept(&self, name: &str, addresses: &[&str], seconds: u32) {
        let parsed = vec![addresses_of(addresses)];
        self.put(name, Zone::Addresses(parsed, seconds));
    }

    pub(crate) fn set_failing(&self, name: &str) {
        self.put(name, Zone::Code(ResponseCode::ServFail));
    }

    pub(crate) fn set_silent(&self, name: &str) {
        self.put(name, Zone::Silence);
    }

    fn put(&self, name: &str, zone: Zone) {
        let mut state = self.state.lock().expect("no panic");
        state.zone.insert(name.into(), zone);
    }

    /// The names that it was asked for addresses, once for each of the questions (there is one for each IP version).
    pub(crate) fn queries(&self) -> Vec<String> {
        let state = self.state.lock().expect("no panic");
        state.queries.iter().map(|(name, _)| name.clone()).collect()
    }

    /// How often it was asked for the IPv4 addresses of a name.
    pub(crate) fn lookups(&self, name: &str) -> usize {
        let state = self.state.lock().expect("no panic");
        state.count(name, RecordType::A)
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn addresses_of(texts: &[&str]) -> Vec<IpAddr> {
    let parsed = texts.iter().map(|text| text.parse().expect("an address"));
    parsed.collect()
}

impl State {
    fn count(&self, name: &str, kind: RecordType) -> usize {
        let asked = self.queries.iter();
        asked
            .filter(|(other, other_kind)| other == name && *other_kind == kind)
            .count()
    }

    fn answer(&mut self, query: &Message) -> Option<Message> {
        let question = query.queries.first()?.clone();
        let name = question.name().to_ascii().to_ascii_lowercase();
        let name = name.trim_end_matches('.').to_owned();
        let kind = question.query_type();
        let before = self.count(&name, kind);
        self.queries.push((name.clone(), kind));
        let mut answer = query.clone();
        answer.metadata.message_type = MessageType::Response;
        answer.metadata.recursion_available = true;
        match self.zone.get(&name) {
            None => answer.metadata.response_code = ResponseCode::NXDomain,
            Some(Zone::Code(code)) => answer.metadata.response_code = *code,
            Some(Zone::Silence) => return None,
            Some(Zone::Addresses(answers, seconds)) => {
                for address in answers.get(before).or(answers.last())? {
                    let data = match address {
                        IpAddr::V4(address) => RData::A(A(*address)),
                        IpAddr::V6(address) => RData::AAAA(AAAA(*address)),
                    };
                    if data.record_type() == kind {
                        let record = Record::from_rdata(question.name().clone(), *seconds, data);
                        answer.add_answer(record);
                    }
                }
            }
        }
        Some(answer)
    }
}
