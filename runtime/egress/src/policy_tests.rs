use super::{EgressPolicy, MAX_ANSWERS, MAX_SETTING_ENTRIES};
use crate::host::Host;
use crate::{EgressSettings, Rule};
use pretty_assertions::assert_eq;
use std::net::IpAddr;

fn settings(change: impl FnOnce(&mut EgressSettings)) -> EgressSettings {
    let mut settings = EgressSettings::default();
    change(&mut settings);
    settings
}

fn policy(change: impl FnOnce(&mut EgressSettings)) -> EgressPolicy {
    EgressPolicy::new(&settings(change)).unwrap()
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn rule_of(policy: &EgressPolicy, url: &str) -> Option<Rule> {
    policy.judge(url).err().map(|refusal| refusal.rule)
}

fn answer_rule(policy: &EgressPolicy, host: &str, port: u16, answers: &[&str]) -> Option<Rule> {
    let answers: Vec<IpAddr> = answers.iter().map(|text| text.parse().unwrap()).collect();
    let host = Host::parse(host).unwrap();
    policy.judge_answers(&host, port, &answers).err().map(|refusal| refusal.rule)
}

fn unescape(text: &str) -> String {
    text.replace('␠', " ").replace('␉', "\t").replace('␍', "\r").replace('␊', "\n").replace('␀', "\0")
}

// SECURITY: egress-text
#[test]
fn refuses_the_corpus_of_hostile_addresses_by_the_right_rule() {
    let policy = policy(|_| ());
    let lines = include_str!("../tests/corpus/hostile-urls.txt").lines();
    let mut count = 0;
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (rule, url) = line.split_once(' ').unwrap();
        let refusal = policy.judge(&unescape(url)).map(|judged| judged.url).unwrap_err();
        assert_eq!(refusal.rule.as_str(), rule, "{url}: {refusal}");
        count += 1;
    }
    assert!(count > 150, "{count}");
}

#[test]
fn allows_plain_addresses() {
    let policy = policy(|_| ());
    for line in include_str!("../tests/corpus/plain-urls.txt").lines().filter(|line| !line.starts_with('#')) {
        let (url, host) = line.split_once(' ').unwrap();
        let judged = policy.judge(url).unwrap_or_else(|refusal| panic!("{url}: {refusal}"));
        assert_eq!(judged.host.to_string(), host, "{url}");
    }
}

// SECURITY: egress-policy
#[test]
fn the_operator_chooses_schemes_ports_and_hosts() {
    let policy = policy(|settings| {
        settings.schemes = texts(&["https"]);
        settings.ports = vec![443, 8443];
        settings.allow = texts(&["*.example.org", "example.net:443"]);
        settings.deny = texts(&["secret.example.org"]);
    });
    let check = |url: &str, rule: Option<Rule>| assert_eq!(rule_of(&policy, url), rule, "{url}");
    check("https://a.example.org/", None);
    check("https://a.example.org:8443/", None);
    check("https://example.net/", None);
    check("http://a.example.org/", Some(Rule::Scheme));
    check("https://a.example.org:80/", Some(Rule::Port));
    check("https://example.org/", Some(Rule::Name));
    check("https://example.net:8443/", Some(Rule::Name));
    check("https://secret.example.org/", Some(Rule::Name));
    check("https://8.8.8.8/", Some(Rule::Name));
}

// SECURITY: egress-private
#[test]
fn a_private_host_is_exempt_at_its_port_only() {
    let policy = policy(|settings| {
        settings.schemes = texts(&["https"]);
        settings.private = texts(&["nas.lan:8123", "localhost:1880", "192.168.0.0/16:80", "[::1]:80"]);
    });
    let check = |url: &str, rule: Option<Rule>| assert_eq!(rule_of(&policy, url), rule, "{url}");
    check("http://nas.lan:8123/", None);
    check("http://NAS.LAN.:8123/", None);
    check("http://localhost:1880/", None);
    check("http://192.168.7.7/", None);
    check("http://[::1]/", None);
    check("https://nas.lan/", Some(Rule::Name));
    check("https://nas.lan:8124/", Some(Rule::Port));
    check("http://x.nas.lan:8123/", Some(Rule::Scheme));
    check("https://192.168.7.7/", Some(Rule::Address));
    check("http://127.0.0.1:1880/", Some(Rule::Scheme));
}

// SECURITY: egress-private
#[test]
fn every_answer_is_judged() {
    let policy =
        policy(|settings| settings.private = texts(&["nas.lan:80", "10.0.0.0/8:80", "169.254.1.1:80"]));
    let check = |host, port, answers: &[&str], rule| {
        assert_eq!(answer_rule(&policy, host, port, answers), rule, "{host}:{port} {answers:?}");
    };
    check("example.org", 443, &["93.184.216.34", "2606:4700:4700::1111"], None);
    check("example.org", 443, &["93.184.216.34", "127.0.0.1"], Some(Rule::Address));
    check("example.org", 443, &["64:ff9b::c0a8:101"], Some(Rule::Address));
    check("example.org", 443, &[], Some(Rule::Address));
    check("example.org", 443, &["8.8.8.8"; MAX_ANSWERS], None);
    check("example.org", 443, &["8.8.8.8"; MAX_ANSWERS + 1], Some(Rule::Address));
    check("nas.lan", 80, &["192.168.1.5", "fd12::1"], None);
    check("nas.lan", 81, &["192.168.1.5"], Some(Rule::Address));
    // A name never brings link-local addresses or endpoints of clouds along.
    check("nas.lan", 80, &["169.254.169.254"], Some(Rule::Address));
    check("nas.lan", 80, &["168.63.129.16"], Some(Rule::Address));
    check("nas.lan", 80, &["169.254.1.1"], None);
    check("nas.lan", 80, &["::ffff:169.254.1.1"], Some(Rule::Address));
    // Any name may lead to an address that the operator allows.
    check("example.org", 80, &["10.1.2.3"], None);
    check("example.org", 443, &["10.1.2.3"], Some(Rule::Address));
}

#[test]
fn a_refusal_says_what_an_operator_would_write() {
    let policy = policy(|settings| settings.allow = texts(&["*.example.org"]));
    let check = |url: &str, allow: Option<&str>| {
        let refusal = policy.judge(url).unwrap_err();
        assert_eq!(refusal.allow.as_deref(), allow, "{url}");
    };
    check("http://nas.lan:8123/x", Some("add `nas.lan:8123` to `[egress] private`"));
    check("http://printer/", Some("add `printer:80` to `[egress] private`"));
    check("http://[fd12::1]:8123/", Some("add `[fd12::1]:8123` to `[egress] private`"));
    check("http://a.example.org:8080/", Some("add `8080` to `[egress] ports`"));
    check("https://example.net/", Some("add `example.net:443` to `[egress] allow`"));
    check("https://user@example.net/", None);
    let text = policy.judge("http://nas.lan/").unwrap_err().to_string();
    assert_eq!(
        text,
        "the request is refused by the rule `name`: nas.lan ends with the local or reserved name lan; an operator \
         can allow it: add `nas.lan:80` to `[egress] private`, start the sidecar with `--allow-private nas.lan:80`, or \
         fill in the private hosts of the node redflow-runtime"
    );
    let host = Host::parse("example.org").unwrap();
    let refusal = policy.judge_answers(&host, 443, &["169.254.169.254".parse().unwrap()]).unwrap_err();
    assert_eq!((refusal.allow.as_deref(), refusal.to_string().contains("169.254")), (None, false));
    let shown = refusal.for_operator();
    assert_eq!(shown.allow.as_deref(), Some("add `169.254.169.254:443` to `[egress] private`"));
    assert!(shown.reason.ends_with("metadata and keys: 169.254.169.254"), "{shown}");
    let refusal = policy.judge_answers(&host, 443, &["10.0.0.1".parse().unwrap()]).unwrap_err();
    assert_eq!(refusal.reason, "the address of example.org is a private address");
    assert_eq!(refusal.allow_private.as_deref(), Some("example.org:443"));
    let shown = refusal.for_operator();
    assert_eq!(shown.reason, "the address of example.org is a private address: 10.0.0.1");
    assert_eq!(shown.allow.as_deref(), Some("add `example.org:443` to `[egress] private`"));
}

/// What a refusal says to write does allow the request.
#[test]
fn what_a_refusal_says_works() {
    for url in [
        "http://nas.lan:8123/",
        "http://printer/",
        "http://127.0.0.1:1880/",
        "http://[::1]/",
        "http://169.254.169.254/",
    ] {
        let refusal = policy(|_| ()).judge(url).unwrap_err();
        let allowed = policy(|settings| settings.private = vec![refusal.allow_private.unwrap()]);
        assert_eq!(rule_of(&allowed, url), None, "{url}");
    }
}

#[test]
fn reports_all_problems_of_the_settings_at_once() {
    let bad = settings(|settings| {
        settings.schemes = texts(&["ftp"]);
        settings.ports = vec![0];
        settings.allow = texts(&["https://a.org", "b.org"]);
        settings.deny = texts(&["*"]);
        settings.private = texts(&["nas.lan", "169.254.0.0/16:80"]);
        settings.proxy = "socks5://user:hunter2@proxy".to_owned();
        settings.max_body_bytes = 0;
    });
    let problems = EgressPolicy::new(&bad).unwrap_err();
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["schemes", "ports", "allow", "deny", "private", "private", "proxy", "max_body_bytes"]);
    for problem in &problems {
        assert!(!problem.fix.is_empty() && !problem.to_string().contains("hunter2"), "{problem}");
    }
}

#[test]
fn lists_of_the_settings_are_bounded() {
    let many = |count: usize| (0..count).map(|n| format!("h{n}.example.org")).collect::<Vec<_>>();
    assert!(EgressPolicy::new(&settings(|settings| settings.deny = many(MAX_SETTING_ENTRIES))).is_ok());
    assert!(EgressPolicy::new(&settings(|settings| settings.deny = many(MAX_SETTING_ENTRIES + 1))).is_err());
    assert!(
        EgressPolicy::new(&settings(|settings| settings.ports = vec![80; MAX_SETTING_ENTRIES + 1])).is_err()
    );
}

#[test]
fn debug_output_shows_no_password_of_the_proxy() {
    let policy = policy(|settings| settings.proxy = "http://user:hunter2@proxy.example.org:3128".to_owned());
    assert!(!format!("{policy:?}").contains("hunter2"));
}

#[test]
fn settings_are_read_with_their_defaults_and_unknown_keys_are_refused() {
    let read: EgressSettings = toml::from_str("private = [\"nas.lan:8123\"]").unwrap();
    assert_eq!(read, settings(|settings| settings.private = texts(&["nas.lan:8123"])));
    assert!(toml::from_str::<EgressSettings>("privat = []").is_err());
}
