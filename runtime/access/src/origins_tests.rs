use super::{Origins, Page};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;

fn place(bound: &str, hosts: &[&str], origins: &[&str], https: bool) -> Origins {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    Origins::new(bound.parse().unwrap(), &texts(hosts), &texts(origins), https).unwrap()
}

fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
    let value = |value: &&[u8]| (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
    values.iter().map(value).collect()
}

/// The hosts of `asked` that are answered to.
fn answered<'a>(place: &Origins, asked: &[&'a str]) -> Vec<&'a str> {
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
    assert_eq!(check(&[]), Ok(Page::Unnamed));
    for good in [
        "http://127.0.0.1:1881",
        "http://localhost:1881",
        "http://[::1]:1881",
        "https://flows.example",
        "https://ui.example",
        "http://ui.local:8080",
    ] {
        assert_eq!(check(&[good.as_bytes()]), Ok(Page::Admitted), "{good}");
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
    assert_eq!(plain.check_origin(&headers("origin", &[b"http://flows.example"])), Ok(Page::Admitted));
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
        let made = Origins::new("127.0.0.1:1881".parse().unwrap(), &texts(hosts), &texts(origins), false);
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

/// What is made of a request from this page to this host.
fn page(place: &Origins, host: &str, origin: &str) -> Option<Page> {
    let lines = [("host", host), ("origin", origin)];
    let of = |(name, value): (&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
    place.check_origin(&lines.map(of).into_iter().collect()).ok()
}

#[test]
fn one_origin_is_that_of_the_redflow_ui_at_names_of_this_machine() {
    let bound = "127.0.0.1:1880".parse().unwrap();
    let with = |place: Origins, origin: &str| place.with_redflow_ui(bound, origin).unwrap();
    let here = with(place("127.0.0.1:1880", &["flows.example"], &[], false), "HTTP://LocalHost:5173");
    assert_eq!(here.redflow_ui(), Some("http://localhost:5173"));
    for host in ["127.0.0.1:1880", "localhost:1880", "LOCALHOST:1880", "[::1]:1880"] {
        assert_eq!(page(&here, host, "http://localhost:5173"), Some(Page::RedflowUi), "{host}");
    }
    // Behind a proxy it is a page like any other.
    assert_eq!(page(&here, "flows.example", "http://localhost:5173"), None);
    let listed = place("127.0.0.1:1880", &["flows.example"], &["http://localhost:5173"], false);
    let listed = with(listed, "http://localhost:5173");
    assert_eq!(page(&listed, "flows.example", "http://localhost:5173"), Some(Page::Admitted));
    assert_eq!(page(&listed, "localhost:1880", "http://localhost:5173"), Some(Page::RedflowUi));
    assert_eq!(page(&here, "localhost:1880", "http://localhost:1880"), Some(Page::Admitted));
    let unnamed = headers("host", &[b"localhost:1880"]);
    assert_eq!(here.check_origin(&unnamed), Ok(Page::Unnamed));
    let others = [
        "",
        "null",
        "http://localhost",
        "http://localhost:5174",
        "http://localhost:5173/",
        "https://localhost:5173",
        "http://LOCALHOST:5173",
        "http://ui.localhost:5173",
        "http://127.0.0.1:5173",
        "http://localhost:5173, http://localhost:5173",
        "http://localhost:5173.evil.example",
        "http://user@localhost:5173",
    ];
    for other in others {
        assert_eq!(page(&here, "localhost:1880", other), None, "{other}");
    }
    let twice: &[&[u8]] = &[b"http://localhost:5173", b"http://localhost:5173"];
    assert!(here.check_origin(&headers("origin", twice)).is_err());
    // A port that the scheme has anyway is not sent.
    let usual = with(place("127.0.0.1:1880", &[], &[], false), "https://redflow.example:443");
    assert_eq!(page(&usual, "localhost:1880", "https://redflow.example"), Some(Page::RedflowUi));
}

#[test]
fn a_redflow_ui_needs_a_listener_of_this_machine_alone_and_an_origin_of_its_own() {
    let made = |bound: &str, origin: &str| {
        let place = place(bound, &[], &[], false).with_redflow_ui(bound.parse().unwrap(), origin);
        place.map(|_| ()).map_err(|error| {
            assert_eq!(error.code, ProblemCode::Api(ApiCode::ConfigFileInvalid));
            error.message
        })
    };
    for bound in ["127.0.0.1:1880", "127.0.0.9:1880", "[::1]:1880"] {
        assert_eq!(made(bound, "http://localhost:5173"), Ok(()), "{bound}");
    }
    for bound in ["0.0.0.0:1880", "[::]:1880", "10.0.0.5:1880", "[fd00::5]:1880"] {
        let why = made(bound, "http://localhost:5173").unwrap_err();
        assert!(why.contains("listen at 127.0.0.1 or [::1]"), "{why}");
    }
    let near = ["http://localhost:1880", "http://127.0.0.1:1880", "http://[::1]:1880"];
    for own in near {
        assert!(made("127.0.0.1:1880", own).unwrap_err().contains("where the sidecar itself is"), "{own}");
    }
    for bad in ["", "*", "null", "localhost:5173", "http://localhost:5173/", "ws://localhost", "http://*.a"] {
        assert!(made("127.0.0.1:1880", bad).unwrap_err().contains("is not a scheme and a host"), "{bad}");
    }
}
