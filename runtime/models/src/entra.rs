//! Signs in to Azure as an application of Microsoft Entra ID, with the client credentials grant of OAuth 2.
//!
//! Owns the token of a node: one request at a time, kept until shortly before it expires. Neither the secret of the
//! application nor a token is in any text. A token goes only to the address of the model.

use crate::call_error::CallError;
use crate::transport::{Endpoint, Transport, read_body};
use http::{HeaderValue, header};
use redflow_contract::code::RunErrorCode;
use redflow_contract::scrub::Scrubber;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::form_urlencoded::Serializer;

/// How long before its end a token is renewed. One that lives shorter than twice this is renewed at half its time.
const EXPIRY_MARGIN: Duration = Duration::from_secs(300);
/// The longest time that a token is kept.
const MAX_TOKEN_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest answer with a token, in bytes.
const MAX_TOKEN_BYTES: usize = 64 * 1024;
/// The longest code of an error that is shown.
const MAX_CODE_CHARS: usize = 60;

/// How a node signs in, and its token.
pub struct EntraSignIn {
    endpoint: Endpoint,
    /// The host that gives tokens, for users.
    host: String,
    client_id: String,
    client_secret: SecretString,
    scope: &'static str,
    token: Mutex<Option<Arc<AccessToken>>>,
}

/// A token, as a header that no log shows.
pub(crate) struct AccessToken {
    header: HeaderValue,
    renew_at: Instant,
    /// Removes the token from texts of the provider.
    pub(crate) secrets: Scrubber,
}

impl AccessToken {
    /// An endpoint with the token.
    pub(crate) fn add_to(&self, endpoint: &Endpoint) -> Endpoint {
        let mut endpoint = endpoint.clone();
        endpoint.headers.insert(header::AUTHORIZATION, self.header.clone());
        endpoint
    }
}

impl EntraSignIn {
    /// Signs in at the address that gives tokens.
    pub(crate) fn new(
        endpoint: Endpoint,
        client_id: String,
        client_secret: SecretString,
        scope: &'static str,
    ) -> Self {
        let host = endpoint.url.host_str().unwrap_or_default().to_owned();
        Self { endpoint, host, client_id, client_secret, scope, token: Mutex::default() }
    }

    /// The token, or a new one if it expires soon or is one that the endpoint has refused. The lock lets one request be
    /// under way.
    pub(crate) async fn token(
        &self,
        transport: &dyn Transport,
        refused: Option<&Arc<AccessToken>>,
    ) -> Result<Arc<AccessToken>, CallError> {
        let mut kept = self.token.lock().await;
        let is_refused =
            |token: &Arc<AccessToken>| refused.is_some_and(|refused| Arc::ptr_eq(refused, token));
        if let Some(token) =
            kept.as_ref().filter(|token| Instant::now() < token.renew_at && !is_refused(token))
        {
            return Ok(Arc::clone(token));
        }
        *kept = None;
        let token = Arc::new(self.request_token(transport).await?);
        *kept = Some(Arc::clone(&token));
        Ok(token)
    }

    async fn request_token(&self, transport: &dyn Transport) -> Result<AccessToken, CallError> {
        let response = transport.post(&self.endpoint, self.form().into_bytes()).await;
        let response = response.map_err(|why| self.unavailable(&format!("could not be reached: {why}")))?;
        let body = read_body(response.body, MAX_TOKEN_BYTES).await;
        let (body, _) = body.map_err(|why| self.unavailable(&format!("gave no token: {why}")))?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        match response.status {
            200..300 => {}
            408 | 429 | 500.. => {
                return Err(
                    self.unavailable(&format!("is overloaded or out of order (HTTP {})", response.status))
                );
            }
            status => return Err(self.refused(status, &body)),
        }
        let token = body["access_token"]
            .as_str()
            .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
        let header = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        let (Some(token), Some(mut header)) = (token, header) else {
            return Err(self.unavailable("gave no token; check `authority`"));
        };
        header.set_sensitive(true);
        let mut secrets = Scrubber::default();
        secrets.add(token);
        // Some servers write the number as text.
        let life = &body["expires_in"];
        let life = life.as_u64().or_else(|| life.as_str()?.parse().ok()).unwrap_or(0);
        let life = Duration::from_secs(life).min(MAX_TOKEN_TIME);
        let renew_after = life.saturating_sub(EXPIRY_MARGIN).max((life / 2).min(EXPIRY_MARGIN));
        Ok(AccessToken { header, renew_at: Instant::now() + renew_after, secrets })
    }

    fn form(&self) -> String {
        Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", &self.client_id)
            .append_pair("client_secret", self.client_secret.expose_secret())
            .append_pair("scope", self.scope)
            .finish()
    }

    fn unavailable(&self, what: &str) -> CallError {
        let message = format!("Entra ID ({}), which gives the token for Azure, {what}", self.host);
        CallError::SignIn { code: RunErrorCode::ProviderUnavailable, message }
    }

    /// A refusal, with the codes of Entra ID. Its sentences are not shown, because they may quote the request.
    fn refused(&self, status: u16, body: &Value) -> CallError {
        let mut message =
            format!("Entra ID ({}) refused to sign in the application (HTTP {status}", self.host);
        let is_code = |text: &&str| {
            text.len() <= MAX_CODE_CHARS && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        if let Some(code) = body["error"].as_str().filter(is_code) {
            let _ = write!(message, ", {code}");
        }
        let number = body["error_codes"][0].as_u64();
        if let Some(number) = number {
            let _ = write!(message, ", AADSTS{number}");
        }
        message.push_str(match number {
            // The tenant or the application does not exist.
            Some(90002 | 900_023 | 700_016) => "); check `tenantId` and `clientId` of the node",
            // The secret has expired.
            Some(7_000_222) => "); its secret has expired: make a new one, and put it into `clientSecret`",
            _ => "); check `tenantId`, `clientId` and `clientSecret` of the node",
        });
        CallError::SignIn { code: RunErrorCode::InvalidCredentials, message }
    }
}

#[cfg(test)]
#[path = "entra_tests.rs"]
mod tests;
