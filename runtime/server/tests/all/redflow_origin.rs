//! The one origin of the Redflow UI: without a token to its routes and to no others, and nobody else like it.

use crate::client::{Reply, Request};
use crate::route_access::{is_socket, path, upgrade};
use crate::kit::{Setup, TOKEN, World, eventually, plain, token};
use crate::logs::Log;
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::route::{ROUTES, Route};
use serde_json::json;
use std::collections::BTreeSet;

const UI: &str = "http://localhost:5173";

/// Pages of everybody else, some of which look like it.
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

async fn world() -> World {
    with(Setup::default()).await
}

async fn with(mut setup: Setup) -> World {
    setup.settings.access.redflow_ui = Some(UI.to_owned());
    setup.start(Some(plain())).await
}

/// Asks this route, with a body if it takes one.
fn ask(world: &World, route: &Route) -> Request {
    let request = world.request(route.method.as_str(), &path(route));
    if route.body.is_some() { request.json(json!({})) } else { request }
}

/// What a browser asks before it lets a page do this.
fn preflight(world: &World, path: &str, method: &str) -> Request {
    let request = world.request("OPTIONS", path).header("access-control-request-method", method);
    request.header("access-control-request-headers", "content-type,node-red-api-version")
}

/// That the page that asked may read the answer, and nobody else; and that cookies are not asked for.
#[track_caller]
fn readable(answer: &Reply) {
    assert_eq!(answer.header("access-control-allow-origin"), Some(UI), "{answer:?}");
    assert_eq!(answer.header("vary"), Some("Origin"), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-credentials"), None, "{answer:?}");
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{answer:?}");
}

/// That no page may read the answer.
#[track_caller]
fn unreadable(answer: &Reply) {
    assert!(!answer.head.to_ascii_lowercase().contains("\naccess-control-"), "{answer:?}");
}

#[track_caller]
fn refused(answer: &Reply) {
    answer.refused(403, "ORIGIN_REFUSED");
    unreadable(answer);
}

#[tokio::test]
async fn its_pages_come_in_to_their_routes_and_to_no_others() {
    let world = world().await;
    let mut open = 0;
    for route in ROUTES {
        let answer = ask(&world, route).header("origin", UI).send().await;
        if route.for_redflow_ui {
            assert!(![401, 403].contains(&answer.status), "{} {answer:?}", route.path);
            readable(&answer);
            open += 1;
        } else {
            refused(&answer);
        }
        // Without the page's name nothing is different.
        let answer = ask(&world, route).send().await;
        if route.scope.is_some() {
            answer.refused(401, "UNAUTHORIZED");
        }
        unreadable(&answer);
    }
    assert!((20..ROUTES.len() - 20).contains(&open), "{open}");
    // However this machine is called.
    for name in ["localhost", "127.0.0.1", "[::1]", "LocalHost"] {
        let host = format!("{name}:{}", world.addr.port());
        let answer = world.request("GET", "/flows").header("origin", UI).header("host", &host).send().await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        readable(&answer);
    }
}

#[tokio::test]
async fn pages_of_everybody_else_are_refused_everywhere_and_told_nothing() {
    let world = world().await;
    for route in ROUTES {
        for origin in OTHERS {
            refused(&ask(&world, route).header("origin", origin).send().await);
            refused(&ask(&world, route).token(TOKEN).header("origin", origin).send().await);
            let asked = preflight(&world, &path(route), route.method.as_str()).header("origin", origin);
            refused(&asked.send().await);
        }
        // Two names are none, also if both are the right one. The client tells headers apart by their letters.
        for second in [UI, "http://evil.example"] {
            refused(&ask(&world, route).header("origin", UI).header("Origin", second).send().await);
        }
        let elsewhere = ask(&world, route).header("origin", UI).header("host", "evil.example").send().await;
        elsewhere.refused(403, "HOST_REFUSED");
        unreadable(&elsewhere);
    }
    for origin in OTHERS {
        refused(&world.request("GET", "/nothing").header("origin", origin).send().await);
    }
}

#[tokio::test]
async fn a_browser_is_told_what_its_pages_may_do() {
    let world = world().await;
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
        // Also if the page then asks for what it may not: the browser sees that it may not.
        for method in ["GET", "POST", "PATCH"] {
            let answer = preflight(&world, path, method).header("origin", UI).send().await;
            assert_eq!((answer.status, answer.body.len()), (204, 0), "{answer:?}");
            readable(&answer);
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
        let asked = preflight(&world, &path(route), route.method.as_str()).header("origin", UI);
        let answer = asked.header("access-control-request-private-network", "true").send().await;
        if !route.for_redflow_ui {
            refused(&answer);
            continue;
        }
        assert_eq!(answer.status, 204, "{answer:?}");
        readable(&answer);
        assert_eq!(answer.header("access-control-allow-private-network"), Some("true"));
        let methods: BTreeSet<&str> =
            answer.header("access-control-allow-methods").unwrap().split(", ").collect();
        assert!(methods.contains(route.method.as_str()), "{} {methods:?}", route.path);
    }
    // What asks for nothing is answered as ever.
    let answer = world.request("OPTIONS", "/flows").header("origin", UI).send().await;
    answer.refused(405, "METHOD_REFUSED");
    readable(&answer);
    // Without a page there is nobody to tell.
    let answer = preflight(&world, "/flows", "GET").token(TOKEN).send().await;
    answer.refused(405, "METHOD_REFUSED");
    unreadable(&answer);
}

#[tokio::test]
async fn whatever_goes_wrong_can_be_read() {
    let world = world().await;
    let from_ui = |method: &str, path: &str| world.request(method, path).header("origin", UI);
    for (method, path) in [
        ("POST", "/admin/inject/ask"),
        ("GET", "/admin/observability"),
        ("GET", "/admin/comms"),
        ("GET", "/flows/"),
        ("GET", "/flow/"),
        ("GET", "/auth/login"),
        ("DELETE", "/api"),
    ] {
        let answer = from_ui(method, path).send().await;
        answer.refused(404, "ROUTE_UNKNOWN");
        readable(&answer);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        world.request(method, path).send().await.refused(401, "UNAUTHORIZED");
    }
    let answer = from_ui("PATCH", "/flows").send().await;
    answer.refused(405, "METHOD_REFUSED");
    readable(&answer);
    let answer = from_ui("POST", "/flows").bytes("{").header("content-type", "text/plain").send().await;
    answer.refused(415, "CONTENT_TYPE_REFUSED");
    readable(&answer);
    let answer = from_ui("GET", "/flow/%ff").send().await;
    assert_eq!(answer.status, 400);
    readable(&answer);
    // A path of ours with another method is still none of its own.
    refused(&from_ui("DELETE", "/api/flows").send().await);
    refused(&from_ui("GET", "/api/flows/check").send().await);
}

#[tokio::test]
async fn it_has_a_rate_like_everybody_and_can_read_that_too() {
    let mut setup = Setup::default();
    setup.settings.access.requests_per_second = 1;
    setup.settings.access.request_burst = 3;
    let world = with(setup).await;
    let ask = || world.request("GET", "/flows").header("origin", UI).send();
    for _ in 0..3 {
        assert_eq!(ask().await.status, 200);
    }
    let limited = eventually("it is limited", || async {
        let answer = ask().await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    limited.refused(429, "RATE_LIMITED");
    readable(&limited);
    // Nobody else is affected.
    world.get("/api/flows").await.ok(200);
}

#[tokio::test]
async fn a_token_it_brings_decides() {
    let world = world().await;
    let from_ui = |method: &str, path: &str| world.request(method, path).header("origin", UI);
    for route in ROUTES {
        let wrong = ask(&world, route).header("origin", UI).token("not-the-token-of-these-tests");
        let answer = wrong.send().await;
        answer.refused(401, "UNAUTHORIZED");
        if route.for_redflow_ui { readable(&answer) } else { unreadable(&answer) }
    }
    // Less than it has without one.
    let reader = token(world.dir.path(), "reader", &[Scope::Read], 1);
    eventually("the token is known", || async {
        (from_ui("GET", "/flows").token(&reader).send().await.status == 200).then_some(())
    })
    .await;
    let answer = from_ui("DELETE", "/flow/tab").token(&reader).send().await;
    answer.refused(403, "FORBIDDEN");
    readable(&answer);
    // More than it has without one; but a page gets to read its own routes alone.
    let answer = from_ui("GET", "/api/flows").token(TOKEN).send().await;
    unreadable(&answer);
    answer.ok(200);
}

#[tokio::test]
async fn the_cookie_of_a_browser_gives_it_no_more() {
    let world = world().await;
    let signed_in = world.request("GET", &world.sign_in).send().await;
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    world.request("GET", "/api/flows").header("cookie", &cookie).send().await.ok(200);
    for (method, path) in [("GET", "/api/flows"), ("POST", "/api/sign-in-codes"), ("POST", "/api/runs")] {
        refused(&world.request(method, path).header("origin", UI).header("cookie", &cookie).send().await);
    }
    let request = world.request("GET", "/events").header("origin", UI).header("cookie", &cookie);
    refused(&upgrade(request).await);
}

#[tokio::test]
async fn sockets_open_to_its_pages_and_to_no_others() {
    let world = world().await;
    for route in ROUTES.iter().filter(|route| is_socket(route)) {
        let ask = || world.request("GET", route.path);
        for origin in OTHERS {
            refused(&upgrade(ask().header("origin", origin)).await);
            refused(&upgrade(ask().token(TOKEN).header("origin", origin)).await);
        }
        let wrong = "redflow.token.not-the-token-of-these-tests";
        let wrong = ask().header("origin", UI).header("sec-websocket-protocol", wrong);
        upgrade(wrong).await.refused(401, "UNAUTHORIZED");
        let answer = upgrade(ask().header("origin", UI)).await;
        if route.for_redflow_ui {
            assert_eq!(answer.status, 101, "{} {answer:?}", route.path);
        } else {
            refused(&answer);
        }
    }
}

#[tokio::test]
async fn without_it_nothing_of_this_is_there() {
    let world = World::with(plain()).await;
    for route in ROUTES {
        refused(&ask(&world, route).header("origin", UI).send().await);
        refused(&ask(&world, route).token(TOKEN).header("origin", UI).send().await);
        refused(&preflight(&world, &path(route), route.method.as_str()).header("origin", UI).send().await);
        let own = format!("http://{}", world.addr);
        let answer = preflight(&world, &path(route), "GET").token(TOKEN).header("origin", &own).send().await;
        answer.refused(405, "METHOD_REFUSED");
        unreadable(&answer);
    }
}

/// Somebody whose UI is at another address sees why nothing works. What strangers send is not repeated without end.
#[tokio::test]
async fn the_operator_is_told_of_refused_origins_once_and_not_of_many() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let world = world().await;
    let told = || {
        let said = log.0.lock().unwrap().clone();
        said.lines().filter(|line| line.contains("ORIGIN_REFUSED")).map(str::to_owned).collect::<Vec<_>>()
    };
    let ask = async |path: &str, origin: &str| {
        world.request("GET", path).header("origin", origin).send().await.refused(403, "ORIGIN_REFUSED");
    };
    for _ in 0..3 {
        ask("/flows", "http://localhost:5174").await;
    }
    // Its own page at a route that is not for it is no stranger.
    ask("/api/runs", UI).await;
    let lines = told();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("http://localhost:5174") && lines[0].contains(&format!("admitted={UI:?}")),
        "{lines:?}"
    );
    ask("/flows", &"x".repeat(5000)).await;
    assert!(told()[1].len() < 500, "{:?}", told());
    for n in 0..40 {
        ask("/flows", &format!("http://{n}.example")).await;
    }
    assert_eq!(told().len(), 16);

    // Without a Redflow UI nobody waits for one.
    let plain = Setup::default().start(Some(plain())).await;
    plain.request("GET", "/flows").header("origin", UI).send().await.refused(403, "ORIGIN_REFUSED");
    assert_eq!(told().len(), 16);
}
