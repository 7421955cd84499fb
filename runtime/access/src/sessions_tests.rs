use super::{CLEAR_COOKIE, CLEAR_COOKIE_HTTPS, Session, Sessions, set_cookie};
use crate::fingerprint::Fingerprint;
use crate::settings::{AccessSettings, Scheme};
use crate::tokens::AcceptedToken;
use pretty_assertions::assert_eq;
use secrecy::{ExposeSecret as _, SecretString};
use std::time::Duration;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn sessions() -> Sessions {
    Sessions::new(&AccessSettings::default(), Vec::new(), 0)
}

fn token() -> Fingerprint {
    Fingerprint::of("main")
}

fn named(name: &str) -> AcceptedToken {
    AcceptedToken {
        name: name.into(),
        scopes: [].into(),
        fingerprint: Fingerprint::of(name),
        created_at: None,
    }
}

fn open(sessions: &mut Sessions, name: &str, now: u64) -> SecretString {
    sessions.open(&named(name), now).unwrap().0
}

// SECURITY: sign-in-code
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

// SECURITY: sign-in-code
#[test]
fn one_code_too_many_invalidates_the_oldest() {
    let mut sessions = sessions();
    let codes: Vec<_> = (0..17).map(|at| sessions.make_code(token(), at).unwrap().0).collect();
    let works: Vec<bool> =
        codes.iter().map(|code| sessions.redeem(code.expose_secret(), 20).is_some()).collect();
    assert_eq!(works, [[false].as_slice(), &[true; 16]].concat());
}

// SECURITY: session-cookie
#[test]
fn a_session_ends_without_requests_and_after_a_week() {
    let mut sessions = sessions();
    let idle = open(&mut sessions, "main", 0);
    let busy = open(&mut sessions, "main", 0);
    let week = 7 * 24 * HOUR;
    for at in (0..week).step_by(usize::try_from(12 * HOUR - 1).unwrap()) {
        assert_eq!(sessions.find(busy.expose_secret(), at).map(|found| found.number), Some(2), "at {at}");
    }
    assert!(sessions.find(idle.expose_secret(), 12 * HOUR).is_none());
    assert!(sessions.find(busy.expose_secret(), week - 1).is_some());
    assert!(sessions.find(busy.expose_secret(), week).is_none());
}

// SECURITY: session-limit
#[test]
fn a_session_can_be_closed_and_the_number_of_sessions_is_bounded() {
    let mut sessions = sessions();
    let all: Vec<_> = (0..65).map(|at| open(&mut sessions, "main", at)).collect();
    assert!(sessions.find(all[0].expose_secret(), 100).is_none());
    assert!(all[1..].iter().all(|one| sessions.find(one.expose_secret(), 100).is_some()));
    sessions.close(all[1].expose_secret());
    sessions.close("no such session");
    assert!(sessions.find(all[1].expose_secret(), 100).is_none());
    assert!(sessions.find(all[2].expose_secret(), 100).is_some());
}

// SECURITY: session-limit
#[test]
fn one_token_cannot_close_the_sessions_of_another() {
    let mut sessions = sessions();
    let main = open(&mut sessions, "main", 0);
    let guests: Vec<_> = (1..200).map(|at| open(&mut sessions, "guest", at)).collect();
    assert!(sessions.find(main.expose_secret(), 200).is_some());
    let works = |text: &SecretString| sessions.find(text.expose_secret(), 200).is_some();
    assert_eq!(guests.iter().map(works).filter(|works| *works).count(), 63);
}

// SECURITY: session-file
#[test]
fn a_session_belongs_to_one_token_and_not_to_another_one_of_its_name() {
    let mut sessions = sessions();
    let session = open(&mut sessions, "guest", 0);
    let found = sessions.find(session.expose_secret(), 1).unwrap();
    assert_eq!(&*found.token_name, "guest");
    assert!(found.is_of(&named("guest")));
    assert!(!found.is_of(&AcceptedToken { fingerprint: token(), ..named("guest") }));
}

/// The sessions that are written to the file.
fn store(sessions: &mut Sessions) -> Vec<Session> {
    let (stored, revision) = sessions.changes().unwrap();
    sessions.mark_stored(revision);
    assert!(!sessions.is_changed());
    stored
}

#[test]
fn a_stored_session_from_the_future_ends_after_a_week_too() {
    let (week, future) = (7 * 24 * HOUR, 100 * 24 * HOUR);
    let mut sessions = sessions();
    let session = open(&mut sessions, "main", future);
    let mut next = Sessions::new(&AccessSettings::default(), store(&mut sessions), HOUR);
    for at in (2..=7 * 24).map(|hours| hours * HOUR) {
        assert!(next.find(session.expose_secret(), at).is_some());
    }
    assert!(next.find(session.expose_secret(), HOUR + week).is_none());
}

#[test]
fn the_file_is_older_after_each_opening_and_closing_and_after_ten_minutes_of_use() {
    let mut sessions = sessions();
    assert!(!sessions.is_changed() && sessions.changes().is_none());
    let session = open(&mut sessions, "main", 0);
    assert_eq!(store(&mut sessions).len(), 1);
    for (at, is_changed) in [(1, false), (10 * MINUTE - 1, false), (10 * MINUTE, true)] {
        assert!(sessions.find(session.expose_secret(), at).is_some());
        assert_eq!(sessions.is_changed(), is_changed, "{at}");
    }
    assert_eq!(store(&mut sessions)[0].last_used, 10 * MINUTE);
    assert!(sessions.keep_alive(1, 11 * MINUTE) && !sessions.is_changed());
    sessions.close(session.expose_secret());
    // A write that failed is repeated, and a change during a write needs another one.
    let (_, failed) = sessions.changes().unwrap();
    assert_eq!(sessions.changes().unwrap().1, failed);
    open(&mut sessions, "main", 11 * MINUTE);
    sessions.mark_stored(failed);
    assert_eq!(store(&mut sessions).len(), 1);
    sessions.mark_stored(failed);
    assert!(!sessions.is_changed());
}

#[test]
fn stored_sessions_keep_their_numbers_and_new_ones_get_the_next() {
    let mut sessions = sessions();
    let first = open(&mut sessions, "main", 0);
    let mut next = Sessions::new(&AccessSettings::default(), store(&mut sessions), 0);
    assert!(!next.is_changed());
    assert_eq!(next.find(first.expose_secret(), 1).map(|found| found.number), Some(1));
    assert_eq!(next.open(&named("main"), 2).unwrap().1, 2);
    assert!(next.find(first.expose_secret(), 13 * HOUR).is_none());
}

// SECURITY: log-tokens
#[test]
fn no_code_or_session_is_kept_or_printed() {
    let mut sessions = sessions();
    let (code, _) = sessions.make_code(token(), 0).unwrap();
    let session = open(&mut sessions, "main", 0);
    let printed = format!("{sessions:?}");
    assert!(!printed.contains(code.expose_secret()) && !printed.contains(session.expose_secret()));
}

// SECURITY: session-cookie
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
