//! What is refused reaches no server.

use crate::kit::{OTHER, PUBLIC, Server, client, error_of, get, net, policy, private, read, reply, rule_of};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redflow_egress::{Egress, EgressError, HostPattern, Rule, ScriptedNet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A server that must hear nothing.
async fn canary() -> Server {
    Server::start(|_| reply(200, "", b"reached")).await
}

fn unescape(text: &str) -> String {
    text.replace('␠', " ").replace('␉', "\t").replace('␍', "\r").replace('␊', "\n").replace('␀', "\0")
}

// SECURITY: egress-silent
#[tokio::test]
async fn the_real_network_hears_nothing_of_refused_addresses() {
    let canary = canary().await;
    let egress = Egress::new(policy(|settings| settings.ports.push(canary.port)));
    let port = canary.port;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://localhost.:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://api.example.org@127.0.0.1:{port}/"),
    ] {
        assert!(matches!(error_of(&egress, get(&url)).await, EgressError::Refused(_)), "{url}");
    }
    assert_eq!(canary.connections(), 0);
    // The same server, once it is allowed: the canary can hear.
    let egress = Egress::new(private(&[&format!("127.0.0.1:{port}")]));
    let answer = egress.send(get(&format!("http://127.0.0.1:{port}/"))).await.unwrap();
    assert_eq!(read(answer).await.unwrap(), b"reached");
    let egress = Egress::new(private(&[&format!("localhost:{port}")]));
    assert!(egress.send(get(&format!("http://localhost:{port}/"))).await.is_ok());
    assert_eq!(canary.connections(), 2);
}

// SECURITY: egress-silent
#[tokio::test]
async fn nothing_of_the_corpus_is_looked_up_or_dialled() {
    let (egress, net) = client(policy(|_| ()), ScriptedNet::new());
    for line in include_str!("../corpus/hostile-urls.txt").lines() {
        let Some((rule, url)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else { continue };
        assert_eq!(rule_of(&egress, get(&unescape(url))).await.as_str(), rule, "{url}");
    }
    assert!(net.lookups().is_empty() && net.dials().is_empty());
}

// SECURITY: egress-address
#[tokio::test]
async fn names_that_resolve_to_inside_are_refused() {
    let server = canary().await;
    let inside: Vec<IpAddr> = include_str!("../corpus/special-addresses.txt")
        .lines()
        .filter_map(|line| line.split('#').next()?.trim().parse().ok())
        .collect();
    assert!(inside.len() > 90);
    for address in inside {
        // Alone, and hidden among public addresses.
        for answers in [vec![address], vec![PUBLIC, address], vec![address, PUBLIC]] {
            let net = ScriptedNet::new()
                .answer("api.example.org", &answers)
                .lead((PUBLIC, 80).into(), server.port)
                .lead((address, 80).into(), server.port);
            let (egress, net) = client(policy(|_| ()), net);
            assert_eq!(rule_of(&egress, get("http://api.example.org/")).await, Rule::Address, "{address}");
            assert_eq!(egress.test("http://api.example.org/").await.unwrap_err().rule, Rule::Address);
            assert!(net.dials().is_empty());
        }
    }
    assert_eq!(server.connections(), 0);
}

// SECURITY: egress-connect
#[tokio::test]
async fn an_answer_that_changes_is_judged_again_for_each_connection() {
    let server =
        Server::start(|_| crate::kit::Reply::Close(crate::kit::raw(200, "connection: close\r\n", b"x")))
            .await;
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let net = net(&server)
        .answer("api.example.org", &[loopback])
        .answer("api.example.org", &[OTHER, PUBLIC])
        .lead((loopback, 80).into(), server.port);
    let (egress, net) = client(policy(|_| ()), net);
    let url = "http://api.example.org/";
    assert_eq!(read(egress.send(get(url)).await.unwrap()).await.unwrap(), b"x");
    assert_eq!(rule_of(&egress, get(url)).await, Rule::Address);
    // The first address does not answer, the second one does: no second lookup.
    assert_eq!(read(egress.send(get(url)).await.unwrap()).await.unwrap(), b"x");
    assert_eq!(net.lookups().len(), 3);
    let dials: Vec<SocketAddr> = vec![(PUBLIC, 80).into(), (OTHER, 80).into(), (PUBLIC, 80).into()];
    assert_eq!(net.dials(), dials);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_test_looks_up_and_dials_nothing() {
    let server = canary().await;
    let (egress, net) = client(policy(|_| ()), net(&server));
    let judged = egress.test("https://API.example.org./x?key=1").await.unwrap();
    assert_eq!((judged.scheme, judged.host.as_str(), judged.port), ("https", "api.example.org", 443));
    assert_eq!((judged.is_private, judged.addresses), (false, vec![PUBLIC]));
    assert_eq!(egress.test("https://unknown.example.org/").await.unwrap_err().rule, Rule::Address);
    assert!(egress.judge("https://unknown.example.org/").is_ok());
    assert_eq!(net.lookups().len(), 2);
    assert!(net.dials().is_empty());
}

/// A model that could read them would map the network.
// SECURITY: egress-address
#[tokio::test]
async fn only_the_operator_reads_the_address_of_a_name() {
    for (address, allow) in [
        ("10.1.2.3", "add `evil.example.org:80` to `[egress] private`"),
        ("169.254.169.254", "add `169.254.169.254:80` to `[egress] private`"),
    ] {
        let net = ScriptedNet::new().answer("evil.example.org", &[address.parse().unwrap()]);
        let (egress, _) = client(policy(|_| ()), net);
        let error = error_of(&egress, get("http://evil.example.org/")).await;
        assert_eq!(error.verdict(), "address");
        assert!(!error.to_string().contains(address), "{error}");
        let refusal = egress.test("http://evil.example.org/").await.unwrap_err();
        assert!(refusal.reason.ends_with(address), "{refusal}");
        assert_eq!(refusal.allow.as_deref(), Some(allow));
    }
}

// SECURITY: egress-policy
#[tokio::test]
async fn a_flow_only_narrows() {
    let server = canary().await;
    let (egress, net) = client(policy(|_| ()), net(&server));
    let mut request = get("http://api.example.org/");
    request.hosts = Some(vec![HostPattern::parse("*.example.net").unwrap()]);
    assert_eq!(rule_of(&egress, request.clone()).await, Rule::Name);
    assert!(net.lookups().is_empty());
    request.hosts = Some(vec![HostPattern::parse("api.example.org").unwrap()]);
    assert!(egress.send(request).await.is_ok());
    let mut request = get("http://127.0.0.1/");
    request.hosts = Some(vec![HostPattern::parse("127.0.0.1").unwrap()]);
    assert_eq!(rule_of(&egress, request).await, Rule::Address, "a flow allows nothing");
}

/// Whether an address is outside of the public internet, without the tables of the crate.
fn is_inside(address: IpAddr) -> bool {
    let inside_v4 = |v4: Ipv4Addr| {
        v4.is_loopback()
            || v4.is_private()
            || v4.is_link_local()
            || v4.is_multicast()
            || v4.is_unspecified()
            || v4.octets()[0] >= 240
            || (v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64)
    };
    match address {
        IpAddr::V4(v4) => inside_v4(v4),
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                inside_v4(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)))
            }
            [first, ..] => first & 0xe000 != 0x2000 || first == 0x2002,
        },
    }
}

fn hosts() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<u8>().prop_map(|n| n.to_string()),
        any::<u8>().prop_map(|n| format!("0x{n:x}")),
        any::<u8>().prop_map(|n| format!("0{n:o}")),
        any::<u32>().prop_map(|n| n.to_string()),
    ];
    let numbers = prop::collection::vec(number, 1..5).prop_map(|parts| parts.join("."));
    let v4 = prop_oneof![
        any::<u32>().prop_map(Ipv4Addr::from_bits),
        prop::sample::select(vec![[127, 0, 0, 1], [10, 1, 2, 3], [169, 254, 169, 254]])
            .prop_map(Ipv4Addr::from),
    ];
    let v6 = prop_oneof![
        any::<[u16; 8]>().prop_map(|segments| Ipv6Addr::from(segments).to_string()),
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).to_ipv6_mapped().to_string()),
        any::<u32>().prop_map(|bits| format!("64:ff9b::{:x}:{:x}", bits >> 16, bits & 0xffff)),
        "[0-9a-f:.%]{1,20}",
    ];
    prop_oneof![
        numbers,
        v4.prop_map(|address| address.to_string()),
        v6.prop_map(|address| format!("[{address}]")),
        "[a-z0-9.%@:_-]{1,20}",
        "[a-z]{1,8}\\.example\\.org",
        any::<String>(),
    ]
}

/// No address that a stranger writes, and no answer of a resolver, leads inside.
// SECURITY: egress-silent
#[test]
fn no_fuzzed_address_reaches_a_special_address() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers = prop::collection::vec(
        prop_oneof![
            any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
            any::<[u16; 8]>().prop_map(|segments| IpAddr::V6(segments.into())),
            any::<u32>().prop_map(|bits| IpAddr::V6(Ipv4Addr::from_bits(bits).to_ipv6_mapped())),
            prop::sample::select(vec![
                PUBLIC,
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST)
            ]),
        ],
        0..3,
    );
    let parts = (
        prop::sample::select(vec!["http://", "http://", "https://", "http:/", ""]),
        hosts(),
        "[/?#:@]?[ -~]{0,6}",
    );
    let dialled = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(2000) });
    runner
        .run(&(parts, answers), |((scheme, host, rest), answers)| {
            // The name and what `url` makes of it have the same answers.
            let net = ScriptedNet::new().answer(&host, &answers).answer(&host.to_ascii_lowercase(), &answers);
            let (egress, net) = client(policy(|_| ()), net);
            let _ = runtime.block_on(egress.send(get(&format!("{scheme}{host}{rest}"))));
            for address in net.dials() {
                dialled.set(dialled.get() + 1);
                prop_assert!(!is_inside(address.ip()), "{}", address);
            }
            Ok(())
        })
        .unwrap();
    assert!(dialled.get() > 10, "the test reaches the dialler: {}", dialled.get());
}
