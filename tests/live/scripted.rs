//! A server of our own, for answers that the mock does not give as the provider does. It sends the documented bytes.

use crate::recorder::read;
use crate::validator;
use redflow_testkit::HttpRequest;
use std::io::Write as _;
use std::net::{Shutdown, TcpListener};
use std::sync::{Arc, Mutex};

/// A response: its status, its media type and its body.
pub(crate) type Response = (u16, &'static str, String);

/// Gives one response to each request, in their order. Runs until the process ends.
pub(crate) struct ScriptedProvider {
    port: u16,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl ScriptedProvider {
    pub(crate) fn start(script: Vec<Response>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, requests) = (listener.local_addr().unwrap().port(), Arc::default());
        let seen: Arc<Mutex<Vec<HttpRequest>>> = Arc::clone(&requests);
        std::thread::spawn(move || {
            for ((status, kind, body), client) in script.into_iter().zip(listener.incoming().flatten()) {
                let Some(request) = read(&client) else { return };
                seen.lock().unwrap().push(request);
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n"
                );
                let _ = write!(&client, "{head}connection: close\r\n\r\n{body}");
                let _ = client.shutdown(Shutdown::Both);
            }
        });
        Self { port, requests }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests since the last call. Each must satisfy the validator.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        for request in &requests {
            let problems = validator::problems_of(request);
            assert!(problems.is_empty(), "{} {problems:#?}\n{:#}", request.path, request.json().unwrap());
        }
        requests
    }
}
