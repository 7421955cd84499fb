//! An MCP server that wants tokens, and the issuer of its tokens, at one port of this machine.

use crate::http::{HttpRequest, json_response};
use redflow_contract::digest::Digest;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An MCP server with an issuer. Its tool `echo` gives back the argument `text`. It runs until it is dropped.
#[derive(Debug)]
pub struct TokenServer {
    /// Its host and port.
    pub addr: SocketAddr,
    state: Arc<Mutex<TokenServerState>>,
}

#[derive(Debug, Default)]
struct TokenServerState {
    is_over: bool,
    base: String,
    lifetime: u64,
    issued: usize,
    /// The only tokens that count.
    access: String,
    refresh: String,
    /// The challenge of each code.
    codes: HashMap<String, String>,
    grants: Vec<String>,
    requests: Vec<HttpRequest>,
}

impl TokenServer {
    /// Starts a server. Its tokens are valid for so many seconds.
    ///
    /// # Errors
    /// If no port is free.
    pub fn start(lifetime: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let state =
            TokenServerState { base: format!("http://{addr}"), lifetime, ..TokenServerState::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if lock(&shared).is_over {
                    break;
                }
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Ok(Self { addr, state })
    }

    /// The address of the MCP server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.addr)
    }

    /// A person signs in at the address that a client gives. Gives where the issuer sends the browser; none if the
    /// address is not one of a sign-in with PKCE.
    #[must_use]
    pub fn sign_in(&self, address: &str) -> Option<String> {
        let query = form(address.split_once('?')?.1);
        if query.get("code_challenge_method")? != "S256" || *query.get("resource")? != self.url() {
            return None;
        }
        let mut state = lock(&self.state);
        let code = format!("SECRET-code-{}", state.codes.len());
        state.codes.insert(code.clone(), query.get("code_challenge")?.clone());
        let (redirect, own) = (query.get("redirect_uri")?, query.get("state")?);
        Some(format!("{redirect}?code={code}&state={own}&iss={}", encode(&state.base)))
    }

    /// The server does not accept the access token any more, as at its end.
    pub fn end_access(&self) {
        lock(&self.state).access = "gone".to_owned();
    }

    /// The grants of the requests for tokens that the issuer accepted.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        lock(&self.state).grants.clone()
    }

    /// All requests up to now.
    #[must_use]
    pub fn requests(&self) -> Vec<HttpRequest> {
        lock(&self.state).requests.clone()
    }
}

impl Drop for TokenServer {
    fn drop(&mut self) {
        lock(&self.state).is_over = true;
        let _ = TcpStream::connect(self.addr);
    }
}

fn lock(state: &Mutex<TokenServerState>) -> MutexGuard<'_, TokenServerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: TcpStream, state: &Mutex<TokenServerState>) -> Option<()> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
    let request = loop {
        let count = stream.read(&mut chunk).ok()?;
        bytes.extend_from_slice(chunk.get(..count).filter(|read| !read.is_empty())?);
        if let Some(request) = HttpRequest::parse(&bytes).ok()? {
            break request;
        }
    };
    let answer = lock(state).answer(&request);
    stream.write_all(&answer).ok()
}

impl TokenServerState {
    fn answer(&mut self, request: &HttpRequest) -> Vec<u8> {
        self.requests.push(request.clone());
        let base = &self.base;
        let ok = |body: Value| json_response(200, &[], &body);
        match request.path.as_str() {
            "/.well-known/oauth-protected-resource/mcp" => {
                ok(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
            }
            "/.well-known/oauth-authorization-server" => ok(json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true})),
            "/register" => {
                let body = request.json().unwrap_or_default();
                let client = json!({"client_id": "registered", "client_secret": "SECRET-client",
                    "redirect_uris": body["redirect_uris"]});
                json_response(201, &[], &client)
            }
            "/token" => self.give_token(request),
            "/mcp" if request.method == "POST" => self.answer_message(request),
            "/mcp" => json_response(405, &[], &json!({})),
            _ => json_response(404, &[], &json!({})),
        }
    }

    fn give_token(&mut self, request: &HttpRequest) -> Vec<u8> {
        let form = form(&String::from_utf8_lossy(&request.body));
        let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let grant = field("grant_type");
        let is_allowed = match grant {
            "authorization_code" => {
                self.codes.remove(field("code")).is_some_and(|known| known == s256(field("code_verifier")))
            }
            "refresh_token" => !self.refresh.is_empty() && field("refresh_token") == self.refresh,
            _ => false,
        };
        if !is_allowed || field("resource") != format!("{}/mcp", self.base) {
            return json_response(400, &[], &json!({"error": "invalid_grant"}));
        }
        self.grants.push(grant.to_owned());
        self.issued += 1;
        self.access = format!("SECRET-access-{}", self.issued);
        self.refresh = format!("SECRET-refresh-{}", self.issued);
        let answer = json!({"access_token": self.access, "token_type": "Bearer",
            "expires_in": self.lifetime, "refresh_token": self.refresh});
        json_response(200, &[], &answer)
    }

    fn answer_message(&self, request: &HttpRequest) -> Vec<u8> {
        let token = format!("Bearer {}", self.access);
        if self.access.is_empty() || request.header("authorization") != Some(&token) {
            return json_response(401, &[("www-authenticate", "Bearer error=\"invalid_token\"")], &json!({}));
        }
        let body = request.json().unwrap_or_default();
        let result = match body["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}),
            "tools/list" => json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
                {"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object",
                    "properties": {"text": {"type": "string"}}}}]}),
            "tools/call" => json!({"resultType": "complete", "content": [
                {"type": "text", "text": body["params"]["arguments"]["text"]}]}),
            _ => return json_response(202, &[], &json!({})),
        };
        json_response(200, &[], &json!({"jsonrpc": "2.0", "id": body["id"], "result": result}))
    }
}

/// The fields of a form or a query.
fn form(text: &str) -> HashMap<String, String> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((decode(name), decode(value)))
    };
    text.split('&').filter_map(pair).collect()
}

fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().replace('+', " ").into_bytes();
    for part in parts {
        bytes.extend(part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()));
        bytes.extend(part.get(2..).unwrap_or_default().replace('+', " ").into_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The SHA-256 of a verifier, in base64url without padding.
fn s256(verifier: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hex = Digest::of(verifier.as_bytes()).to_hex();
    let bits: String =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| format!("{digit:04b}")).collect();
    let padded = format!("{bits:0<258}");
    let letter = |six: &[u8]| {
        let number = usize::from_str_radix(std::str::from_utf8(six).ok()?, 2).ok()?;
        LETTERS.get(number).copied().map(char::from)
    };
    padded.as_bytes().chunks(6).filter_map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::{decode, encode, s256};

    #[test]
    fn a_challenge_is_the_one_of_the_specification() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(s256(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(decode(&encode("http://a/ b+ü")), "http://a/ b+ü");
    }
}
