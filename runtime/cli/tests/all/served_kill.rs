//! `redflow serve`, killed twice while runs are started and two readers look on: whoever was told of a run finds it, and
//! whoever was told of events gets the rest, each once. `cargo xtask faults` does more of the same.

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

/// Starters, and starts of each.
const STARTERS: usize = 3;
const STARTS: usize = 10;

/// After how many events it is killed. There are more than five hundred.
const KILLED_AFTER: [usize; 2] = [40, 250];

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Position and text of an event.
type Had = (u64, String);

#[test]
fn a_sidecar_that_is_killed_loses_no_run_and_no_event() {
    let folder = Folder::with_flow(&busy_flow());
    folder.write("redflow.toml", "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\n");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let until = AtomicU64::new(u64::MAX);
    let (heard, events) = mpsc::channel();
    let mut sidecar = serve(&folder, address);
    std::thread::scope(|scope| {
        let until = &until;
        let _rest = Rest(until);
        let second = mpsc::channel().0;
        let readers = [heard, second].map(|heard| scope.spawn(move || follow(address, until, &heard)));
        let starters: Vec<_> =
            (0..STARTERS).map(|number| scope.spawn(move || start_runs(address, number))).collect();
        let mut count = 0;
        for enough in KILLED_AFTER {
            while count < enough {
                events.recv_timeout(PATIENCE).unwrap();
                count += 1;
            }
            sidecar.0.kill().unwrap();
            sidecar.0.wait().unwrap();
            sidecar = serve(&folder, address);
        }
        let started: Vec<(String, String)> =
            starters.into_iter().flat_map(|starter| starter.join().unwrap()).collect();
        let runs = until_over(address);
        for (key, run) in &started {
            assert_eq!(start(address, key).as_ref(), Some(run), "{key} was used before");
        }
        let ids =
            |runs: &[Value]| -> BTreeSet<String> { runs.iter().map(|run| text(&run["runId"])).collect() };
        let acknowledged: BTreeSet<String> = started.into_iter().map(|(_, run)| run).collect();
        assert_eq!(acknowledged.len(), STARTERS * STARTS, "two keys gave one run");
        assert_eq!(ids(&runs), acknowledged);
        assert_eq!(ids(&until_over(address)), acknowledged, "a key that was used before began a run");

        let mut whole = Vec::new();
        while !visit(address, &mut "0".to_owned(), &mut whole, |said| {
            said.is_none_or(|said| said != "caught_up")
        }) {}
        until.store(whole.last().unwrap().0, Ordering::Relaxed);
        for reader in readers {
            let (had, connections) = reader.join().unwrap();
            assert!(connections > KILLED_AFTER.len(), "{connections}");
            assert_eq!(had, whole);
        }
        check_log(address, &whole, &acknowledged);
    });
    let id = sidecar.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(code_of(sidecar.0.wait().unwrap()), 0);
    folder.well(["replay", "--all"]);
}

/// Lets the readers go, also when something is wrong.
struct Rest<'a>(&'a AtomicU64);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Three sums and a last word, each after a while.
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

/// A port that the system gives to no connection: whoever knocks while nobody is there must not become its own peer.
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
    let mut said = String::new();
    while !said.contains("listening on") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended without listening: {said}");
    }
    // Somebody must read on, or it waits when the pipe is full.
    std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
    running
}

/// Sends bytes and takes what comes until the other side closes; none if it was killed meanwhile.
fn ask(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    // What is cut off is no JSON.
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

#[track_caller]
fn get(address: SocketAddr, path: &str) -> Value {
    let (status, body) = ask(address, "GET", path, "", "").unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// Starts a run; none if nobody answers.
fn start(address: SocketAddr, key: &str) -> Option<String> {
    let header = format!("Idempotency-Key: {key}\r\n");
    let body = json!({"node": "a", "payload": key}).to_string();
    let (status, body) = ask(address, "POST", "/api/runs", &header, &body)?;
    let runs = body["runs"].as_array().map(Vec::len);
    assert_eq!((status, runs, &body["runs"][0]["refused"]), (202, Some(1), &Value::Null), "{body}");
    Some(text(&body["runs"][0]["runId"]))
}

/// Starts runs with keys, each as often as it takes.
fn start_runs(address: SocketAddr, number: usize) -> Vec<(String, String)> {
    let end = Instant::now() + PATIENCE;
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

/// The runs, when all are over and their results have arrived.
fn until_over(address: SocketAddr) -> Vec<Value> {
    let end = Instant::now() + PATIENCE;
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

/// Reads on after every kill until it has what it should. Also gives how often it was told hello.
fn follow(address: SocketAddr, until: &AtomicU64, heard: &mpsc::Sender<()>) -> (Vec<Had>, usize) {
    let (mut cursor, mut had, mut connections) = ("0".to_owned(), Vec::new(), 0);
    let end = Instant::now() + PATIENCE;
    let has_all = |had: &[Had]| had.last().is_some_and(|(last, _)| *last >= until.load(Ordering::Relaxed));
    while !has_all(&had) {
        assert!(Instant::now() < end, "the rest does not come");
        let goes_on = |said: Option<&str>| {
            connections += usize::from(said == Some("hello"));
            if said == Some("event") {
                // Nobody may count any more.
                let _ = heard.send(());
            }
            said.is_some() || until.load(Ordering::Relaxed) == u64::MAX
        };
        visit(address, &mut cursor, &mut had, goes_on);
        std::thread::park_timeout(PAUSE);
    }
    (had, connections)
}

/// One socket: notes what comes after the cursor for as long as that goes on. Told of every message by its type, and of
/// none when it is quiet. Whether it was told to stop, and not cut off.
fn visit(
    address: SocketAddr,
    cursor: &mut String,
    had: &mut Vec<Had>,
    mut goes_on: impl FnMut(Option<&str>) -> bool,
) -> bool {
    let Some(mut socket) = Socket::open(address) else { return false };
    loop {
        let message = match socket.next() {
            Heard::Said(message) => message,
            Heard::Quiet if goes_on(None) => continue,
            Heard::Quiet => return true,
            Heard::Gone => return false,
        };
        match message["type"].as_str().unwrap() {
            "hello" => socket.send(1, json!({"type": "subscribe", "after": cursor}).to_string().as_bytes()),
            "event" => {
                *cursor = text(&message["cursor"]);
                let position = u64::from_str_radix(cursor.rsplit_once('.').unwrap().1, 16).unwrap();
                had.push((position, message["event"].to_string()));
            }
            "caught_up" => {}
            _ => panic!("{message}"),
        }
        if !goes_on(message["type"].as_str()) {
            return true;
        }
    }
}

enum Heard {
    Said(Value),
    Quiet,
    Gone,
}

/// A socket of events: whole frames, masked with zeros.
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
            socket.more()?;
        }
    }

    /// Waits a moment for more bytes. Whether there are; none if the other side is gone.
    fn more(&mut self) -> Option<bool> {
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

    fn next(&mut self) -> Heard {
        loop {
            match self.frame() {
                Some((1, text)) => return Heard::Said(serde_json::from_slice(&text).unwrap()),
                Some((9, data)) => self.send(10, &data),
                Some((8, _)) => return Heard::Gone,
                Some((kind, _)) => panic!("a frame of kind {kind}"),
                None => match self.more() {
                    Some(true) => {}
                    Some(false) => return Heard::Quiet,
                    None => return Heard::Gone,
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

    /// If it cannot be sent, that is seen when something is to be heard.
    fn send(&mut self, kind: u8, data: &[u8]) {
        let length = u8::try_from(data.len()).unwrap();
        assert!(length < 126);
        let frame = [&[0x80 | kind, 0x80 | length, 0, 0, 0, 0], data].concat();
        let _ = self.stream.write_all(&frame);
    }
}

/// The log has every event of every run once and in order, as the journals have them, and every result was shown.
#[track_caller]
fn check_log(address: SocketAddr, whole: &[Had], runs: &BTreeSet<String>) {
    let positions: Vec<u64> = whole.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, (1..=whole.len() as u64).collect::<Vec<_>>());
    let mut told: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut shown = BTreeSet::new();
    for (_, event) in whole {
        let mut event: Value = serde_json::from_str(event).unwrap();
        match event["kind"].as_str() {
            Some("run") => {
                told.entry(text(&event["event"]["runId"])).or_default().push(event["event"].take());
            }
            _ => drop(shown.insert(text(&event["event"]["value"]))),
        }
    }
    shown.remove("");
    assert_eq!((&told.keys().cloned().collect(), &shown), (runs, runs));
    for (run, told) in told {
        let seqs: Vec<&Value> = told.iter().map(|event| &event["seq"]).collect();
        assert_eq!(json!(seqs), json!((1..=told.len()).collect::<Vec<_>>()), "{run}");
        assert_eq!(told.last().unwrap()["event"]["type"], "run_finished");
        assert_eq!(get(address, &format!("/api/runs/{run}/events")), Value::Array(told));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
