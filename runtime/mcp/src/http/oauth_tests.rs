use super::issuer_client::MAX_ISSUER_ANSWER_BYTES;
use super::scopes::MAX_SCOPES;
use super::test_kit::{MemoryStore, Peer, Reply, all_tokens, connect, json_reply, legacy, modern, reply};
use super::tokens::RENEWAL_SECONDS;
use super::{
    AllTokens, HttpEndpoint, HttpFailure, HttpTimes, LOGIN_TIME, LoginErrorKind, ResolvedAuth, TokenKey,
};
use redflow_contract::digest::Digest;
use redflow_contract::mcp::OAuthGrant;
use redflow_testkit::HttpRequest;
use serde_json::json;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use url::Url;

const REDIRECT: &str = "http://127.0.0.1:7777/oauth/callback";
const ISSUER: &str = "http://issuer.example.org";

/// An issuer and the server that accepts its tokens, on one machine.
#[derive(Default)]
struct Issuer {
    /// The challenges of codes.
    codes: HashMap<String, String>,
    issued: usize,
    /// The only token that the server accepts.
    access: String,
    refresh: String,
    lifetime: u64,
    /// Where the server says that its tokens come from.
    location: String,
    /// The next client that it registers.
    client: String,
    registrations: Vec<serde_json::Value>,
    /// The grants of the requests for tokens.
    grants: Vec<String>,
    /// The scopes of the last sign-in.
    granted: String,
    /// The scopes that the server asks for; empty if it accepts every token.
    needed: String,
}

type Shared = Arc<Mutex<Issuer>>;

fn issuer() -> Shared {
    Arc::new(Mutex::new(Issuer {
        lifetime: 3600,
        location: ISSUER.to_owned(),
        client: "registered".to_owned(),
        ..Issuer::default()
    }))
}

fn respond(issuer: &Shared, request: &HttpRequest) -> Reply {
    let mut issuer = issuer.lock().unwrap();
    let host = request.header("host").unwrap_or_default();
    match (host, request.path.as_str()) {
        ("mcp.example.org", "/.well-known/oauth-protected-resource/mcp") => json_reply(
            200,
            "",
            &json!({"resource": "http://mcp.example.org/mcp", "authorization_servers": [issuer.location]}),
        ),
        ("mcp.example.org", "/mcp") => {
            let accepted = format!("Bearer {}", issuer.access);
            if issuer.access.is_empty() || request.header("authorization") != Some(&accepted) {
                return reply(401, "www-authenticate: Bearer error=\"invalid_token\"\r\n", "");
            }
            let has = |scope: &str| issuer.granted.split(' ').any(|granted| granted == scope);
            if issuer.needed.split_whitespace().any(|scope| !has(scope)) {
                let head = format!(
                    "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"{}\"\r\n",
                    issuer.needed
                );
                return reply(403, &head, "");
            }
            if request.method == "POST" { modern(request) } else { legacy(request, "") }
        }
        ("issuer.example.org", "/.well-known/oauth-authorization-server") => json_reply(
            200,
            "",
            &json!({"issuer": ISSUER, "authorization_endpoint": format!("{ISSUER}/authorize"),
                "token_endpoint": format!("{ISSUER}/token"), "registration_endpoint": format!("{ISSUER}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true}),
        ),
        ("issuer.example.org", "/register") => {
            let body = request.json().unwrap();
            issuer.registrations.push(body.clone());
            let redirects = &body["redirect_uris"];
            json_reply(
                201,
                "",
                &json!({"client_id": issuer.client, "client_secret": format!("SECRET-{}", issuer.client),
                "redirect_uris": redirects}),
            )
        }
        ("issuer.example.org", "/token") => issuer.give_token(request),
        _ => reply(404, "", ""),
    }
}

impl Issuer {
    fn give_token(&mut self, request: &HttpRequest) -> Reply {
        let form: HashMap<String, String> = url::form_urlencoded::parse(&request.body).into_owned().collect();
        let has = |name: &str, value: &str| form.get(name).is_some_and(|given| given == value);
        let grant = form.get("grant_type").cloned().unwrap_or_default();
        self.grants.push(grant.clone());
        let is_allowed = has("resource", "http://mcp.example.org/mcp")
            && match grant.as_str() {
                "client_credentials" => has("client_id", "robot") && has("client_secret", "SECRET-robot"),
                "refresh_token" => {
                    has("refresh_token", &self.refresh) && request.header("authorization").is_some()
                }
                _ => {
                    let verifier = form.get("code_verifier").map(String::as_str).unwrap_or_default();
                    let code = form.get("code").map(String::as_str).unwrap_or_default();
                    self.codes.remove(code).is_some_and(|challenge| challenge == s256(verifier))
                        && has("redirect_uri", REDIRECT)
                }
            };
        if !is_allowed {
            return json_reply(
                400,
                "",
                &json!({"error": "invalid_grant", "error_description": "SECRET-text"}),
            );
        }
        self.issued += 1;
        self.access = format!("SECRET-access-{}", self.issued);
        let mut answer =
            json!({"access_token": self.access, "token_type": "Bearer", "expires_in": self.lifetime});
        if !self.granted.is_empty() {
            answer["scope"] = json!(self.granted);
        }
        if grant != "client_credentials" {
            self.refresh = format!("SECRET-refresh-{}", self.issued);
            answer["refresh_token"] = json!(self.refresh);
        }
        json_reply(200, "", &answer)
    }
}

/// The digest of a verifier, in base64url without padding.
fn s256(verifier: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hex = Digest::of(verifier.as_bytes()).to_hex();
    let hex = hex.rsplit(':').next().unwrap();
    let bits: String = hex.chars().map(|digit| format!("{:04b}", digit.to_digit(16).unwrap())).collect();
    let padded = format!("{bits:0<258}");
    padded
        .as_bytes()
        .chunks(6)
        .map(|six| char::from(LETTERS[usize::from_str_radix(std::str::from_utf8(six).unwrap(), 2).unwrap()]))
        .collect()
}

async fn start(issuer: &Shared) -> Peer {
    let issuer = issuer.clone();
    Peer::start(move |request| respond(&issuer, request)).await
}

fn code_auth() -> ResolvedAuth {
    let (client_id, client_secret) = (None, None);
    ResolvedAuth::OAuth { grant: OAuthGrant::AuthorizationCode, client_id, client_secret, scopes: Vec::new() }
}

fn robot_auth(secret: &str) -> ResolvedAuth {
    ResolvedAuth::OAuth {
        grant: OAuthGrant::ClientCredentials,
        client_id: Some("robot".to_owned()),
        client_secret: Some(secret.into()),
        scopes: vec!["read".to_owned()],
    }
}

/// A person signs in: the issuer notes the challenge, and sends the person to the address that this gives.
fn sign_in(issuer: &Shared, url: &str, from: &str) -> String {
    let url = Url::parse(url).unwrap();
    let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
    assert_eq!(query["code_challenge_method"], "S256");
    assert_eq!(query["client_id"], issuer.lock().unwrap().client);
    assert_eq!(query["resource"], "http://mcp.example.org/mcp");
    {
        let mut issuer = issuer.lock().unwrap();
        issuer.codes.insert("SECRET-code".to_owned(), query["code_challenge"].clone());
        issuer.granted = query.get("scope").cloned().unwrap_or_default();
    }
    let answer = [("code", "SECRET-code"), ("state", &query["state"]), ("iss", from)];
    Url::parse_with_params(&query["redirect_uri"], answer).unwrap().into()
}

async fn failure_of(endpoint: &super::HttpEndpoint) -> HttpFailure {
    let error = connect(endpoint).await.err().unwrap();
    assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    HttpFailure::of_connection(&error).unwrap_or_else(|| panic!("{error:?}"))
}

#[tokio::test]
async fn client_credentials_get_a_token_and_another_one_when_it_ends() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let endpoint = peer.endpoint_with(robot_auth("SECRET-robot"), &store);
    assert!(!endpoint.needs_login().await.unwrap());
    let connection = connect(&endpoint).await.unwrap();
    assert_eq!(connection.list_all_tools().await.unwrap().len(), 1);
    assert_eq!(issuer.lock().unwrap().issued, 1, "one token for all requests");
    // The server does not accept it any more.
    issuer.lock().unwrap().access = "gone".to_owned();
    assert_eq!(connection.list_all_tools().await.unwrap().len(), 1);
    // Another process uses the token that is kept.
    let again = peer.endpoint_with(robot_auth("SECRET-robot"), &store);
    connect(&again).await.unwrap();
    assert_eq!(issuer.lock().unwrap().issued, 2);
    assert!(endpoint.start_login(REDIRECT).await.unwrap_err().text.contains("needs no sign-in"));
}

#[tokio::test]
async fn a_wrong_client_secret_is_named_and_not_shown() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let failure = failure_of(&peer.endpoint(robot_auth("SECRET-wrong"))).await;
    assert!(failure.text.contains("check `clientId`, `secretEnv`") && !failure.is_sent, "{failure:?}");
    let auth = ResolvedAuth::OAuth {
        grant: OAuthGrant::ClientCredentials,
        client_id: None,
        client_secret: None,
        scopes: Vec::new(),
    };
    let error = super::HttpEndpoint::new(
        super::test_kit::URL,
        auth,
        peer.egress(),
        &all_tokens(&MemoryStore::new()),
        "docs".to_owned(),
        HttpTimes::default(),
    );
    assert!(error.err().unwrap().contains("needs `clientId`"));
}

#[tokio::test]
async fn a_person_signs_in_and_out() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let endpoint = peer.endpoint_with(code_auth(), &store);
    assert!(endpoint.needs_login().await.unwrap());
    assert!(failure_of(&endpoint).await.needs_login);
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    assert_eq!(issuer.lock().unwrap().registrations[0]["client_name"], "Redflow");
    assert!(login.url.contains(&login.state) && !format!("{login:?}").contains(&login.state));
    let callback = sign_in(&issuer, &login.url, ISSUER);
    endpoint.finish_login(&callback).await.unwrap();
    assert!(!endpoint.needs_login().await.unwrap());
    assert_eq!(connect(&endpoint).await.unwrap().list_all_tools().await.unwrap().len(), 1);
    assert!(!format!("{endpoint:?}").contains("SECRET"));
    // An answer counts once.
    assert!(endpoint.finish_login(&callback).await.unwrap_err().text.contains("No sign-in waits"));
    // Another process has the tokens, too. For another address they do not count.
    connect(&peer.endpoint_with(code_auth(), &store)).await.unwrap();
    let other = "http://mcp.example.org/other";
    let (tokens, key) = (all_tokens(&store), "docs".to_owned());
    let times = HttpTimes::default();
    let other = super::HttpEndpoint::new(other, code_auth(), peer.egress(), &tokens, key, times).unwrap();
    assert!(other.needs_login().await.unwrap());
    endpoint.logout().await.unwrap();
    assert!(store.kept().is_empty() && endpoint.needs_login().await.unwrap());
    assert!(failure_of(&endpoint).await.needs_login);
}

#[tokio::test]
async fn tokens_are_renewed_once_for_all_requests() {
    let issuer = issuer();
    issuer.lock().unwrap().lifetime = RENEWAL_SECONDS;
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let endpoint = peer.endpoint_with(code_auth(), &store);
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    endpoint.finish_login(&sign_in(&issuer, &login.url, ISSUER)).await.unwrap();
    issuer.lock().unwrap().lifetime = 3600;
    // The token ends soon, so each request would renew it; the secret of the registered client is kept for that.
    let endpoint = peer.endpoint_with(code_auth(), &store);
    let (one, two) = tokio::join!(connect(&endpoint), connect(&endpoint));
    one.unwrap();
    two.unwrap();
    assert_eq!(issuer.lock().unwrap().grants, ["authorization_code", "refresh_token"]);
    // The issuer does not accept the refresh token any more.
    {
        let mut issuer = issuer.lock().unwrap();
        issuer.access = "gone".to_owned();
        issuer.refresh = "gone".to_owned();
    }
    assert!(failure_of(&endpoint).await.needs_login);
    assert!(endpoint.needs_login().await.unwrap());
    // Only the issuer is known now.
    assert_eq!(
        store.kept(),
        [format!("{{\"url\":\"http://mcp.example.org/mcp\",\"issuer\":\"{ISSUER}\",\"credentials\":null}}")]
    );
}

// SECURITY: mcp-oauth
#[tokio::test]
async fn a_refresh_token_goes_only_to_its_issuer() {
    let issuer = issuer();
    issuer.lock().unwrap().lifetime = 1;
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let endpoint = peer.endpoint_with(code_auth(), &store);
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    endpoint.finish_login(&sign_in(&issuer, &login.url, ISSUER)).await.unwrap();
    let kept =
        store.kept().pop().unwrap().replace(&format!("\"issuer\":\"{ISSUER}\""), "\"issuer\":\"http://old\"");
    redflow_ports::McpStore::set_tokens(&*store, "docs", Some(&kept)).unwrap();
    let endpoint = peer.endpoint_with(code_auth(), &store);
    let failure = failure_of(&endpoint).await;
    assert!(failure.text.contains("redflow mcp logout") && !failure.is_sent, "{failure:?}");
    let error = endpoint.start_login(REDIRECT).await.unwrap_err();
    assert!(error.text.contains("`http://issuer.example.org` instead of `http://old`"), "{error:?}");
    {
        let issuer = issuer.lock().unwrap();
        assert_eq!((issuer.grants.len(), issuer.registrations.len()), (1, 1));
    }
    // A person gives up the bond.
    endpoint.logout().await.unwrap();
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    endpoint.finish_login(&sign_in(&issuer, &login.url, ISSUER)).await.unwrap();
}

// SECURITY: mcp-oauth
#[tokio::test]
async fn a_client_secret_goes_only_to_the_first_issuer() {
    let issuer = issuer();
    issuer.lock().unwrap().lifetime = 1;
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    connect(&peer.endpoint_with(robot_auth("SECRET-robot"), &store)).await.unwrap();
    let before = issuer.lock().unwrap().grants.len();
    let kept =
        store.kept().pop().unwrap().replace(&format!("\"issuer\":\"{ISSUER}\""), "\"issuer\":\"http://old\"");
    redflow_ports::McpStore::set_tokens(&*store, "docs", Some(&kept)).unwrap();
    let failure = failure_of(&peer.endpoint_with(robot_auth("SECRET-robot"), &store)).await;
    assert!(failure.text.contains("names another issuer"), "{failure:?}");
    assert_eq!(issuer.lock().unwrap().grants.len(), before, "no request has the secret");
}

/// What the store has, by the name that it is kept under.
fn names(store: &MemoryStore, keys: &[&str]) -> Vec<bool> {
    keys.iter().map(|key| redflow_ports::McpStore::tokens(store, key).unwrap().is_some()).collect()
}

#[tokio::test]
async fn tokens_of_an_earlier_version_are_moved_once_and_a_logout_removes_both() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let auth = |client: &str| ResolvedAuth::OAuth {
        grant: OAuthGrant::AuthorizationCode,
        client_id: Some(client.to_owned()),
        client_secret: None,
        scopes: Vec::new(),
    };
    // The earlier version kept them under the name of the node.
    let earlier = peer.endpoint_with(auth("registered"), &store);
    let login = earlier.start_login(REDIRECT).await.unwrap();
    earlier.finish_login(&sign_in(&issuer, &login.url, ISSUER)).await.unwrap();
    let kept = store.kept().pop().unwrap();
    let endpoint = |client: &str, url: &str| {
        let key = TokenKey { name: format!("docs#{client}"), old_name: Some("docs".to_owned()) };
        let (tokens, times) = (all_tokens(&store), HttpTimes::default());
        super::HttpEndpoint::new(url, auth(client), peer.egress(), &tokens, key, times).unwrap()
    };
    let url = super::test_kit::URL;
    // They are not those of another client or of another address.
    for (client, url) in [("second", url), ("registered", "http://mcp.example.org/other")] {
        let other = endpoint(client, url);
        assert!(other.needs_login().await.unwrap(), "{client} {url}");
        other.logout().await.unwrap();
    }
    let keys = ["docs", "docs#registered", "docs#second"];
    assert_eq!(names(&store, &keys), [true, false, false]);
    let own = endpoint("registered", url);
    assert!(!own.needs_login().await.unwrap());
    assert_eq!(names(&store, &keys), [false, true, false]);
    assert_eq!(connect(&own).await.unwrap().list_all_tools().await.unwrap().len(), 1);
    // A process of the earlier version may have kept them again.
    redflow_ports::McpStore::set_tokens(&*store, "docs", Some(&kept)).unwrap();
    own.logout().await.unwrap();
    assert_eq!(names(&store, &keys), [false; 3]);
    assert!(endpoint("registered", url).needs_login().await.unwrap());
}

// SECURITY: mcp-oauth
#[tokio::test]
async fn a_client_secret_does_not_go_unencrypted_to_a_token_address_of_others() {
    for redirects in [false, true] {
        let issuer = issuer();
        let shared = issuer.clone();
        let other = "http://other.example.org/token";
        let peer = Peer::start(move |request| match request.path.as_str() {
            "/.well-known/oauth-authorization-server" if !redirects => json_reply(
                200,
                "",
                &json!({"issuer": ISSUER, "authorization_endpoint": format!("{ISSUER}/authorize"),
                    "token_endpoint": other, "response_types_supported": ["code"]}),
            ),
            "/token" if redirects && request.header("host") == Some("issuer.example.org") => {
                reply(307, &format!("location: {other}\r\n"), "")
            }
            _ => respond(&shared, request),
        })
        .await;
        let failure = failure_of(&peer.endpoint(robot_auth("SECRET-robot"))).await;
        let is_named = failure.text.contains("does not go unencrypted to `other.example.org`");
        assert_eq!(is_named, !redirects, "{failure:?}");
        let to_other = peer
            .requests()
            .iter()
            .filter(|request| request.header("host") == Some("other.example.org"))
            .count();
        assert_eq!((to_other, issuer.lock().unwrap().issued), (0, 0), "no request has the secret");
    }
}

async fn signed_in(peer: &Peer, issuer: &Shared, tokens: &AllTokens) -> super::HttpEndpoint {
    let endpoint = peer.endpoint_of(code_auth(), tokens);
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    endpoint.finish_login(&sign_in(issuer, &login.url, ISSUER)).await.unwrap();
    endpoint
}

#[tokio::test]
async fn servers_with_one_key_share_their_tokens() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let (store, changes) = (MemoryStore::new(), Arc::new(AtomicUsize::new(0)));
    let counted = changes.clone();
    let tokens = AllTokens::new(store.clone(), move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let other = peer.endpoint_of(code_auth(), &tokens);
    assert!(other.needs_login().await.unwrap() && other.secrets().is_empty());
    let endpoint = signed_in(&peer, &issuer, &tokens).await;
    assert!(!other.needs_login().await.unwrap(), "the sign-in counts for both");
    assert_eq!(other.secrets().len(), 3);
    let before = changes.load(Ordering::Relaxed);
    assert!(before > 0);
    // The first one renews; the second one does not use the old refresh token, which would end the tokens of both.
    let first = endpoint.oauth().unwrap().token().await.unwrap();
    let renewed = endpoint.oauth().unwrap().renew(first.as_ref()).await.unwrap().unwrap();
    let own = other.oauth().unwrap().renew(first.as_ref()).await.unwrap().unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&own), secrecy::ExposeSecret::expose_secret(&renewed));
    assert_eq!(issuer.lock().unwrap().grants, ["authorization_code", "refresh_token"]);
    assert!(changes.load(Ordering::Relaxed) > before, "who removes secrets from texts knows the new ones");
}

#[tokio::test]
async fn another_process_may_have_renewed_the_tokens() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let endpoint = signed_in(&peer, &issuer, &all_tokens(&store)).await;
    let old = endpoint.oauth().unwrap().token().await.unwrap();
    let process = peer.endpoint_with(code_auth(), &store);
    let new = process.oauth().unwrap().renew(old.as_ref()).await.unwrap().unwrap();
    // The refresh token that this process knows is spent.
    let read = endpoint.oauth().unwrap().renew(old.as_ref()).await.unwrap().unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&read), secrecy::ExposeSecret::expose_secret(&new));
    assert!(!endpoint.needs_login().await.unwrap());
}

#[tokio::test]
async fn a_cancelled_call_does_not_lose_a_renewed_token() {
    let issuer = issuer();
    let (own, begun) = (issuer.clone(), Arc::new(AtomicUsize::new(0)));
    let noted = begun.clone();
    let peer = Peer::start(move |request| {
        let answer = respond(&own, request);
        if request.path == "/token" && noted.fetch_add(1, Ordering::SeqCst) > 0 {
            // The issuer has spent the old refresh token, and the answer is on its way.
            std::thread::park_timeout(Duration::from_millis(300));
        }
        answer
    })
    .await;
    let store = MemoryStore::new();
    let endpoint = signed_in(&peer, &issuer, &all_tokens(&store)).await;
    let old = endpoint.oauth().unwrap().token().await.unwrap();
    let renewal = endpoint.oauth().unwrap().renew(old.as_ref());
    let cut = async {
        while begun.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = renewal => panic!("the renewal is not over yet"),
        () = cut => {}
    }
    let next = endpoint.oauth().unwrap().renew(old.as_ref()).await.unwrap();
    assert!(next.is_some(), "the renewal went on");
    assert_eq!(issuer.lock().unwrap().grants, ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn the_secret_of_a_new_client_stays_with_its_own_tokens() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let endpoint = signed_in(&peer, &issuer, &all_tokens(&store)).await;
    // A person begins again, with another client, and meanwhile the old tokens are renewed.
    issuer.lock().unwrap().client = "second".to_owned();
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    let old = endpoint.oauth().unwrap().token().await.unwrap();
    endpoint.oauth().unwrap().renew(old.as_ref()).await.unwrap().unwrap();
    assert!(store.kept()[0].contains("\"clientSecret\":\"SECRET-registered\""), "{:?}", store.kept());
    endpoint.finish_login(&sign_in(&issuer, &login.url, ISSUER)).await.unwrap();
    assert!(store.kept()[0].contains("\"clientSecret\":\"SECRET-second\""), "{:?}", store.kept());
}

#[tokio::test]
async fn an_edited_address_keeps_its_own_tokens() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let store = MemoryStore::new();
    let endpoint = signed_in(&peer, &issuer, &all_tokens(&store)).await;
    let old = endpoint.oauth().unwrap().token().await.unwrap();
    // The definition has another address by now, and a person has signed in there.
    let other = store.kept()[0].replace("http://mcp.example.org/mcp", "http://mcp.example.org/new");
    redflow_ports::McpStore::set_tokens(&*store, "docs", Some(&other)).unwrap();
    assert!(endpoint.oauth().unwrap().renew(old.as_ref()).await.unwrap().is_some());
    assert_eq!(store.kept(), std::slice::from_ref(&other));
    issuer.lock().unwrap().refresh = "gone".to_owned();
    let token = endpoint.oauth().unwrap().token().await.unwrap();
    assert!(endpoint.oauth().unwrap().renew(token.as_ref()).await.unwrap().is_none());
    assert_eq!(store.kept(), [other]);
}

#[tokio::test]
async fn tokens_that_cannot_be_read_are_not_a_missing_sign_in() {
    let peer = start(&issuer()).await;
    let store = MemoryStore::new();
    store.1.store(true, Ordering::Relaxed);
    let error = peer.endpoint_with(code_auth(), &store).needs_login().await.unwrap_err();
    assert!(error.contains("cannot be decrypted"), "{error}");
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_is_not_waited_for() {
    let issuer = issuer();
    let peer = Peer::start(move |request| match request.path.as_str() {
        "/register" => Reply::Hang(Vec::new()),
        _ => respond(&issuer, request),
    })
    .await;
    let times = HttpTimes { issuer: Duration::from_millis(200), ..HttpTimes::default() };
    let endpoint = peer.endpoint_in(code_auth(), times);
    let login = tokio::time::timeout(Duration::from_secs(3), endpoint.start_login(REDIRECT)).await;
    let error = login.unwrap().unwrap_err();
    assert_eq!(error.kind, LoginErrorKind::Failed);
    assert!(error.text.contains("A request to the issuer failed"), "{error:?}");
}

// SECURITY: mcp-oauth
#[tokio::test]
async fn a_forged_answer_is_refused_and_the_right_one_still_counts() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let endpoint = peer.endpoint(code_auth());
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    let right = sign_in(&issuer, &login.url, ISSUER);
    let forged = sign_in(&issuer, &login.url, "http://evil.example.org");
    let no_issuer = right.split("&iss=").next().unwrap();
    for wrong in [forged.as_str(), no_issuer] {
        let error = endpoint.finish_login(wrong).await.unwrap_err();
        assert_eq!(error.kind, LoginErrorKind::Forged);
        let error = error.text;
        assert!(error.contains("does not come from the issuer"), "{error}");
    }
    let error = endpoint.finish_login(&right.replace(&login.state, "other")).await.unwrap_err().text;
    assert!(error.contains("No sign-in waits"), "{error}");
    endpoint.finish_login(&right).await.unwrap();
    // The verifier belongs to its own sign-in.
    let first = endpoint.start_login(REDIRECT).await.unwrap();
    let first = sign_in(&issuer, &first.url, ISSUER);
    let second = endpoint.start_login(REDIRECT).await.unwrap();
    assert!(endpoint.finish_login(&first).await.is_err());
    issuer.lock().unwrap().codes.insert("SECRET-code".to_owned(), s256("another verifier"));
    let stolen = format!("{REDIRECT}?code=SECRET-code&state={}&iss={ISSUER}", second.state);
    let error = endpoint.finish_login(&stolen).await.unwrap_err().text;
    assert!(error.contains("begin it again") && !error.contains("SECRET"), "{error}");
    // The person says no.
    let third = endpoint.start_login(REDIRECT).await.unwrap();
    let no = format!("{REDIRECT}?error=access_denied&state={}", third.state);
    assert!(endpoint.finish_login(&no).await.unwrap_err().text.contains("access_denied"));
}

#[tokio::test]
async fn a_sign_in_has_an_end() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let endpoint = peer.endpoint(code_auth());
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    let callback = sign_in(&issuer, &login.url, ISSUER);
    let late = tokio::time::Instant::now() + LOGIN_TIME;
    let error = endpoint.oauth().unwrap().finish_login(&callback, late).await.unwrap_err().text;
    assert!(error.contains("took too long"), "{error}");
    assert!(endpoint.finish_login(&callback).await.unwrap_err().text.contains("No sign-in waits"));
}

#[tokio::test]
async fn an_issuer_inside_or_without_a_name_is_refused() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    issuer.lock().unwrap().location = "https://inward.example.org".to_owned();
    let error = peer.endpoint(code_auth()).start_login(REDIRECT).await.unwrap_err().text;
    assert!(error.contains("refused by the rule `address`"), "{error}");
    // A public one without encryption would show the secrets.
    issuer.lock().unwrap().location = "http://other.example.org".to_owned();
    let error = peer.endpoint(code_auth()).start_login(REDIRECT).await.unwrap_err().text;
    assert!(error.contains("does not go unencrypted to `other.example.org`"), "{error}");
    let peer = Peer::start(|_| reply(404, "", "")).await;
    let error = peer.endpoint(code_auth()).start_login(REDIRECT).await.unwrap_err().text;
    assert!(error.contains("does not say who issues its tokens"), "{error}");
    let peer = Peer::start(modern).await;
    let error = peer.endpoint(ResolvedAuth::None).start_login(REDIRECT).await.unwrap_err().text;
    assert!(error.contains("of the type `oauth`"), "{error}");
}

#[tokio::test]
async fn answers_and_redirects_of_an_issuer_are_bounded() {
    let start_with = |path: &'static str, answer: fn() -> Reply| async move {
        let issuer = issuer();
        let peer = Peer::start(
            move |request| {
                if request.path == path { answer() } else { respond(&issuer, request) }
            },
        )
        .await;
        peer.endpoint(code_auth()).start_login(REDIRECT).await.unwrap_err().text
    };
    let error = start_with("/register", || {
        let length = usize::try_from(MAX_ISSUER_ANSWER_BYTES).unwrap() + 1;
        reply(201, "content-type: application/json\r\n", &" ".repeat(length))
    })
    .await;
    assert!(error.contains("larger than 262144 bytes"), "{error}");
    let error = start_with("/register", || reply(307, "location: /register\r\n", "")).await;
    assert!(error.contains("more than 5 redirects"), "{error}");
    let error = start_with("/register", || reply(403, "", "SECRET")).await;
    assert!(error.contains("set `clientId`") && !error.contains("SECRET"), "{error}");
}

/// Keeps the fields of all events.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut log = self.0.lock().unwrap();
        event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            log.push_str(&format!("{value:?} "));
        });
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn no_log_has_a_code_or_a_token() {
    let log = Log::default();
    let issuer = issuer();
    let peer = start(&issuer).await;
    let act = async {
        tracing::debug!("the log works");
        let endpoint = peer.endpoint(code_auth());
        let login = endpoint.start_login(REDIRECT).await.unwrap();
        endpoint.finish_login(&sign_in(&issuer, &login.url, ISSUER)).await.unwrap();
        issuer.lock().unwrap().access = "gone".to_owned();
        let refused = endpoint.oauth().unwrap().token().await.unwrap();
        endpoint.oauth().unwrap().renew(refused.as_ref()).await.unwrap().unwrap();
        let robot = peer.endpoint(robot_auth("SECRET-robot"));
        robot.oauth().unwrap().token().await.unwrap().unwrap();
    };
    tracing::instrument::WithSubscriber::with_subscriber(act, log.clone()).await;
    let log = log.0.lock().unwrap();
    assert!(log.contains("the log works") && !log.contains("SECRET"), "{log}");
}

fn auth_with_scopes(scopes: &[&str]) -> ResolvedAuth {
    ResolvedAuth::OAuth {
        grant: OAuthGrant::AuthorizationCode,
        client_id: None,
        client_secret: None,
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    }
}

/// The scopes that a new sign-in asks for.
async fn asked_scopes(endpoint: &HttpEndpoint) -> (String, Option<String>) {
    let url = endpoint.start_login(REDIRECT).await.unwrap().url;
    let parsed = Url::parse(&url).unwrap();
    let scope = parsed.query_pairs().find(|(name, _)| name == "scope").map(|(_, value)| value.into_owned());
    (url, scope)
}

#[tokio::test]
async fn the_next_sign_in_asks_for_the_old_scopes_and_for_those_that_a_token_has_lacked() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let (endpoint, store) = (peer.endpoint(auth_with_scopes(&[])), MemoryStore::new());
    // A server may name the scopes of a request only.
    for (needed, asked) in [("", None), ("write", Some("write")), ("delete mail", Some("delete mail write"))]
    {
        issuer.lock().unwrap().needed = needed.to_owned();
        if !needed.is_empty() {
            let failure = failure_of(&endpoint).await;
            assert!(failure.needs_login && failure.text.contains(&format!("`{needed}`")), "{failure:?}");
        }
        let (url, scopes) = asked_scopes(&endpoint).await;
        assert_eq!(scopes.as_deref(), asked);
        endpoint.finish_login(&sign_in(&issuer, &url, ISSUER)).await.unwrap();
        connect(&endpoint).await.unwrap();
    }
    // It registers with them, too.
    let last = issuer.lock().unwrap().registrations.last().unwrap()["scope"].clone();
    assert_eq!(last, json!("delete mail write"));
    // What was granted is no longer missing.
    assert_eq!(asked_scopes(&endpoint).await.1, None);
    // A person gives them up.
    issuer.lock().unwrap().needed = "more".to_owned();
    assert!(failure_of(&endpoint).await.needs_login);
    endpoint.logout().await.unwrap();
    assert_eq!(asked_scopes(&endpoint).await.1, None);
    // Another process has kept what was granted, and does not lose it.
    let first = peer.endpoint_with(auth_with_scopes(&[]), &store);
    let (url, _) = asked_scopes(&first).await;
    let callback = sign_in(&issuer, &url, ISSUER);
    issuer.lock().unwrap().granted = "b a".to_owned();
    first.finish_login(&callback).await.unwrap();
    issuer.lock().unwrap().needed = "c".to_owned();
    let second = peer.endpoint_with(auth_with_scopes(&[]), &store);
    assert!(failure_of(&second).await.text.contains("`c`"));
    assert_eq!(asked_scopes(&second).await.1.as_deref(), Some("c b a"));
    // A server of another node with the same tokens asks for them, too.
    assert_eq!(asked_scopes(&first).await.1, None);
    first.learn_missing_scopes(&second);
    assert_eq!(asked_scopes(&first).await.1.as_deref(), Some("c b a"));
    first.forget_missing_scopes();
    assert_eq!(asked_scopes(&first).await.1, None);
}

#[tokio::test]
async fn a_server_cannot_get_more_scopes_than_the_operator_has_set() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let endpoint = peer.endpoint(auth_with_scopes(&["read"]));
    let (url, _) = asked_scopes(&endpoint).await;
    endpoint.finish_login(&sign_in(&issuer, &url, ISSUER)).await.unwrap();
    issuer.lock().unwrap().needed = "admin".to_owned();
    let failure = failure_of(&endpoint).await;
    assert!(failure.text.contains("`admin`") && failure.text.contains("`scopes`"), "{failure:?}");
    assert_eq!(asked_scopes(&endpoint).await.1.as_deref(), Some("read"));
}

#[tokio::test]
async fn a_scope_that_the_issuer_does_not_have_is_asked_for_once() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let endpoint = peer.endpoint(auth_with_scopes(&[]));
    let (url, _) = asked_scopes(&endpoint).await;
    endpoint.finish_login(&sign_in(&issuer, &url, ISSUER)).await.unwrap();
    issuer.lock().unwrap().needed = "unknown".to_owned();
    assert!(failure_of(&endpoint).await.needs_login);
    let (url, scopes) = asked_scopes(&endpoint).await;
    assert_eq!(scopes.as_deref(), Some("unknown"));
    let url = Url::parse(&url).unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let refused = format!("{REDIRECT}?error=invalid_scope&state={state}&iss={ISSUER}");
    assert!(endpoint.finish_login(&refused).await.is_err());
    assert_eq!(asked_scopes(&endpoint).await.1, None);
}

#[tokio::test]
async fn a_server_cannot_make_the_scopes_of_a_sign_in_grow_for_ever() {
    let issuer = issuer();
    let peer = start(&issuer).await;
    let endpoint = peer.endpoint(code_auth());
    let login = endpoint.start_login(REDIRECT).await.unwrap();
    endpoint.finish_login(&sign_in(&issuer, &login.url, ISSUER)).await.unwrap();
    for round in 0..3 {
        let needed = (0..20).map(|number| format!("s{round}.{number}")).collect::<Vec<_>>().join(" ");
        issuer.lock().unwrap().needed = needed;
        assert!(failure_of(&endpoint).await.needs_login);
    }
    let url = Url::parse(&endpoint.start_login(REDIRECT).await.unwrap().url).unwrap();
    let scopes = url.query_pairs().find(|(name, _)| name == "scope").unwrap().1.into_owned();
    assert_eq!((scopes.split(' ').count(), scopes.starts_with("s2.0 ")), (MAX_SCOPES, true));
}
