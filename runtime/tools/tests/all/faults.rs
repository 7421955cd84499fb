//! Servers that fail, lie, or never answer.

use crate::kit::{Net, Server, redirect, text};
use pretty_assertions::assert_eq;
use redflow_ports::ToolOutcome;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn request(method: &str, port: u16) -> Value {
    json!({"url": format!("http://127.0.0.1:{port}/"), "method": method})
}

/// Calls a server of this machine, which is allowed.
async fn call(method: &str, port: u16, timeout_ms: u64) -> ToolOutcome {
    let net = Net::default().private(format!("127.0.0.1:{port}"));
    net.build(&json!({})).unwrap().call_within(&request(method, port), timeout_ms).await
}

/// A server that reads a part of the request and then sends these bytes again and again.
async fn flood(first: &'static str, then: Vec<u8>, times: usize) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let then = then.clone();
            tokio::spawn(async move {
                let mut request = [0; 16];
                stream.read_exact(&mut request).await?;
                stream.write_all(first.as_bytes()).await?;
                for _ in 0..times {
                    stream.write_all(&then).await?;
                }
                std::io::Result::Ok(())
            });
        }
    });
    port
}

#[tokio::test]
async fn a_hundred_megabytes_are_refused_with_the_status() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
    let port = flood(head, vec![b'x'; 1024 * 1024], 100).await;
    let ToolOutcome::Returned(result) = call("POST", port, 20_000).await else { panic!("returned") };
    assert_eq!(result.code.map(|code| code.as_str()), Some("EGRESS_TOO_LARGE"));
    let error = result.error.unwrap();
    assert_eq!(error, "the server answered with status 200, but the answer is larger than 10485760 bytes");
}

#[tokio::test]
async fn a_huge_head_and_nonsense_fail() {
    let huge = flood("HTTP/1.1 200 OK\r\n", format!("x-a: {}\r\n", "y".repeat(1000)).into_bytes(), 200).await;
    let nonsense = flood("220 mail.example ESMTP\r\n", Vec::new(), 1).await;
    for port in [huge, nonsense] {
        // The engine makes an ordinary failure of it for GET.
        let outcome = call("GET", port, 5_000).await;
        let ToolOutcome::Unknown { reason } = outcome else { panic!("{outcome:?}") };
        assert!(reason.starts_with("the request was sent, but "), "{reason}");
    }
}

/// A server that has answered knows the request, whatever happens to its answer.
#[tokio::test]
async fn after_an_answer_nothing_is_unknown() {
    let long = format!("x-long: {}\r\n", "x".repeat(64 * 1024));
    let server = Server::start(move |request| match request.path.as_str() {
        "/inward" => redirect(303, "http://10.0.0.1/"),
        "/lost" => redirect(303, "/closed"),
        "/repeated" => redirect(307, "/closed"),
        "/brotli" => text(201, "content-encoding: br\r\n", "x"),
        "/head" => text(201, &long, "x"),
        _ => Vec::new(),
    })
    .await;
    let tool = Net::default().private(format!("127.0.0.1:{}", server.port)).build(&json!({})).unwrap();
    let input =
        |path: &str| json!({"url": format!("http://127.0.0.1:{}{path}", server.port), "method": "POST"});
    for (path, status, code) in [
        ("/inward", 303, Some("EGRESS_REFUSED")),
        ("/lost", 303, None),
        ("/brotli", 201, Some("EGRESS_REFUSED")),
        ("/head", 201, Some("EGRESS_TOO_LARGE")),
    ] {
        let result = tool.call(input(path)).await;
        assert_eq!(result.code.map(|code| code.as_str()), code, "{path}");
        let error = result.error.unwrap();
        assert!(
            error.starts_with(&format!("the server answered with status {status}, but ")),
            "{path}: {error}"
        );
    }
    let repeated = tool.call_within(&input("/repeated"), 5_000).await;
    assert!(matches!(repeated, ToolOutcome::Unknown { .. }), "{repeated:?}");
}

/// The bytes of a request that was sent cannot be taken back, so only a person knows what they did.
#[tokio::test]
async fn a_server_that_never_answers_leaves_the_outcome_unknown() {
    let silent = flood("", Vec::new(), 0).await;
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = held.local_addr().unwrap().port();
    let keep = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok(connection) = held.accept().await {
            open.push(connection);
        }
    });
    for (port, timeout_ms) in [(port, 400), (silent, 5_000)] {
        let outcome = call("POST", port, timeout_ms).await;
        assert!(matches!(outcome, ToolOutcome::Unknown { .. }), "{outcome:?}");
    }
    keep.abort();
}

#[tokio::test]
async fn a_request_that_never_left_just_failed() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let ToolOutcome::Returned(result) = call("POST", port, 5_000).await else { panic!("returned") };
    assert!(result.error.unwrap().starts_with("nothing was sent: "));
    assert_eq!(result.code, None);
}

#[tokio::test]
async fn a_body_that_breaks_off_says_that_the_server_answered() {
    let server = Server::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec()).await;
    let ToolOutcome::Returned(result) = call("POST", server.port, 5_000).await else { panic!("returned") };
    let error = result.error.unwrap();
    assert!(error.starts_with("the server answered with status 200, but "), "{error}");
    assert_eq!(result.code, None);
}

#[tokio::test]
async fn refused_addresses_have_a_code_and_reach_nothing() {
    let canary = Server::start(|_| text(200, "", "heard")).await;
    let tool = Net::default().build(&json!({})).unwrap();
    let port = canary.port;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://user@127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://10.0.0.1/".to_owned(),
        String::new(),
    ] {
        let result = tool.call(json!({"url": url, "method": "GET"})).await;
        assert_eq!(result.code.map(|code| code.as_str()), Some("EGRESS_REFUSED"), "{url}: {result:?}");
        assert!(result.error.unwrap().starts_with("the request is refused by the rule `"), "{url}");
    }
    assert_eq!(canary.seen().len(), 0);
}

#[tokio::test]
async fn every_request_is_counted_once() {
    let server = Server::start(|_| text(500, "", "no")).await;
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let free = closed.local_addr().unwrap().port();
    drop(closed);
    let net =
        Net::default().private(format!("127.0.0.1:{}", server.port)).private(format!("127.0.0.1:{free}"));
    let tool = net.build(&json!({})).unwrap();
    for port in [server.port, free, 1] {
        let _ = tool.call(request("GET", port)).await;
    }
    // A call that the tool itself refuses is no request.
    let _ = tool.call(json!({"url": "http://127.0.0.1/", "method": "GET", "headers": {"Host": "x"}})).await;
    let _ = tool.call(json!({"url": "http://127.0.0.1/", "method": "GET"})).await;
    assert_eq!(*net.verdicts.0.lock().unwrap(), ["answered", "failed", "port", "address"]);
}
