//! `http-request-tool` in the real binary: what the operator allows, and what a lost answer does to a run.

use crate::kit::{Output, redflow, repository};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

/// A server that answers each client with these bytes, and tells what it received.
fn serve(response: &'static str) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, received) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let _ = heard.send(String::from_utf8_lossy(&request[..length]).into_owned());
            let _ = stream.write_all(response.as_bytes());
        }
    });
    (port, received)
}

/// Runs an example with another port.
fn run_example(name: &str, port: u16, args: &[&str]) -> Output {
    let flow = std::fs::read_to_string(repository().join("examples").join(name)).unwrap();
    let flow = flow.replace("8600", &port.to_string());
    let args = ["run", "-", "--json"].into_iter().chain(args.iter().copied());
    redflow(args).stdin(flow).run()
}

fn tool_call(output: &Output) -> Value {
    output.json()["payload"]["metadata"]["toolCalls"][0].clone()
}

#[test]
fn the_weather_example_works_once_its_service_is_allowed() {
    let weather = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 30\r\n\r\n\
                   {\"city\": \"Oslo\", \"degrees\": 4}";
    let (port, received) = serve(weather);
    let refused = run_example("http-weather.json", port, &[]);
    let result = &tool_call(&refused)["result"];
    let host = format!("127.0.0.1:{port}");
    assert_eq!((refused.code, &result["success"]), (0, &json!(false)), "{refused:#?}");
    assert!(result["error"].as_str().unwrap().contains(&format!("--allow-private {host}")), "{result}");
    assert!(received.try_recv().is_err());

    let allowed = run_example("http-weather.json", port, &["--allow-private", &host]);
    let result = &tool_call(&allowed)["result"];
    assert_eq!(result["data"]["body"], json!({"city": "Oslo", "degrees": 4}), "{allowed:#?}");
    assert!(received.recv().unwrap().starts_with("GET /oslo.json HTTP/1.1\r\n"));
}

#[test]
fn the_refused_example_names_the_rule() {
    let output = run_example("http-refused.json", 1, &[]);
    let error = tool_call(&output)["result"]["error"].as_str().unwrap().to_owned();
    assert!(
        error.starts_with("the request is refused by the rule `address`: 169.254.169.254 is "),
        "{error}"
    );
}

/// A flow with one request to a service of this machine.
fn flow_with_request(method: &str, port: u16) -> String {
    let request = json!({"url": format!("http://127.0.0.1:{port}/orders"), "method": method});
    let replies = json!([{"toolCalls": [{"name": "http_request", "arguments": request}]}, "Done."]);
    json!([
        {"id": "i", "type": "inject", "props": [{"p": "payload"}], "payload": "go", "payloadType": "str", "wires": [["a"]]},
        {"id": "a", "type": "ai-agent", "model": "m", "tools": ["h"], "outputFormat": "full", "wires": [["d"], []]},
        {"id": "m", "type": "scripted-model", "replies": replies, "wires": [[]]},
        {"id": "h", "type": "http-request-tool", "wires": [[]]},
        {"id": "d", "type": "debug", "wires": []}
    ])
    .to_string()
}

/// A POST whose answer is lost may have happened, so the run asks. A GET may be made again, so it just failed.
#[test]
fn a_lost_answer_stops_a_post_and_not_a_get() {
    let (port, received) = serve("");
    let host = format!("127.0.0.1:{port}");
    let run = |method: &str| {
        let args = ["run", "-", "--json", "--allow-private", &host];
        redflow(args).stdin(flow_with_request(method, port)).run()
    };
    let post = run("POST");
    assert_eq!((post.code, &post.json()["status"]), (3, &json!("waiting")), "{post:#?}");
    let request = received.recv().unwrap();
    assert!(request.to_ascii_lowercase().contains("\r\nidempotency-key: "), "{request}");
    let get = run("GET");
    let result = &tool_call(&get)["result"];
    assert_eq!((get.code, &result["success"]), (0, &json!(false)), "{get:#?}");
    let error = result["error"].as_str().unwrap();
    assert!(error.starts_with("the request was sent, but "), "{error}");
}
