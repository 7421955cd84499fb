use super::Place;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;

fn place(bound: &str, hosts: &[&str], origins: &[&str], https: bool) -> Place {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    Place::new(bound.parse().unwrap(), &texts(hosts), &texts(origins), https).unwrap()
}

fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
    let value = |value: &&[u8]| (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
    values.iter().map(value).collect()
}

/// The hosts of `asked` that are answered to.
fn answered<'a>(place: &Place, asked: &[&'a str]) -> Vec<&'a str> {
    let uri = Uri::from_static("/");
    let is_answered = |host: &&&str| match place.check_host(&uri, &headers("host", &[host.as_bytes()])) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.code, ProblemCode::Api(ApiCode::HostRefused));
            false
        }
    };
    asked.iter().filter(is_answered).copied().collect()
}

#[test]
fn a_loopback_listener_answers_to_loopback_names_with_its_port() {
    let here = place("127.0.0.1:1881", &[], &[], false);
    let good = ["127.0.0.1:1881", "localhost:1881", "LOCALHOST:1881", "[::1]:1881"];
    assert_eq!(answered(&here, &good), good);
    let bad = [
        "",
        "localhost",
        "127.0.0.1",
        "localhost:1882",
        "localhost:01881",
        "localhost:1881 ",
        "localhost.:1881",
        "evil.example:1881",
        "localhost:1881.evil.example",
        "user@localhost:1881",
        "127.0.0.2:1881",
        "127.1:1881",
        "0.0.0.0:1881",
        "[::]:1881",
        "::1:1881",
        "localhost:1881, localhost:1881",
        "http://localhost:1881",
    ];
    assert_eq!(answered(&here, &bad), [""; 0]);
}

#[test]
fn other_listeners_answer_to_their_own_address_and_to_what_is_configured() {
    let asked = [
        "10.0.0.5:80",
        "10.0.0.5",
        "localhost",
        "localhost:80",
        "0.0.0.0:80",
        "[::]:80",
        "flows.example",
        "flows.example:80",
        "[fd00::5]:80",
    ];
    let near = ["localhost", "localhost:80"];
    assert_eq!(answered(&place("0.0.0.0:80", &[], &[], false), &asked), near);
    assert_eq!(answered(&place("[::]:80", &[], &[], false), &asked), near);
    let own = place("10.0.0.5:80", &[], &[], false);
    assert_eq!(answered(&own, &asked), ["10.0.0.5:80", "10.0.0.5", "localhost", "localhost:80"]);
    let six = place("[fd00::5]:80", &["Flows.Example"], &[], false);
    assert_eq!(answered(&six, &asked), ["localhost", "localhost:80", "flows.example", "[fd00::5]:80"]);
}

#[test]
fn a_host_is_named_once_and_so_is_that_of_the_request_line() {
    let here = place("127.0.0.1:1881", &[], &[], false);
    let check =
        |uri: &str, hosts: &[&[u8]]| here.check_host(&uri.parse().unwrap(), &headers("host", hosts)).is_ok();
    assert!(check("/", &[b"localhost:1881"]));
    assert!(check("http://localhost:1881/x", &[b"127.0.0.1:1881"]));
    assert!(!check("/", &[]));
    assert!(!check("/", &[b"localhost:1881", b"localhost:1881"]));
    assert!(!check("/", &[b"localhost:1881\xff"]));
    assert!(!check("http://evil.example/x", &[b"localhost:1881"]));
    assert!(!check("http://localhost:1881/x", &[b"evil.example"]));
    assert!(!check("http://user@localhost:1881/x", &[b"localhost:1881"]));
    assert!(!check("evil.example:443", &[b"localhost:1881"]));
}

#[test]
fn pages_of_our_own_and_of_configured_origins_are_admitted() {
    let here = place(
        "127.0.0.1:1881",
        &["flows.example"],
        &["https://UI.example:443", "http://ui.local:8080"],
        true,
    );
    let check = |origins: &[&[u8]]| {
        here.check_origin(&headers("origin", origins)).map_err(|error| {
            assert_eq!(error.code, ProblemCode::Api(ApiCode::OriginRefused));
            error.message
        })
    };
    assert_eq!(check(&[]), Ok(false));
    for good in [
        "http://127.0.0.1:1881",
        "http://localhost:1881",
        "http://[::1]:1881",
        "https://flows.example",
        "https://ui.example",
        "http://ui.local:8080",
    ] {
        assert_eq!(check(&[good.as_bytes()]), Ok(true), "{good}");
    }
    for bad in [
        "",
        "null",
        "http://localhost",
        "http://localhost:3000",
        "https://localhost:1881",
        "http://flows.example",
        "https://flows.example/",
        "https://flows.example.evil.example",
        "https://evil.example",
        "http://ui.local",
        "file://",
        "http://localhost:1881 http://evil.example",
        "http://localhost:1881, http://localhost:1881",
    ] {
        assert!(check(&[bad.as_bytes()]).is_err(), "{bad}");
    }
    assert!(check(&[b"http://localhost:1881", b"http://localhost:1881"]).is_err());
    let plain = place("127.0.0.1:1881", &["flows.example"], &[], false);
    assert_eq!(plain.check_origin(&headers("origin", &[b"http://flows.example"])), Ok(true));
    assert!(plain.check_origin(&headers("origin", &[b"https://flows.example"])).is_err());
}

#[test]
fn an_error_shows_little_of_what_a_stranger_sent() {
    let here = place("127.0.0.1:1881", &[], &[], false);
    // A header value cannot hold control characters at all; what is over 127 it can.
    let long = [b"a\xff\xe9".as_slice(), &[b'x'; 5000]].concat();
    let error = here.check_origin(&headers("origin", &[&long])).unwrap_err();
    assert!(error.message.len() < 300 && error.message.contains("`a??xx"), "{error:?}");
}

#[test]
fn what_cannot_be_a_host_or_an_origin_is_refused_at_once() {
    let one = |hosts: &[&str], origins: &[&str]| {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let made = Place::new("127.0.0.1:1881".parse().unwrap(), &texts(hosts), &texts(origins), false);
        made.map(|_| ()).map_err(|error| error.code)
    };
    for host in ["a.example", "a.example:8443", "10.0.0.1", "[fd00::1]:80", "a_b"] {
        assert_eq!(one(&[host], &[]), Ok(()), "{host}");
    }
    let invalid = Err(ProblemCode::Api(ApiCode::ConfigFileInvalid));
    for host in [
        "",
        "*",
        "*.example",
        "a.example:",
        "a:0",
        "a:070000",
        "a:+80",
        "a b",
        "http://a",
        "a/",
        "[::1",
        "0.0.0.0",
    ] {
        assert_eq!(one(&[host], &[]), invalid, "{host}");
    }
    for origin in
        ["", "*", "null", "a.example", "https://", "https://a/", "ws://a", "https://u@a", "https://*.a"]
    {
        assert_eq!(one(&[], &[origin]), invalid, "{origin}");
    }
    assert_eq!(one(&["a"; 65], &[]), invalid);
}
