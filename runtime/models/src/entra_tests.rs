use super::EntraSignIn;
use crate::ModelSettings;
use crate::driver::{CallOptions, Driver, Target};
use crate::event_stream::StreamFormat;
use crate::openai_chat::OpenaiChat;
use crate::recording::{Node, RecordedRequest, Recording, Reply, RetryLog, block_on};
use crate::transport::{Endpoint, Transport, TransportError, TransportResponse};
use crate::wire::{AnswerAssembler, AnswerFormat, ChatRequest, ProviderError, Reasoning, Wire, WireError};
use http::{HeaderMap, HeaderValue, header};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_contract::transcript::Transcript;
use redflow_ports::{BoxFuture, ChatModel, ModelRequest, ToolChoice};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TYPE: &str = "model.azure.openai";
const SECRET: &str = "a secret+of/the=application";
const TOKEN_URL: &str = "https://login.microsoftonline.com/tenant-1/oauth2/v2.0/token";

fn props(more: &Value) -> Value {
    let mut props = json!({
        "endpoint": "https://mine.openai.azure.com", "deployment": "gpt-4o", "apiVersion": "v1",
        "authentication": "entra", "tenantId": "tenant-1", "clientId": "client-1",
        "credentials": {"clientSecret": SECRET}, "maxRetries": 0,
    });
    props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    props
}

fn model(transport: Arc<dyn Transport>) -> Arc<dyn ChatModel> {
    let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
    Node::new(TYPE, props(&json!({}))).build(settings).unwrap()
}

fn token(name: &str, expires_in: &Value) -> Reply {
    let body = json!({"token_type": "Bearer", "expires_in": expires_in, "access_token": format!("bearer-token-{name}")});
    Reply::new(200, &[("content-type", "application/json")], &body.to_string())
}

async fn call(model: &Arc<dyn ChatModel>) -> Result<ModelAnswer, Failure> {
    let transcript = Transcript::default();
    model.call(ModelRequest { keeps_raw: true, ..ModelRequest::for_text(&transcript) }).await
}

/// The tokens of the requests, with `sign in` for a request that asks for one.
fn steps(recording: &Recording) -> Vec<String> {
    let step = |request: RecordedRequest| match request.header("authorization") {
        Some(header) => header.to_owned(),
        None => "sign in".to_owned(),
    };
    recording.requests().into_iter().map(step).collect()
}

#[test]
fn the_token_goes_to_the_endpoint_and_the_secret_to_the_authority() {
    let recording = Recording::new([token("a", &json!(3600))]);
    let answer = block_on(call(&model(Arc::<Recording>::clone(&recording)))).unwrap();
    assert_eq!(answer.text, "hi");
    let requests = recording.requests();
    let [sign_in, chat] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(sign_in.url, TOKEN_URL);
    let form = "grant_type=client_credentials&client_id=client-1&client_secret=a+secret%2Bof%2Fthe%3Dapplication\
                &scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default";
    assert_eq!(sign_in.body, json!(form));
    assert_eq!(sign_in.header("authorization"), None);
    assert_eq!(chat.url, "https://mine.openai.azure.com/openai/v1/chat/completions");
    assert_eq!((chat.header("authorization"), chat.header("api-key")), (Some("Bearer bearer-token-a"), None));
    assert!(chat.endpoint.headers["authorization"].is_sensitive());
    assert!(!format!("{:?}", chat.endpoint).contains("bearer-token-a"));
    assert!(!chat.body.to_string().contains("secret"));
}

#[test]
fn a_token_is_used_until_shortly_before_its_end() {
    for (expires_in, kept, renewed) in [
        (json!(3600), 3_299, 3_301),
        (json!("3600"), 3_299, 3_301),
        (json!(400), 199, 201),
        // A day is the longest time.
        (json!(u64::MAX), 24 * 3600 - 301, 24 * 3600 - 299),
    ] {
        for (wait, signs_in) in [(kept, 1), (renewed, 2)] {
            let recording = Recording::new([token("a", &expires_in)]);
            let model = model(Arc::<Recording>::clone(&recording));
            block_on(async {
                call(&model).await.unwrap();
                // The second token is in the script when it is asked for.
                recording.script.lock().unwrap().extend((signs_in == 2).then(|| token("b", &json!(3600))));
                tokio::time::advance(Duration::from_secs(wait)).await;
                call(&model).await.unwrap();
            });
            let asked = steps(&recording).iter().filter(|step| *step == "sign in").count();
            assert_eq!(asked, signs_in, "{expires_in} after {wait} s");
        }
    }
    // A token without a time is used once.
    let recording = Recording::new([token("a", &Value::Null)]);
    let model = model(Arc::<Recording>::clone(&recording));
    block_on(async {
        call(&model).await.unwrap();
        recording.script.lock().unwrap().push_back(token("b", &Value::Null));
        call(&model).await.unwrap();
    });
    assert_eq!(steps(&recording), ["sign in", "Bearer bearer-token-a", "sign in", "Bearer bearer-token-b"]);
}

/// Answers a sign-in after a second.
struct Slow(Arc<Recording>);

impl Transport for Slow {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        Box::pin(async move {
            if endpoint.url.path().ends_with("/token") {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            self.0.post(endpoint, body).await
        })
    }
}

#[test]
fn calls_at_once_share_one_sign_in() {
    let recording = Recording::new([token("a", &json!(3600))]);
    let model = model(Arc::new(Slow(Arc::clone(&recording))));
    let answers = block_on(async { futures::join!(call(&model), call(&model), call(&model)) });
    assert!(answers.0.is_ok() && answers.1.is_ok() && answers.2.is_ok());
    assert_eq!(
        steps(&recording),
        ["sign in", "Bearer bearer-token-a", "Bearer bearer-token-a", "Bearer bearer-token-a"]
    );
}

/// A wire and a transport that log what happens, in its order.
struct Logged<T> {
    inner: T,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Wire for Logged<OpenaiChat> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn with_model(&self, model: &str) -> Box<dyn Wire> {
        self.inner.with_model(model)
    }

    fn encode(&self, chat: &ChatRequest<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        self.log.lock().unwrap().push("encode");
        self.inner.encode(chat, out)
    }

    fn decode(&self, body: &[u8], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
        self.inner.decode(body, reasoning)
    }

    fn stream_format(&self) -> StreamFormat {
        self.inner.stream_format()
    }

    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler> {
        self.inner.assembler(reasoning)
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError {
        self.inner.parse_error(status, body)
    }
}

impl Transport for Logged<Arc<Recording>> {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        let step = if endpoint.url.path().ends_with("/token") { "sign in" } else { "send" };
        self.log.lock().unwrap().push(step);
        self.inner.post(endpoint, body)
    }
}

/// A run that waits for a token holds no body in memory.
#[test]
fn a_request_is_encoded_when_its_token_is_there() {
    let endpoint = |url: &str, kind: &'static str| Endpoint {
        url: url.parse().unwrap(),
        headers: HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]),
    };
    let log = Arc::new(Mutex::new(Vec::new()));
    let recording =
        Recording::new([token("a", &json!(3600)), Reply::new(401, &[], "{}"), token("b", &json!(3600))]);
    let form = endpoint(TOKEN_URL, "application/x-www-form-urlencoded");
    let target = Target {
        interface: None,
        wire: Box::new(Logged { inner: OpenaiChat::default(), log: Arc::clone(&log) }),
        endpoint: endpoint("https://mine.openai.azure.com/openai/v1/chat/completions", "application/json"),
        provider: "azure",
        provider_text: "Azure".to_owned(),
        model: "prod".to_owned(),
        timeout: Duration::from_secs(60),
        idle_timeout: None,
        secrets: Scrubber::default(),
        sign_in: Some(Arc::new(EntraSignIn::new(
            form,
            "client-1".to_owned(),
            SECRET.to_owned().into(),
            "scope",
        ))),
    };
    let driver = Driver {
        transport: Arc::new(Logged { inner: recording, log: Arc::clone(&log) }),
        meter: Arc::new(RetryLog::default()),
    };
    let chat = ChatRequest {
        messages: &[],
        tools: &[],
        tool_choice: ToolChoice::None,
        format: AnswerFormat::Text,
        stream: false,
        reasoning: Reasoning::Discard,
        cache: None,
    };
    let answer = block_on(driver.call(&target, &chat, CallOptions::default(), None)).unwrap();
    assert_eq!(answer.text, "hi");
    assert_eq!(*log.lock().unwrap(), ["sign in", "encode", "send", "sign in", "encode", "send"]);
}

#[test]
fn a_refused_token_is_renewed_once() {
    let refused = || {
        Reply::new(401, &[], r#"{"error":{"code":"401","message":"Bad bearer-token-a or bearer-token-b."}}"#)
    };
    let recording = Recording::new([token("a", &json!(3600)), refused(), token("b", &json!(3600))]);
    let answer = block_on(call(&model(Arc::<Recording>::clone(&recording)))).unwrap();
    assert_eq!(answer.text, "hi");
    assert_eq!(steps(&recording), ["sign in", "Bearer bearer-token-a", "sign in", "Bearer bearer-token-b"]);

    let recording =
        Recording::new([token("a", &json!(3600)), refused(), token("b", &json!(3600)), refused()]);
    let failure = block_on(call(&model(Arc::<Recording>::clone(&recording)))).unwrap_err();
    assert_eq!((failure.code, recording.requests().len()), (RunErrorCode::InvalidCredentials, 4));
    assert!(failure.message.contains("needs a role on the resource"), "{}", failure.message);
    assert!(!failure.message.contains("bearer-token-b"), "{}", failure.message);
}

#[test]
fn no_part_of_a_long_token_is_in_an_error() {
    let long = format!("bearer-token-{}", "x".repeat(900));
    let access = json!({"access_token": long, "token_type": "Bearer", "expires_in": 3600}).to_string();
    let json = [("content-type", "application/json")];
    let echo = Reply::new(400, &[], &format!("You sent {long}"));
    let recording = Recording::new([Reply::new(200, &json, &access), echo]);
    let failure = block_on(call(&model(recording))).unwrap_err();
    assert!(!failure.message.contains("xxxx"), "{}", failure.message);
}

#[test]
fn the_token_is_in_no_answer() {
    let echo =
        json!({"choices": [{"message": {"content": "You sent bearer-token-a."}, "finish_reason": "stop"}]});
    let json = [("content-type", "application/json")];
    let recording = Recording::new([token("a", &json!(3600)), Reply::new(200, &json, &echo.to_string())]);
    let answer = block_on(call(&model(recording))).unwrap();
    // The response as it was sent is dropped, because the answer has the token.
    assert_eq!((answer.text.as_str(), answer.raw), ("You sent [redacted].", None));
}

#[test]
fn failed_sign_ins_have_a_code_and_a_remedy() {
    let entra = |error: &str, number: u64| json!({"error": error, "error_codes": [number], "error_description": format!("AADSTS{number}: {SECRET}")});
    let reply = |status, body: &Value| Reply::new(status, &[], &body.to_string());
    let (refused, unavailable) = (RunErrorCode::InvalidCredentials, RunErrorCode::ProviderUnavailable);
    for (reply, code, part) in [
        (
            reply(401, &entra("invalid_client", 7_000_215)),
            refused,
            "(HTTP 401, invalid_client, AADSTS7000215); check `tenantId`, `clientId` and `clientSecret`",
        ),
        (reply(401, &entra("invalid_client", 7_000_222)), refused, "its secret has expired: make a new one"),
        (reply(400, &entra("unauthorized_client", 700_016)), refused, "check `tenantId` and `clientId`"),
        (reply(400, &json!({"error": format!("no {SECRET}")})), refused, "(HTTP 400); check"),
        (reply(404, &json!("<html>")), refused, "(HTTP 404); check"),
        (reply(429, &json!({})), unavailable, "is overloaded or out of order (HTTP 429)"),
        (reply(503, &json!({})), unavailable, "is overloaded or out of order (HTTP 503)"),
        (reply(200, &json!({"access_token": "two words"})), unavailable, "gave no token; check `authority`"),
        (reply(200, &json!({})), unavailable, "gave no token; check `authority`"),
        (Reply::new(200, &[], &"x".repeat(70_000)), unavailable, "gave no token; check `authority`"),
        (Reply::Error(TransportError::Refused), unavailable, "could not be reached: nothing listens there"),
        (
            Reply::Response { status: 200, headers: Vec::new(), parts: vec![Err(TransportError::Lost)] },
            unavailable,
            "gave no token: the connection was lost",
        ),
    ] {
        let recording = Recording::new([reply]);
        let failure = block_on(call(&model(Arc::<Recording>::clone(&recording)))).unwrap_err();
        assert_eq!((failure.code, recording.requests().len()), (code, 1), "{}", failure.message);
        assert!(failure.message.contains(part), "{}", failure.message);
        assert!(failure.message.contains("login.microsoftonline.com"), "{}", failure.message);
        assert!(!failure.message.contains("secret+of"), "{}", failure.message);
    }
}

#[test]
fn a_sign_in_that_cannot_be_made_is_retried() {
    let recording = Recording::new([Reply::new(503, &[], ""), token("a", &json!(3600))]);
    let settings = ModelSettings {
        transport: Some(Arc::<Recording>::clone(&recording) as Arc<dyn Transport>),
        ..ModelSettings::default()
    };
    let model = Node::new(TYPE, props(&json!({"maxRetries": 1}))).build(settings).unwrap();
    assert_eq!(block_on(call(&model)).unwrap().text, "hi");
    assert_eq!(steps(&recording), ["sign in", "sign in", "Bearer bearer-token-a"]);
}

#[test]
fn missing_and_wrong_properties() {
    for (more, part) in [
        (json!({"tenantId": " "}), "it has no `tenantId`"),
        (json!({"clientId": ""}), "it has no `clientId`"),
        (json!({"tenantId": "../x"}), "`tenantId` must be the id or the domain"),
        (json!({"tenantId": "t".repeat(101)}), "`tenantId` must be the id or the domain"),
        (json!({"authority": "login"}), "`authority` is not an address"),
        (json!({"authority": "http://login.example"}), "`authority` must begin with https://"),
        (json!({"endpoint": "http://azure.example"}), "`endpoint` must begin with https://"),
    ] {
        let error = Node::new(TYPE, props(&more)).build_error();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains(SECRET), "{error}");
    }
    let error = Node::without_env(TYPE, props(&json!({"credentials": {}}))).build_error();
    assert!(error.contains("it has no secret of the application; put `clientSecret`"), "{error}");
    // With a key, none of them is needed.
    let more = json!({"authentication": "key", "tenantId": "", "clientId": ""});
    let key = Node::new(TYPE, props(&more)).request();
    assert_eq!(key.header("api-key"), Some("az-of-the-environment"));
}

#[test]
fn the_secret_of_the_environment_goes_only_to_microsoft() {
    let other = "https://login.example";
    for (more, is_sent) in [
        (json!({}), true),
        (json!({"authority": "https://login.microsoftonline.us"}), true),
        (json!({"authority": "http://127.0.0.1:8080"}), true),
        (json!({"authority": other}), false),
        (json!({"endpoint": "https://gateway.example"}), false),
    ] {
        let mut props = props(&more);
        props["credentials"] = json!({});
        let recording: Arc<dyn Transport> = Recording::new([]);
        let settings = ModelSettings { transport: Some(recording), ..ModelSettings::default() };
        assert_eq!(Node::new(TYPE, props).build(settings).is_ok(), is_sent, "{more}");
    }
    // One in the node's own credentials goes where the node says.
    let recording = Recording::new([token("a", &json!(3600))]);
    let settings = ModelSettings {
        transport: Some(Arc::<Recording>::clone(&recording) as Arc<dyn Transport>),
        ..ModelSettings::default()
    };
    let more = json!({"authority": other, "endpoint": "https://mine.openai.azure.us"});
    let model = Node::new(TYPE, props(&more)).build(settings).unwrap();
    block_on(call(&model)).unwrap();
    let sign_in = recording.requests().remove(0);
    assert_eq!(sign_in.url, "https://login.example/tenant-1/oauth2/v2.0/token");
    assert!(sign_in.body.as_str().unwrap().ends_with("cognitiveservices.azure.us%2F.default"));
}
