use super::{Host, HostPattern, PrivateHost, split_port};

fn host(text: &str) -> Host {
    Host::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

#[test]
fn reads_names_in_lower_case_and_addresses_in_their_usual_spelling() {
    assert_eq!(host("API.Example.org"), Host::Name("api.example.org".to_owned()));
    assert_eq!(host("api.example.org."), Host::Name("api.example.org".to_owned()));
    assert_eq!(host("1.2.3.4"), Host::Address([1, 2, 3, 4].into()));
    assert_eq!(host("[2a00::1]").with_port(80), "[2a00::1]:80");
    assert_eq!(host("[2a00::1]").to_string(), "2a00::1");
}

#[test]
fn refuses_hosts_with_more_than_one_reading() {
    for text in [
        "",
        ".",
        "a..b",
        ".a",
        "a..",
        "1.2.3.4.",
        "01.2.3.4",
        "1.2.3",
        "1",
        "0x7f.1",
        "a.0x7f",
        "a.1",
        "a.0x",
        "1.2.3.256",
        "[::1",
        "::1]",
        "[::01]",
        "[0:0:0:0:0:0:0:1]",
        "[::1%1]",
        "[1.2.3.4]",
        "[2A00::1]",
        "[]",
        "a b.org",
        "ä.org",
        "a%2e.org",
        "a\u{3002}org",
        "a*b.org",
        "a!.org",
        "a,b.org",
        "a\\b.org",
    ] {
        assert!(Host::parse(text).is_err(), "{text}");
    }
    assert!(Host::parse(&format!("{}.org", "a".repeat(63))).is_ok());
    assert!(Host::parse(&format!("{}.org", "a".repeat(64))).is_err());
    let long = format!("{}a", "a.".repeat(126));
    assert_eq!(long.len(), 253);
    assert!(Host::parse(&long).is_ok());
    assert!(Host::parse(&format!("a{long}")).is_err());
}

#[test]
fn a_port_is_digits_without_leading_zeros() {
    assert_eq!(split_port("a.org"), Ok(("a.org", None)));
    assert_eq!(split_port("a.org:65535"), Ok(("a.org", Some(65535))));
    assert_eq!(split_port("[::1]:80"), Ok(("[::1]", Some(80))));
    for text in
        ["a.org:", "a.org:0", "a.org:080", "a.org:65536", "a.org:+80", "a.org:8o", "a:1:2", "::1", "[::1]:"]
    {
        assert!(split_port(text).is_err(), "{text}");
    }
}

#[test]
fn patterns_match_at_label_borders() {
    let check = |pattern: &str, hosts: &[(&str, u16, bool)]| {
        let parsed = HostPattern::parse(pattern).unwrap();
        for (text, port, expected) in hosts {
            assert_eq!(parsed.matches(&host(text), *port), *expected, "{pattern} {text}:{port}");
        }
    };
    check("api.example.org", &[("api.example.org", 443, true), ("API.EXAMPLE.ORG.", 80, true)]);
    check("api.example.org", &[("x.api.example.org", 443, false), ("xapi.example.org", 443, false)]);
    check("*.example.org", &[("a.example.org", 443, true), ("a.b.example.org", 443, true)]);
    check("*.example.org", &[("example.org", 443, false), ("xexample.org", 443, false)]);
    check("example.org:8443", &[("example.org", 8443, true), ("example.org", 443, false)]);
    check("192.168.1.5:80", &[("192.168.1.5", 80, true), ("192.168.1.6", 80, false)]);
    check("[::1]", &[("[::1]", 80, true)]);
    for text in
        ["", "*", "*.", "*.1.2.3.4", "a.*.org", "https://a.org", "a.org/x", "a.org:0", "ä.org", "a@b.org"]
    {
        let problem = HostPattern::parse(text).unwrap_err();
        assert!(problem.contains("write a host"), "{text}: {problem}");
    }
}

#[test]
fn private_hosts_name_a_port_and_a_host_or_block() {
    let check = |entry: &str, text: &str, port, expected| {
        assert_eq!(
            PrivateHost::parse(entry).unwrap().names(&host(text), port),
            expected,
            "{entry} {text}:{port}"
        );
    };
    check("nas.lan:8123", "nas.lan", 8123, true);
    check("nas.lan:8123", "nas.lan", 80, false);
    check("nas.lan:8123", "x.nas.lan", 8123, false);
    check("192.168.0.0/16:80", "192.168.7.7", 80, true);
    check("192.168.0.0/16:80", "192.169.7.7", 80, false);
    check("192.168.0.0/16:80", "nas.lan", 80, false);
    check("[fd12::/16]:80", "[fd12::1]", 80, true);
    check("[::1]:80", "[::1]", 80, true);
    check("169.254.169.254:80", "169.254.169.254", 80, true);
    for entry in [
        "nas.lan",
        "nas.lan:0",
        ":80",
        "192.168.0.1/16:80",
        "192.168.0.0/33:80",
        "192.168.0.0/x:80",
        "fd12::/16:80",
        "[192.168.0.0/16]:80",
        "169.254.0.0/16:80",
        "169.254.169.0/24:80",
        "[fe80::/10]:80",
        "168.63.129.16/32:80",
        "[fd00:ec2::/64]:80",
        "*.lan:80",
        "http://nas.lan:80",
    ] {
        assert!(PrivateHost::parse(entry).is_err(), "{entry}");
    }
}
