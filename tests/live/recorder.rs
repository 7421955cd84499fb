//! A proxy before the mock that records each request byte for byte. The mock's own journal keeps bodies only after it
//! converted them to OpenAI's format.

use redflow_testkit::HttpRequest;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct Recorder {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl Recorder {
    /// Starts a proxy before a port of this machine. It runs until the process ends.
    pub(crate) fn before(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, requests) = (listener.local_addr().unwrap().port(), Arc::default());
        let shared = Arc::clone(&requests);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(client, target, &shared));
            }
        });
        Self { port, requests }
    }

    /// The requests since the last call.
    pub(crate) fn take(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

/// Serves one request per connection, even if the mock offers to keep it.
fn serve(client: TcpStream, target: u16, requests: &Mutex<Vec<HttpRequest>>) {
    let Some(request) = read(&client) else { return };
    let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        if name != "connection" {
            head += &format!("{name}: {value}\r\n");
        }
    }
    let sent = [head.as_bytes(), b"\r\n", &request.body].concat();
    requests.lock().unwrap().push(request);
    // If the mock cuts a stream, the client sees the cut too: both sockets end here.
    let _ = forward(&sent, target, &client);
    let _ = client.shutdown(Shutdown::Both);
}

fn forward(sent: &[u8], target: u16, mut client: &TcpStream) -> std::io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", target))?;
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

pub(crate) fn read(mut client: &TcpStream) -> Option<HttpRequest> {
    let mut bytes = Vec::new();
    let mut part = [0; 16 * 1024];
    loop {
        match client.read(&mut part).ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&part[..count]),
        }
        if let Some(request) = HttpRequest::parse(&bytes).unwrap() {
            return Some(request);
        }
    }
}
