use super::{CLEAR_COOKIE, CLEAR_COOKIE_HTTPS, Sessions, set_cookie};
use crate::fingerprint::Fingerprint;
use crate::settings::{AccessSettings, Scheme};
use pretty_assertions::assert_eq;
use secrecy::ExposeSecret as _;
use std::time::Duration;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn sessions() -> Sessions {
    Sessions::new(&AccessSettings::default())
}

fn token() -> Fingerprint {
    Fingerprint::of("main")
}

#[test]
fn a_code_works_once_and_for_ten_minutes() {
    let mut sessions = sessions();
    let (code, expires_at) = sessions.make_code(token(), 5).unwrap();
    assert_eq!(expires_at, 5 + 10 * MINUTE);
    assert!(code.expose_secret().len() >= 22, "128 bits or more");
    assert!(sessions.redeem("", 6).is_none());
    assert!(sessions.redeem(&"x".repeat(100_000), 6).is_none());
    assert!(sessions.redeem(code.expose_secret(), expires_at - 1).unwrap().matches(&token()));
    assert!(sessions.redeem(code.expose_secret(), expires_at - 1).is_none());
    let (code, expires_at) = sessions.make_code(token(), 0).unwrap();
    assert!(sessions.redeem(code.expose_secret(), expires_at).is_none());
}

#[test]
fn one_code_too_many_invalidates_the_oldest() {
    let mut sessions = sessions();
    let codes: Vec<_> = (0..17).map(|at| sessions.make_code(token(), at).unwrap().0).collect();
    let works: Vec<bool> =
        codes.iter().map(|code| sessions.redeem(code.expose_secret(), 20).is_some()).collect();
    assert_eq!(works, [[false].as_slice(), &[true; 16]].concat());
}

#[test]
fn a_session_ends_without_requests_and_after_a_week() {
    let mut sessions = sessions();
    let idle = sessions.open(token(), 0).unwrap();
    let busy = sessions.open(token(), 0).unwrap();
    let week = 7 * 24 * HOUR;
    for at in (0..week).step_by(usize::try_from(12 * HOUR - 1).unwrap()) {
        assert_eq!(sessions.find(busy.expose_secret(), at).map(|(_, number)| number), Some(2), "at {at}");
    }
    assert!(sessions.find(idle.expose_secret(), 12 * HOUR).is_none());
    assert!(sessions.find(busy.expose_secret(), week - 1).is_some());
    assert!(sessions.find(busy.expose_secret(), week).is_none());
}

#[test]
fn a_session_can_be_closed_and_the_number_of_sessions_is_bounded() {
    let mut sessions = sessions();
    let all: Vec<_> = (0..65).map(|at| sessions.open(token(), at).unwrap()).collect();
    assert!(sessions.find(all[0].expose_secret(), 100).is_none());
    assert!(all[1..].iter().all(|one| sessions.find(one.expose_secret(), 100).is_some()));
    sessions.close(all[1].expose_secret());
    sessions.close("no such session");
    assert!(sessions.find(all[1].expose_secret(), 100).is_none());
    assert!(sessions.find(all[2].expose_secret(), 100).is_some());
}

#[test]
fn no_code_or_session_is_kept_or_printed() {
    let mut sessions = sessions();
    let (code, _) = sessions.make_code(token(), 0).unwrap();
    let session = sessions.open(token(), 0).unwrap();
    let printed = format!("{sessions:?}");
    assert!(!printed.contains(code.expose_secret()) && !printed.contains(session.expose_secret()));
}

#[test]
fn the_cookie_is_for_this_site_and_hidden_from_scripts() {
    let week = Duration::from_secs(604_800);
    assert_eq!(
        set_cookie("abc", week, Scheme::Http),
        "redflow_session=abc; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800"
    );
    assert_eq!(
        set_cookie("abc", week, Scheme::Https),
        "redflow_session=abc; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800; Secure"
    );
    // A browser replaces a cookie only by one with the same name and path.
    assert_eq!(set_cookie("", Duration::ZERO, Scheme::Http), CLEAR_COOKIE);
    assert_eq!(set_cookie("", Duration::ZERO, Scheme::Https), CLEAR_COOKIE_HTTPS);
}
