//! Bytes that no honest client sends, and a server that must not mind: whatever comes, connections end or are answered,
//! nothing panics, nothing is kept, and who is connected beside them is served.
//!
//! An input is a round of connections at once. [`scenario`] has honest sessions, whose bytes are in `seeds/rpc`;
//! [`mutation`] makes dishonest ones of them; [`oracle`] says what must hold afterwards.

mod mutation;
mod oracle;
mod scenario;

use crate::{Reached, Source};
use coracle_isolate::Machine;
use coracle_server::{Server, ServerConfig};
use mutation::Attack;
use oracle::Oracle;
use scenario::{Client, SCENARIOS};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::Runtime,
    task::LocalSet,
};

pub(crate) const REACHES: &[&str] = &[
    "connected",
    "not read",
    "answered with some bytes",
    "answered with nothing",
    "a neighbour is served",
];

/// Connections at once.
const ROUND_MAX: usize = 24;

macro_rules! sessions {
    ($($name:literal,)*) => {
        &[$(($name, include_bytes!(concat!("../../seeds/rpc/", $name, ".bin")))),*]
    };
}

/// What honest clients sent, by what they did.
const SESSIONS: &[(&str, &[u8])] = sessions![
    "cancelled_and_released",
    "capabilities",
    "load_and_call",
    "outcomes",
    "promise_that_becomes_itself",
    "refused_loads",
    "sessions",
    "values_of_both_forms",
    "workers_by_id",
];

/// A server that lives as long as its process, since what one input leaves in it must do no harm to the next.
struct Environment {
    runtime: Runtime,
    tasks: LocalSet,
    server: Server,
    oracle: Oracle,
}

thread_local! {
    static ENVIRONMENT: &'static Environment = Box::leak(Box::new(Environment::new()));
}

impl Environment {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let tasks = LocalSet::new();
        let server = tasks.block_on(&runtime, async {
            let server = server();
            // As they are first: that warms everything up before the oracle looks at the memory.
            let oracle = Oracle::new();
            for (name, session) in SESSIONS {
                deliver(&server, mutation::honest(session)).await;
                if let Err(problem) = oracle.check(&server).await {
                    panic!("after {name} as it is: {problem}");
                }
            }
            server
        });
        Self {
            runtime,
            tasks,
            server,
            oracle: Oracle::new(),
        }
    }
}

fn server() -> Server {
    let mut config = ServerConfig::for_machine(&Machine::read());
    config.cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
    config.core.isolates_max = 64;
    config.login_deadline = Duration::from_secs(2);
    Server::start(config).expect("the server starts")
}

pub(crate) fn run(input: &[u8]) -> Reached {
    ENVIRONMENT.with(|environment| {
        let round = round(environment, input);
        environment.tasks.block_on(&environment.runtime, round)
    })
}

async fn round(environment: &Environment, input: &[u8]) -> Reached {
    let Environment { server, oracle, .. } = environment;
    let mut reached = Reached::default();
    let mut source = Source::new(input);
    let attacks: Vec<Attack> = (0..1 + source.below(ROUND_MAX))
        .map(|_| mutation::attack(&mut source, SESSIONS))
        .collect();
    // Connected before them, and called while they are at it.
    let neighbour = Client::over(server.connect());
    let delivered =
        futures::future::join_all(attacks.into_iter().map(|attack| deliver(server, attack)));
    let neighbour_served = tokio::time::timeout(oracle::ANSWER_TIME_MAX, neighbour.is_served());
    let (answers, served) = futures::future::join(delivered, neighbour_served).await;
    served
        .unwrap_or_else(|_| panic!("a neighbour is not served"))
        .unwrap_or_else(|error| panic!("a neighbour was told: {error}"));
    drop(neighbour);
    reached.note("a neighbour is served");
    for answer in answers {
        reached.note("connected");
        reached.note(match answer {
            None => "not read",
            Some(0) => "answered with nothing",
            Some(_) => "answered with some bytes",
        });
    }
    if let Err(problem) = oracle.check(server).await {
        panic!("{problem}");
    }
    reached
}

/// Plays the hostile client: one connection from its beginning to its end. Returns how many bytes it was answered with, if
/// it listened.
async fn deliver(server: &Server, attack: Attack) -> Option<usize> {
    let (mut from_server, mut to_server) = tokio::io::split(server.connect());
    let writing = async {
        for piece in &attack.pieces {
            if to_server.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if attack.lingers {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut answered = 0;
    let reading = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            answered += count;
        }
        // The server has ended the connection; what is still written fails by itself.
        std::future::pending::<()>().await;
    };
    let talk = async {
        // Who does not read may not get rid of everything.
        let writing = tokio::time::timeout(Duration::from_millis(500), writing);
        if attack.reads {
            tokio::select! { _ = writing => {}, () = reading => {} }
        } else {
            let _ = writing.await;
        }
    };
    talk.await;
    attack.reads.then_some(answered)
}

/// Writes the sessions in `folder` anew, as honest clients have them with the schema of today.
///
/// # Errors
/// They can't be written.
pub fn record_seeds(folder: &Path) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let server = server();
        for scenario in SCENARIOS {
            let session = scenario::record(&server, scenario).await;
            fs::write(folder.join(format!("{}.bin", scenario.name)), session)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that is cut in two is no seed for what comes after the cut.
    #[test]
    fn the_seeds_are_whole_sessions() {
        for (name, session) in SESSIONS {
            let frames = mutation::frames(session);
            assert!(frames.len() > 2 && frames.concat() == *session, "{name}");
        }
    }
}
