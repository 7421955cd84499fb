//! The origin of the Redflow UI: admitted without a token to its own routes only, and no other origin.

use crate::client::{Reply, Request};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, plain_flow, token};
use crate::log_secrets::Log;
use crate::route_access::{is_socket, path, upgrade};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::route::{ROUTES, Route};
use serde_json::json;
use std::collections::BTreeSet;

const UI: &str = "http://localhost:5173";

/// Other origins, some of them similar to that of the UI.
const OTHERS: [&str; 13] = [
    "http://evil.example",
    "null",
    "",
    "*",
    "http://localhost",
    "http://localhost:5174",
    "http://localhost:51730",
    "https://localhost:5173",
    "http://localhost:5173/",
    "http://LOCALHOST:5173",
    "http://ui.localhost:5173",
    "http://127.0.0.1:5173",
    "http://localhost:5173 http://evil.example",
];

async fn start() -> TestSidecar {
    start_with(Setup::default()).await
}

async fn start_with(mut setup: Setup) -> TestSidecar {
    setup.settings.access.redflow_ui = Some(UI.to_owned());
    setup.start(Some(plain_flow())).await
}

/// A request to a route, with a body if it takes one.
fn request(sidecar: &TestSidecar, route: &Route) -> Request {
    let request = sidecar.request(route.method.as_str(), &path(route));
    if route.body.is_some() { request.json(json!({})) } else { request }
}

/// The preflight request that a browser sends for a page.
fn preflight(sidecar: &TestSidecar, path: &str, method: &str) -> Request {
    let request = sidecar.request("OPTIONS", path).header("access-control-request-method", method);
    request.header("access-control-request-headers", "content-type,node-red-api-version")
}

/// Asserts that only the UI may read the response, and without cookies.
#[track_caller]
fn assert_readable(answer: &Reply) {
    assert_eq!(answer.header("access-control-allow-origin"), Some(UI), "{answer:?}");
    assert_eq!(answer.header("vary"), Some("Origin"), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-credentials"), None, "{answer:?}");
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{answer:?}");
}

/// Asserts that no page may read the response.
#[track_caller]
fn assert_unreadable(answer: &Reply) {
    assert!(!answer.head.to_ascii_lowercase().contains("\naccess-control-"), "{answer:?}");
}

#[track_caller]
fn assert_refused(answer: &Reply) {
    answer.refused(403, "ORIGIN_REFUSED");
    assert_unreadable(answer);
}

// SECURITY: redflow-ui
#[tokio::test]
async fn admits_pages_of_the_ui_to_their_routes_only() {
    let sidecar = start().await;
    let mut open = 0;
    for route in ROUTES {
        let answer = request(&sidecar, route).header("origin", UI).send().await;
        if route.for_redflow_ui {
            assert!(![401, 403].contains(&answer.status), "{} {answer:?}", route.path);
            assert_readable(&answer);
            open += 1;
        } else {
            assert_refused(&answer);
        }
        // Without an origin the usual rules hold.
        let answer = request(&sidecar, route).send().await;
        if route.scope.is_some() {
            answer.refused(401, "UNAUTHORIZED");
        }
        assert_unreadable(&answer);
    }
    assert!((20..ROUTES.len() - 20).contains(&open), "{open}");
    // By any name of this machine.
    for name in ["localhost", "127.0.0.1", "[::1]", "LocalHost"] {
        let host = format!("{name}:{}", sidecar.addr.port());
        let answer = sidecar.request("GET", "/flows").header("origin", UI).header("host", &host).send().await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        assert_readable(&answer);
    }
}

// SECURITY: redflow-ui, cors
#[tokio::test]
async fn refuses_other_pages_at_every_route() {
    let sidecar = start().await;
    for route in ROUTES {
        for origin in OTHERS {
            assert_refused(&request(&sidecar, route).header("origin", origin).send().await);
            assert_refused(&request(&sidecar, route).token(TOKEN).header("origin", origin).send().await);
            let preflight = preflight(&sidecar, &path(route), route.method.as_str()).header("origin", origin);
            assert_refused(&preflight.send().await);
        }
        // Two origins are refused, even if both are right. The test client treats the two spellings as two
        // headers.
        for second in [UI, "http://evil.example"] {
            assert_refused(
                &request(&sidecar, route).header("origin", UI).header("Origin", second).send().await,
            );
        }
        let elsewhere =
            request(&sidecar, route).header("origin", UI).header("host", "evil.example").send().await;
        elsewhere.refused(403, "HOST_REFUSED");
        assert_unreadable(&elsewhere);
    }
    for origin in OTHERS {
        assert_refused(&sidecar.request("GET", "/nothing").header("origin", origin).send().await);
    }
}

// SECURITY: redflow-ui, cors
#[tokio::test]
async fn answers_preflight_requests_of_the_ui() {
    let sidecar = start().await;
    let literal = [
        ("/flows", "GET, POST"),
        ("/flow", "POST"),
        ("/flow/tab", "GET, PUT, DELETE"),
        ("/flow/model.azure.openai-17%20x", "GET, PUT, DELETE"),
        ("/inject/tab", "POST"),
        ("/redflow/persistent-storage/a-key", "GET, DELETE"),
        ("/admin/inject/tab", "GET, POST, PUT, DELETE"),
    ];
    for (path, methods) in literal {
        // Also for methods that the page may not use: the browser refuses them itself.
        for method in ["GET", "POST", "PATCH"] {
            let answer = preflight(&sidecar, path, method).header("origin", UI).send().await;
            assert_eq!((answer.status, answer.body.len()), (204, 0), "{answer:?}");
            assert_readable(&answer);
            assert_eq!(answer.header("access-control-allow-methods"), Some(methods), "{path}");
            assert_eq!(
                answer.header("access-control-allow-headers"),
                Some("content-type, node-red-api-version, node-red-deployment-type, accept, authorization")
            );
            assert_eq!(answer.header("access-control-max-age"), Some("600"));
            assert_eq!(answer.header("access-control-allow-private-network"), None);
        }
    }
    for route in ROUTES {
        let preflight = preflight(&sidecar, &path(route), route.method.as_str()).header("origin", UI);
        let answer = preflight.header("access-control-request-private-network", "true").send().await;
        if !route.for_redflow_ui {
            assert_refused(&answer);
            continue;
        }
        assert_eq!(answer.status, 204, "{answer:?}");
        assert_readable(&answer);
        assert_eq!(answer.header("access-control-allow-private-network"), Some("true"));
        let methods: BTreeSet<&str> =
            answer.header("access-control-allow-methods").unwrap().split(", ").collect();
        assert!(methods.contains(route.method.as_str()), "{} {methods:?}", route.path);
    }
    // An OPTIONS request that is no preflight gets the usual response.
    let answer = sidecar.request("OPTIONS", "/flows").header("origin", UI).send().await;
    answer.refused(405, "METHOD_REFUSED");
    assert_readable(&answer);
    // Without an origin there are no CORS headers.
    let answer = preflight(&sidecar, "/flows", "GET").token(TOKEN).send().await;
    answer.refused(405, "METHOD_REFUSED");
    assert_unreadable(&answer);
}

// SECURITY: redflow-ui
#[tokio::test]
async fn pages_of_the_ui_can_read_errors() {
    let sidecar = start().await;
    let from_ui = |method: &str, path: &str| sidecar.request(method, path).header("origin", UI);
    for (method, path) in [
        ("POST", "/admin/inject/ask"),
        ("GET", "/admin/comms"),
        ("GET", "/flows/"),
        ("GET", "/flow/"),
        ("GET", "/auth/login"),
        ("DELETE", "/api"),
    ] {
        let answer = from_ui(method, path).send().await;
        answer.refused(404, "ROUTE_UNKNOWN");
        assert_readable(&answer);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        sidecar.request(method, path).send().await.refused(401, "UNAUTHORIZED");
    }
    let answer = from_ui("PATCH", "/flows").send().await;
    answer.refused(405, "METHOD_REFUSED");
    assert_readable(&answer);
    let answer = from_ui("POST", "/flows").bytes("{").header("content-type", "text/plain").send().await;
    answer.refused(415, "CONTENT_TYPE_REFUSED");
    assert_readable(&answer);
    let answer = from_ui("GET", "/flow/%ff").send().await;
    assert_eq!(answer.status, 400);
    assert_readable(&answer);
    // A path of the sidecar itself stays refused with another method.
    assert_refused(&from_ui("DELETE", "/api/flows").send().await);
    assert_refused(&from_ui("GET", "/api/flows/check").send().await);
}

// SECURITY: redflow-ui
#[tokio::test]
async fn limits_the_rate_of_the_ui_with_a_readable_error() {
    let mut setup = Setup::default();
    setup.settings.access.requests_per_second = 1;
    setup.settings.access.request_burst = 3;
    let sidecar = start_with(setup).await;
    let ask = || sidecar.request("GET", "/flows").header("origin", UI).send();
    for _ in 0..3 {
        assert_eq!(ask().await.status, 200);
    }
    let limited = eventually("it is limited", || async {
        let answer = ask().await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    limited.refused(429, "RATE_LIMITED");
    assert_readable(&limited);
    // Other callers are not affected.
    sidecar.get("/api/flows").await.ok(200);
}

// SECURITY: redflow-ui
#[tokio::test]
async fn a_token_of_the_ui_decides_its_scope() {
    let sidecar = start().await;
    let from_ui = |method: &str, path: &str| sidecar.request(method, path).header("origin", UI);
    for route in ROUTES {
        let wrong = request(&sidecar, route).header("origin", UI).token("not-the-token-of-these-tests");
        let answer = wrong.send().await;
        answer.refused(401, "UNAUTHORIZED");
        if route.for_redflow_ui { assert_readable(&answer) } else { assert_unreadable(&answer) }
    }
    // A token can give less access than none.
    let reader = token(sidecar.dir.path(), "reader", &[Scope::Read], 1);
    eventually("the token is known", || async {
        (from_ui("GET", "/flows").token(&reader).send().await.status == 200).then_some(())
    })
    .await;
    let answer = from_ui("DELETE", "/flow/tab").token(&reader).send().await;
    answer.refused(403, "FORBIDDEN");
    assert_readable(&answer);
    // A token can give more access, but a page can read responses of its own routes only.
    let answer = from_ui("GET", "/api/flows").token(TOKEN).send().await;
    assert_unreadable(&answer);
    answer.ok(200);
}

// SECURITY: redflow-ui
#[tokio::test]
async fn a_cookie_gives_the_ui_no_further_access() {
    let sidecar = start().await;
    let signed_in = sidecar.request("GET", &sidecar.sign_in).send().await;
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    sidecar.request("GET", "/api/flows").header("cookie", &cookie).send().await.ok(200);
    for (method, path) in [("GET", "/api/flows"), ("POST", "/api/sign-in-codes"), ("POST", "/api/runs")] {
        assert_refused(
            &sidecar.request(method, path).header("origin", UI).header("cookie", &cookie).send().await,
        );
    }
    let request = sidecar.request("GET", "/events").header("origin", UI).header("cookie", &cookie);
    assert_refused(&upgrade(request).await);
}

// SECURITY: redflow-ui
#[tokio::test]
async fn opens_sockets_to_pages_of_the_ui_only() {
    let sidecar = start().await;
    for route in ROUTES.iter().filter(|route| is_socket(route)) {
        let ask = || sidecar.request("GET", route.path);
        for origin in OTHERS {
            assert_refused(&upgrade(ask().header("origin", origin)).await);
            assert_refused(&upgrade(ask().token(TOKEN).header("origin", origin)).await);
        }
        let wrong = "redflow.token.not-the-token-of-these-tests";
        let wrong = ask().header("origin", UI).header("sec-websocket-protocol", wrong);
        upgrade(wrong).await.refused(401, "UNAUTHORIZED");
        let answer = upgrade(ask().header("origin", UI)).await;
        if route.for_redflow_ui {
            assert_eq!(answer.status, 101, "{} {answer:?}", route.path);
        } else {
            assert_refused(&answer);
        }
    }
}

// SECURITY: redflow-ui, cors
#[tokio::test]
async fn without_the_option_all_pages_are_refused() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for route in ROUTES {
        assert_refused(&request(&sidecar, route).header("origin", UI).send().await);
        assert_refused(&request(&sidecar, route).token(TOKEN).header("origin", UI).send().await);
        assert_refused(
            &preflight(&sidecar, &path(route), route.method.as_str()).header("origin", UI).send().await,
        );
        let own = format!("http://{}", sidecar.addr);
        let answer =
            preflight(&sidecar, &path(route), "GET").token(TOKEN).header("origin", &own).send().await;
        answer.refused(405, "METHOD_REFUSED");
        assert_unreadable(&answer);
    }
}

/// The log shows why a UI at another address does not work. Clients choose the header, so the log is bounded.
// SECURITY: redflow-ui
#[tokio::test]
async fn logs_each_refused_origin_once_up_to_a_limit() {
    let log = Log::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let sidecar = start().await;
    let logged = || {
        let text = log.0.lock().unwrap().clone();
        text.lines().filter(|line| line.contains("ORIGIN_REFUSED")).map(str::to_owned).collect::<Vec<_>>()
    };
    let send = async |path: &str, origin: &str| {
        sidecar.request("GET", path).header("origin", origin).send().await.refused(403, "ORIGIN_REFUSED");
    };
    for _ in 0..3 {
        send("/flows", "http://localhost:5174").await;
    }
    // The UI itself, at a route that is not for it, is not logged.
    send("/api/runs", UI).await;
    let lines = logged();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("http://localhost:5174") && lines[0].contains(&format!("admitted={UI:?}")),
        "{lines:?}"
    );
    send("/flows", &"x".repeat(5000)).await;
    assert!(logged()[1].len() < 500, "{:?}", logged());
    for n in 0..40 {
        send("/flows", &format!("http://{n}.example")).await;
    }
    assert_eq!(logged().len(), 16);

    // Without --redflow-ui nothing is logged.
    let without_ui = Setup::default().start(Some(plain_flow())).await;
    without_ui.request("GET", "/flows").header("origin", UI).send().await.refused(403, "ORIGIN_REFUSED");
    assert_eq!(logged().len(), 16);
}
