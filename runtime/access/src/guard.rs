//! The guard: checks the host, then the origin, then the caller, then its rate.
//!
//! Owns the order of these checks and what a caller may do. Never repeats a token or a cookie, and of any
//! other text of a client only a short, printable part.

use crate::fingerprint::Fingerprint;
use crate::lock;
use crate::origins::{Origins, Page, origin_refused};
use crate::session_file::SessionFile;
use crate::sessions::{COOKIE, Sessions, is_session};
use crate::settings::AccessSettings;
use crate::tokens::{AcceptedToken, MAX_TOKEN_BYTES, Tokens};
use http::header::{AUTHORIZATION, COOKIE as COOKIE_HEADER, HeaderName, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Uri};
use redflow_contract::Millis;
use redflow_contract::api::{ApiError, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::rate::{Rate, RateBucket, RateLimiter};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A page without a cookie passes its token to a WebSocket as a subprotocol with this prefix.
const TOKEN_PROTOCOL: &str = "redflow.token.";

const REDFLOW_UI_NAME: &str = "the Redflow UI";

/// How a caller proved its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// `Authorization: Bearer`.
    Bearer,
    /// The cookie of a browser that signed in.
    Cookie,
    /// A subprotocol of a WebSocket, for pages without a cookie.
    Protocol,
    /// A message on an open WebSocket.
    Message,
    /// No token, but the origin of the Redflow UI. Any program of this machine can claim it. The server lets
    /// such a caller use only the routes of that UI.
    RedflowUi,
    /// Nothing: the caller has no scope.
    Anonymous,
}

/// The sender of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name of the token. For a browser also its number.
    pub name: Arc<str>,
    /// The name of the token alone: the same for all browsers that signed in with it. Without a token, the name of
    /// the caller.
    pub token_name: Arc<str>,
    /// Empty for an anonymous caller.
    pub scopes: Arc<[Scope]>,
    /// How it proved its identity.
    pub auth_method: AuthMethod,
    /// The token that it used, or that opened its session.
    pub(crate) token: Option<Fingerprint>,
    /// The number of its browser session.
    session: Option<u64>,
}

impl Caller {
    /// Whether one of its scopes includes the needed one.
    #[must_use]
    pub fn may(&self, needed: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.allows(needed))
    }

    /// A caller without a token. It has no scope.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: "nobody".into(),
            token_name: "nobody".into(),
            scopes: Arc::new([]),
            auth_method: AuthMethod::Anonymous,
            token: None,
            session: None,
        }
    }

    fn redflow_ui() -> Self {
        let scopes = Arc::new([Scope::Read, Scope::Run, Scope::Deploy]);
        Self {
            name: REDFLOW_UI_NAME.into(),
            token_name: REDFLOW_UI_NAME.into(),
            scopes,
            auth_method: AuthMethod::RedflowUi,
            token: None,
            session: None,
        }
    }

    pub(crate) fn with_token(token: AcceptedToken, auth_method: AuthMethod) -> Self {
        Self {
            name: Arc::clone(&token.name),
            token_name: token.name,
            scopes: token.scopes,
            auth_method,
            token: Some(token.fingerprint),
            session: None,
        }
    }

    /// A browser with a session that this token opened.
    pub(crate) fn browser(token: AcceptedToken, number: u64) -> Self {
        let name = format!("{}, browser {number}", token.name).into();
        Self { name, session: Some(number), ..Self::with_token(token, AuthMethod::Cookie) }
    }
}

/// Decides which requests are accepted, and what their callers may do.
#[derive(Debug)]
pub struct AccessControl {
    pub(crate) settings: AccessSettings,
    pub(crate) origins: Origins,
    pub(crate) tokens: Tokens,
    sessions: Mutex<Sessions>,
    /// Keeps the sessions over a restart.
    pub(crate) session_file: Option<SessionFile>,
    /// Notified when the file is older than the sessions.
    pub(crate) sessions_changed: Notify,
    rates: Mutex<RateLimiter>,
    failures: Mutex<RateBucket>,
    /// Tokens that were typed, right or wrong, by peer.
    pub(crate) sign_ins: Mutex<RateLimiter>,
}

impl AccessControl {
    /// `settings.listen` has to be the address that the listener actually has. Reads the file of the sessions, with
    /// no time in it later than `now`.
    ///
    /// # Errors
    /// `CONFIG_FILE_INVALID` for invalid hosts and origins, and for a Redflow UI on a listener that other
    /// machines can reach.
    pub fn new(settings: AccessSettings, tokens: Tokens, now: Millis) -> Result<Self, ApiError> {
        let origins = Origins::from_settings(&settings)?;
        let session_file = settings.sessions_file.clone().map(SessionFile::new);
        let stored = session_file.as_ref().map(|file| file.load(settings.max_sessions)).unwrap_or_default();
        let failure_rate = Rate::per_second(settings.failures_per_second);
        Ok(Self {
            origins,
            tokens,
            sessions: Mutex::new(Sessions::new(&settings, stored, now)),
            session_file,
            sessions_changed: Notify::new(),
            rates: Mutex::new(RateLimiter::new(
                Rate::per_second(settings.requests_per_second),
                settings.request_burst,
            )),
            failures: Mutex::new(RateBucket::new(failure_rate, settings.failure_burst, 0)),
            sign_ins: Mutex::new(RateLimiter::new(failure_rate, settings.failure_burst)),
            settings,
        })
    }

    /// The settings given to [`AccessControl::new`].
    #[must_use]
    pub fn settings(&self) -> &AccessSettings {
        &self.settings
    }

    /// The tokens that requests may use.
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The origin of the Redflow UI, if this request comes from one of its pages and names an allowed host.
    #[must_use]
    pub fn redflow_ui(&self, uri: &Uri, headers: &HeaderMap) -> Option<&str> {
        let is_from_ui = self.origins.check_host(uri, headers).is_ok()
            && self.origins.check_origin(headers) == Ok(Page::RedflowUi);
        self.origins.redflow_ui().filter(|_| is_from_ui)
    }

    /// Finds the caller of a request. Call it first, for every request and every upgrade.
    ///
    /// A request without a token gives an anonymous caller: call [`AccessControl::require`] before anything
    /// that needs a scope. A page of the Redflow UI needs no token: check [`Caller::auth_method`] before anything that
    /// is not for it.
    ///
    /// # Errors
    /// `HOST_REFUSED`, `ORIGIN_REFUSED`, `UNAUTHORIZED` for a wrong token, `RATE_LIMITED`.
    pub fn authenticate(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        now: Millis,
    ) -> Result<Caller, ApiError> {
        self.origins.check_host(uri, headers)?;
        let page = self.origins.check_origin(headers)?;
        let caller = self.identify(method, headers, page, now)?;
        if caller.auth_method == AuthMethod::Cookie {
            check_cookie_request(method, headers, page)?;
        }
        self.check_rate(caller, now)
    }

    /// Finds the caller with this token, which it sent in a message on its WebSocket and not in a header.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for a wrong token, `RATE_LIMITED`.
    pub fn authenticate_token(&self, token: &str, now: Millis) -> Result<Caller, ApiError> {
        self.check_rate(self.find_caller(Some(token), AuthMethod::Message, now)?, now)
    }

    pub(crate) fn check_rate(&self, caller: Caller, now: Millis) -> Result<Caller, ApiError> {
        if caller.auth_method == AuthMethod::Anonymous || lock(&self.rates).take(&caller.name, now) {
            return Ok(caller);
        }
        Err(ApiError::new(
            ApiCode::RateLimited,
            format!(
                "`{}` sends more than {} requests per second: wait a moment, or raise the limit in the configuration.",
                caller.name, self.settings.requests_per_second
            ),
        ))
    }

    /// Checks that the caller has the needed scope.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for an anonymous caller, `FORBIDDEN` for any other.
    pub fn require(&self, caller: &Caller, needed: Scope) -> Result<(), ApiError> {
        match caller.auth_method {
            _ if caller.may(needed) => Ok(()),
            AuthMethod::Anonymous => {
                Err(unauthorized("This needs a token or an open session, and the request has neither"))
            }
            _ => {
                let scopes: Vec<&str> = caller.scopes.iter().map(|scope| scope.as_str()).collect();
                Err(ApiError::new(
                    ApiCode::Forbidden,
                    format!(
                        "`{}` may {}, but this needs `{}`: use another token, or make one with that scope.",
                        caller.name,
                        scopes.join(", "),
                        needed.as_str()
                    ),
                ))
            }
        }
    }

    /// Checks an earlier caller again, because a WebSocket outlives the request that opened it.
    ///
    /// # Errors
    /// `UNAUTHORIZED` if its token no longer works or may no longer read, or its browser has signed out.
    pub fn recheck(&self, caller: &Caller, now: Millis) -> Result<(), ApiError> {
        // It has no token that could expire, and the allowed origin does not change while the sidecar runs.
        if caller.auth_method == AuthMethod::RedflowUi {
            return Ok(());
        }
        if caller
            .session
            .is_some_and(|number| !self.with_sessions(|sessions| sessions.keep_alive(number, now)))
        {
            return Err(unauthorized("The session that opened this connection is over"));
        }
        let token = caller.token.and_then(|fingerprint| self.tokens.find_fingerprint(&fingerprint, now));
        match token {
            Some(token) if token.scopes.iter().any(|scope| scope.allows(Scope::Read)) => Ok(()),
            _ => Err(unauthorized("The token that opened this connection is no longer accepted")),
        }
    }

    /// The sidecar itself as a caller, with the main token. It makes the first sign-in code.
    #[must_use]
    pub fn owner(&self) -> Caller {
        let main = self.tokens.accepted_main();
        main.map_or_else(Caller::anonymous, |token| Caller::with_token(token, AuthMethod::Bearer))
    }

    fn identify(
        &self,
        method: &Method,
        headers: &HeaderMap,
        page: Page,
        now: Millis,
    ) -> Result<Caller, ApiError> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        match (values.next(), values.next()) {
            (Some(one), None) if self.is_for_another_server(one, page, now) => {
                return Ok(Caller::redflow_ui());
            }
            (Some(one), None) => return self.find_caller(bearer(one), AuthMethod::Bearer, now),
            (Some(_), Some(_)) => return self.find_caller(None, AuthMethod::Bearer, now),
            (None, _) => {}
        }
        if is_websocket(method, headers) {
            let mut tokens = protocol_tokens(headers);
            match (tokens.next(), tokens.next()) {
                (Some(one), None) => return self.find_caller(Some(one), AuthMethod::Protocol, now),
                (Some(_), Some(_)) => return self.find_caller(None, AuthMethod::Protocol, now),
                (None, _) => {}
            }
        }
        // A browser sends its cookie to every port of this machine, so it must not give pages of the UI more
        // rights.
        if page == Page::RedflowUi {
            return Ok(Caller::redflow_ui());
        }
        let browser = session_cookies(headers).find_map(|session| self.find_browser(session, now));
        Ok(browser.unwrap_or_else(Caller::anonymous))
    }

    /// Whether a page of the Redflow UI, which needs no token here, sends one for the server behind this one.
    fn is_for_another_server(&self, authorization: &HeaderValue, page: Page, now: Millis) -> bool {
        let is_ours = || bearer(authorization).is_some_and(|token| self.tokens.find(token, now).is_some());
        page == Page::RedflowUi && self.settings.tokens_for_others && !is_ours()
    }

    /// None stands for a malformed token.
    fn find_caller(
        &self,
        token: Option<&str>,
        auth_method: AuthMethod,
        now: Millis,
    ) -> Result<Caller, ApiError> {
        let token = token.and_then(|token| self.tokens.find(token, now));
        token
            .map(|token| Caller::with_token(token, auth_method))
            .ok_or_else(|| self.count_failure(unauthorized("The token is not accepted here"), now))
    }

    /// The caller with this session. None if it is over: the browser is anonymous then, so that it can sign
    /// in again.
    fn find_browser(&self, session: &str, now: Millis) -> Option<Caller> {
        let found = self.with_sessions(|sessions| sessions.find(session, now))?;
        let token = self.tokens.find_name(&found.token_name, now).filter(|token| found.is_of(token))?;
        Some(Caller::browser(token, found.number))
    }

    /// Uses the sessions, and says if their file is older then.
    pub(crate) fn with_sessions<T>(&self, act: impl FnOnce(&mut Sessions) -> T) -> T {
        let mut sessions = lock(&self.sessions);
        let done = act(&mut sessions);
        if sessions.is_changed() {
            self.sessions_changed.notify_one();
        }
        done
    }

    /// Hides the error after too many wrong guesses. Callers with a right token are not affected.
    pub(crate) fn count_failure(&self, error: ApiError, now: Millis) -> ApiError {
        if lock(&self.failures).take(now) {
            return error;
        }
        ApiError::new(ApiCode::RateLimited, "There were too many wrong tokens and codes: wait a moment.")
    }
}

pub(crate) fn unauthorized(problem: &str) -> ApiError {
    ApiError::new(
        ApiCode::Unauthorized,
        format!(
            "{problem}: send `Authorization: Bearer TOKEN` with the token of `redflow token`; in a browser, open the \
             address that `redflow serve` printed."
        ),
    )
}

/// Checks the page behind a cookie, because a browser sends the cookie for pages of other sites too.
pub(crate) fn check_cookie_request(method: &Method, headers: &HeaderMap, page: Page) -> Result<(), ApiError> {
    let is_read = method == Method::GET || method == Method::HEAD;
    let is_admitted = page == Page::Admitted;
    if !is_admitted && (!is_read || headers.contains_key(UPGRADE)) {
        return Err(origin_refused(
            "A browser request that changes something or opens a WebSocket needs an `Origin` header",
        ));
    }
    let fetch = |name: &'static str| headers.get(HeaderName::from_static(name)).map(HeaderValue::as_bytes);
    match fetch("sec-fetch-site") {
        None | Some(b"same-origin" | b"none") => Ok(()),
        // From another port of this machine, links are allowed, but a fetch needs an admitted page.
        Some(b"same-site") if is_admitted || fetch("sec-fetch-mode") == Some(b"navigate") => Ok(()),
        Some(_) => Err(origin_refused("The request comes from a page of another site")),
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN_BYTES)
        .then_some(token)
}

fn is_websocket(method: &Method, headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    method == Method::GET && upgrade.is_some_and(|upgrade| upgrade.eq_ignore_ascii_case(b"websocket"))
}

fn protocol_tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let protocols = values.flat_map(|value| value.split(','));
    protocols.filter_map(|protocol| protocol.trim().strip_prefix(TOKEN_PROTOCOL))
}

/// All cookies that can be a session. Pages of other ports on this machine can add cookies of any name and
/// content, so none of them may hide ours. The size of a head bounds their number.
pub(crate) fn session_cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(COOKIE_HEADER).iter().map(HeaderValue::as_bytes);
    let pairs = values.flat_map(|value| value.split(|&byte| byte == b';'));
    let pairs = pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.trim().split_once('='));
    pairs.filter(|(name, value)| *name == COOKIE && is_session(value)).map(|(_, session)| session)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
