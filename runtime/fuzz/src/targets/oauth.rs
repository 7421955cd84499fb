//! What a server and its issuer say about OAuth: the challenge, both metadata, the registration and the tokens.

use super::egress::is_inside;
use super::mcp::MemoryStore;
use super::{Outcome, Target};
use redflow_contract::mcp::OAuthGrant;
use redflow_egress::{Egress, EgressPolicy, EgressSettings, ScriptedNet};
use redflow_mcp::http::{AllTokens, HttpEndpoint, HttpTimes, LoginError, ResolvedAuth};
use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::future::ready;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
const SERVER: &str = "http://mcp.example.org";
const ISSUER: &str = "http://issuer.example.org";
const REDIRECT: &str = "http://127.0.0.1:7777/oauth/callback";

/// The longest text that an error may have.
const MAX_ERROR_CHARS: usize = 2_000;

/// An input is an object with the answer at each step of a sign-in. Any other input is the body of every answer.
pub(super) struct SignIn;

impl Target for SignIn {
    fn name(&self) -> &'static str {
        "oauth"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let resource = json!({"resource": format!("{SERVER}/mcp"), "authorization_servers": [ISSUER],
            "scopes_supported": ["read", "write"], "bearer_methods_supported": ["header"]});
        let issuer = json!({"issuer": ISSUER, "authorization_endpoint": format!("{ISSUER}/authorize"),
            "token_endpoint": format!("{ISSUER}/token"), "registration_endpoint": format!("{ISSUER}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code"], "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true});
        let client = json!({"client_id": "c", "client_secret": "s", "redirect_uris": [REDIRECT]});
        let token = json!({"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r",
            "scope": "read"});
        let challenge = format!(
            "Bearer resource_metadata=\"{SERVER}/.well-known/oauth-protected-resource/mcp\", scope=\"read\""
        );
        let whole = json!({"challenge": challenge, "resource": resource, "issuer": issuer, "client": client,
            "token": token, "callback": format!("&iss={ISSUER}")});
        let inside = json!({"challenge": "Bearer resource_metadata=\"http://169.254.169.254/x\"", "resource":
            {"resource": format!("{SERVER}/mcp"), "authorization_servers": ["http://10.0.0.1", "https://[::1]/"]}});
        let refused = json!({"challenge": "Bearer", "resource": resource, "issuer": issuer, "client": client,
            "token": {"error": "invalid_grant", "error_description": "no"}, "callback": "&error=access_denied"});
        let plain = json!({"challenge": "Basic realm=\"x\"", "resource": resource, "issuer":
            {"issuer": "http://other.example.org", "token_endpoint": "/token", "authorization_endpoint": "javascript:1"}});
        [whole, inside, refused, plain, issuer].map(|value| value.to_string().into_bytes()).into()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(sign_in(input))
    }
}

async fn sign_in(input: &[u8]) -> Outcome {
    let answers = Arc::new(Answers::read(input));
    let callback = answers.callback();
    let server = HttpServer::start(move |request| ready(answers.of(&request)));
    let server = server.await.map_err(|error| error.to_string())?;
    // Both names are in the operator's network, so their addresses need no https.
    let private = ["mcp.example.org:80", "issuer.example.org:80"].map(str::to_owned).into();
    let settings = EgressSettings { private, ..EgressSettings::default() };
    let policy = EgressPolicy::new(&settings).map_err(|_| "the settings are wrong")?;
    let names = ["mcp.example.org", "issuer.example.org", "other.example.org"];
    let net = names.into_iter().fold(ScriptedNet::new(), |net, name| net.answer(name, &[PUBLIC]));
    let net = Arc::new(net.lead((PUBLIC, 80).into(), server.addr.port()));
    let egress = Egress::with_net(policy, net.clone(), net.clone());
    let store = Arc::new(MemoryStore::default());
    let tokens = AllTokens::new(store.clone(), || {});
    let auth = ResolvedAuth::OAuth {
        grant: OAuthGrant::AuthorizationCode,
        client_id: None,
        client_secret: None,
        scopes: Vec::new(),
    };
    let limit = Duration::from_secs(1);
    let times = HttpTimes { result: limit, plain: limit, silent: limit, issuer: limit };
    let endpoint =
        HttpEndpoint::new(&format!("{SERVER}/mcp"), auth, egress, &tokens, "fuzz".to_owned(), times)?;
    let outcome = match endpoint.start_login(REDIRECT).await {
        Ok(start) if start.state.is_empty() => return Err("a sign-in has no state".to_owned()),
        Ok(start) => {
            check_address(&start.url)?;
            let callback = format!("{REDIRECT}?code=c&state={}{callback}", start.state);
            match endpoint.finish_login(&callback).await {
                Ok(()) => "signed in".to_owned(),
                Err(error) => check_error(&error)?,
            }
        }
        Err(error) => check_error(&error)?,
    };
    if let Some(inside) = net.dials().iter().find(|address| is_inside(address.ip())) {
        return Err(format!("{inside} was dialled"));
    }
    let kept = store.token_count();
    if kept > usize::from(outcome == "signed in") {
        return Err(format!("{kept} tokens are kept, but the sign-in ended with: {outcome}"));
    }
    Ok(outcome)
}

/// A person opens only a web address, and without https only one in the operator's network.
fn check_address(address: &str) -> Result<(), String> {
    let is_private = [SERVER, ISSUER]
        .iter()
        .any(|own| address.strip_prefix(own).is_some_and(|rest| rest.starts_with(['/', '?', ':'])));
    if address.starts_with("https://") || is_private {
        Ok(())
    } else {
        Err(format!("a person is sent to {address}"))
    }
}

fn check_error(error: &LoginError) -> Outcome {
    let text = &error.text;
    if text.is_empty() || text.chars().count() > MAX_ERROR_CHARS || text.chars().any(char::is_control) {
        return Err(format!("an error says {text:?}"));
    }
    // Names of hosts are in some texts.
    Ok(text.split_whitespace().take(4).collect::<Vec<_>>().join(" "))
}

/// What the server and the issuer answer.
enum Answers {
    BySteps(Value),
    Always(Vec<u8>),
}

impl Answers {
    fn read(input: &[u8]) -> Self {
        let steps = serde_json::from_slice(input).ok().filter(Value::is_object);
        steps.map_or_else(|| Self::Always(input.to_vec()), Self::BySteps)
    }

    /// What follows the code and the state in the answer of the issuer.
    fn callback(&self) -> String {
        match self {
            Self::BySteps(steps) => steps["callback"].as_str().unwrap_or_default().to_owned(),
            Self::Always(_) => String::new(),
        }
    }

    fn of(&self, request: &HttpRequest) -> Vec<u8> {
        let Self::BySteps(steps) = self else { return self.body(&Value::Null) };
        match request.path.as_str() {
            "/mcp" => {
                let challenge = steps["challenge"].as_str().unwrap_or_default();
                let is_header = challenge.bytes().all(|byte| matches!(byte, b' '..=b'~'));
                let challenge = if is_header { challenge } else { "Bearer" };
                json_response(401, &[("www-authenticate", challenge)], &Value::Null)
            }
            path if path.contains("oauth-protected-resource") || path == "/x" => {
                self.body(&steps["resource"])
            }
            path if path.contains("well-known") => self.body(&steps["issuer"]),
            "/register" => self.body(&steps["client"]),
            "/token" => self.body(&steps["token"]),
            _ => json_response(404, &[], &Value::Null),
        }
    }

    /// A value as JSON, or a text as it is.
    fn body(&self, value: &Value) -> Vec<u8> {
        let body = match (self, value) {
            (Self::Always(body), _) => body.clone(),
            (_, Value::Null) => return json_response(404, &[], value),
            (_, Value::String(text)) => text.clone().into_bytes(),
            (_, value) => {
                let status = if value.get("error").is_some() { 400 } else { 200 };
                return json_response(status, &[], value);
            }
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        [head.into_bytes(), body].concat()
    }
}
