//! Browsers: sign in with a one-time code, sign out, and act only from the own page.

use crate::client::Socket;
use crate::kit::{Setup, TOKEN, TestSidecar, plain_flow, token};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::stream::{EventsMessage, EventsRequest};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Signs in and gives the cookie as a browser sends it back.
async fn sign_in(sidecar: &TestSidecar, path: &str) -> String {
    let answer = sidecar.request("GET", path).send().await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_code_signs_in_one_browser_once() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let page = sidecar.request("GET", "/").send().await;
    assert!(String::from_utf8_lossy(&page.body).contains("not signed in"));
    // A program that only looks at the link does not spend the code.
    for _ in 0..3 {
        let answer = sidecar.request("HEAD", &sidecar.sign_in).send().await;
        assert_eq!((answer.status, answer.header("set-cookie")), (200, None));
    }
    let cookie = sign_in(&sidecar, &sidecar.sign_in).await;
    sidecar.request("GET", &sidecar.sign_in).send().await.refused(401, "SIGN_IN_REFUSED");
    for wrong in ["/sign-in", "/sign-in?code=", "/sign-in?code=guess"] {
        sidecar.request("GET", wrong).send().await.refused(401, "SIGN_IN_REFUSED");
    }
    let page = sidecar.request("GET", "/").header("cookie", &cookie).send().await;
    assert!(String::from_utf8_lossy(&page.body).contains("You are signed in"));
    assert!(String::from_utf8_lossy(&page.body).contains("action=\"/api/sign-out\""));
    sidecar.request("GET", "/api/flows").header("cookie", &cookie).send().await.ok(200);
    sidecar
        .request("GET", "/api/flows")
        .header("cookie", "redflow_session=guess")
        .send()
        .await
        .refused(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_cookie_works_only_from_its_own_page() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let cookie = sign_in(&sidecar, &sidecar.sign_in).await;
    let own = format!("http://{}", sidecar.addr);
    let start =
        || sidecar.request("POST", "/api/runs").header("cookie", &cookie).json(json!({"payload": "?"}));
    start().send().await.refused(403, "ORIGIN_REFUSED");
    start().header("origin", "http://evil.example").send().await.refused(403, "ORIGIN_REFUSED");
    start().header("origin", "null").send().await.refused(403, "ORIGIN_REFUSED");
    start()
        .header("origin", &own)
        .header("sec-fetch-site", "cross-site")
        .send()
        .await
        .refused(403, "ORIGIN_REFUSED");
    start().header("origin", &own).send().await.ok(202);
    let socket = |origin: &'static str| {
        let headers = [("cookie", cookie.clone()), ("origin", origin.to_owned())];
        async move {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Socket::try_open(sidecar.addr, &headers).await
        }
    };
    for origin in ["http://evil.example", "null"] {
        match socket(origin).await {
            Err(answer) => answer.refused(403, "ORIGIN_REFUSED"),
            Ok(_) => panic!("{origin} opened a socket"),
        }
    }
    assert!(Socket::try_open(sidecar.addr, &[("cookie", &cookie), ("origin", &own)]).await.is_ok());
    assert!(Socket::try_open(sidecar.addr, &[("cookie", &cookie)]).await.is_err());
}

#[tokio::test]
async fn signing_out_invalidates_the_cookie() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let cookie = sign_in(&sidecar, &sidecar.sign_in).await;
    let own = format!("http://{}", sidecar.addr);
    let open = Socket::try_open(sidecar.addr, &[("cookie", &cookie), ("origin", &own)]).await;
    let mut socket = open.unwrap_or_else(|_| panic!("no socket"));
    assert!(matches!(socket.hear().await, EventsMessage::Hello { .. }));
    let out = sidecar
        .request("POST", "/api/sign-out")
        .header("cookie", &cookie)
        .header("origin", &own)
        .send()
        .await;
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    sidecar.request("GET", "/api/flows").header("cookie", &cookie).send().await.refused(401, "UNAUTHORIZED");
    // Its open socket is closed too, even while it is busy.
    let end = tokio::time::Instant::now() + crate::client::PATIENCE;
    loop {
        assert!(tokio::time::Instant::now() < end, "the socket is still open");
        socket.say(&EventsRequest::Ping { id: "1".to_owned() }).await;
        match socket.hear().await {
            EventsMessage::Pong { .. } => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            EventsMessage::Closing { code, .. } => break assert_eq!(code.as_str(), "UNAUTHORIZED"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_admin_token_makes_further_codes() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let code = sidecar.request("POST", "/api/sign-in-codes").token(TOKEN).send().await.ok(200);
    sign_in(&sidecar, code["path"].as_str().unwrap()).await;
}

#[tokio::test]
async fn the_browsers_of_one_token_share_its_places_for_large_bodies() {
    let setup = Setup::default();
    let other = token(setup.dir.path(), "other", &[Scope::Deploy], 1);
    let sidecar = setup.start(Some(plain_flow())).await;
    let code = sidecar.request("POST", "/api/sign-in-codes").token(TOKEN).send().await.ok(200);
    let first = sign_in(&sidecar, &sidecar.sign_in).await;
    let second = sign_in(&sidecar, code["path"].as_str().unwrap()).await;
    let mut slow = Vec::new();
    for cookie in [&first, &first, &second, &second] {
        // Each is large, and never ends.
        let request = sidecar.request("POST", "/api/flows/check").header("cookie", cookie);
        let request = request.header("origin", &format!("http://{}", sidecar.addr));
        let request = request.header("content-type", "application/json").header("content-length", "9000000");
        let mut stream = TcpStream::connect(sidecar.addr).await.unwrap();
        stream.write_all(&request.text()).await.unwrap();
        stream.write_all(&b" ".repeat(300_000)).await.unwrap();
        slow.push(stream);
    }
    // The sidecar has read them.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let large = json!({"flows": [{"id": "n", "type": "x".repeat(400_000)}]});
    sidecar.request("POST", "/api/flows/check").token(&other).json(large).send().await.ok(200);
    // No other caller waited for a place, so all are still open.
    for stream in &mut slow {
        let read = tokio::time::timeout(Duration::from_millis(10), stream.read_u8()).await;
        assert!(read.is_err(), "{read:?}");
    }
}
