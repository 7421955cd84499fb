use super::{Origins, Page};
use crate::settings::AccessSettings;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;

fn settings(listen: &str, hosts: &[&str], origins: &[&str]) -> AccessSettings {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    AccessSettings {
        listen: listen.parse().unwrap(),
        hosts: texts(hosts),
        origins: texts(origins),
        ..AccessSettings::default()
    }
}

fn allowed(listen: &str, hosts: &[&str], origins: &[&str]) -> Origins {
    Origins::from_settings(&settings(listen, hosts, origins)).unwrap()
}

fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
    let value = |value: &&[u8]| (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
    values.iter().map(value).collect()
}

/// The hosts of `requested` that are allowed.
fn allowed_hosts<'a>(origins: &Origins, requested: &[&'a str]) -> Vec<&'a str> {
    let uri = Uri::from_static("/");
    let is_allowed = |host: &&&str| match origins.check_host(&uri, &headers("host", &[host.as_bytes()])) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.code, ProblemCode::Api(ApiCode::HostRefused));
            false
        }
    };
    requested.iter().filter(is_allowed).copied().collect()
}

// SECURITY: exact-host
#[test]
fn a_loopback_listener_accepts_loopback_names_with_its_port() {
    let local = allowed("127.0.0.1:1881", &[], &[]);
    let good = ["127.0.0.1:1881", "localhost:1881", "LOCALHOST:1881", "[::1]:1881"];
    assert_eq!(allowed_hosts(&local, &good), good);
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
    assert_eq!(allowed_hosts(&local, &bad), [""; 0]);
}

#[test]
fn other_listeners_accept_their_own_address_and_configured_hosts() {
    let requested = [
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
    let local = ["localhost", "localhost:80"];
    assert_eq!(allowed_hosts(&allowed("0.0.0.0:80", &[], &[]), &requested), local);
    assert_eq!(allowed_hosts(&allowed("[::]:80", &[], &[]), &requested), local);
    let own = allowed("10.0.0.5:80", &[], &[]);
    assert_eq!(allowed_hosts(&own, &requested), ["10.0.0.5:80", "10.0.0.5", "localhost", "localhost:80"]);
    let ipv6 = allowed("[fd00::5]:80", &["Flows.Example"], &[]);
    assert_eq!(
        allowed_hosts(&ipv6, &requested),
        ["localhost", "localhost:80", "flows.example", "[fd00::5]:80"]
    );
}

// SECURITY: exact-host
#[test]
fn one_host_header_is_required_and_the_request_line_is_checked_too() {
    let local = allowed("127.0.0.1:1881", &[], &[]);
    let check =
        |uri: &str, hosts: &[&[u8]]| local.check_host(&uri.parse().unwrap(), &headers("host", hosts)).is_ok();
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

// SECURITY: exact-origin
#[test]
fn own_pages_and_pages_of_configured_origins_are_admitted() {
    let configured = ["https://UI.example:443", "http://ui.local:8080"];
    let settings = settings("127.0.0.1:1881", &["flows.example"], &configured);
    let secure = Origins::from_settings(&AccessSettings { https: true, ..settings }).unwrap();
    let check = |origins: &[&[u8]]| {
        secure.check_origin(&headers("origin", origins)).map_err(|error| {
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
    let plain = allowed("127.0.0.1:1881", &["flows.example"], &[]);
    assert_eq!(plain.check_origin(&headers("origin", &[b"http://flows.example"])), Ok(Page::Admitted));
    assert!(plain.check_origin(&headers("origin", &[b"https://flows.example"])).is_err());
}

#[test]
fn an_error_repeats_little_of_what_a_client_sent() {
    let local = allowed("127.0.0.1:1881", &[], &[]);
    // A header value cannot hold control characters, but it can hold bytes over 127.
    let long = [b"a\xff\xe9".as_slice(), &[b'x'; 5000]].concat();
    let error = local.check_origin(&headers("origin", &[&long])).unwrap_err();
    assert!(error.message.len() < 300 && error.message.contains("`a??xx"), "{error:?}");
}

#[test]
fn an_invalid_host_or_origin_is_refused_at_once() {
    let check = |hosts: &[&str], origins: &[&str]| {
        let result = Origins::from_settings(&settings("127.0.0.1:1881", hosts, origins));
        result.map(|_| ()).map_err(|error| error.code)
    };
    for host in ["a.example", "a.example:8443", "10.0.0.1", "[fd00::1]:80", "a_b"] {
        assert_eq!(check(&[host], &[]), Ok(()), "{host}");
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
        assert_eq!(check(&[host], &[]), invalid, "{host}");
    }
    for origin in
        ["", "*", "null", "a.example", "https://", "https://a/", "ws://a", "https://u@a", "https://*.a"]
    {
        assert_eq!(check(&[], &[origin]), invalid, "{origin}");
    }
    assert_eq!(check(&["a"; 65], &[]), invalid);
}

/// The kind of page of a request from this origin to this host. None if it is refused.
fn page(origins: &Origins, host: &str, origin: &str) -> Option<Page> {
    let lines = [("host", host), ("origin", origin)];
    let header =
        |(name, value): (&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
    origins.check_origin(&lines.map(header).into_iter().collect()).ok()
}

// SECURITY: redflow-ui
#[test]
fn the_redflow_ui_is_recognised_only_at_names_of_this_machine() {
    let with_ui = |hosts: &[&str], origins: &[&str], ui: &str| {
        let settings = settings("127.0.0.1:1880", hosts, origins);
        Origins::from_settings(&AccessSettings { redflow_ui: Some(ui.to_owned()), ..settings }).unwrap()
    };
    let origins = with_ui(&["flows.example"], &[], "HTTP://LocalHost:5173");
    assert_eq!(origins.redflow_ui(), Some("http://localhost:5173"));
    for host in ["127.0.0.1:1880", "localhost:1880", "LOCALHOST:1880", "[::1]:1880"] {
        assert_eq!(page(&origins, host, "http://localhost:5173"), Some(Page::RedflowUi), "{host}");
    }
    // Behind a proxy the UI is a page like any other.
    assert_eq!(page(&origins, "flows.example", "http://localhost:5173"), None);
    let listed = with_ui(&["flows.example"], &["http://localhost:5173"], "http://localhost:5173");
    assert_eq!(page(&listed, "flows.example", "http://localhost:5173"), Some(Page::Admitted));
    assert_eq!(page(&listed, "localhost:1880", "http://localhost:5173"), Some(Page::RedflowUi));
    assert_eq!(page(&origins, "localhost:1880", "http://localhost:1880"), Some(Page::Admitted));
    let unnamed = headers("host", &[b"localhost:1880"]);
    assert_eq!(origins.check_origin(&unnamed), Ok(Page::Unnamed));
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
        assert_eq!(page(&origins, "localhost:1880", other), None, "{other}");
    }
    let twice: &[&[u8]] = &[b"http://localhost:5173", b"http://localhost:5173"];
    assert!(origins.check_origin(&headers("origin", twice)).is_err());
    // Browsers do not send the default port of the scheme.
    let default_port = with_ui(&[], &[], "https://redflow.example:443");
    assert_eq!(page(&default_port, "localhost:1880", "https://redflow.example"), Some(Page::RedflowUi));
}

// SECURITY: redflow-ui
#[test]
fn a_redflow_ui_needs_a_loopback_listener_and_its_own_origin() {
    let check = |listen: &str, ui: &str| {
        let settings = AccessSettings { redflow_ui: Some(ui.to_owned()), ..settings(listen, &[], &[]) };
        Origins::from_settings(&settings).map(|_| ()).map_err(|error| {
            assert_eq!(error.code, ProblemCode::Api(ApiCode::ConfigFileInvalid));
            error.message
        })
    };
    for listen in ["127.0.0.1:1880", "127.0.0.9:1880", "[::1]:1880"] {
        assert_eq!(check(listen, "http://localhost:5173"), Ok(()), "{listen}");
    }
    for listen in ["0.0.0.0:1880", "[::]:1880", "10.0.0.5:1880", "[fd00::5]:1880"] {
        let why = check(listen, "http://localhost:5173").unwrap_err();
        assert!(why.contains("listen at 127.0.0.1 or [::1]"), "{why}");
    }
    let own = ["http://localhost:1880", "http://127.0.0.1:1880", "http://[::1]:1880"];
    for own in own {
        assert!(check("127.0.0.1:1880", own).unwrap_err().contains("where the sidecar itself is"), "{own}");
    }
    for bad in ["", "*", "null", "localhost:5173", "http://localhost:5173/", "ws://localhost", "http://*.a"] {
        assert!(check("127.0.0.1:1880", bad).unwrap_err().contains("is not a scheme and a host"), "{bad}");
    }
}
