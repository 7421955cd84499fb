//! The mock as an HTTP server of this machine, for the real program. The first step of a path names the provider.

use super::mock::Mock;
use super::response::{ErrorForm, Response};
use super::site::Site;
use crate::recorder::read;
use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

/// Runs until the process ends.
pub(crate) struct MockServer {
    port: u16,
    pub(crate) mock: Arc<Mock>,
}

impl MockServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, mock) = (listener.local_addr().unwrap().port(), Arc::<Mock>::default());
        let shared = Arc::clone(&mock);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mock = Arc::clone(&shared);
                std::thread::spawn(move || serve(&client, &mock));
            }
        });
        Self { port, mock }
    }

    /// The address of a provider.
    pub(crate) fn origin(&self, site: Site) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, site.name())
    }
}

fn serve(mut client: &TcpStream, mock: &Mock) {
    let Some(request) = read(client) else { return };
    let response = match Site::of_path(&request.path) {
        Some((site, path)) => mock.respond(site, path, &request),
        None => Response::not_found(ErrorForm::Text, &request.path),
    };
    let (status, kind, length) = (response.status, response.media_type, response.body.len());
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(response.body.as_bytes()));
    let _ = client.shutdown(Shutdown::Both);
}
