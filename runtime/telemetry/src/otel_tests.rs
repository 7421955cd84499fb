use super::{MAX_QUEUE, MAX_TEXT_BYTES, OtlpCollector, traces_url};
use crate::line::LineFormat;
use crate::log::{LogSettings, TelemetryGuard, subscriber};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use pretty_assertions::assert_eq;
use prost::Message as _;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use tracing::field::Empty;

/// One request to a collector.
struct Request {
    line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Starts a collector that answers every request with this status, until the test ends.
fn collector(status: &'static str) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                let mut headers = BTreeMap::new();
                loop {
                    let mut header = String::new();
                    reader.read_line(&mut header).unwrap();
                    let Some((name, value)) = header.trim_end().split_once(": ") else { break };
                    headers.insert(name.to_lowercase(), value.to_owned());
                }
                let mut body = vec![0; headers["content-length"].parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                sender.send(Request { line: line.trim_end().to_owned(), headers, body }).unwrap();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
                );
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    (endpoint, requests)
}

fn otlp(endpoint: String) -> OtlpCollector {
    let headers = vec![("x-collector-key".to_owned(), SecretString::from("collector-secret"))];
    OtlpCollector { endpoint, service_name: "redflow-test".to_owned(), headers }
}

/// Runs `act` with spans sent to this collector, and sends the remaining spans.
fn export(otlp: OtlpCollector, act: impl FnOnce()) {
    let settings = LogSettings { otlp: Some(otlp), ..LogSettings::default() };
    let (subscriber, guard): (_, TelemetryGuard) =
        subscriber(&settings, LineFormat::Human, std::io::sink).unwrap();
    tracing::subscriber::with_default(subscriber, act);
    drop(guard);
}

fn decode(requests: &Receiver<Request>) -> Vec<ResourceSpans> {
    let decode = |request: Request| {
        assert_eq!(request.line, "POST /v1/traces HTTP/1.1");
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        assert_eq!(request.headers["x-collector-key"], "collector-secret");
        ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap().resource_spans
    };
    requests.try_iter().flat_map(decode).collect()
}

fn spans(sent: Vec<ResourceSpans>) -> Vec<Span> {
    sent.into_iter().flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => format!("int {number}"),
        other => format!("{other:?}"),
    };
    let value = |attribute: &'_ opentelemetry_proto::tonic::common::v1::KeyValue| {
        attribute.value.as_ref().and_then(|value| value.value.as_ref()).map(text).unwrap_or_default()
    };
    span.attributes.iter().map(|attribute| (attribute.key.as_str(), value(attribute))).collect()
}

/// The spans of one run, as the engine creates them.
fn record_run(agent: &str) {
    let run = tracing::info_span!(
        "invoke_agent",
        otel.name = format!("invoke_agent {agent}"),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.id = "node-1",
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = "flow:bob@example.com",
        redflow.run_id = "0190c8a4-7b1e-7cc3-98c4-dc0c0c07398f",
        error.r#type = Empty,
    );
    run.in_scope(|| {
        let chat = tracing::info_span!(
            "chat",
            otel.name = "chat gpt-x",
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = "openai",
            gen_ai.request.model = "gpt-x",
            gen_ai.response.model = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            error.r#type = Empty,
        );
        chat.in_scope(|| tracing::error!("a message with its content"));
        chat.record("gen_ai.response.model", "gpt-x-2026");
        chat.record("gen_ai.usage.input_tokens", 12_i64);
        chat.record("gen_ai.usage.output_tokens", 5_i64);
        drop(chat);
        let tool = tracing::info_span!(
            "execute_tool",
            otel.name = "execute_tool http_request",
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = "http_request",
            gen_ai.tool.call.id = "call-1",
            error.r#type = Empty,
        );
        tool.record("error.type", "TOOL_ERROR");
        tool.record("otel.status_code", "ERROR");
    });
}

#[test]
fn spans_of_a_run_follow_the_conventions() {
    let (endpoint, requests) = collector("200 OK");
    export(otlp(endpoint), || record_run("support"));
    let sent = decode(&requests);
    let resource = sent[0].resource.clone().unwrap();
    let name = resource.attributes.iter().find(|attribute| attribute.key == "service.name").unwrap();
    let service = name.value.clone().unwrap().value.unwrap();
    assert_eq!(service, Value::StringValue("redflow-test".to_owned()));

    let spans = spans(sent);
    let span = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    assert_eq!(spans.len(), 3);
    let (run, chat, tool) =
        (span("invoke_agent support"), span("chat gpt-x"), span("execute_tool http_request"));
    assert_eq!(run.parent_span_id, Vec::<u8>::new());
    for child in [chat, tool] {
        assert_eq!(child.parent_span_id, run.span_id);
        assert_eq!(child.trace_id, run.trace_id);
    }
    assert_eq!(run.kind, SpanKind::Internal as i32);
    assert_eq!(chat.kind, SpanKind::Client as i32);
    // Exactly these: no source location, no thread, no message.
    let expected = |pairs: &[(&'static str, &str)]| -> BTreeMap<&str, String> {
        pairs.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
    };
    let run_attributes = [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.id", "node-1"),
        ("gen_ai.agent.name", "support"),
        ("gen_ai.conversation.id", "flow:[email]"),
        ("redflow.run_id", "0190c8a4-7b1e-7cc3-98c4-dc0c0c07398f"),
    ];
    assert_eq!(attributes(run), expected(&run_attributes));
    let chat_attributes = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-x"),
        ("gen_ai.response.model", "gpt-x-2026"),
        ("gen_ai.usage.input_tokens", "int 12"),
        ("gen_ai.usage.output_tokens", "int 5"),
    ];
    assert_eq!(attributes(chat), expected(&chat_attributes));
    assert!(chat.events.is_empty());
    let tool_attributes = [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "http_request"),
        ("gen_ai.tool.call.id", "call-1"),
        ("error.type", "TOOL_ERROR"),
    ];
    assert_eq!(attributes(tool), expected(&tool_attributes));
    let status = |span: &Span| span.status.clone().map_or(StatusCode::Unset as i32, |status| status.code);
    assert_eq!(status(tool), StatusCode::Error as i32);
    assert_eq!(status(chat), StatusCode::Unset as i32);
}

#[test]
fn sent_spans_are_redacted_and_shortened() {
    let (endpoint, requests) = collector("200 OK");
    export(otlp(endpoint), || {
        let long = "x".repeat(3 * MAX_TEXT_BYTES);
        let span = tracing::info_span!(
            "span",
            otel.name = "invoke_agent bob@example.com",
            otel.status_description = Empty,
            password = "hunter2",
            pin = 1234,
            note = "key sk-abcdefgh12345678",
            long
        );
        span.record("otel.status_description", "refused hunter@example.com");
    });
    let spans = spans(decode(&requests));
    assert_eq!(spans[0].name, "invoke_agent [email]");
    assert_eq!(spans[0].status.clone().unwrap().message, "refused [email]");
    let attributes = attributes(&spans[0]);
    assert_eq!(attributes["password"], "[redacted]");
    assert_eq!(attributes["pin"], "[redacted]");
    assert_eq!(attributes["note"], "key [redacted]");
    assert_eq!(attributes["long"].len(), MAX_TEXT_BYTES);
}

#[test]
fn only_our_spans_are_sent() {
    let (endpoint, requests) = collector("200 OK");
    export(otlp(endpoint), || {
        drop(tracing::info_span!(target: "reqwest::connect", "theirs"));
        drop(tracing::trace_span!("too fine"));
        drop(tracing::debug_span!("a call"));
        drop(tracing::info_span!("a run"));
    });
    let names: Vec<String> = spans(decode(&requests)).into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["a call", "a run"]);
}

#[test]
fn more_spans_than_fit_do_not_stop_the_process() {
    let (endpoint, requests) = collector("200 OK");
    export(otlp(endpoint), || {
        for _ in 0..3 * MAX_QUEUE {
            drop(tracing::info_span!("span"));
        }
    });
    let sent = spans(decode(&requests)).len();
    assert!((1..=3 * MAX_QUEUE).contains(&sent), "{sent}");
}

#[test]
fn a_dead_collector_does_not_delay_the_process() {
    // The port is closed.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    export(otlp(closed), || record_run("a"));
    // It accepts the connection and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    export(otlp(silent), || {
        for _ in 0..2 * MAX_QUEUE {
            record_run("a");
        }
    });
}

#[test]
fn a_refused_or_redirected_request_is_not_repeated() {
    for status in ["400 Bad Request", "307 Temporary Redirect"] {
        let (endpoint, requests) = collector(status);
        export(otlp(endpoint), || record_run("a"));
        assert_eq!(requests.try_iter().count(), 1, "{status}");
    }
}

#[test]
fn the_path_is_added_to_the_endpoint_once() {
    for (endpoint, expected) in [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
        ("https://host/otlp", "https://host/otlp/v1/traces"),
        ("https://host/otlp/v1/traces", "https://host/otlp/v1/traces"),
    ] {
        assert_eq!(traces_url(endpoint).unwrap().as_str(), expected);
    }
}

#[test]
fn invalid_settings_are_refused_without_quoting_them() {
    let refused = |otlp: OtlpCollector| {
        let settings = LogSettings { otlp: Some(otlp), ..LogSettings::default() };
        subscriber(&settings, LineFormat::Human, std::io::sink).err().unwrap()
    };
    for endpoint in ["", "localhost:4318", "ftp://host", "http://", "grpc://user:hunter2@host"] {
        let expected = "the trace collector's address is not an http or https URL";
        assert_eq!(refused(otlp(endpoint.to_owned())), expected);
    }
    let headers = vec![("x".to_owned(), SecretString::from("hunter2\n"))];
    let wrong = OtlpCollector { headers, ..otlp("http://localhost".to_owned()) };
    assert_eq!(refused(wrong), "a header for the trace collector is not a valid HTTP header");
    let shown = format!("{:?}", otlp("http://user:hunter2@host".to_owned()));
    assert_eq!(shown, "OtlpCollector { service_name: \"redflow-test\", .. }");
}
