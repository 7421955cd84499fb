//! The operator's proxy. It looks the names up, so it answers for the addresses.

use crate::host::Host;
use crate::net::ByteStream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

/// The longest answer of a proxy to `CONNECT`.
const MAX_CONNECT_HEAD_BYTES: usize = 8 * 1024;

/// The address of a proxy.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) is_https: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The value of `Proxy-Authorization`.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Reads the setting. An empty one is no proxy. The problem names nothing of the address, which may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        if text.is_empty() {
            return Ok(None);
        }
        let url = Url::parse(text).map_err(|_| "the address of the proxy cannot be read")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("the address of the proxy does not begin with http:// or https://");
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err("the address of the proxy has more than a host and a port");
        }
        let host = Host::parse(url.host_str().unwrap_or_default())?;
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or("the proxy has the port 0")?;
        let authorization = basic_authorization(&url)?;
        Ok(Some(Self { is_https: url.scheme() == "https", host, port, authorization }))
    }

    /// Asks the proxy to pass bytes on to `HOST:PORT`.
    pub(crate) async fn tunnel(
        &self,
        stream: &mut Box<dyn ByteStream>,
        target: &str,
    ) -> Result<(), &'static str> {
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            head.extend_from_slice(b"Proxy-Authorization: ");
            head.extend_from_slice(authorization.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        const LOST: &str = "the connection to the proxy was lost";
        stream.write_all(&head).await.map_err(|_| LOST)?;
        stream.flush().await.map_err(|_| LOST)?;
        let answer = read_head(stream).await?;
        // The server of a tunnel waits for our bytes. What follows the head is not from it.
        let is_open = answer.starts_with(b"HTTP/1.1 200") || answer.starts_with(b"HTTP/1.0 200");
        if is_open { Ok(()) } else { Err("the proxy refused the connection") }
    }
}

async fn read_head(stream: &mut Box<dyn ByteStream>) -> Result<Vec<u8>, &'static str> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_CONNECT_HEAD_BYTES {
            return Err("the answer of the proxy is too long");
        }
        let byte = stream.read_u8().await.map_err(|_| "the connection to the proxy was lost")?;
        head.push(byte);
    }
    Ok(head)
}

fn basic_authorization(url: &Url) -> Result<Option<HeaderValue>, &'static str> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)))
        .map_err(|_| "the password of the proxy cannot be sent")?;
    value.set_sensitive(true);
    Ok(Some(value))
}
