use super::{AccessControl, AuthMethod, Caller};
use crate::settings::AccessSettings;
use crate::tokens::{self, Tokens};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use pretty_assertions::assert_eq;
use redflow_contract::api::{ApiError, ProblemCode, Scope};
use redflow_contract::code::ApiCode;
use secrecy::{ExposeSecret as _, SecretString};
use tempfile::TempDir;

const MAIN: &str = "the-main-token-0123";
const HOME: (&str, &str) = ("host", "localhost:1881");
const PAGE: (&str, &str) = ("origin", "http://localhost:1881");

/// Access control with a data directory of its own.
struct Fixture {
    access: AccessControl,
    data: TempDir,
}

fn fixture(settings: AccessSettings) -> Fixture {
    let data = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(data.path(), Some(SecretString::from(MAIN))).unwrap();
    Fixture { access: AccessControl::new(settings, tokens, 0).unwrap(), data }
}

impl Fixture {
    fn authenticate_at(&self, now: u64, method: &Method, lines: &[(&str, &str)]) -> Result<Caller, ApiCode> {
        let headers: HeaderMap = lines
            .iter()
            .map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
            })
            .collect();
        self.access.authenticate(method, &Uri::from_static("/api/runs"), &headers, now).map_err(|error| {
            for secret in ["the-main", "wr0ng", "Basic"] {
                assert!(!error.message.contains(secret), "{}", error.message);
            }
            api_code(&error)
        })
    }

    fn authenticate(&self, method: &Method, lines: &[(&str, &str)]) -> Result<AuthMethod, ApiCode> {
        self.authenticate_at(0, method, lines).map(|caller| caller.auth_method)
    }

    /// Signs in with the path of a code, in a browser without a cookie.
    fn sign_in(&self, path: &str, now: u64) -> Result<HeaderValue, ApiCode> {
        let code = path.trim_start_matches("/sign-in?code=");
        self.access.sign_in(code, &HeaderMap::new(), now).map_err(|error| api_code(&error))
    }

    /// The cookie of a new browser session.
    fn sign_in_browser(&self, now: u64) -> String {
        let code = self.access.sign_in_code(&self.access.owner(), now).unwrap();
        let cookie = self.sign_in(&code.path, now).unwrap();
        assert!(cookie.is_sensitive());
        cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
    }
}

fn api_code(error: &ApiError) -> ApiCode {
    match error.code {
        ProblemCode::Api(code) => code,
        _ => panic!("{error:?}"),
    }
}

fn default_fixture() -> Fixture {
    fixture(AccessSettings::default())
}

#[test]
fn a_caller_without_a_token_is_anonymous_and_has_no_scope() {
    let fixture = default_fixture();
    let caller = fixture.authenticate_at(0, &Method::GET, &[HOME]).unwrap();
    assert_eq!((caller.auth_method, caller.scopes.len()), (AuthMethod::Anonymous, 0));
    for scope in Scope::ALL {
        assert!(!caller.may(scope));
        assert_eq!(
            fixture.access.require(&caller, scope).map_err(|error| api_code(&error)),
            Err(ApiCode::Unauthorized)
        );
    }
    assert!(fixture.access.sign_in_code(&caller, 0).is_err());
}

#[test]
fn the_host_is_checked_before_the_origin_and_the_origin_before_the_token() {
    let fixture = default_fixture();
    let (host, origin, token) = (
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("authorization", "Bearer wr0ng-token"),
    );
    assert_eq!(fixture.authenticate(&Method::GET, &[host, origin, token]), Err(ApiCode::HostRefused));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, origin, token]), Err(ApiCode::OriginRefused));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, PAGE, token]), Err(ApiCode::Unauthorized));
    // The right token does not help.
    let right = ("authorization", "Bearer the-main-token-0123");
    assert_eq!(fixture.authenticate(&Method::GET, &[host, right]), Err(ApiCode::HostRefused));
    assert_eq!(
        fixture.authenticate(&Method::GET, &[HOME, ("origin", "null"), right]),
        Err(ApiCode::OriginRefused)
    );
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, PAGE, right]), Ok(AuthMethod::Bearer));
}

#[test]
fn the_bearer_header_is_parsed_strictly() {
    let fixture = fixture(AccessSettings { failure_burst: 1000, ..AccessSettings::default() });
    for good in ["Bearer the-main-token-0123", "bearer the-main-token-0123", "BEARER  the-main-token-0123"] {
        assert_eq!(
            fixture.authenticate(&Method::POST, &[HOME, ("authorization", good)]),
            Ok(AuthMethod::Bearer),
            "{good}"
        );
    }
    let long = format!("Bearer {}", "x".repeat(20_000));
    for bad in [
        "",
        "Bearer",
        "Bearer ",
        "the-main-token-0123",
        "Basic the-main-token-0123",
        "Bearer the-main-token-012",
        "Bearer the-main-token-01234",
        "Bearer the-main-token-0123, Bearer the-main-token-0123",
        "Bearer,the-main-token-0123",
        &long,
    ] {
        assert_eq!(
            fixture.authenticate(&Method::GET, &[HOME, ("authorization", bad)]),
            Err(ApiCode::Unauthorized),
            "{bad:.50}"
        );
    }
    let right = ("authorization", "Bearer the-main-token-0123");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, right, right]), Err(ApiCode::Unauthorized));
}

#[test]
fn the_scopes_of_a_token_limit_what_it_may_do() {
    let fixture = default_fixture();
    let token = tokens::add(fixture.data.path(), "ci", &[Scope::Run], 0).unwrap();
    let line = format!("Bearer {}", token.expose_secret());
    let caller = fixture.authenticate_at(5000, &Method::GET, &[HOME, ("authorization", &line)]).unwrap();
    assert_eq!((&*caller.name, caller.auth_method), ("ci", AuthMethod::Bearer));
    assert!(caller.may(Scope::Read) && caller.may(Scope::Run));
    let error = fixture.access.require(&caller, Scope::Deploy).unwrap_err();
    assert_eq!(api_code(&error), ApiCode::Forbidden);
    assert!(
        error.message.contains("`ci` may run") && error.message.contains("`deploy`"),
        "{}",
        error.message
    );
    assert_eq!(
        fixture.access.sign_in_code(&caller, 5000).map_err(|error| api_code(&error)),
        Err(ApiCode::Forbidden)
    );
    assert!(fixture.access.require(&fixture.access.owner(), Scope::Admin).is_ok());
}

#[test]
fn a_websocket_can_send_its_token_as_a_subprotocol() {
    let fixture = default_fixture();
    let up = ("upgrade", "WebSocket");
    let both = ("sec-websocket-protocol", "redflow.events.v1, redflow.token.the-main-token-0123");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, up, both]), Ok(AuthMethod::Protocol));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, PAGE, up, both]), Ok(AuthMethod::Protocol));
    let wrong = ("sec-websocket-protocol", "redflow.events.v1,redflow.token.wr0ng");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, up, wrong]), Err(ApiCode::Unauthorized));
    let twice = ("sec-websocket-protocol", "redflow.token.the-main-token-0123, redflow.token.wr0ng");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, up, twice]), Err(ApiCode::Unauthorized));
    // Other requests ignore it.
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, both]), Ok(AuthMethod::Anonymous));
    assert_eq!(fixture.authenticate(&Method::POST, &[HOME, up, both]), Ok(AuthMethod::Anonymous));
    assert_eq!(
        fixture.authenticate(&Method::GET, &[HOME, ("upgrade", "h2c"), both]),
        Ok(AuthMethod::Anonymous)
    );
    let only = ("sec-websocket-protocol", "redflow.events.v1");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, up, only]), Ok(AuthMethod::Anonymous));
    // A bearer token comes first.
    let bearer = ("authorization", "Bearer wr0ng");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, up, both, bearer]), Err(ApiCode::Unauthorized));
}

/// A method, headers, and the expected result.
type Case<'a> = (&'a Method, &'a [(&'a str, &'a str)], Result<AuthMethod, ApiCode>);

#[test]
fn a_cookie_works_only_for_admitted_pages() {
    let fixture = default_fixture();
    let value = fixture.sign_in_browser(0);
    let cookie = ("cookie", value.as_str());
    let (get, post, head) = (Method::GET, Method::POST, Method::HEAD);
    let site = |site| ("sec-fetch-site", site);
    let navigate = ("sec-fetch-mode", "navigate");
    let up = ("upgrade", "websocket");
    let refused = Err(ApiCode::OriginRefused);
    let cases: &[Case] = &[
        (&get, &[HOME, cookie], Ok(AuthMethod::Cookie)),
        (&head, &[HOME, cookie], Ok(AuthMethod::Cookie)),
        (&get, &[HOME, cookie, site("same-origin")], Ok(AuthMethod::Cookie)),
        (&get, &[HOME, cookie, site("none"), navigate], Ok(AuthMethod::Cookie)),
        (&post, &[HOME, cookie, PAGE], Ok(AuthMethod::Cookie)),
        (&post, &[HOME, cookie, PAGE, site("same-origin")], Ok(AuthMethod::Cookie)),
        (&get, &[HOME, cookie, PAGE, up], Ok(AuthMethod::Cookie)),
        // A request that changes something needs an origin.
        (&post, &[HOME, cookie], refused),
        (&Method::DELETE, &[HOME, cookie], refused),
        (&Method::OPTIONS, &[HOME, cookie], refused),
        (&get, &[HOME, cookie, up], refused),
        (&post, &[HOME, cookie, ("origin", "http://localhost:3000")], refused),
        (&get, &[HOME, cookie, up, ("origin", "http://evil.example")], refused),
        (&get, &[HOME, cookie, up, ("origin", "null")], refused),
        // Pages of other sites, even if the browser sends the cookie.
        (&get, &[HOME, cookie, site("cross-site")], refused),
        (&get, &[HOME, cookie, site("cross-site"), navigate], refused),
        (&post, &[HOME, cookie, PAGE, site("cross-site")], refused),
        (&get, &[HOME, cookie, site("something-new")], refused),
        // Pages of another port of this machine.
        (&get, &[HOME, cookie, site("same-site")], refused),
        (&get, &[HOME, cookie, site("same-site"), navigate], Ok(AuthMethod::Cookie)),
        (&get, &[HOME, cookie, site("same-site"), PAGE], Ok(AuthMethod::Cookie)),
    ];
    for (method, lines, expected) in cases {
        assert_eq!(fixture.authenticate(method, lines), *expected, "{method} {:?}", &lines[2..]);
    }
}

// SECURITY: session-cookie
#[test]
fn a_browser_has_the_rights_of_its_token_until_it_signs_out() {
    let fixture = default_fixture();
    let (first, second) = (fixture.sign_in_browser(0), fixture.sign_in_browser(0));
    let caller = fixture.authenticate_at(0, &Method::GET, &[HOME, ("cookie", &first)]).unwrap();
    assert_eq!((&*caller.name, &*caller.scopes), ("main, browser 1", [Scope::Admin].as_slice()));
    let several = format!("theme=dark; {second}; other=1");
    let caller = fixture.authenticate_at(0, &Method::GET, &[HOME, ("cookie", &several)]).unwrap();
    assert_eq!((&*caller.name, &*caller.token_name), ("main, browser 2", "main"));
    // Foreign cookies of the same name, of any number and content, do no harm.
    let session = first.split_once('=').unwrap().1;
    let other = "A".repeat(session.len());
    for junk in [
        "redflow_session=",
        "redflow_session=\u{e9}",
        "redflow_session",
        "=",
        "\"",
        &format!("redflow_session={other}"),
    ] {
        let foreign = vec![junk; 100].join("; ");
        for cookies in [format!("{foreign}; {first}"), format!("{first}; {foreign}")] {
            let caller = fixture.authenticate(&Method::GET, &[HOME, ("cookie", &cookies)]);
            assert_eq!(caller, Ok(AuthMethod::Cookie), "{junk}");
        }
    }
    let foreign = format!("redflow_session=foreign; {first}");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, ("cookie", &foreign)]), Ok(AuthMethod::Cookie));

    let headers: HeaderMap = [(http::header::COOKIE, first.parse().unwrap())].into_iter().collect();
    let clear = fixture.access.sign_out(&headers);
    assert!(
        clear.to_str().unwrap().starts_with("redflow_session=; ")
            && clear.to_str().unwrap().contains("Max-Age=0")
    );
    // The browser is anonymous then, not refused, so that it can sign in again.
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, ("cookie", &first)]), Ok(AuthMethod::Anonymous));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, ("cookie", &second)]), Ok(AuthMethod::Cookie));
    assert_eq!(
        fixture
            .authenticate_at(12 * 3_600_000, &Method::GET, &[HOME, ("cookie", &second)])
            .unwrap()
            .auth_method,
        AuthMethod::Anonymous
    );
}

// SECURITY: token-removed
#[test]
fn a_session_ends_with_the_token_that_opened_it() {
    let data = tempfile::tempdir().unwrap();
    let access =
        AccessControl::new(AccessSettings::default(), Tokens::open(data.path(), None).unwrap(), 0).unwrap();
    let fixture = Fixture { access, data };
    let cookie = fixture.sign_in_browser(1000);
    let open = fixture.access.sign_in_code(&fixture.access.owner(), 1000).unwrap();
    assert_eq!(
        fixture.authenticate_at(1500, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap().auth_method,
        AuthMethod::Cookie
    );
    tokens::rotate(fixture.data.path()).unwrap();
    assert_eq!(
        fixture.authenticate_at(3000, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap().auth_method,
        AuthMethod::Anonymous
    );
    // Its codes end too.
    assert_eq!(fixture.sign_in(&open.path, 3000), Err(ApiCode::SignInRefused));
}

// SECURITY: token-removed
#[test]
fn earlier_callers_are_checked_again() {
    let fixture = default_fixture();
    let token = tokens::add(fixture.data.path(), "guest", &[Scope::Run], 1).unwrap();
    let line = format!("Bearer {}", token.expose_secret());
    let guest = fixture.authenticate_at(5_000, &Method::GET, &[HOME, ("authorization", &line)]).unwrap();
    let main = fixture.access.owner();
    assert!(fixture.access.recheck(&guest, 5_000).is_ok());
    tokens::remove(fixture.data.path(), "guest").unwrap();
    assert_eq!(
        fixture.access.recheck(&guest, 9_000).map_err(|error| api_code(&error)),
        Err(ApiCode::Unauthorized)
    );
    assert!(fixture.access.recheck(&main, 9_000).is_ok());
    assert!(fixture.access.recheck(&Caller::anonymous(), 9_000).is_err());
    // An open socket keeps the session alive, until the browser signs out or the session reaches its
    // lifetime.
    const HOUR: u64 = 3_600_000;
    let cookie = fixture.sign_in_browser(0);
    let browser = |now| fixture.authenticate_at(now, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap();
    let open = browser(0);
    (1..17).for_each(|n| assert!(fixture.access.recheck(&open, n * 10 * HOUR).is_ok(), "{n}"));
    assert!(fixture.access.recheck(&open, 169 * HOUR).is_err());
    let cookie = fixture.sign_in_browser(0);
    let open = fixture.authenticate_at(0, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap();
    let _ = fixture
        .access
        .sign_out(&[("cookie".parse().unwrap(), cookie.parse().unwrap())].into_iter().collect());
    assert_eq!(
        fixture.access.recheck(&open, 0).map_err(|error| api_code(&error)),
        Err(ApiCode::Unauthorized)
    );
}

// SECURITY: sign-in-code
#[test]
fn a_code_opens_one_session_once() {
    let fixture = default_fixture();
    let code = fixture.access.sign_in_code(&fixture.access.owner(), 1000).unwrap();
    assert_eq!(code.expires_at, 601_000);
    let sign_in = |path: &str, now| fixture.sign_in(path, now).map(|_| ());
    assert_eq!(sign_in("wrong", 2000), Err(ApiCode::SignInRefused));
    assert_eq!(sign_in(&code.path, 2000), Ok(()));
    assert_eq!(sign_in(&code.path, 2000), Err(ApiCode::SignInRefused));
    let late = fixture.access.sign_in_code(&fixture.access.owner(), 2000).unwrap();
    assert_eq!(sign_in(&late.path, 602_000), Err(ApiCode::SignInRefused));
}

// SECURITY: guess-limit
#[test]
fn wrong_guesses_are_limited_and_right_tokens_are_not() {
    let fixture = default_fixture();
    let (wrong, right) = (("authorization", "Bearer wr0ng"), ("authorization", "Bearer the-main-token-0123"));
    let cookie = fixture.sign_in_browser(0);
    let code = fixture.access.sign_in_code(&fixture.access.owner(), 0).unwrap();
    let answers: Vec<_> = (0..25).map(|_| fixture.authenticate(&Method::GET, &[HOME, wrong])).collect();
    assert_eq!(answers[..20], vec![Err(ApiCode::Unauthorized); 20]);
    assert_eq!(answers[20..], vec![Err(ApiCode::RateLimited); 5]);
    // Wrong codes count against the same limit.
    assert_eq!(fixture.sign_in("wrong", 0).map(|_| ()), Err(ApiCode::RateLimited));
    assert_eq!(fixture.sign_in(&code.path, 0).map(|_| ()), Ok(()));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, right]), Ok(AuthMethod::Bearer));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, ("cookie", &cookie)]), Ok(AuthMethod::Cookie));
    assert_eq!(
        fixture.authenticate_at(200, &Method::GET, &[HOME, wrong]).map(|_| ()),
        Err(ApiCode::Unauthorized)
    );
}

// SECURITY: rate-limit
#[test]
fn every_token_and_browser_has_its_own_rate_limit() {
    let fixture =
        fixture(AccessSettings { requests_per_second: 10, request_burst: 3, ..AccessSettings::default() });
    let right = ("authorization", "Bearer the-main-token-0123");
    let (first, second) = (fixture.sign_in_browser(0), fixture.sign_in_browser(0));
    for line in [right, ("cookie", first.as_str()), ("cookie", second.as_str())] {
        let answers: Vec<_> =
            (0..4).map(|_| fixture.authenticate(&Method::GET, &[HOME, line]).map(|_| ())).collect();
        assert_eq!(answers, [Ok(()), Ok(()), Ok(()), Err(ApiCode::RateLimited)], "{}", line.0);
    }
    assert!(fixture.authenticate_at(100, &Method::GET, &[HOME, right]).is_ok());
    assert!(fixture.authenticate_at(100, &Method::GET, &[HOME, right]).is_err());
}

// SECURITY: log-tokens
#[test]
fn debug_output_has_no_secret() {
    let fixture = default_fixture();
    let cookie = fixture.sign_in_browser(0);
    let caller = fixture.authenticate_at(0, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap();
    for printed in [format!("{:?}", fixture.access), format!("{caller:?}")] {
        assert!(!printed.contains(MAIN) && !printed.contains(cookie.split('=').nth(1).unwrap()), "{printed}");
    }
}

#[test]
fn an_invalid_host_is_refused() {
    let settings = AccessSettings { hosts: vec!["*".to_owned()], ..AccessSettings::default() };
    let error = AccessControl::new(settings, Tokens::ephemeral(None).unwrap(), 0).unwrap_err();
    assert_eq!(api_code(&error), ApiCode::ConfigFileInvalid);
}

const UI: (&str, &str) = ("origin", "http://localhost:5173");

fn ui_fixture() -> Fixture {
    fixture(AccessSettings { redflow_ui: Some(UI.1.to_owned()), ..AccessSettings::default() })
}

// SECURITY: redflow-ui
#[test]
fn pages_of_the_redflow_ui_need_no_token_and_have_no_admin_scope() {
    let fixture = ui_fixture();
    let caller = fixture.authenticate_at(0, &Method::POST, &[HOME, UI]).unwrap();
    assert_eq!((&*caller.name, caller.auth_method), ("the Redflow UI", AuthMethod::RedflowUi));
    for scope in Scope::ALL {
        assert_eq!(caller.may(scope), scope != Scope::Admin, "{scope:?}");
    }
    let refused = fixture.access.sign_in_code(&caller, 0).map_err(|error| api_code(&error));
    assert_eq!(refused, Err(ApiCode::Forbidden));
    assert_eq!(
        fixture.authenticate(&Method::GET, &[HOME, ("upgrade", "websocket"), UI]),
        Ok(AuthMethod::RedflowUi)
    );
    // No other page has that right, and no page has it without the setting.
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME]), Ok(AuthMethod::Anonymous));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, PAGE]), Ok(AuthMethod::Anonymous));
    let (host, other) = (("host", "evil.example"), ("origin", "http://localhost:5174"));
    assert_eq!(fixture.authenticate(&Method::GET, &[host, UI]), Err(ApiCode::HostRefused));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, other]), Err(ApiCode::OriginRefused));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, UI, UI]), Err(ApiCode::OriginRefused));
    assert_eq!(default_fixture().authenticate(&Method::GET, &[HOME, UI]), Err(ApiCode::OriginRefused));
}

#[test]
fn a_page_of_the_redflow_ui_may_send_a_token_but_its_cookie_is_ignored() {
    let fixture = ui_fixture();
    let (wrong, right) = (("authorization", "Bearer wr0ng"), ("authorization", "Bearer the-main-token-0123"));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, UI, wrong]), Err(ApiCode::Unauthorized));
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, UI, right]), Ok(AuthMethod::Bearer));
    let up = ("upgrade", "websocket");
    let protocol = |token| ("sec-websocket-protocol", token);
    let wrong = protocol("redflow.token.wr0ng");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, UI, up, wrong]), Err(ApiCode::Unauthorized));
    let right = protocol("redflow.token.the-main-token-0123");
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, UI, up, right]), Ok(AuthMethod::Protocol));
    // A browser sends the cookie of one port to every other port, at least with WebSockets.
    let cookie = fixture.sign_in_browser(0);
    for lines in [[HOME, UI, ("cookie", &cookie)].as_slice(), &[HOME, UI, up, ("cookie", &cookie)]] {
        let caller = fixture.authenticate_at(0, &Method::GET, lines).unwrap();
        assert_eq!((caller.auth_method, caller.may(Scope::Admin)), (AuthMethod::RedflowUi, false));
    }
}

// SECURITY: forwarded-requests
#[test]
fn a_token_for_another_server_does_not_change_the_rights_of_the_redflow_ui() {
    let settings = AccessSettings {
        tokens_for_others: true,
        redflow_ui: Some(UI.1.to_owned()),
        ..AccessSettings::default()
    };
    let fixture = fixture(settings);
    let ours = ("authorization", "Bearer the-main-token-0123");
    for foreign in [("authorization", "Bearer of-node-red"), ("authorization", "Basic YTpi")] {
        let caller = fixture.authenticate_at(0, &Method::POST, &[HOME, UI, foreign]).unwrap();
        assert_eq!((caller.auth_method, caller.may(Scope::Admin)), (AuthMethod::RedflowUi, false));
        // Only such a page may send it.
        assert_eq!(fixture.authenticate(&Method::GET, &[HOME, foreign]), Err(ApiCode::Unauthorized));
        assert_eq!(fixture.authenticate(&Method::GET, &[HOME, PAGE, foreign]), Err(ApiCode::Unauthorized));
        assert_eq!(
            fixture.authenticate(&Method::GET, &[HOME, UI, foreign, ours]),
            Err(ApiCode::Unauthorized)
        );
    }
    assert_eq!(fixture.authenticate(&Method::GET, &[HOME, UI, ours]), Ok(AuthMethod::Bearer));
}

#[test]
fn the_redflow_ui_has_a_rate_limit_and_passes_every_later_check() {
    let settings = AccessSettings { requests_per_second: 10, request_burst: 3, ..AccessSettings::default() };
    let fixture = fixture(AccessSettings { redflow_ui: Some(UI.1.to_owned()), ..settings });
    let answers: Vec<_> = (0..4).map(|_| fixture.authenticate(&Method::GET, &[HOME, UI])).collect();
    assert_eq!(answers[..3], vec![Ok(AuthMethod::RedflowUi); 3]);
    assert_eq!(answers[3], Err(ApiCode::RateLimited));
    let caller = fixture.authenticate_at(100, &Method::GET, &[HOME, UI]).unwrap();
    assert!(fixture.access.recheck(&caller, u64::MAX).is_ok());
}

#[test]
fn requests_of_the_redflow_ui_are_recognised() {
    let fixture = ui_fixture();
    let origin = |fixture: &Fixture, lines: &[(&'static str, &str)]| {
        let header =
            |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        let headers: HeaderMap = lines.iter().map(header).collect();
        fixture.access.redflow_ui(&Uri::from_static("/flows"), &headers).map(str::to_owned)
    };
    assert_eq!(origin(&fixture, &[HOME, UI]).as_deref(), Some("http://localhost:5173"));
    assert_eq!(origin(&fixture, &[("host", "[::1]:1881"), UI]).as_deref(), Some("http://localhost:5173"));
    let evil = ("host", "evil.example");
    for lines in
        [&[HOME][..], &[HOME, PAGE], &[HOME, ("origin", "null")], &[evil, UI], &[UI], &[HOME, UI, UI]]
    {
        assert_eq!(origin(&fixture, lines), None, "{lines:?}");
    }
    assert_eq!(origin(&default_fixture(), &[HOME, UI]), None);
}

#[test]
fn a_message_can_carry_the_token() {
    let fixture = default_fixture();
    let token = tokens::add(fixture.data.path(), "guest", &[Scope::Read], 1).unwrap();
    let authenticate =
        |text: &str, now| fixture.access.authenticate_token(text, now).map_err(|error| api_code(&error));
    let guest = authenticate(token.expose_secret(), 5_000).unwrap();
    assert_eq!((&*guest.name, guest.auth_method), ("guest", AuthMethod::Message));
    assert!(fixture.access.recheck(&guest, 5_000).is_ok());
    tokens::remove(fixture.data.path(), "guest").unwrap();
    assert!(fixture.access.recheck(&guest, 9_000).is_err());
    let long = "x".repeat(1 << 20);
    for wrong in ["", "wr0ng", "Bearer the-main-token-0123", " the-main-token-0123", &long] {
        assert_eq!(authenticate(wrong, 9_000).map(|_| ()), Err(ApiCode::Unauthorized), "{wrong:.40}");
    }
    // Wrong tokens in messages and requests count together, and right tokens still work.
    let line = ("authorization", "Bearer wr0ng");
    let more: Vec<_> = (0..20).map(|_| authenticate("wr0ng", 9_000).map(|_| ())).collect();
    assert_eq!(more[..15], vec![Err(ApiCode::Unauthorized); 15]);
    assert_eq!(more[15..], vec![Err(ApiCode::RateLimited); 5]);
    assert_eq!(
        fixture.authenticate_at(9_000, &Method::GET, &[HOME, line]).map(|_| ()),
        Err(ApiCode::RateLimited)
    );
    assert_eq!(authenticate(MAIN, 9_000).map(|caller| caller.auth_method), Ok(AuthMethod::Message));
}

#[test]
fn a_redflow_ui_is_refused_if_other_machines_can_reach_the_listener() {
    let listen = "0.0.0.0:1880".parse().unwrap();
    let settings = AccessSettings { listen, redflow_ui: Some(UI.1.to_owned()), ..AccessSettings::default() };
    let error = AccessControl::new(settings, Tokens::ephemeral(None).unwrap(), 0).unwrap_err();
    assert_eq!(api_code(&error), ApiCode::ConfigFileInvalid);
}
