//! The guard: host, then origin, then who it is, then how often.
//!
//! Owns the order of the questions and what a caller may do. Never repeats a token or a cookie, nor more than a
//! short, printable part of anything else a stranger sent.

use crate::fingerprint::Fingerprint;
use crate::lock;
use crate::origins::{Origins, Page, origin_refused};
use crate::rates::{RateBucket, RateLimiter};
use crate::sessions::{COOKIE, FORGET, FORGET_SECURE, Sessions, set_cookie};
use crate::settings::AccessSettings;
use crate::tokens::{Known, MAX_TOKEN_BYTES, Tokens};
use http::header::{AUTHORIZATION, COOKIE as COOKIE_HEADER, HeaderName, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Uri};
use redflow_contract::Millis;
use redflow_contract::api::{ApiError, Scope, SignInCode};
use redflow_contract::code::ApiCode;
use secrecy::ExposeSecret as _;
use std::sync::{Arc, Mutex};

/// How a browser's page that has no cookie passes its token to a socket: as a subprotocol with this in front.
const TOKEN_PROTOCOL: &str = "redflow.token.";

/// The most cookies of our name that are tried: pages of other ports on this machine can add some.
const MAX_COOKIES: usize = 4;

/// What the Redflow UI is called.
const REDFLOW_UI: &str = "the Redflow UI";

/// How somebody showed who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// `Authorization: Bearer`.
    Bearer,
    /// The cookie of a browser that signed in.
    Cookie,
    /// A subprotocol of a socket.
    Protocol,
    /// A message on a socket.
    Message,
    /// No token: the page it comes from is one of the Redflow UI. Any program of this machine can say so too. It may
    /// use the routes of that UI alone; which those are, the server knows.
    RedflowUi,
    /// Not at all.
    Nobody,
}

/// Who a request comes from.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What the token is called; for a browser, who let it in and its number.
    pub name: Arc<str>,
    /// What it may do.
    pub scopes: Arc<[Scope]>,
    /// How it showed that.
    pub by: AuthMethod,
    /// The token that it all goes back to.
    token: Option<Fingerprint>,
    /// The number of the browser's session.
    session: Option<u64>,
}

impl Caller {
    /// Whether it may do what needs this scope.
    #[must_use]
    pub fn may(&self, needed: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.allows(needed))
    }

    /// Somebody who showed nothing.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: "nobody".into(),
            scopes: Arc::new([]),
            by: AuthMethod::Nobody,
            token: None,
            session: None,
        }
    }

    fn redflow_ui() -> Self {
        let scopes = Arc::new([Scope::Read, Scope::Run, Scope::Deploy]);
        Self { name: REDFLOW_UI.into(), scopes, by: AuthMethod::RedflowUi, token: None, session: None }
    }

    fn known(known: Known, by: AuthMethod) -> Self {
        Self { name: known.name, scopes: known.scopes, by, token: Some(known.print), session: None }
    }
}

/// Decides who may come in.
#[derive(Debug)]
pub struct AccessControl {
    settings: AccessSettings,
    place: Origins,
    tokens: Tokens,
    sessions: Mutex<Sessions>,
    rates: Mutex<RateLimiter>,
    failures: Mutex<RateBucket>,
}

impl AccessControl {
    /// A door. `settings.listen` is the address that was really bound.
    ///
    /// # Errors
    /// `CONFIG_FILE_INVALID` for hosts and origins that cannot be, and for a Redflow UI where other machines can ask.
    pub fn new(settings: AccessSettings, tokens: Tokens) -> Result<Self, ApiError> {
        let mut place = Origins::new(settings.listen, &settings.hosts, &settings.origins, settings.https)?;
        if let Some(origin) = &settings.redflow_ui {
            place = place.with_redflow_ui(settings.listen, origin)?;
        }
        Ok(Self {
            place,
            tokens,
            sessions: Mutex::new(Sessions::new(&settings)),
            rates: Mutex::new(RateLimiter::new(settings.requests_per_second, settings.request_burst)),
            failures: Mutex::new(RateBucket::new(settings.failures_per_second, settings.failure_burst, 0)),
            settings,
        })
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &AccessSettings {
        &self.settings
    }

    /// The tokens it accepts.
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The origin of the Redflow UI, if this request comes from one of its pages and was sent here.
    #[must_use]
    pub fn redflow_ui(&self, uri: &Uri, headers: &HeaderMap) -> Option<&str> {
        let here = self.place.check_host(uri, headers).is_ok();
        let from_it = here && self.place.check_origin(headers) == Ok(Page::RedflowUi);
        self.place.redflow_ui().filter(|_| from_it)
    }

    /// Who a request comes from. For every request and every upgrade, before anything else is done with it.
    /// Whoever shows nothing is let in as nobody: ask [`AccessControl::require`] before doing anything that needs a scope. A
    /// page of the Redflow UI that shows nothing is let in as that: ask [`Caller::by`] before doing anything that is
    /// not for it.
    ///
    /// # Errors
    /// `HOST_REFUSED`, `ORIGIN_REFUSED`, `UNAUTHORIZED` for a token that is wrong, `RATE_LIMITED`.
    pub fn authenticate(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        now: Millis,
    ) -> Result<Caller, ApiError> {
        self.place.check_host(uri, headers)?;
        let page = self.place.check_origin(headers)?;
        let caller = self.identify(method, headers, page, now)?;
        if caller.by == AuthMethod::Cookie {
            check_page(method, headers, page == Page::Admitted)?;
        }
        self.in_time(caller, now)
    }

    /// Whose token this is. For those who could not show it with their request, as on a socket whose first message
    /// has it.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for a token that is wrong, `RATE_LIMITED`.
    pub fn authenticate_token(&self, token: &str, now: Millis) -> Result<Caller, ApiError> {
        self.in_time(self.owner_of(Some(token), AuthMethod::Message, now)?, now)
    }

    /// The caller, unless it asks too often.
    fn in_time(&self, caller: Caller, now: Millis) -> Result<Caller, ApiError> {
        if caller.by == AuthMethod::Nobody || lock(&self.rates).take(&caller.name, now) {
            return Ok(caller);
        }
        Err(ApiError::new(
            ApiCode::RateLimited,
            format!(
                "`{}` asks more than {} times a second: wait a moment, or raise the limit in the configuration.",
                caller.name, self.settings.requests_per_second
            ),
        ))
    }

    /// Whether the caller may do what needs this scope.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for nobody, `FORBIDDEN` for somebody.
    pub fn require(&self, caller: &Caller, needed: Scope) -> Result<(), ApiError> {
        match caller.by {
            _ if caller.may(needed) => Ok(()),
            AuthMethod::Nobody => {
                Err(unauthorized("This needs a token, and there was none, or a sign-in that is over"))
            }
            _ => {
                let has: Vec<&str> = caller.scopes.iter().map(|scope| scope.as_str()).collect();
                Err(ApiError::new(
                    ApiCode::Forbidden,
                    format!(
                        "`{}` may {}, and this needs `{}`: use another token, or make one with that scope.",
                        caller.name,
                        has.join(", "),
                        needed.as_str()
                    ),
                ))
            }
        }
    }

    /// Whether somebody who was let in a while ago still would be: a socket outlives the request that opened it.
    ///
    /// # Errors
    /// `UNAUTHORIZED` if its token is no longer accepted, or may no longer look, or its browser has signed out.
    pub fn recheck(&self, caller: &Caller, now: Millis) -> Result<(), ApiError> {
        // There is no token that could go bad, and who is admitted does not change while this runs.
        if caller.by == AuthMethod::RedflowUi {
            return Ok(());
        }
        if caller.session.is_some_and(|number| !lock(&self.sessions).goes_on(number, now)) {
            return Err(unauthorized("The sign-in this was opened with is over"));
        }
        let known = caller.token.and_then(|print| self.tokens.owner(&print, now));
        match known {
            Some(known) if known.scopes.iter().any(|scope| scope.allows(Scope::Read)) => Ok(()),
            _ => Err(unauthorized("The token this was opened with is no longer accepted")),
        }
    }

    /// The process itself, for which the main token stands: to make the first code.
    #[must_use]
    pub fn owner(&self) -> Caller {
        self.tokens.first().map_or_else(Caller::anonymous, |known| Caller::known(known, AuthMethod::Bearer))
    }

    /// A one-time code that lets one browser in as who asked for it.
    ///
    /// # Errors
    /// `UNAUTHORIZED` or `FORBIDDEN` without the scope `admin`.
    pub fn sign_in_code(&self, caller: &Caller, now: Millis) -> Result<SignInCode, ApiError> {
        self.require(caller, Scope::Admin)?;
        let Some(maker) = caller.token else { return Err(unauthorized("This needs a token")) };
        let (code, expires_at) = lock(&self.sessions).make_code(maker, now)?;
        Ok(SignInCode { path: format!("/sign-in?code={}", code.expose_secret()), expires_at })
    }

    /// Turns a one-time code into a session: the value of `Set-Cookie`.
    ///
    /// # Errors
    /// `SIGN_IN_REFUSED`; `RATE_LIMITED` for a wrong code if there were too many.
    pub fn sign_in(&self, code: &str, now: Millis) -> Result<HeaderValue, ApiError> {
        let refused = || {
            ApiError::new(
                ApiCode::SignInRefused,
                "The one-time code is wrong, used, or too old: ask for a new one.",
            )
        };
        let maker = lock(&self.sessions).redeem(code, now);
        let Some(maker) = maker.filter(|maker| self.tokens.owner(maker, now).is_some()) else {
            return Err(self.failed(refused(), now));
        };
        let session = lock(&self.sessions).open(maker, now)?;
        let text = set_cookie(session.expose_secret(), self.settings.session_lifetime, self.settings.https);
        let mut value = HeaderValue::try_from(text).map_err(|_| refused())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Ends the session of this browser: the value of `Set-Cookie` that makes it forget.
    #[must_use]
    pub fn sign_out(&self, headers: &HeaderMap) -> HeaderValue {
        let mut sessions = lock(&self.sessions);
        cookies(headers).for_each(|session| sessions.close(session));
        HeaderValue::from_static(if self.settings.https { FORGET_SECURE } else { FORGET })
    }

    fn identify(
        &self,
        method: &Method,
        headers: &HeaderMap,
        page: Page,
        now: Millis,
    ) -> Result<Caller, ApiError> {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        match (shown.next(), shown.next()) {
            (Some(one), None) if self.is_for_others(one, page, now) => return Ok(Caller::redflow_ui()),
            (Some(one), None) => return self.owner_of(bearer(one), AuthMethod::Bearer, now),
            (Some(_), Some(_)) => return self.owner_of(None, AuthMethod::Bearer, now),
            (None, _) => {}
        }
        if is_socket(method, headers) {
            let mut shown = protocol_tokens(headers);
            match (shown.next(), shown.next()) {
                (Some(one), None) => return self.owner_of(Some(one), AuthMethod::Protocol, now),
                (Some(_), Some(_)) => return self.owner_of(None, AuthMethod::Protocol, now),
                (None, _) => {}
            }
        }
        // A browser sends its cookie to every port of this machine: pages that are let in for less do not get more by it.
        if page == Page::RedflowUi {
            return Ok(Caller::redflow_ui());
        }
        Ok(cookies(headers).find_map(|session| self.browser(session, now)).unwrap_or_else(Caller::anonymous))
    }

    /// Whether a page that needs no token here sends one for somebody behind us.
    fn is_for_others(&self, shown: &HeaderValue, page: Page, now: Millis) -> bool {
        let is_ours = || bearer(shown).is_some_and(|token| self.tokens.find(token, now).is_some());
        page == Page::RedflowUi && self.settings.tokens_for_others && !is_ours()
    }

    fn owner_of(&self, token: Option<&str>, by: AuthMethod, now: Millis) -> Result<Caller, ApiError> {
        let known = token.and_then(|token| self.tokens.find(token, now));
        known
            .map(|known| Caller::known(known, by))
            .ok_or_else(|| self.failed(unauthorized("The token is not one that is accepted here"), now))
    }

    /// A browser that is signed in. One whose session is over is nobody: it has to be able to sign in again.
    fn browser(&self, session: &str, now: Millis) -> Option<Caller> {
        let (maker, number) = lock(&self.sessions).find(session, now)?;
        let known = self.tokens.owner(&maker, now)?;
        let name = format!("{}, browser {number}", known.name).into();
        Some(Caller { name, session: Some(number), ..Caller::known(known, AuthMethod::Cookie) })
    }

    /// Who guesses too often learns nothing more. Who knows a token is not affected.
    fn failed(&self, error: ApiError, now: Millis) -> ApiError {
        if lock(&self.failures).take(now) {
            return error;
        }
        ApiError::new(ApiCode::RateLimited, "Too many wrong tokens and codes were sent: wait a moment.")
    }
}

fn unauthorized(what: &str) -> ApiError {
    ApiError::new(
        ApiCode::Unauthorized,
        format!(
            "{what}: send `Authorization: Bearer TOKEN` with what `redflow token` prints; in a browser, open the \
             address that `redflow serve` printed."
        ),
    )
}

/// What a browser's cookie is not enough for: it is sent along whichever page asks.
fn check_page(method: &Method, headers: &HeaderMap, from_page: bool) -> Result<(), ApiError> {
    let looks = method == Method::GET || method == Method::HEAD;
    if !from_page && (!looks || headers.contains_key(UPGRADE)) {
        return Err(origin_refused(
            "A browser that changes something or opens a socket has to say from which page",
        ));
    }
    let fetch = |name: &'static str| headers.get(HeaderName::from_static(name)).map(HeaderValue::as_bytes);
    match fetch("sec-fetch-site") {
        None | Some(b"same-origin" | b"none") => Ok(()),
        // Another port of this machine: a link leads here, but what is fetched has to come from an admitted page.
        Some(b"same-site") if from_page || fetch("sec-fetch-mode") == Some(b"navigate") => Ok(()),
        Some(_) => Err(origin_refused("The request comes from a page of another site")),
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN_BYTES)
        .then_some(token)
}

fn is_socket(method: &Method, headers: &HeaderMap) -> bool {
    let asked = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    method == Method::GET && asked.is_some_and(|asked| asked.eq_ignore_ascii_case(b"websocket"))
}

fn protocol_tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(|protocol| protocol.trim().strip_prefix(TOKEN_PROTOCOL))
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE_HEADER).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, session)| session).take(MAX_COOKIES)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
