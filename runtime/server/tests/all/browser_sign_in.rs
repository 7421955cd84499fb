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
    assert_eq!((answer.status, answer.header("location")), (303, Some("./")), "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

// SECURITY: sign-in-code
#[tokio::test]
async fn a_code_signs_in_one_browser_once() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.request("GET", "/api/session").send().await.refused(401, "UNAUTHORIZED");
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
    let session = sidecar.request("GET", "/api/session").header("cookie", &cookie).send().await.ok(200);
    assert_eq!((&session["name"], &session["scopes"][3]), (&json!("main"), &json!("admin")));
    sidecar.request("GET", "/api/flows").header("cookie", &cookie).send().await.ok(200);
    sidecar
        .request("GET", "/api/flows")
        .header("cookie", "redflow_session=guess")
        .send()
        .await
        .refused(401, "UNAUTHORIZED");
}

// SECURITY: session-cookie, exact-origin
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

// SECURITY: session-cookie
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
    assert_eq!((out.status, out.header("location")), (303, Some("../")));
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

/// A request of a page of the sidecar to sign in with a token.
fn sign_in_request(sidecar: &TestSidecar, token: &str) -> crate::client::Request {
    let own = format!("http://{}", sidecar.addr);
    sidecar.request("POST", "/sign-in").header("origin", &own).json(json!({"token": token}))
}

/// Signs in with a token and gives the cookie.
async fn sign_in_with(sidecar: &TestSidecar, token: &str) -> String {
    let answer = sign_in_request(sidecar, token).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

// SECURITY: sign-in-page
#[tokio::test]
async fn a_token_signs_a_browser_in_with_its_own_scopes() {
    let setup = Setup::default();
    let guest = token(setup.dir.path(), "guest", &[Scope::Run], 1);
    let sidecar = setup.start(Some(plain_flow())).await;
    let answer = sign_in_request(&sidecar, &guest).send().await;
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap();
    let pages = [
        "home",
        "runs",
        "inbox",
        "flow",
        "check",
        "usage",
        "models",
        "tools",
        "mcp",
        "knowledge",
        "memory",
        "settings",
    ];
    let wanted = json!({
        "name": "guest", "scopes": ["read", "run"], "features": pages, "version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(answer.ok(200), wanted);
    let get = |path: &str| sidecar.request("GET", path).header("cookie", cookie).send();
    assert_eq!(get("/api/session").await.ok(200), wanted);
    get("/api/tokens").await.refused(403, "FORBIDDEN");
    get("/api/config").await.refused(403, "FORBIDDEN");
    // A program says who it is too, without a cookie.
    let session = sidecar.request("GET", "/api/session").token(&guest).send().await.ok(200);
    assert_eq!(session, wanted);
}

// SECURITY: sign-in-rate, sign-in-page
#[tokio::test]
async fn no_page_of_another_site_signs_a_browser_in() {
    let mut setup = Setup::default();
    setup.settings.access.failure_burst = 4;
    setup.settings.access.failures_per_second = 0;
    let sidecar = setup.start(Some(plain_flow())).await;
    let request = |token: &str| sign_in_request(&sidecar, token);
    for refused in [
        sidecar.request("POST", "/sign-in").json(json!({"token": TOKEN})),
        request(TOKEN).header("origin", "http://evil.example"),
        request(TOKEN).header("origin", "null"),
        request(TOKEN).header("sec-fetch-site", "cross-site"),
    ] {
        let answer = refused.send().await;
        answer.refused(403, "ORIGIN_REFUSED");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let large = request(&"x".repeat(5000)).send().await;
    large.refused(413, "BODY_TOO_LARGE");
    sign_in_with(&sidecar, TOKEN).await;
    for _ in 0..3 {
        let answer = request("a-token-that-is-wrong").send().await;
        answer.refused(401, "UNAUTHORIZED");
        assert!(!answer.json()["message"].as_str().unwrap().contains("wrong"));
        assert_eq!(answer.header("set-cookie"), None);
    }
    request("a-token-that-is-wrong").send().await.refused(429, "RATE_LIMITED");
    // A right guess is refused too, but no request with a token.
    let answer = request(TOKEN).send().await;
    answer.refused(429, "RATE_LIMITED");
    assert_eq!(answer.header("set-cookie"), None);
    sidecar.request("GET", "/api/session").token(TOKEN).send().await.ok(200);
}

/// A sidecar that is killed after an answer has what it answered.
// SECURITY: session-file
#[tokio::test]
async fn a_sign_in_or_a_sign_out_is_in_the_file_when_it_is_answered() {
    let mut setup = Setup::default();
    let file = setup.dir.path().join("sessions.json");
    setup.settings.access.sessions_file = Some(file.clone());
    let sidecar = setup.start(Some(plain_flow())).await;
    let stored = || std::fs::read_to_string(&file).unwrap().matches("hash").count();
    let own = format!("http://{}", sidecar.addr);
    for _ in 0..15 {
        let cookie = sign_in_with(&sidecar, TOKEN).await;
        assert_eq!(stored(), 1);
        let out = sidecar.request("POST", "/api/sign-out").header("cookie", &cookie).header("origin", &own);
        assert_eq!(out.send().await.status, 303);
        assert_eq!(stored(), 0);
    }
    sign_in(&sidecar, &sidecar.sign_in).await;
    assert_eq!(stored(), 1);
}

// SECURITY: session-file
#[tokio::test]
async fn sessions_that_could_not_be_written_are_written_later() {
    let mut setup = Setup::default();
    let file = setup.dir.path().join("sessions.json");
    setup.settings.access.sessions_file = Some(file.clone());
    let sidecar = setup.start(Some(plain_flow())).await;
    std::fs::create_dir(&file).unwrap();
    sign_in_with(&sidecar, TOKEN).await;
    std::fs::remove_dir(&file).unwrap();
    crate::kit::eventually("the session is written", || async { file.is_file().then_some(()) }).await;
}

// SECURITY: session-file
#[tokio::test]
async fn a_session_survives_a_restart_and_ends_with_its_token() {
    let start = |dir: Option<std::sync::Arc<tempfile::TempDir>>| {
        let mut setup = Setup::default();
        setup.dir = dir.unwrap_or(setup.dir);
        setup.settings.access.sessions_file = Some(setup.dir.path().join("sessions.json"));
        setup.start(Some(plain_flow()))
    };
    let sidecar = start(None).await;
    let guest = token(sidecar.dir.path(), "guest", &[Scope::Read], 1);
    crate::kit::eventually("the token is known", || async {
        (sidecar.request("GET", "/api/session").token(&guest).send().await.status == 200).then_some(())
    })
    .await;
    let (main, guest) = (sign_in_with(&sidecar, TOKEN).await, sign_in_with(&sidecar, &guest).await);
    let status = |sidecar: &TestSidecar, cookie: &str| {
        let request = sidecar.request("GET", "/api/session").header("cookie", cookie);
        async move { request.send().await.status }
    };
    let sidecar = start(Some(sidecar.stop().await)).await;
    assert_eq!((status(&sidecar, &main).await, status(&sidecar, &guest).await), (200, 200));
    let removed = sidecar.request("DELETE", "/api/tokens/guest").token(TOKEN).send().await;
    assert_eq!(removed.status, 204);
    assert_eq!((status(&sidecar, &main).await, status(&sidecar, &guest).await), (200, 401));
    let sidecar = start(Some(sidecar.stop().await)).await;
    assert_eq!((status(&sidecar, &main).await, status(&sidecar, &guest).await), (200, 401));
}
