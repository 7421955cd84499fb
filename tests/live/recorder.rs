//! Stands before the mock and writes down what the runtime sends, byte for byte: the mock's own journal keeps
//! bodies only after it has made OpenAI's shape of them.

use redflow_contract::json::{JsonLimits, parse_strict};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One request as it was sent.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    /// By their names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) bytes: Vec<u8>,
}

impl Seen {
    /// The body. No key stands in it twice.
    #[track_caller]
    pub(crate) fn body(&self) -> Value {
        let limits = JsonLimits { max_bytes: 10_000_000, max_depth: 100 };
        parse_strict(&self.bytes, limits).unwrap_or_else(|problem| panic!("{problem:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

pub(crate) struct Recorder {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    /// Stands before a port of this machine until the process ends.
    pub(crate) fn before(behind: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, seen) = (listener.local_addr().unwrap().port(), Arc::default());
        let notes = Arc::clone(&seen);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                std::thread::spawn(move || serve(client, behind, &notes));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

/// One request per connection, whatever the mock says of keeping it.
fn serve(client: TcpStream, behind: u16, notes: &Mutex<Vec<Seen>>) {
    let Some(request) = read(&client) else { return };
    let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        if name != "connection" {
            head += &format!("{name}: {value}\r\n");
        }
    }
    let sent = [head.as_bytes(), b"\r\n", &request.bytes].concat();
    notes.lock().unwrap().push(request);
    // A stream that is cut is cut for the client too: both sockets end here.
    let _ = forward(&sent, behind, &client);
    let _ = client.shutdown(Shutdown::Both);
}

fn forward(sent: &[u8], behind: u16, mut client: &TcpStream) -> std::io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", behind))?;
    server.write_all(sent)?;
    let mut server = BufReader::new(server);
    let (mut head, mut line) = (String::new(), String::new());
    while line != "\r\n" {
        line.clear();
        if server.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if line == "\r\n" {
            head += "connection: close\r\n";
        }
        if name != "connection" && name != "keep-alive" {
            head += &line;
        }
    }
    client.write_all(head.as_bytes())?;
    std::io::copy(&mut server, &mut client).map(drop)
}

fn read(client: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).ok()?;
    Some(Seen { method, path, headers, bytes })
}
