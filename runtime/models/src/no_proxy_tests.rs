use super::NoProxy;

fn list(entries: &[&str]) -> Option<NoProxy> {
    NoProxy::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>())
}

#[test]
fn hosts_that_are_reached_without_a_proxy() {
    for (entry, inside, outside) in [
        (
            "example.org",
            &["http://example.org", "https://a.b.EXAMPLE.org:8443/x", "http://example.org."][..],
            &["http://notexample.org", "http://example.org.net", "http://org", "http://1.2.3.4"][..],
        ),
        (".example.org", &["http://example.org", "http://a.example.org"], &["http://notexample.org"]),
        ("*.example.org.", &["http://example.org", "http://a.example.org"], &["http://notexample.org"]),
        (
            " Example.ORG:8080 ",
            &["http://a.example.org:8080"],
            &["http://example.org", "http://example.org:80"],
        ),
        ("example.org:443", &["https://example.org"], &["http://example.org", "https://example.org:444"]),
        (
            "münchen.example",
            &["http://xn--mnchen-3ya.example", "http://www.münchen.example"],
            &["http://munchen.example"],
        ),
        ("host_1", &["http://host_1:1880"], &["http://host_2"]),
        (
            "10.1.2.3",
            &["http://10.1.2.3:1", "http://[::ffff:10.1.2.3]"],
            &["http://10.1.2.4", "http://10.1.2.3.example"],
        ),
        ("10.1.2.3:80", &["http://10.1.2.3"], &["https://10.1.2.3"]),
        ("10.0.0.0/8", &["http://10.255.0.1"], &["http://11.0.0.1", "http://[a00::]", "http://ten.example"]),
        ("10.1.2.3/32", &["http://10.1.2.3"], &["http://10.1.2.2"]),
        ("0.0.0.0/0", &["http://1.2.3.4"], &["http://[::1]", "http://example.org"]),
        ("fd00::1", &["http://[fd00::1]:5"], &["http://[fd00::2]"]),
        ("[fd00::1]:5", &["http://[fd00::1]:5"], &["http://[fd00::1]"]),
        ("fd00::/8", &["http://[fdff::9]"], &["http://[fe80::1]", "http://253.0.0.1"]),
        ("::/0", &["http://[::1]"], &["http://1.2.3.4"]),
        ("*", &["http://example.org", "https://1.2.3.4", "http://[::1]:7"], &["data:text/plain,a"]),
    ] {
        let list = list(&[entry]).unwrap();
        for (urls, expected) in [(inside, true), (outside, false)] {
            for url in urls {
                assert_eq!(list.contains(&url.parse().unwrap()), expected, "{entry} {url}");
            }
        }
    }
    let both = list(&["a.example", "b.example"]).unwrap();
    assert!(both.contains(&"http://b.example".parse().unwrap()));
    assert!(!NoProxy::default().contains(&"http://b.example".parse().unwrap()));
}

#[test]
fn other_entries_are_refused() {
    for entry in [
        "",
        " ",
        ".",
        "*.",
        "*:80",
        "a b",
        "a.example:",
        "a.example:x",
        "a.example:70000",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "a.example/8",
        "fd00::/129",
        "[10.0.0.1]",
        "[fd00::1",
        "http://a.example",
        "a.example,b.example",
        "user@a.example",
        "10.0.0.0/8:80",
    ] {
        assert_eq!(list(&["a.example", entry]), None, "{entry}");
    }
}
