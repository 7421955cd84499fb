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

struct House {
    door: AccessControl,
    data: TempDir,
}

fn house(settings: AccessSettings) -> House {
    let data = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(data.path(), Some(SecretString::from(MAIN))).unwrap();
    House { door: AccessControl::new(settings, tokens).unwrap(), data }
}

impl House {
    fn ask_at(&self, now: u64, method: &Method, lines: &[(&str, &str)]) -> Result<Caller, ApiCode> {
        let headers: HeaderMap = lines
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect();
        self.door.authenticate(method, &Uri::from_static("/api/runs"), &headers, now).map_err(|error| {
            for secret in ["the-main", "wr0ng", "Basic"] {
                assert!(!error.message.contains(secret), "{}", error.message);
            }
            api(&error)
        })
    }

    fn ask(&self, method: &Method, lines: &[(&str, &str)]) -> Result<AuthMethod, ApiCode> {
        self.ask_at(0, method, lines).map(|caller| caller.by)
    }

    /// A browser that signed in, by its cookie.
    fn browser(&self, now: u64) -> String {
        let code = self.door.sign_in_code(&self.door.owner(), now).unwrap();
        let cookie = self.door.sign_in(code.path.strip_prefix("/sign-in?code=").unwrap(), now).unwrap();
        assert!(cookie.is_sensitive());
        cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
    }
}

fn api(error: &ApiError) -> ApiCode {
    match error.code {
        ProblemCode::Api(code) => code,
        _ => panic!("{error:?}"),
    }
}

fn plain() -> House {
    house(AccessSettings::default())
}

#[test]
fn whoever_shows_nothing_is_nobody_and_may_nothing() {
    let house = plain();
    let caller = house.ask_at(0, &Method::GET, &[HOME]).unwrap();
    assert_eq!((caller.by, caller.scopes.len()), (AuthMethod::Nobody, 0));
    for scope in Scope::ALL {
        assert!(!caller.may(scope));
        assert_eq!(
            house.door.require(&caller, scope).map_err(|error| api(&error)),
            Err(ApiCode::Unauthorized)
        );
    }
    assert!(house.door.sign_in_code(&caller, 0).is_err());
}

#[test]
fn host_comes_before_origin_and_origin_before_token() {
    let house = plain();
    let (host, origin, token) = (
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("authorization", "Bearer wr0ng-token"),
    );
    assert_eq!(house.ask(&Method::GET, &[host, origin, token]), Err(ApiCode::HostRefused));
    assert_eq!(house.ask(&Method::GET, &[HOME, origin, token]), Err(ApiCode::OriginRefused));
    assert_eq!(house.ask(&Method::GET, &[HOME, PAGE, token]), Err(ApiCode::Unauthorized));
    // Nor does the right token help.
    let right = ("authorization", "Bearer the-main-token-0123");
    assert_eq!(house.ask(&Method::GET, &[host, right]), Err(ApiCode::HostRefused));
    assert_eq!(house.ask(&Method::GET, &[HOME, ("origin", "null"), right]), Err(ApiCode::OriginRefused));
    assert_eq!(house.ask(&Method::GET, &[HOME, PAGE, right]), Ok(AuthMethod::Bearer));
}

#[test]
fn a_bearer_is_read_strictly() {
    let house = house(AccessSettings { failure_burst: 1000, ..AccessSettings::default() });
    for good in ["Bearer the-main-token-0123", "bearer the-main-token-0123", "BEARER  the-main-token-0123"] {
        assert_eq!(
            house.ask(&Method::POST, &[HOME, ("authorization", good)]),
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
            house.ask(&Method::GET, &[HOME, ("authorization", bad)]),
            Err(ApiCode::Unauthorized),
            "{bad:.50}"
        );
    }
    let right = ("authorization", "Bearer the-main-token-0123");
    assert_eq!(house.ask(&Method::GET, &[HOME, right, right]), Err(ApiCode::Unauthorized));
}

#[test]
fn scopes_decide_what_a_token_may() {
    let house = plain();
    let token = tokens::add(house.data.path(), "ci", &[Scope::Run], 0).unwrap();
    let line = format!("Bearer {}", token.expose_secret());
    let caller = house.ask_at(5000, &Method::GET, &[HOME, ("authorization", &line)]).unwrap();
    assert_eq!((&*caller.name, caller.by), ("ci", AuthMethod::Bearer));
    assert!(caller.may(Scope::Read) && caller.may(Scope::Run));
    let error = house.door.require(&caller, Scope::Deploy).unwrap_err();
    assert_eq!(api(&error), ApiCode::Forbidden);
    assert!(
        error.message.contains("`ci` may run") && error.message.contains("`deploy`"),
        "{}",
        error.message
    );
    assert_eq!(house.door.sign_in_code(&caller, 5000).map_err(|error| api(&error)), Err(ApiCode::Forbidden));
    assert!(house.door.require(&house.door.owner(), Scope::Admin).is_ok());
}

#[test]
fn a_socket_takes_its_token_from_a_subprotocol() {
    let house = plain();
    let up = ("upgrade", "WebSocket");
    let both = ("sec-websocket-protocol", "redflow.events.v1, redflow.token.the-main-token-0123");
    assert_eq!(house.ask(&Method::GET, &[HOME, up, both]), Ok(AuthMethod::Protocol));
    assert_eq!(house.ask(&Method::GET, &[HOME, PAGE, up, both]), Ok(AuthMethod::Protocol));
    let wrong = ("sec-websocket-protocol", "redflow.events.v1,redflow.token.wr0ng");
    assert_eq!(house.ask(&Method::GET, &[HOME, up, wrong]), Err(ApiCode::Unauthorized));
    let twice = ("sec-websocket-protocol", "redflow.token.the-main-token-0123, redflow.token.wr0ng");
    assert_eq!(house.ask(&Method::GET, &[HOME, up, twice]), Err(ApiCode::Unauthorized));
    // Elsewhere it is not looked at.
    assert_eq!(house.ask(&Method::GET, &[HOME, both]), Ok(AuthMethod::Nobody));
    assert_eq!(house.ask(&Method::POST, &[HOME, up, both]), Ok(AuthMethod::Nobody));
    assert_eq!(house.ask(&Method::GET, &[HOME, ("upgrade", "h2c"), both]), Ok(AuthMethod::Nobody));
    let only = ("sec-websocket-protocol", "redflow.events.v1");
    assert_eq!(house.ask(&Method::GET, &[HOME, up, only]), Ok(AuthMethod::Nobody));
    // A bearer is looked at first.
    let bearer = ("authorization", "Bearer wr0ng");
    assert_eq!(house.ask(&Method::GET, &[HOME, up, both, bearer]), Err(ApiCode::Unauthorized));
}

/// A method, headers, and what comes of them.
type Case<'a> = (&'a Method, &'a [(&'a str, &'a str)], Result<AuthMethod, ApiCode>);

#[test]
fn a_cookie_is_only_good_for_pages_of_our_own() {
    let house = plain();
    let value = house.browser(0);
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
        // Whoever is to change something says from where.
        (&post, &[HOME, cookie], refused),
        (&Method::DELETE, &[HOME, cookie], refused),
        (&Method::OPTIONS, &[HOME, cookie], refused),
        (&get, &[HOME, cookie, up], refused),
        (&post, &[HOME, cookie, ("origin", "http://localhost:3000")], refused),
        (&get, &[HOME, cookie, up, ("origin", "http://evil.example")], refused),
        (&get, &[HOME, cookie, up, ("origin", "null")], refused),
        // Pages of other sites, also if the browser sends the cookie along.
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
        assert_eq!(house.ask(method, lines), *expected, "{method} {:?}", &lines[2..]);
    }
}

#[test]
fn a_browser_is_who_let_it_in_until_it_signs_out() {
    let house = plain();
    let (first, second) = (house.browser(0), house.browser(0));
    let caller = house.ask_at(0, &Method::GET, &[HOME, ("cookie", &first)]).unwrap();
    assert_eq!((&*caller.name, &*caller.scopes), ("main, browser 1", [Scope::Admin].as_slice()));
    let among = format!("theme=dark; {second}; other=1");
    let caller = house.ask_at(0, &Method::GET, &[HOME, ("cookie", &among)]).unwrap();
    assert_eq!(&*caller.name, "main, browser 2");
    // Somebody else's cookie of the same name is in nobody's way.
    let tossed = format!("redflow_session=planted; {first}");
    assert_eq!(house.ask(&Method::GET, &[HOME, ("cookie", &tossed)]), Ok(AuthMethod::Cookie));

    let headers: HeaderMap = [(http::header::COOKIE, first.parse().unwrap())].into_iter().collect();
    let forget = house.door.sign_out(&headers);
    assert!(
        forget.to_str().unwrap().starts_with("redflow_session=; ")
            && forget.to_str().unwrap().contains("Max-Age=0")
    );
    // It is nobody then, not refused: it has to be able to sign in again.
    assert_eq!(house.ask(&Method::GET, &[HOME, ("cookie", &first)]), Ok(AuthMethod::Nobody));
    assert_eq!(house.ask(&Method::GET, &[HOME, ("cookie", &second)]), Ok(AuthMethod::Cookie));
    assert_eq!(
        house.ask_at(12 * 3_600_000, &Method::GET, &[HOME, ("cookie", &second)]).unwrap().by,
        AuthMethod::Nobody
    );
}

#[test]
fn a_session_ends_with_the_token_that_made_it() {
    let data = tempfile::tempdir().unwrap();
    let door =
        AccessControl::new(AccessSettings::default(), Tokens::open(data.path(), None).unwrap()).unwrap();
    let house = House { door, data };
    let cookie = house.browser(1000);
    let open = house.door.sign_in_code(&house.door.owner(), 1000).unwrap();
    assert_eq!(
        house.ask_at(1500, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap().by,
        AuthMethod::Cookie
    );
    tokens::rotate(house.data.path()).unwrap();
    assert_eq!(
        house.ask_at(3000, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap().by,
        AuthMethod::Nobody
    );
    // And so do the codes it made.
    let refused = house.door.sign_in(open.path.strip_prefix("/sign-in?code=").unwrap(), 3000);
    assert_eq!(refused.map_err(|error| api(&error)), Err(ApiCode::SignInRefused));
}

#[test]
fn who_was_let_in_is_looked_at_again() {
    let house = plain();
    let token = tokens::add(house.data.path(), "guest", &[Scope::Run], 1).unwrap();
    let line = format!("Bearer {}", token.expose_secret());
    let guest = house.ask_at(5_000, &Method::GET, &[HOME, ("authorization", &line)]).unwrap();
    let main = house.door.owner();
    assert!(house.door.recheck(&guest, 5_000).is_ok());
    tokens::remove(house.data.path(), "guest").unwrap();
    assert_eq!(house.door.recheck(&guest, 9_000).map_err(|error| api(&error)), Err(ApiCode::Unauthorized));
    assert!(house.door.recheck(&main, 9_000).is_ok());
    assert!(house.door.recheck(&Caller::anonymous(), 9_000).is_err());
    // What a browser has open keeps it signed in, until it signs out or its time is up.
    const HOUR: u64 = 3_600_000;
    let cookie = house.browser(0);
    let browser = |now| house.ask_at(now, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap();
    let open = browser(0);
    (1..17).for_each(|n| assert!(house.door.recheck(&open, n * 10 * HOUR).is_ok(), "{n}"));
    assert!(house.door.recheck(&open, 169 * HOUR).is_err());
    let cookie = house.browser(0);
    let open = house.ask_at(0, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap();
    let _ =
        house.door.sign_out(&[("cookie".parse().unwrap(), cookie.parse().unwrap())].into_iter().collect());
    assert_eq!(house.door.recheck(&open, 0).map_err(|error| api(&error)), Err(ApiCode::Unauthorized));
}

#[test]
fn a_code_lets_one_browser_in_once() {
    let house = plain();
    let code = house.door.sign_in_code(&house.door.owner(), 1000).unwrap();
    assert_eq!(code.expires_at, 601_000);
    let text = code.path.strip_prefix("/sign-in?code=").unwrap();
    let sign_in = |text: &str, now| house.door.sign_in(text, now).map(|_| ()).map_err(|error| api(&error));
    assert_eq!(sign_in("wrong", 2000), Err(ApiCode::SignInRefused));
    assert_eq!(sign_in(text, 2000), Ok(()));
    assert_eq!(sign_in(text, 2000), Err(ApiCode::SignInRefused));
    let late = house.door.sign_in_code(&house.door.owner(), 2000).unwrap();
    assert_eq!(
        sign_in(late.path.strip_prefix("/sign-in?code=").unwrap(), 602_000),
        Err(ApiCode::SignInRefused)
    );
}

#[test]
fn who_guesses_is_slowed_down_and_who_knows_is_not() {
    let house = plain();
    let (wrong, right) = (("authorization", "Bearer wr0ng"), ("authorization", "Bearer the-main-token-0123"));
    let cookie = house.browser(0);
    let code = house.door.sign_in_code(&house.door.owner(), 0).unwrap();
    let answers: Vec<_> = (0..25).map(|_| house.ask(&Method::GET, &[HOME, wrong])).collect();
    assert_eq!(answers[..20], vec![Err(ApiCode::Unauthorized); 20]);
    assert_eq!(answers[20..], vec![Err(ApiCode::RateLimited); 5]);
    // Codes are guessed from the same purse.
    let sign_in = |text: &str| house.door.sign_in(text, 0).map(|_| ()).map_err(|error| api(&error));
    assert_eq!(sign_in("wrong"), Err(ApiCode::RateLimited));
    assert_eq!(sign_in(code.path.strip_prefix("/sign-in?code=").unwrap()), Ok(()));
    assert_eq!(house.ask(&Method::GET, &[HOME, right]), Ok(AuthMethod::Bearer));
    assert_eq!(house.ask(&Method::GET, &[HOME, ("cookie", &cookie)]), Ok(AuthMethod::Cookie));
    assert_eq!(house.ask_at(200, &Method::GET, &[HOME, wrong]).map(|_| ()), Err(ApiCode::Unauthorized));
}

#[test]
fn every_token_and_browser_has_its_own_rate() {
    let house =
        house(AccessSettings { requests_per_second: 10, request_burst: 3, ..AccessSettings::default() });
    let right = ("authorization", "Bearer the-main-token-0123");
    let (first, second) = (house.browser(0), house.browser(0));
    for line in [right, ("cookie", first.as_str()), ("cookie", second.as_str())] {
        let answers: Vec<_> = (0..4).map(|_| house.ask(&Method::GET, &[HOME, line]).map(|_| ())).collect();
        assert_eq!(answers, [Ok(()), Ok(()), Ok(()), Err(ApiCode::RateLimited)], "{}", line.0);
    }
    assert!(house.ask_at(100, &Method::GET, &[HOME, right]).is_ok());
    assert!(house.ask_at(100, &Method::GET, &[HOME, right]).is_err());
}

#[test]
fn a_door_shows_no_secret() {
    let house = plain();
    let cookie = house.browser(0);
    let caller = house.ask_at(0, &Method::GET, &[HOME, ("cookie", &cookie)]).unwrap();
    for shown in [format!("{:?}", house.door), format!("{caller:?}")] {
        assert!(!shown.contains(MAIN) && !shown.contains(cookie.split('=').nth(1).unwrap()), "{shown}");
    }
}

#[test]
fn a_place_that_cannot_be_makes_no_door() {
    let settings = AccessSettings { hosts: vec!["*".to_owned()], ..AccessSettings::default() };
    let error = AccessControl::new(settings, Tokens::ephemeral(None).unwrap()).unwrap_err();
    assert_eq!(api(&error), ApiCode::ConfigFileInvalid);
}

const UI: (&str, &str) = ("origin", "http://localhost:5173");

fn with_ui() -> House {
    house(AccessSettings { redflow_ui: Some(UI.1.to_owned()), ..AccessSettings::default() })
}

#[test]
fn pages_of_the_redflow_ui_need_no_token_and_may_not_everything() {
    let house = with_ui();
    let caller = house.ask_at(0, &Method::POST, &[HOME, UI]).unwrap();
    assert_eq!((&*caller.name, caller.by), ("the Redflow UI", AuthMethod::RedflowUi));
    for scope in Scope::ALL {
        assert_eq!(caller.may(scope), scope != Scope::Admin, "{scope:?}");
    }
    let refused = house.door.sign_in_code(&caller, 0).map_err(|error| api(&error));
    assert_eq!(refused, Err(ApiCode::Forbidden));
    assert_eq!(house.ask(&Method::GET, &[HOME, ("upgrade", "websocket"), UI]), Ok(AuthMethod::RedflowUi));
    // Nobody else has that right, nor has anybody where it was not given.
    assert_eq!(house.ask(&Method::GET, &[HOME]), Ok(AuthMethod::Nobody));
    assert_eq!(house.ask(&Method::GET, &[HOME, PAGE]), Ok(AuthMethod::Nobody));
    let (host, other) = (("host", "evil.example"), ("origin", "http://localhost:5174"));
    assert_eq!(house.ask(&Method::GET, &[host, UI]), Err(ApiCode::HostRefused));
    assert_eq!(house.ask(&Method::GET, &[HOME, other]), Err(ApiCode::OriginRefused));
    assert_eq!(house.ask(&Method::GET, &[HOME, UI, UI]), Err(ApiCode::OriginRefused));
    assert_eq!(plain().ask(&Method::GET, &[HOME, UI]), Err(ApiCode::OriginRefused));
}

#[test]
fn a_token_of_a_page_of_the_redflow_ui_decides_and_a_cookie_does_not_count() {
    let house = with_ui();
    let (wrong, right) = (("authorization", "Bearer wr0ng"), ("authorization", "Bearer the-main-token-0123"));
    assert_eq!(house.ask(&Method::GET, &[HOME, UI, wrong]), Err(ApiCode::Unauthorized));
    assert_eq!(house.ask(&Method::GET, &[HOME, UI, right]), Ok(AuthMethod::Bearer));
    let up = ("upgrade", "websocket");
    let protocol = |token| ("sec-websocket-protocol", token);
    let wrong = protocol("redflow.token.wr0ng");
    assert_eq!(house.ask(&Method::GET, &[HOME, UI, up, wrong]), Err(ApiCode::Unauthorized));
    let right = protocol("redflow.token.the-main-token-0123");
    assert_eq!(house.ask(&Method::GET, &[HOME, UI, up, right]), Ok(AuthMethod::Protocol));
    // A browser sends the cookie of one port to every other one, with sockets at least.
    let cookie = house.browser(0);
    for lines in [[HOME, UI, ("cookie", &cookie)].as_slice(), &[HOME, UI, up, ("cookie", &cookie)]] {
        let caller = house.ask_at(0, &Method::GET, lines).unwrap();
        assert_eq!((caller.by, caller.may(Scope::Admin)), (AuthMethod::RedflowUi, false));
    }
}

#[test]
fn a_token_for_others_makes_a_page_of_the_redflow_ui_neither_more_nor_less() {
    let settings = AccessSettings {
        tokens_for_others: true,
        redflow_ui: Some(UI.1.to_owned()),
        ..AccessSettings::default()
    };
    let house = house(settings);
    let ours = ("authorization", "Bearer the-main-token-0123");
    for others in [("authorization", "Bearer of-node-red"), ("authorization", "Basic YTpi")] {
        let caller = house.ask_at(0, &Method::POST, &[HOME, UI, others]).unwrap();
        assert_eq!((caller.by, caller.may(Scope::Admin)), (AuthMethod::RedflowUi, false));
        // Nobody but such a page.
        assert_eq!(house.ask(&Method::GET, &[HOME, others]), Err(ApiCode::Unauthorized));
        assert_eq!(house.ask(&Method::GET, &[HOME, PAGE, others]), Err(ApiCode::Unauthorized));
        assert_eq!(house.ask(&Method::GET, &[HOME, UI, others, ours]), Err(ApiCode::Unauthorized));
    }
    assert_eq!(house.ask(&Method::GET, &[HOME, UI, ours]), Ok(AuthMethod::Bearer));
}

#[test]
fn the_redflow_ui_has_a_rate_and_stays_who_it_is() {
    let settings = AccessSettings { requests_per_second: 10, request_burst: 3, ..AccessSettings::default() };
    let house = house(AccessSettings { redflow_ui: Some(UI.1.to_owned()), ..settings });
    let answers: Vec<_> = (0..4).map(|_| house.ask(&Method::GET, &[HOME, UI])).collect();
    assert_eq!(answers[..3], vec![Ok(AuthMethod::RedflowUi); 3]);
    assert_eq!(answers[3], Err(ApiCode::RateLimited));
    let caller = house.ask_at(100, &Method::GET, &[HOME, UI]).unwrap();
    assert!(house.door.recheck(&caller, u64::MAX).is_ok());
}

#[test]
fn it_is_told_which_requests_come_from_the_redflow_ui() {
    let house = with_ui();
    let of = |house: &House, lines: &[(&'static str, &str)]| {
        let line =
            |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        let headers: HeaderMap = lines.iter().map(line).collect();
        house.door.redflow_ui(&Uri::from_static("/flows"), &headers).map(str::to_owned)
    };
    assert_eq!(of(&house, &[HOME, UI]).as_deref(), Some("http://localhost:5173"));
    assert_eq!(of(&house, &[("host", "[::1]:1881"), UI]).as_deref(), Some("http://localhost:5173"));
    let evil = ("host", "evil.example");
    for lines in
        [&[HOME][..], &[HOME, PAGE], &[HOME, ("origin", "null")], &[evil, UI], &[UI], &[HOME, UI, UI]]
    {
        assert_eq!(of(&house, lines), None, "{lines:?}");
    }
    assert_eq!(of(&plain(), &[HOME, UI]), None);
}

#[test]
fn a_token_may_come_in_a_message() {
    let house = plain();
    let token = tokens::add(house.data.path(), "guest", &[Scope::Read], 1).unwrap();
    let ask = |text: &str, now| house.door.authenticate_token(text, now).map_err(|error| api(&error));
    let guest = ask(token.expose_secret(), 5_000).unwrap();
    assert_eq!((&*guest.name, guest.by), ("guest", AuthMethod::Message));
    assert!(house.door.recheck(&guest, 5_000).is_ok());
    tokens::remove(house.data.path(), "guest").unwrap();
    assert!(house.door.recheck(&guest, 9_000).is_err());
    let long = "x".repeat(1 << 20);
    for wrong in ["", "wr0ng", "Bearer the-main-token-0123", " the-main-token-0123", &long] {
        assert_eq!(ask(wrong, 9_000).map(|_| ()), Err(ApiCode::Unauthorized), "{wrong:.40}");
    }
    // Guesses are counted with those of requests, and those who know are not affected.
    let line = ("authorization", "Bearer wr0ng");
    let more: Vec<_> = (0..20).map(|_| ask("wr0ng", 9_000).map(|_| ())).collect();
    assert_eq!(more[..15], vec![Err(ApiCode::Unauthorized); 15]);
    assert_eq!(more[15..], vec![Err(ApiCode::RateLimited); 5]);
    assert_eq!(house.ask_at(9_000, &Method::GET, &[HOME, line]).map(|_| ()), Err(ApiCode::RateLimited));
    assert_eq!(ask(MAIN, 9_000).map(|caller| caller.by), Ok(AuthMethod::Message));
}

#[test]
fn a_redflow_ui_that_other_machines_could_pretend_to_be_makes_no_door() {
    let listen = "0.0.0.0:1880".parse().unwrap();
    let settings = AccessSettings { listen, redflow_ui: Some(UI.1.to_owned()), ..AccessSettings::default() };
    let error = AccessControl::new(settings, Tokens::ephemeral(None).unwrap()).unwrap_err();
    assert_eq!(api(&error), ApiCode::ConfigFileInvalid);
}
