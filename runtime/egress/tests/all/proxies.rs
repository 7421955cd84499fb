//! The operator's proxy.

use crate::kit::{
    PUBLIC, Reply, Server, client, error_of, get, new_authority, policy, raw, read, reply, rule_of,
};
use redflow_egress::{EgressError, EgressPolicy, Rule, ScriptedNet};
use std::net::{IpAddr, Ipv4Addr};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));

fn through_proxy(url: &str) -> EgressPolicy {
    policy(|settings| settings.proxy = url.to_owned())
}

fn net(port: u16) -> ScriptedNet {
    ScriptedNet::new().answer("proxy.lan", &[PROXY]).lead((PROXY, 3128).into(), port)
}

// SECURITY: egress-proxy
#[tokio::test]
async fn http_goes_to_the_proxy_in_absolute_form() {
    let proxy = Server::start(|_| reply(200, "", b"by proxy")).await;
    let (egress, net) = client(through_proxy("http://user:p%40ss@proxy.lan:3128"), net(proxy.port));
    let answer = egress.send(get("http://api.example.org/x?y=1")).await.unwrap();
    assert_eq!(read(answer).await.unwrap(), b"by proxy");
    let seen = proxy.requests().pop().unwrap();
    assert_eq!(seen.path, "http://api.example.org/x?y=1");
    assert_eq!(seen.header("proxy-authorization"), Some("Basic dXNlcjpwQHNz"));
    assert_eq!(net.lookups(), ["proxy.lan"], "the proxy looks the name up");
    // The rules up to `name` hold, and so does `address` for an address in the text.
    for (url, rule) in [
        ("http://localhost/", Rule::Name),
        ("http://127.0.0.1/", Rule::Address),
        ("http://169.254.169.254/", Rule::Address),
        ("http://api.example.org:22/", Rule::Port),
        ("http://2130706433/", Rule::Authority),
    ] {
        assert_eq!(rule_of(&egress, get(url)).await, rule, "{url}");
    }
    assert_eq!(proxy.requests().len(), 1);
    assert_eq!(egress.test("http://api.example.org/").await.unwrap().addresses, Vec::<IpAddr>::new());
}

/// A proxy that tunnels every connection to one port, and gives the head of each `CONNECT` away.
async fn tunnel(answer: &'static str, to: u16) -> (u16, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heads, received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            heads.send(String::from_utf8(head).unwrap()).unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            if answer.contains(" 200 ") {
                let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await.unwrap();
                tokio::spawn(async move { copy_bidirectional(&mut stream, &mut server).await });
            }
        }
    });
    (port, received)
}

// SECURITY: egress-proxy
#[tokio::test]
async fn https_is_tunnelled_and_only_the_server_sees_it() {
    let (pem, acceptor) = new_authority(&["api.example.org"]);
    let server = Server::start_tls(acceptor, |_| reply(200, "", b"secure")).await;
    let (port, mut heads) =
        tunnel("HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n", server.port).await;
    let policy = through_proxy("http://user:pass@proxy.lan:3128").with_extra_ca(pem.as_bytes()).unwrap();
    let (egress, net) = client(policy, net(port));
    let answer = egress.send(get("https://api.example.org/secret")).await.unwrap();
    assert_eq!(read(answer).await.unwrap(), b"secure");
    assert_eq!(
        heads.recv().await.unwrap(),
        "CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org:443\r\n\
         Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n"
    );
    let seen = server.requests().pop().unwrap();
    assert_eq!((seen.path.as_str(), seen.header("proxy-authorization")), ("/secret", None));
    assert_eq!(net.lookups(), ["proxy.lan"]);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_an_error() {
    for answer in [
        "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        "HTTP/1.1 502 Bad Gateway\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
    ] {
        let (port, _heads) = tunnel(answer, 0).await;
        let (egress, _) = client(through_proxy("http://proxy.lan:3128"), net(port));
        let error = error_of(&egress, get("https://api.example.org/")).await;
        assert!(matches!(&error, EgressError::Failed { sent: false, .. }), "{error:?}");
    }
    // An answer without an end.
    let endless =
        Server::start(|_| Reply::Endless(b"HTTP/1.1 200 X\r\n".to_vec(), b"a: b\r\n".to_vec())).await;
    let (egress, _) = client(through_proxy("http://proxy.lan:3128"), net(endless.port));
    let error = error_of(&egress, get("https://api.example.org/")).await;
    assert!(
        matches!(&error, EgressError::Failed { sent: false, reason } if reason.contains("too long")),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_proxy_itself_may_use_tls() {
    let (pem, acceptor) = new_authority(&["proxy.lan"]);
    let proxy = Server::start_tls(acceptor, |_| Reply::Close(raw(200, "", b"by proxy"))).await;
    let policy = through_proxy("https://proxy.lan:3128").with_extra_ca(pem.as_bytes()).unwrap();
    let (egress, _) = client(policy, net(proxy.port));
    let answer = egress.send(get("http://api.example.org/")).await.unwrap();
    assert_eq!(read(answer).await.unwrap(), b"by proxy");
}

#[tokio::test]
async fn the_environment_names_no_proxy() {
    // Only the setting does. The variables of the process are not read: the request goes to the address itself.
    let server = Server::start(|_| reply(200, "", b"direct")).await;
    let net = ScriptedNet::new().answer("api.example.org", &[PUBLIC]).lead((PUBLIC, 80).into(), server.port);
    let (egress, net) = client(policy(|_| ()), net);
    read(egress.send(get("http://api.example.org/")).await.unwrap()).await.unwrap();
    assert_eq!(net.dials(), vec![(PUBLIC, 80).into()]);
}

#[test]
fn a_wrong_proxy_is_a_problem_of_the_settings() {
    for url in
        ["proxy:3128", "socks5://proxy", "http://proxy/path", "http://proxy?x", "http://", "http://proxy:0"]
    {
        let settings = redflow_egress::EgressSettings { proxy: url.to_owned(), ..Default::default() };
        assert_eq!(EgressPolicy::new(&settings).unwrap_err()[0].key, "proxy", "{url}");
    }
}
