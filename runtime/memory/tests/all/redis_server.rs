//! A Redis server for one test, with its own port and directory.

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any start takes; only a failed start reaches it.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Below the ports that systems give to outgoing connections, so that no other process takes it while Redis
/// is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

pub(crate) struct RedisServer {
    pub(crate) port: u16,
    child: Option<Child>,
    directory: TempDir,
    arguments: Vec<String>,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts with more command line arguments, in which `PORT` stands for its port.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut server = Self { port: 0, child: None, directory, arguments };
        // Each test is a process of its own, so it starts at another port than the others.
        let span = u32::from(PORTS.end - PORTS.start);
        for attempt in 0..50 {
            let offset = (std::process::id().wrapping_mul(37) + attempt * 101) % span;
            server.port = PORTS.start + u16::try_from(offset).unwrap();
            if server.try_launch() {
                return server;
            }
        }
        panic!("redis-server did not start on any of 50 ports");
    }

    /// Starts it again, on the same port with the same data.
    pub(crate) fn restart(&mut self) {
        // A test of another process may hold the port for a moment.
        assert!((0..50).any(|_| self.try_launch()), "redis-server did not start again");
    }

    /// Kills the process without a shutdown.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Properties of a node that uses it.
    pub(crate) fn props(&self, more: &Value) -> Value {
        let mut props = json!({"host": "127.0.0.1", "port": self.port, "timeout": 20_000});
        props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        props
    }

    /// A separate connection for the test.
    pub(crate) async fn raw(&self) -> MultiplexedConnection {
        let client = redis::Client::open(("127.0.0.1", self.port)).unwrap();
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
    }

    /// Starts the process. Returns whether it became ready.
    fn try_launch(&mut self) -> bool {
        let mut command = Command::new("redis-server");
        let port = self.port.to_string();
        // With TLS, `PORT` is the encrypted port, and there is no plain one.
        let plain = if self.arguments.iter().any(|word| word == "--tls-port") { "0" } else { &port };
        command.args(["--port", plain, "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]);
        let arguments = self.arguments.iter().map(|word| if word == "PORT" { &port } else { word });
        command.arg(self.directory.path()).args(arguments);
        let launched = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = launched.expect(
            "these tests need a real Redis: install the program redis-server (Debian's package redis-server)",
        );
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (ready, is_ready) = mpsc::channel();
        // Reads to the end, so that Redis never blocks on its log.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains("Ready to accept connections") {
                    let _ = ready.send(());
                }
            }
        });
        let started = is_ready.recv_timeout(START_TIMEOUT).is_ok();
        self.child = Some(child);
        if !started {
            self.kill();
        }
        started
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
