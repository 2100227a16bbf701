//! The real server, in a process of its own, on ports that the system chooses.

use super::{
    admin::{self, Gauges},
    eventually,
};
use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

/// From the start to the addresses, when the guest has to be compiled first.
const START_TIME_MAX: Duration = Duration::from_secs(120);

/// A running `coracle serve`. It is ended, by its id, with the value.
pub struct Server {
    child: Child,
    addresses: Vec<String>,
    admin: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// A server with its defaults on a port of the loopback address.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with settings, such as `("isolates-max", "2")`. Without a `listen` it is as [`Server::start`].
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
        command.arg("serve").arg("--admin").arg("127.0.0.1:0");
        if !settings.iter().any(|(name, _)| *name == "listen") {
            command.arg("--listen").arg("127.0.0.1:0");
        }
        for (name, value) in settings {
            command.arg(format!("--{name}")).arg(value);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server can be started");
        let log = Arc::default();
        let lines = lines_of(child.stderr.take().expect("it was piped"), &log);
        match read_addresses(&lines) {
            Ok((addresses, admin)) => Self {
                child,
                addresses,
                admin,
                log,
            },
            Err(problem) => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the server did not start: {problem}");
            }
        }
    }

    /// A server whose log goes where it is sent and is not read here. It listens on that Unix socket.
    pub async fn start_unheard(
        socket: &Path,
        settings: &[(&str, &str)],
        environment: &[(&str, &str)],
        stderr: Stdio,
    ) -> Self {
        // What the system would have chosen would stand in the log.
        let admin = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port");
        let address = format!("unix:{}", socket.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
        command
            .arg("serve")
            .args(["--listen", &address, "--admin", &admin.to_string()])
            .envs(environment.iter().copied());
        for (name, value) in settings {
            command.arg(format!("--{name}")).arg(value);
        }
        let child = command
            .stdin(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the server can be started");
        let server = Self {
            child,
            addresses: vec![address],
            admin,
            log: Arc::default(),
        };
        let deadline = Instant::now() + START_TIME_MAX;
        while tokio::net::TcpStream::connect(admin).await.is_err() {
            assert!(Instant::now() < deadline, "the server did not start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server
    }

    /// Ends it as if the machine had: nothing in it is told.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }

    /// The pipe that its log goes to, where it was started with one and nobody reads it.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The address that it listens on; of several, the first.
    pub fn address(&self) -> &str {
        &self.addresses[0]
    }

    /// All of them.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Where it speaks Cap'n Web, if it was started with `listen-web`.
    pub fn web(&self) -> SocketAddr {
        let log = self.log();
        let said = log.split("; web on ").nth(1);
        let address = said.and_then(|said| said.split(';').next());
        address
            .and_then(|address| address.parse().ok())
            .unwrap_or_else(|| panic!("it speaks no Cap'n Web:\n{log}"))
    }

    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// What it has written to its log so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("nobody panics with it").clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A series of `/metrics`, by its full name with labels.
    pub async fn metric(&self, series: &str) -> f64 {
        admin::metric(self.admin, series).await
    }

    /// What is alive in it.
    pub async fn gauges(&self) -> Gauges {
        admin::gauges(self.admin).await
    }

    /// Waits until nothing of any client's is left in it.
    pub async fn is_empty(&self) {
        self.settles_at(Gauges::default()).await;
    }

    /// Waits until this and nothing else is alive in it.
    pub async fn settles_at(&self, expected: Gauges) {
        eventually("the server lets go of what nobody holds", async || {
            let found = self.gauges().await;
            if found == expected {
                Ok(())
            } else {
                Err(format!("there is {found:?}"))
            }
        })
        .await;
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .expect("it is ours and runs");
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is ours")
    }

    /// Waits for its end.
    pub async fn exits_within(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.exited() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the server still runs after {patience:?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(
    output: impl std::io::Read + Send + 'static,
    log: &Arc<Mutex<String>>,
) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let log = Arc::clone(log);
    thread::spawn(move || {
        // Read to the end, so that the server never waits for a reader.
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let mut log = log.lock().expect("nobody panics with it");
            log.push_str(&line);
            log.push('\n');
            drop(log);
            let _ = sender.send(line);
        }
    });
    lines
}

/// Reads the line with which a server says that it answers: `coracle 0.1.0 listens on A, B; admin on C; …`.
fn read_addresses(lines: &mpsc::Receiver<String>) -> Result<(Vec<String>, SocketAddr), String> {
    let deadline = Instant::now() + START_TIME_MAX;
    let mut seen = Vec::new();
    loop {
        let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        else {
            return Err(format!("it said only {seen:?}"));
        };
        if let Some((_, said)) = line.split_once(" listens on ") {
            let mut parts = said.split("; ");
            let addresses = parts
                .next()
                .unwrap_or_default()
                .split(", ")
                .map(str::to_owned)
                .collect();
            let admin = parts
                .find_map(|part| part.strip_prefix("admin on "))
                .and_then(|admin| admin.parse().ok());
            return admin.map(|admin| (addresses, admin)).ok_or(line);
        }
        seen.push(line);
    }
}
