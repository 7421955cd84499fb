//! The traces of a real run, at a collector. Built only with the feature `otel`.

use crate::kit::redflow;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use pretty_assertions::assert_eq;
use prost::Message as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A collector. The receiver gets the bodies of its requests.
fn collector() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 0 {
                let mut length = 0;
                while !line.trim().is_empty() {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                }
                line.clear();
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                sender.send(body).unwrap();
                reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            }
        }
    });
    (endpoint, bodies)
}

fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.as_ref()).and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_run_is_a_tree_of_spans() {
    let (endpoint, bodies) = collector();
    let run = |name: &str| {
        let path = format!("examples/{name}.json");
        redflow(["run", &path, "--ephemeral"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).run()
    };
    assert_eq!(run("calculator-loop").code, 0);
    let spans: Vec<Span> = bodies
        .try_iter()
        .flat_map(|body| ExportTraceServiceRequest::decode(body.as_slice()).unwrap().resource_spans)
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect();
    let mut names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    let chat = ["chat scripted"; 3];
    assert_eq!(
        names,
        [chat.as_slice(), &["execute_tool calculator"; 2], &["invoke_agent Travel desk"]].concat()
    );
    let root = spans.iter().find(|span| span.name.starts_with("invoke_agent")).unwrap();
    assert!(
        spans
            .iter()
            .filter(|span| span.span_id != root.span_id)
            .all(|span| span.parent_span_id == root.span_id)
    );
    assert_eq!(attribute(root, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(root, "gen_ai.agent.id"), "agent");
    let tool = spans.iter().find(|span| span.name.starts_with("execute_tool")).unwrap();
    assert_eq!(attribute(tool, "gen_ai.tool.name"), "calculator");
    // Inputs and answers are not sent.
    let sent = format!("{spans:?}");
    assert!(!sent.contains("expression") && !sent.contains("confidence"), "{sent}");

    // A failure has its code.
    assert_eq!(run("overflow").code, 1);
    let bodies: Vec<Vec<u8>> = bodies.try_iter().collect();
    let text = bodies.iter().map(|body| String::from_utf8_lossy(body)).collect::<String>();
    assert!(text.contains("ITERATION_OVERFLOW"), "{text}");
}

#[test]
fn an_unreachable_collector_does_not_stop_a_run() {
    let output = redflow(["run", "examples/plain-answer.json", "--ephemeral"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .run();
    assert_eq!(output.code, 0, "{output:#?}");
}
