use crate::guard::{AccessControl, AuthMethod};
use crate::peer::PeerAddress;
use crate::settings::AccessSettings;
use crate::tokens::{self, Tokens};
use http::{HeaderMap, HeaderName, Method, Uri};
use pretty_assertions::assert_eq;
use redflow_contract::api::{ApiError, ProblemCode, Scope};
use redflow_contract::code::ApiCode;
use secrecy::{ExposeSecret as _, SecretString};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

const MAIN: &str = "the-main-token-0123";
const PEER: PeerAddress = PeerAddress(IpAddr::V4(Ipv4Addr::LOCALHOST));
const HOME: (&str, &str) = ("host", "localhost:1881");
const PAGE: (&str, &str) = ("origin", "http://localhost:1881");
const UI: (&str, &str) = ("origin", "http://localhost:5173");

fn start(data: &Path, settings: AccessSettings) -> AccessControl {
    AccessControl::new(settings, Tokens::open(data, Some(SecretString::from(MAIN))).unwrap(), 0).unwrap()
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
}

fn api_code(error: &ApiError) -> ApiCode {
    match error.code {
        ProblemCode::Api(code) => code,
        _ => panic!("{error:?}"),
    }
}

// SECURITY: sign-in-page
#[test]
fn a_token_signs_a_browser_in_with_its_scopes_and_only_from_a_page_of_the_sidecar() {
    let data = tempfile::tempdir().unwrap();
    let token = tokens::add(data.path(), "guest", &[Scope::Run], 1).unwrap();
    let access = start(data.path(), AccessSettings::default());
    let sign_in = |token: &str, lines: &[(&'static str, &str)]| {
        access.sign_in_with_token(token, PEER, &headers(lines), 5_000).map_err(|error| api_code(&error))
    };
    let (cookie, caller) = sign_in(token.expose_secret(), &[HOME, PAGE]).unwrap();
    assert!(cookie.is_sensitive());
    assert_eq!((&*caller.name, &*caller.token_name), ("guest, browser 1", "guest"));
    let first = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
    let browser = |cookie: &str| {
        let headers = headers(&[HOME, ("cookie", cookie)]);
        access.authenticate(&Method::GET, &Uri::from_static("/api/runs"), &headers, 5_000)
    };
    let caller = browser(&first).unwrap();
    assert!(caller.may(Scope::Run) && !caller.may(Scope::Deploy) && !caller.may(Scope::Admin));
    // The same browser again: the earlier session ends.
    let (second, _) = sign_in(MAIN, &[HOME, PAGE, ("cookie", &first)]).unwrap();
    assert_eq!(browser(&first).unwrap().auth_method, AuthMethod::Anonymous);
    assert!(browser(second.to_str().unwrap().split(';').next().unwrap()).unwrap().may(Scope::Admin));
    for lines in [
        &[HOME][..],
        &[HOME, ("origin", "http://evil.example")],
        &[HOME, ("origin", "null")],
        &[HOME, PAGE, ("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(sign_in(MAIN, lines).map(|_| ()), Err(ApiCode::OriginRefused), "{lines:?}");
    }
    let long = "x".repeat(1 << 20);
    for wrong in ["", "wr0ng", "Bearer the-main-token-0123", " the-main-token-0123", &long] {
        assert_eq!(sign_in(wrong, &[HOME, PAGE]).map(|_| ()), Err(ApiCode::Unauthorized), "{wrong:.40}");
    }
}

/// A guesser must not notice a right guess among too many, and must not lock others out.
// SECURITY: sign-in-rate, sign-in-page
#[test]
fn each_address_may_try_some_tokens_right_or_wrong() {
    let data = tempfile::tempdir().unwrap();
    let access = start(data.path(), AccessSettings::default());
    let sign_in = |token: &str, peer: &str, now| {
        let peer = PeerAddress(peer.parse().unwrap());
        let signed_in = access.sign_in_with_token(token, peer, &headers(&[HOME, PAGE]), now);
        signed_in.map(|_| ()).map_err(|error| api_code(&error))
    };
    for peer in ["192.0.2.1", "2001:db8::1"] {
        for _ in 0..20 {
            assert_eq!(sign_in("wr0ng", peer, 5_000), Err(ApiCode::Unauthorized));
        }
        assert_eq!(sign_in("wr0ng", peer, 5_000), Err(ApiCode::RateLimited));
        assert_eq!(sign_in(MAIN, peer, 5_000), Err(ApiCode::RateLimited));
    }
    // One machine has many of these addresses.
    assert_eq!(sign_in(MAIN, "2001:db8::2", 5_000), Err(ApiCode::RateLimited));
    assert_eq!(sign_in(MAIN, "192.0.2.2", 5_000), Ok(()));
    assert_eq!(sign_in(MAIN, "192.0.2.1", 5_200), Ok(()));
    // Requests with a token do not wait.
    let bearer = headers(&[HOME, ("authorization", "Bearer the-main-token-0123")]);
    assert!(access.authenticate(&Method::GET, &Uri::from_static("/api/runs"), &bearer, 5_000).is_ok());
}

// SECURITY: sign-in-page
#[test]
fn a_code_closes_the_earlier_session_of_the_browser() {
    let data = tempfile::tempdir().unwrap();
    let access = start(data.path(), AccessSettings::default());
    let browser = |cookie: &str| {
        let headers = headers(&[HOME, ("cookie", cookie)]);
        access
            .authenticate(&Method::GET, &Uri::from_static("/api/runs"), &headers, 5_000)
            .unwrap()
            .auth_method
    };
    let sign_in = |headers: &HeaderMap, code: &str| {
        let cookie = access.sign_in(code, headers, 5_000)?;
        Ok::<_, ApiError>(cookie.to_str().unwrap().split(';').next().unwrap().to_owned())
    };
    let code =
        || access.sign_in_code(&access.owner(), 5_000).unwrap().path["/sign-in?code=".len()..].to_owned();
    let first = sign_in(&headers(&[]), &code()).unwrap();
    let with_first = headers(&[("cookie", &first)]);
    assert!(sign_in(&with_first, "wrong").is_err());
    assert_eq!(browser(&first), AuthMethod::Cookie);
    let second = sign_in(&with_first, &code()).unwrap();
    assert_eq!((browser(&first), browser(&second)), (AuthMethod::Anonymous, AuthMethod::Cookie));
}

// SECURITY: sign-in-page
#[test]
fn a_page_of_the_redflow_ui_cannot_sign_in() {
    let data = tempfile::tempdir().unwrap();
    let settings = AccessSettings { redflow_ui: Some(UI.1.to_owned()), ..AccessSettings::default() };
    let access = start(data.path(), settings);
    let refused = access.sign_in_with_token(MAIN, PEER, &headers(&[HOME, UI]), 0).map(|_| ());
    assert_eq!(refused.map_err(|error| api_code(&error)), Err(ApiCode::OriginRefused));
}
