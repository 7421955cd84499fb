//! Kills `redflow serve` twice while clients start runs and two readers follow the events: no acknowledged
//! run is lost, and each reader gets every event once. `cargo xtask faults` has more such tests.

use crate::kit::{Folder, Running, code_of, flow_with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-for-a-sidecar-that-is-killed";

/// The number of clients, and the starts of each.
const STARTERS: usize = 3;
const STARTS: usize = 10;

/// The numbers of events before each kill. There are more than 500 events.
const KILLED_AFTER: [usize; 2] = [40, 250];

const TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// The position and the text of an event.
type LoggedEvent = (u64, String);

#[test]
fn a_killed_sidecar_loses_no_run_and_no_event() {
    let folder = Folder::with_flow(&busy_flow());
    folder.write("redflow.toml", "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\n");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let until = AtomicU64::new(u64::MAX);
    let (counter, events) = mpsc::channel();
    let mut sidecar = serve(&folder, address);
    std::thread::scope(|scope| {
        let until = &until;
        let _stop = StopReaders(until);
        let second = mpsc::channel().0;
        let readers = [counter, second].map(|counter| scope.spawn(move || follow(address, until, &counter)));
        let starters: Vec<_> =
            (0..STARTERS).map(|number| scope.spawn(move || start_runs(address, number))).collect();
        let mut count = 0;
        for enough in KILLED_AFTER {
            while count < enough {
                events.recv_timeout(TIMEOUT).unwrap();
                count += 1;
            }
            sidecar.0.kill().unwrap();
            sidecar.0.wait().unwrap();
            sidecar = serve(&folder, address);
        }
        let started: Vec<(String, String)> =
            starters.into_iter().flat_map(|starter| starter.join().unwrap()).collect();
        let runs = wait_until_ended(address);
        for (key, run) in &started {
            assert_eq!(start(address, key).as_ref(), Some(run), "{key} was used before");
        }
        let ids =
            |runs: &[Value]| -> BTreeSet<String> { runs.iter().map(|run| text(&run["runId"])).collect() };
        let acknowledged: BTreeSet<String> = started.into_iter().map(|(_, run)| run).collect();
        assert_eq!(acknowledged.len(), STARTERS * STARTS, "two keys gave one run");
        assert_eq!(ids(&runs), acknowledged);
        assert_eq!(ids(&wait_until_ended(address)), acknowledged, "a key that was used before began a run");

        let mut log = Vec::new();
        while !read_socket(address, &mut "0".to_owned(), &mut log, |kind| {
            kind.is_none_or(|kind| kind != "caught_up")
        }) {}
        until.store(log.last().unwrap().0, Ordering::Relaxed);
        for reader in readers {
            let (events_read, connections) = reader.join().unwrap();
            assert!(connections > KILLED_AFTER.len(), "{connections}");
            assert_eq!(events_read, log);
        }
        check_log(address, &log, &acknowledged);
    });
    let id = sidecar.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(code_of(sidecar.0.wait().unwrap()), 0);
    folder.run_ok(["replay", "--all"]);
}

/// Stops the readers when it is dropped, also after a panic.
struct StopReaders<'a>(&'a AtomicU64);

impl Drop for StopReaders<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Three tool calls and a final answer, each with a delay.
fn busy_flow() -> Value {
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    let mut flow = flow_with(json!([call, call, call, end]), "m", json!({"delayMs": 20}));
    for debug in flow.as_array_mut().unwrap().iter_mut().filter(|node| node["type"] == "debug") {
        debug["complete"] = json!("agentResult.traceId");
    }
    flow
}

/// A port outside the range of ephemeral ports. With an ephemeral port, a client could connect to itself.
fn free_port() -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (first..20_000).chain(10_000..first).find(free).unwrap()
}

fn serve(folder: &Folder, address: SocketAddr) -> Running {
    let listen = address.to_string();
    let args = ["serve", "--flows", "flow.json", "--listen", &listen, "--config", "redflow.toml"];
    let call = folder.redflow(args).env("REDFLOW_TOKEN", TOKEN).env("REDFLOW_LOG", "error");
    let mut running = call.spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut output = String::new();
    while !output.contains("listening on") {
        assert!(stderr.read_line(&mut output).unwrap() > 0, "it ended without listening: {output}");
    }
    // The pipe must be read on, or the process blocks when it is full.
    std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
    running
}

/// Sends a request and reads the response. None if the sidecar was killed meanwhile.
fn request(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    // A truncated body is not JSON.
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

#[track_caller]
fn get(address: SocketAddr, path: &str) -> Value {
    let (status, body) = request(address, "GET", path, "", "").unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// Starts a run. None without a response.
fn start(address: SocketAddr, key: &str) -> Option<String> {
    let header = format!("Idempotency-Key: {key}\r\n");
    let body = json!({"node": "a", "payload": key}).to_string();
    let (status, body) = request(address, "POST", "/api/runs", &header, &body)?;
    let runs = body["runs"].as_array().map(Vec::len);
    assert_eq!((status, runs, &body["runs"][0]["refused"]), (202, Some(1), &Value::Null), "{body}");
    Some(text(&body["runs"][0]["runId"]))
}

/// Starts runs with keys, and retries each start until it succeeds.
fn start_runs(address: SocketAddr, number: usize) -> Vec<(String, String)> {
    let end = Instant::now() + TIMEOUT;
    let begin = |count| {
        let key = format!("{number}-{count}");
        loop {
            if let Some(run) = start(address, &key) {
                return (key, run);
            }
            assert!(Instant::now() < end, "{key} was never acknowledged");
            std::thread::park_timeout(PAUSE);
        }
    };
    (0..STARTS).map(begin).collect()
}

/// Waits until all runs have ended and their results are delivered.
fn wait_until_ended(address: SocketAddr) -> Vec<Value> {
    let end = Instant::now() + TIMEOUT;
    loop {
        let list = get(address, "/api/runs?limit=1000");
        let runs = list["runs"].as_array().unwrap();
        if runs.iter().all(|run| run["status"] == "completed" && run["delivered"] == true) {
            return runs.clone();
        }
        assert!(Instant::now() < end, "{list:#}");
        std::thread::park_timeout(PAUSE);
    }
}

/// Reconnects after every kill until all events have arrived. Also gives the number of connections.
fn follow(address: SocketAddr, until: &AtomicU64, counter: &mpsc::Sender<()>) -> (Vec<LoggedEvent>, usize) {
    let (mut cursor, mut events_read, mut connections) = ("0".to_owned(), Vec::new(), 0);
    let end = Instant::now() + TIMEOUT;
    let has_all = |events_read: &[LoggedEvent]| {
        events_read.last().is_some_and(|(last, _)| *last >= until.load(Ordering::Relaxed))
    };
    while !has_all(&events_read) {
        assert!(Instant::now() < end, "the rest does not come");
        let goes_on = |kind: Option<&str>| {
            connections += usize::from(kind == Some("hello"));
            if kind == Some("event") {
                // The receiver may be gone.
                let _ = counter.send(());
            }
            kind.is_some() || until.load(Ordering::Relaxed) == u64::MAX
        };
        read_socket(address, &mut cursor, &mut events_read, goes_on);
        std::thread::park_timeout(PAUSE);
    }
    (events_read, connections)
}

/// Reads one socket after the cursor while `goes_on` says so. `goes_on` gets the type of every message, or
/// none after a pause. Gives whether `goes_on` ended the reading, and not the sidecar.
fn read_socket(
    address: SocketAddr,
    cursor: &mut String,
    events_read: &mut Vec<LoggedEvent>,
    mut goes_on: impl FnMut(Option<&str>) -> bool,
) -> bool {
    let Some(mut socket) = Socket::open(address) else { return false };
    loop {
        let message = match socket.next() {
            SocketRead::Message(message) => message,
            SocketRead::Timeout if goes_on(None) => continue,
            SocketRead::Timeout => return true,
            SocketRead::Closed => return false,
        };
        match message["type"].as_str().unwrap() {
            "hello" => socket.send(1, json!({"type": "subscribe", "after": cursor}).to_string().as_bytes()),
            "event" => {
                *cursor = text(&message["cursor"]);
                let position = u64::from_str_radix(cursor.rsplit_once('.').unwrap().1, 16).unwrap();
                events_read.push((position, message["event"].to_string()));
            }
            "caught_up" => {}
            _ => panic!("{message}"),
        }
        if !goes_on(message["type"].as_str()) {
            return true;
        }
    }
}

enum SocketRead {
    Message(Value),
    Timeout,
    Closed,
}

/// A minimal WebSocket client: unfragmented frames, masked with zeros.
struct Socket {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Socket {
    fn open(address: SocketAddr) -> Option<Self> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut socket = Self { stream, bytes: Vec::new() };
        loop {
            if let Some(end) = socket.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(socket.bytes.drain(..end + 4).collect()).unwrap();
                assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
                return Some(socket);
            }
            socket.read_more()?;
        }
    }

    /// Waits a moment for more bytes, and gives whether some arrived. None if the sidecar is gone.
    fn read_more(&mut self) -> Option<bool> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => None,
            Ok(read) => {
                self.bytes.extend_from_slice(&bytes[..read]);
                Some(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Some(false),
            Err(_) => None,
        }
    }

    fn next(&mut self) -> SocketRead {
        loop {
            match self.frame() {
                Some((1, text)) => return SocketRead::Message(serde_json::from_slice(&text).unwrap()),
                Some((9, data)) => self.send(10, &data),
                Some((8, _)) => return SocketRead::Closed,
                Some((kind, _)) => panic!("a frame of kind {kind}"),
                None => match self.read_more() {
                    Some(true) => {}
                    Some(false) => return SocketRead::Timeout,
                    None => return SocketRead::Closed,
                },
            }
        }
    }

    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let (begin, length) = match *self.bytes.get(1)? {
            126 => (4, usize::from(u16::from_be_bytes(self.bytes.get(2..4)?.try_into().unwrap()))),
            // Events are cut to 16 KiB.
            length => (2, usize::from(length)),
        };
        assert!(length < 127 || begin == 4, "a masked or giant frame");
        let data = self.bytes.get(begin..begin + length)?.to_vec();
        let kind = self.bytes[0] & 0x0f;
        self.bytes.drain(..begin + length);
        Some((kind, data))
    }

    /// A failed write shows at the next read.
    fn send(&mut self, kind: u8, data: &[u8]) {
        let length = u8::try_from(data.len()).unwrap();
        assert!(length < 126);
        let frame = [&[0x80 | kind, 0x80 | length, 0, 0, 0, 0], data].concat();
        let _ = self.stream.write_all(&frame);
    }
}

/// The log has every event of every run once, in order and equal to the journals, and every debug output.
#[track_caller]
fn check_log(address: SocketAddr, log: &[LoggedEvent], runs: &BTreeSet<String>) {
    let positions: Vec<u64> = log.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, (1..=log.len() as u64).collect::<Vec<_>>());
    let mut run_events: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut debugged = BTreeSet::new();
    for (_, event) in log {
        let mut event: Value = serde_json::from_str(event).unwrap();
        match event["kind"].as_str() {
            Some("run") => {
                run_events.entry(text(&event["event"]["runId"])).or_default().push(event["event"].take());
            }
            _ => drop(debugged.insert(text(&event["event"]["value"]))),
        }
    }
    debugged.remove("");
    assert_eq!((&run_events.keys().cloned().collect(), &debugged), (runs, runs));
    for (run, run_events) in run_events {
        let seqs: Vec<&Value> = run_events.iter().map(|event| &event["seq"]).collect();
        assert_eq!(json!(seqs), json!((1..=run_events.len()).collect::<Vec<_>>()), "{run}");
        assert_eq!(run_events.last().unwrap()["event"]["type"], "run_finished");
        assert_eq!(get(address, &format!("/api/runs/{run}/events")), Value::Array(run_events));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
