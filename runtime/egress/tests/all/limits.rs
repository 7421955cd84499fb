//! Time and number of calls. No test depends on how long something takes, except that nothing hangs.

use crate::kit::{
    OTHER, PUBLIC, Reply, Server, after_answer, client, error_of, get, net, policy, post, read, reply,
};
use redflow_egress::{
    Dial, Dialled, Egress, EgressError, EgressRequest, MAX_CALLS_PER_HOST, MAX_DIALS, NetFuture, ScriptedNet,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(200);

fn short(request: EgressRequest) -> EgressRequest {
    EgressRequest { timeout: SHORT, ..request }
}

// SECURITY: egress-limits
#[tokio::test]
async fn one_deadline_holds_for_the_whole_call() {
    for bytes in ["", "HTTP/1.1 200 X\r\n", "HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf"] {
        let server = Server::start(move |_| Reply::Hang(bytes.as_bytes().to_vec())).await;
        let (egress, _) = client(policy(|_| ()), net(&server));
        let error = error_of(&egress, short(post("http://api.example.org/", "x"))).await;
        assert_eq!(error, EgressError::TimedOut { sent: true });
    }
    // Redirects do not begin it again.
    let server = Server::start(|request| match request.path.as_str() {
        "/" => reply(302, "location: /slow\r\n", b""),
        _ => Reply::Hang(Vec::new()),
    })
    .await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let error = error_of(&egress, short(get("http://api.example.org/"))).await;
    assert_eq!(after_answer(error), (Some(302), EgressError::TimedOut { sent: true }));
}

/// A dialler that never gets a connection, and counts.
#[derive(Default)]
struct Silence(Mutex<Vec<SocketAddr>>);

impl Dial for Silence {
    fn dial(&self, address: SocketAddr) -> NetFuture<'_, Dialled> {
        self.0.lock().unwrap().push(address);
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_leaves_time_for_its_other_addresses() {
    let addresses: Vec<IpAddr> = (1..=5).map(|n| IpAddr::V4(Ipv4Addr::new(93, 184, 216, n))).collect();
    let net = ScriptedNet::new().answer("api.example.org", &addresses);
    let silence = Arc::new(Silence::default());
    let egress = Egress::with_net(policy(|_| ()), Arc::new(net), silence.clone());
    let error = error_of(&egress, post("http://api.example.org/", "x")).await;
    assert!(matches!(&error, EgressError::Failed { sent: false, .. }), "{error:?}");
    let dialled: Vec<IpAddr> = silence.0.lock().unwrap().iter().map(SocketAddr::ip).collect();
    assert_eq!(dialled, addresses[..MAX_DIALS]);
    // The deadline of the call may come first.
    let error = error_of(&egress, short(post("http://api.example.org/", "x"))).await;
    assert_eq!(error, EgressError::TimedOut { sent: false });
}

#[tokio::test]
async fn an_error_says_whether_a_byte_was_sent() {
    let net = ScriptedNet::new().answer("api.example.org", &[PUBLIC]);
    let (egress, _) = client(policy(|_| ()), net);
    let not_sent = |error: &EgressError, part: &str| matches!(error, EgressError::Failed { sent: false, reason } if reason.contains(part));
    let error = error_of(&egress, post("http://api.example.org/", "x")).await;
    assert!(not_sent(&error, "refused the connection"), "{error:?}");
    assert_eq!(error.verdict(), "failed");
    let error = error_of(&egress, post("http://127.0.0.1/", "x")).await;
    assert_eq!(error.verdict(), "address");
    let error = error_of(&egress, post("http://unknown.example.org/", "x")).await;
    assert!(not_sent(&error, "cannot be looked up"), "{error:?}");
    // The server reads the request and disconnects.
    let server = Server::start(|_| Reply::Close(Vec::new())).await;
    let (egress, _) = client(policy(|_| ()), crate::kit::net(&server));
    let error = error_of(&egress, post("http://api.example.org/", "x")).await;
    assert!(matches!(error, EgressError::Failed { sent: true, .. }), "{error:?}");
    // A request that may change something has a connection of its own, so no byte of another one counts.
    let server = Server::start(|request| match request.path.as_str() {
        "/first" => reply(200, "", b"ok"),
        _ => Reply::Close(Vec::new()),
    })
    .await;
    let (egress, _) = client(policy(|_| ()), crate::kit::net(&server));
    read(egress.send(get("http://api.example.org/first")).await.unwrap()).await.unwrap();
    for used in 2..4 {
        let error = error_of(&egress, post("http://api.example.org/second", "x")).await;
        assert!(matches!(error, EgressError::Failed { sent: true, .. }), "{error:?}");
        assert_eq!(server.connections(), used);
    }
    read(egress.send(post("http://api.example.org/first", "x")).await.unwrap()).await.unwrap();
    read(egress.send(post("http://api.example.org/first", "x")).await.unwrap()).await.unwrap();
    assert_eq!(server.connections(), 5);
    read(egress.send(get("http://api.example.org/first")).await.unwrap()).await.unwrap();
    assert_eq!(server.connections(), 5, "a GET uses the open one");
}

// SECURITY: egress-limits
#[tokio::test]
async fn calls_to_a_host_wait_for_each_other_and_not_for_ever() {
    let server = Server::start(|request| match request.path.as_str() {
        "/slow" => Reply::Hang(b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf".to_vec()),
        _ => reply(200, "", b"ok"),
    })
    .await;
    let net = net(&server).answer("www.example.net", &[OTHER]).lead((OTHER, 80).into(), server.port);
    let (egress, _) = client(policy(|_| ()), net);
    let mut open = Vec::new();
    for _ in 0..MAX_CALLS_PER_HOST {
        open.push(egress.send(get("http://api.example.org/slow")).await.unwrap());
    }
    let error = error_of(&egress, short(post("http://api.example.org/", "x"))).await;
    assert_eq!(error, EgressError::TimedOut { sent: false }, "waiting counts against the time of the call");
    assert!(egress.send(get("http://www.example.net/")).await.is_ok(), "another host does not wait");
    // A body that is dropped gives its slot back.
    open.pop();
    assert!(egress.send(get("http://api.example.org/")).await.is_ok());
}

#[tokio::test]
async fn a_finished_call_gives_its_connection_back() {
    let server = Server::start(|_| reply(200, "", b"ok")).await;
    let (egress, net) = client(policy(|_| ()), net(&server));
    for _ in 0..20 {
        read(egress.send(get("http://api.example.org/")).await.unwrap()).await.unwrap();
    }
    assert_eq!((server.connections(), net.lookups().len()), (1, 1));
    // Another spelling of the same origin uses it, another port or scheme does not.
    read(egress.send(get("http://API.example.org.:80/")).await.unwrap()).await.unwrap();
    assert_eq!(server.connections(), 1);
    let _ = egress.send(get("https://api.example.org/")).await;
    let _ = egress.send(get("http://api.example.org:443/")).await;
    assert_eq!(net.lookups().len(), 3);
}
