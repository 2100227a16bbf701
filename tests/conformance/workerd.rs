//! workerd, in a process of its own beside us.

#![allow(
    unreachable_pub,
    reason = "what a module offers to its neighbours is its face here too"
)]

use serde_json::Value as Json;
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

pub struct Workerd {
    child: Child,
    address: SocketAddr,
}

impl Workerd {
    /// Starts it on the worker in this folder.
    pub async fn start(folder: &Path) -> Self {
        let internet = internet().await;
        let binary = Command::new(folder.join("../../tools/workerd"))
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(binary.status.success(), "there is no workerd");
        let binary = String::from_utf8(binary.stdout).unwrap();
        let mut child = Command::new(binary.trim())
            .args(["serve", "--experimental", "--control-fd=1"])
            .arg(format!("--external-addr=internet={internet}"))
            .arg(folder.join("workerd.capnp"))
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let told: Json = serde_json::from_str(&line.unwrap()).ok()?;
            told["port"].as_u64()
        });
        // What the workers log comes there too.
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.expect("workerd says where it listens");
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()));
        Self { child, address }
    }

    pub async fn ask(&self, question: &str) -> Json {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request =
            format!("GET /{question} HTTP/1.1\r\nHost: workerd\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{question}: {answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{question}: {error}: {answer}"))
    }
}

impl Drop for Workerd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a server listens that has the same answer for everything.
async fn internet() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 65_536];
            let _ = stream.read(&mut request).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer).await;
        }
    });
    address
}
