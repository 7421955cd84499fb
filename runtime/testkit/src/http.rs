//! A scripted HTTP server. It answers one request per connection with the bytes that a test chooses.

use redflow_contract::json::{JsonLimits, parse_strict};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const MAX_HEADERS: usize = 64;
const BODY_LIMITS: JsonLimits = JsonLimits { max_bytes: 10_000_000, max_depth: 100 };

/// One request with its whole body.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// In capital letters, as sent.
    pub method: String,
    /// With the query.
    pub path: String,
    /// The names are in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// Parses a request that has a `content-length` or no body. Gives none while bytes are missing.
    ///
    /// # Errors
    /// If the bytes are no such request.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, String> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(end) = head.parse(bytes).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers: BTreeMap<String, String> = head
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), text(header.value)))
            .collect();
        let length = headers.get("content-length").map_or(Ok(0), |length| length.parse::<usize>());
        let length = length.map_err(|error| format!("content-length: {error}"))?;
        let Some(body) = bytes.get(end..end + length) else { return Ok(None) };
        let (method, path) = (head.method.unwrap_or_default(), head.path.unwrap_or_default());
        Ok(Some(Self { method: method.to_owned(), path: path.to_owned(), headers, body: body.to_vec() }))
    }

    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// If it is not JSON, or an object has a key twice.
    pub fn json(&self) -> Result<Value, String> {
        parse_strict(&self.body, BODY_LIMITS).map_err(|problem| format!("{problem:?}"))
    }
}

/// The bytes of a response with a JSON body, which closes the connection.
#[must_use]
pub fn json_response(status: u16, headers: &[(&str, &str)], body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}connection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A server on a free port of this machine. It accepts no more connections once it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    /// Its host and port.
    pub addr: SocketAddr,
    task: JoinHandle<()>,
}

impl HttpServer {
    /// Sends each client the bytes that `respond` gives, such as those of [`json_response`].
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start<F, R>(respond: F) -> std::io::Result<Self>
    where
        F: Fn(HttpRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Vec<u8>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let respond = Arc::new(respond);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let respond = Arc::clone(&respond);
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await?;
                    stream.write_all(&respond(request).await).await.ok()
                });
            }
        });
        Ok(Self { addr, task })
    }

    /// The address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<HttpRequest> {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.ok()? > 0 {
        if let Some(request) = HttpRequest::parse(&bytes).ok()? {
            return Some(request);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::HttpRequest;

    #[test]
    fn parses_a_request_once_its_body_is_whole() {
        let bytes = b"POST /a?b=c HTTP/1.1\r\nContent-Length: 9\r\nX-Key:  k \r\n\r\n{\"a\": 1 }";
        for cut in 0..bytes.len() {
            assert!(HttpRequest::parse(&bytes[..cut]).unwrap().is_none(), "{cut}");
        }
        let request = HttpRequest::parse(bytes).unwrap().unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/a?b=c"));
        assert_eq!((request.header("x-key"), request.json().unwrap()["a"].as_u64()), (Some("k"), Some(1)));
        assert!(HttpRequest::parse(b"220 mail.example ESMTP\r\n\r\n").is_err());
    }

    #[test]
    fn refuses_a_body_with_a_key_twice() {
        let bytes = b"POST / HTTP/1.1\r\ncontent-length: 13\r\n\r\n{\"a\":1,\"a\":2}";
        assert!(HttpRequest::parse(bytes).unwrap().unwrap().json().is_err());
    }
}
