//! Passes the connections of a sidecar on to a server with an address, and keeps what the sidecar sends.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// It has one address while servers come and go.
pub(crate) struct Recorder {
    pub(crate) addr: SocketAddr,
    target: Arc<Mutex<Option<SocketAddr>>>,
}

impl Recorder {
    /// Everything that is sent is added to the file.
    pub(crate) fn start(file: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let target: Arc<Mutex<Option<SocketAddr>>> = Arc::default();
        let (current, file) = (Arc::clone(&target), Arc::new(Mutex::new(File::create(file).unwrap())));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let target = *current.lock().unwrap();
                let file = Arc::clone(&file);
                std::thread::spawn(move || pass(client, target, &file));
            }
        });
        Self { addr, target }
    }

    /// Where the next connections go.
    pub(crate) fn pass_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = Some(target);
    }
}

/// Passes one connection on. If the server is gone, what the client sends first is kept nevertheless.
fn pass(mut client: TcpStream, target: Option<SocketAddr>, file: &Mutex<File>) -> Option<()> {
    let mut server = target.and_then(|target| TcpStream::connect(target).ok());
    if let Some(server) = &server {
        let (mut from, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
        std::thread::spawn(move || {
            // A killed server ends the connection, perhaps with an error.
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    let mut bytes = vec![0; 65_536];
    loop {
        let read = client.read(&mut bytes).ok().filter(|read| *read > 0);
        let Some(read) = read else { break };
        file.lock().unwrap().write_all(&bytes[..read]).unwrap();
        match &mut server {
            Some(server) => server.write_all(&bytes[..read]).ok()?,
            None => break,
        }
    }
    server?.shutdown(Shutdown::Both).ok()
}
