use crate::guard::{AccessControl, AuthMethod};
use crate::peer::PeerAddress;
use crate::settings::AccessSettings;
use crate::tokens::{self, Tokens};
use http::{HeaderMap, HeaderName, Method, Uri};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use secrecy::{ExposeSecret as _, SecretString};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

const MAIN: &str = "the-main-token-0123";
const PEER: PeerAddress = PeerAddress(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// Access control as after a start of the sidecar.
fn start(data: &Path) -> AccessControl {
    let tokens = Tokens::open(data, Some(SecretString::from(MAIN))).unwrap();
    let sessions_file = Some(data.join("sessions.json"));
    AccessControl::new(AccessSettings { sessions_file, ..AccessSettings::default() }, tokens, 1000).unwrap()
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
}

fn sign_in(access: &AccessControl, token: &str) -> String {
    let page = headers(&[("host", "localhost:1881"), ("origin", "http://localhost:1881")]);
    let (cookie, _) = access.sign_in_with_token(token, PEER, &page, 1000).unwrap();
    cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
}

fn auth_method(access: &AccessControl, cookie: &str, now: u64) -> AuthMethod {
    let headers = headers(&[("host", "localhost:1881"), ("cookie", cookie)]);
    access.authenticate(&Method::GET, &Uri::from_static("/api/runs"), &headers, now).unwrap().auth_method
}

// SECURITY: session-file
#[test]
fn sessions_survive_a_restart_in_a_private_file_without_secrets() {
    let data = tempfile::tempdir().unwrap();
    let access = start(data.path());
    let cookie = sign_in(&access, MAIN);
    access.save_sessions().unwrap();
    let text = std::fs::read_to_string(data.path().join("sessions.json")).unwrap();
    assert!(!text.contains(MAIN) && !text.contains(cookie.split('=').nth(1).unwrap()), "{text}");
    // The token is short enough to guess, so no digest of it alone may be there.
    assert!(!text.contains(&crate::fingerprint::Fingerprint::of(MAIN).to_hex()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(data.path().join("sessions.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let next = start(data.path());
    assert_eq!(auth_method(&next, &cookie, 2000), AuthMethod::Cookie);
    let signed_out = next.sign_out(&headers(&[("cookie", &cookie)]));
    assert!(signed_out.to_str().unwrap().contains("Max-Age=0"));
    next.save_sessions().unwrap();
    assert_eq!(auth_method(&start(data.path()), &cookie, 3000), AuthMethod::Anonymous);
}

// SECURITY: session-file
#[test]
fn a_token_that_is_removed_or_replaced_between_two_starts_ends_its_sessions() {
    let data = tempfile::tempdir().unwrap();
    let guest = tokens::add(data.path(), "guest", &[Scope::Read], 1).unwrap();
    let access = start(data.path());
    let (main, cookie) = (sign_in(&access, MAIN), sign_in(&access, guest.expose_secret()));
    access.save_sessions().unwrap();
    drop(access);
    tokens::remove(data.path(), "guest").unwrap();
    assert_eq!(auth_method(&start(data.path()), &cookie, 2000), AuthMethod::Anonymous);
    // Another token with the same name does not inherit them.
    tokens::add(data.path(), "guest", &[Scope::Admin], 1).unwrap();
    assert_eq!(auth_method(&start(data.path()), &cookie, 2000), AuthMethod::Anonymous);
    assert_eq!(auth_method(&start(data.path()), &main, 2000), AuthMethod::Cookie);
}

// SECURITY: session-file
#[test]
fn a_file_that_cannot_be_used_is_set_aside() {
    let session = |hash: &str| {
        format!(
            r#"{{"hash":"{hash}","tokenName":"main","binding":"{0}","number":1,"openedAt":1,"lastUsed":1}}"#,
            "0".repeat(64)
        )
    };
    let valid = session(&"0".repeat(64));
    let too_many = format!("[{}]", vec![valid.as_str(); 65].join(","));
    let too_large = format!("[{}{valid}]", " ".repeat(70_000));
    for broken in ["", "{", "[1]", "null", &format!("[{}]", session("zz")), &too_many, &too_large] {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("sessions.json");
        std::fs::write(&file, broken).unwrap();
        private(&file);
        let access = start(data.path());
        assert_eq!(std::fs::read_to_string(data.path().join("sessions.broken")).unwrap(), broken);
        // It works as without a file.
        let cookie = sign_in(&access, MAIN);
        access.save_sessions().unwrap();
        assert_eq!(auth_method(&start(data.path()), &cookie, 2000), AuthMethod::Cookie);
    }
    // The test itself would fail otherwise.
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("sessions.json"), format!("[{valid}]")).unwrap();
    private(&data.path().join("sessions.json"));
    drop(start(data.path()));
    assert!(!data.path().join("sessions.broken").exists());
}

// SECURITY: session-file
#[cfg(unix)]
#[test]
fn a_file_that_others_could_have_changed_opens_no_session() {
    use std::os::unix::fs::PermissionsExt as _;
    let data = tempfile::tempdir().unwrap();
    let access = start(data.path());
    let cookie = sign_in(&access, MAIN);
    access.save_sessions().unwrap();
    let file = data.path().join("sessions.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(auth_method(&start(data.path()), &cookie, 2000), AuthMethod::Anonymous);
    assert!(!file.exists() && data.path().join("sessions.broken").exists());
}

// SECURITY: session-file
#[test]
fn a_file_that_cannot_be_written_stops_no_sign_in() {
    let data = tempfile::tempdir().unwrap();
    let access = start(data.path());
    std::fs::create_dir(data.path().join("sessions.json")).unwrap();
    let cookie = sign_in(&access, MAIN);
    assert!(access.save_sessions().is_err());
    assert_eq!(auth_method(&access, &cookie, 2000), AuthMethod::Cookie);
    // The next write has what this one could not write.
    std::fs::remove_dir(data.path().join("sessions.json")).unwrap();
    access.save_sessions().unwrap();
    assert_eq!(auth_method(&start(data.path()), &cookie, 2000), AuthMethod::Cookie);
}

// SECURITY: session-file
#[test]
fn a_session_from_the_future_does_not_outlive_the_others() {
    let data = tempfile::tempdir().unwrap();
    let access = start(data.path());
    let cookie = sign_in(&access, MAIN);
    access.save_sessions().unwrap();
    let file = data.path().join("sessions.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let future = text.replace(":1000", ":9000000000000");
    assert_ne!(text, future);
    std::fs::write(&file, future).unwrap();
    let twelve_hours = 12 * 60 * 60 * 1000;
    assert_eq!(auth_method(&start(data.path()), &cookie, 999 + twelve_hours), AuthMethod::Cookie);
    assert_eq!(auth_method(&start(data.path()), &cookie, 1000 + twelve_hours), AuthMethod::Anonymous);
}

fn private(file: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}
