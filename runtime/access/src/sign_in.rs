//! Signs browsers in and out, and keeps their sessions in a file.

use crate::guard::{AccessControl, AuthMethod, Caller, check_cookie_request, session_cookies, unauthorized};
use crate::lock;
use crate::peer::PeerAddress;
use crate::sessions::{CLEAR_COOKIE, CLEAR_COOKIE_HTTPS, Sessions, set_cookie};
use crate::settings::Scheme;
use crate::tokens::AcceptedToken;
use http::{HeaderMap, HeaderValue, Method};
use redflow_contract::Millis;
use redflow_contract::api::{ApiError, Scope, SignInCode};
use redflow_contract::code::ApiCode;
use secrecy::ExposeSecret as _;

impl AccessControl {
    /// Makes a one-time code that opens one browser session with the rights of this caller.
    ///
    /// # Errors
    /// `UNAUTHORIZED` or `FORBIDDEN` without the scope `admin`.
    pub fn sign_in_code(&self, caller: &Caller, now: Millis) -> Result<SignInCode, ApiError> {
        self.require(caller, Scope::Admin)?;
        let Some(token) = caller.token else { return Err(unauthorized("This needs a token")) };
        let (code, expires_at) = self.with_sessions(|sessions| sessions.make_code(token, now))?;
        Ok(SignInCode { path: format!("/sign-in?code={}", code.expose_secret()), expires_at })
    }

    /// Opens a session with a one-time code, and closes an earlier session of this browser. Returns the value of
    /// `Set-Cookie`.
    ///
    /// # Errors
    /// `SIGN_IN_REFUSED`; `RATE_LIMITED` after too many wrong codes and tokens.
    pub fn sign_in(&self, code: &str, headers: &HeaderMap, now: Millis) -> Result<HeaderValue, ApiError> {
        let token = self.with_sessions(|sessions| sessions.redeem(code, now));
        let Some(token) = token.and_then(|token| self.tokens.find_fingerprint(&token, now)) else {
            return Err(self.count_failure(refused(), now));
        };
        self.close_sessions(headers);
        Ok(self.open_session(token, now)?.0)
    }

    /// Opens a session with the rights of a token, and closes an earlier session of this browser. Returns the value
    /// of `Set-Cookie`, and the caller that the browser is from now on. The rules for requests with a cookie apply,
    /// so that a page of another site cannot sign a browser in.
    ///
    /// # Errors
    /// `ORIGIN_REFUSED`; `UNAUTHORIZED` for a wrong token; `RATE_LIMITED` for too many tokens from one address, right or
    /// wrong, and for too many requests.
    pub fn sign_in_with_token(
        &self,
        token: &str,
        peer: PeerAddress,
        headers: &HeaderMap,
        now: Millis,
    ) -> Result<(HeaderValue, Caller), ApiError> {
        let page = self.origins.check_origin(headers)?;
        check_cookie_request(&Method::POST, headers, page)?;
        // A right guess must be as slow as a wrong one.
        if !lock(&self.sign_ins).take(&peer.network(), now) {
            return Err(ApiError::new(
                ApiCode::RateLimited,
                "Too many tokens were tried from this address: wait a moment.",
            ));
        }
        let token = self.tokens.find(token, now);
        let token = token.ok_or_else(|| unauthorized("The token is not accepted here"))?;
        self.check_rate(Caller::with_token(token.clone(), AuthMethod::Message), now)?;
        self.close_sessions(headers);
        self.open_session(token, now)
    }

    /// Closes the session of this browser. Returns the value of `Set-Cookie` that removes the cookie.
    #[must_use]
    pub fn sign_out(&self, headers: &HeaderMap) -> HeaderValue {
        self.close_sessions(headers);
        HeaderValue::from_static(match self.settings.scheme() {
            Scheme::Http => CLEAR_COOKIE,
            Scheme::Https => CLEAR_COOKIE_HTTPS,
        })
    }

    /// Waits until the file of the sessions is older than them. Never ends without a file.
    pub async fn sessions_changed(&self) {
        match &self.session_file {
            Some(_) => self.sessions_changed.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Writes the sessions to their file, if they have changed. It waits for the disk. After a failure they stay
    /// changed: try again later.
    ///
    /// # Errors
    /// `DATA_READ_ONLY`, `DATA_FULL` or `DATA_UNUSABLE`.
    pub fn save_sessions(&self) -> Result<(), ApiError> {
        let Some(file) = &self.session_file else { return Ok(()) };
        let stored = file.save(|| self.with_sessions(Sessions::changes))?;
        if let Some(revision) = stored {
            self.with_sessions(|sessions| sessions.mark_stored(revision));
        }
        Ok(())
    }

    fn open_session(&self, token: AcceptedToken, now: Millis) -> Result<(HeaderValue, Caller), ApiError> {
        let (session, number) = self.with_sessions(|sessions| sessions.open(&token, now))?;
        let (lifetime, scheme) = (self.settings.session_lifetime, self.settings.scheme());
        let text = set_cookie(session.expose_secret(), lifetime, scheme);
        let mut cookie = HeaderValue::try_from(text).map_err(|_| refused())?;
        cookie.set_sensitive(true);
        Ok((cookie, Caller::browser(token, number)))
    }

    fn close_sessions(&self, headers: &HeaderMap) {
        self.with_sessions(|sessions| session_cookies(headers).for_each(|session| sessions.close(session)));
    }
}

fn refused() -> ApiError {
    ApiError::new(ApiCode::SignInRefused, "The one-time code is wrong, used, or too old: request a new one.")
}

#[cfg(test)]
#[path = "sign_in_tests.rs"]
mod tests;
