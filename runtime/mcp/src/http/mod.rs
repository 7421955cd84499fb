//! MCP over streamable HTTP. Every request, also of OAuth, goes through the guarded way out.

mod client;
mod events;
mod failure;
mod issuer_client;
mod oauth;
mod scopes;
mod tokens;

#[cfg(test)]
mod http_tests;
#[cfg(test)]
mod oauth_tests;
#[cfg(test)]
#[path = "tests/kit.rs"]
mod test_kit;

pub use client::{EgressClient, MAX_ANSWER_BYTES};
pub use events::MAX_EVENT_BYTES;
pub use failure::{HttpError, HttpFailure};
pub use oauth::{LOGIN_TIME, LoginError, LoginErrorKind, LoginStart};
pub use tokens::{AllTokens, TokenKey};

use self::client::Access;
use self::oauth::{OAuth, OAuthSettings};
use http::HeaderName;
use redflow_contract::mcp::{MAX_MCP_TIMEOUT_MS, OAuthGrant};
use redflow_egress::{Egress, HostPattern, JudgedUrl};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use url::Url;

/// How the sidecar proves to a server who it is, with the secrets.
#[derive(Debug, Clone)]
pub enum ResolvedAuth {
    /// It does not.
    None,
    /// A bearer token.
    Bearer(SecretString),
    /// A header.
    Header {
        /// Its name.
        name: HeaderName,
        /// Its value.
        value: SecretString,
    },
    /// OAuth 2.1.
    OAuth {
        /// How the sidecar gets tokens.
        grant: OAuthGrant,
        /// The id of the client; none if the issuer registers clients by itself.
        client_id: Option<String>,
        /// The secret of the client.
        client_secret: Option<SecretString>,
        /// What the sidecar asks to be allowed; empty for what the server asks for.
        scopes: Vec<String>,
    },
}

/// The longest times of a connection.
#[derive(Debug, Clone, Copy)]
pub struct HttpTimes {
    /// Of a request that waits for a result. Callers have their own, shorter ones.
    pub result: Duration,
    /// Of a request without a result.
    pub plain: Duration,
    /// Without a byte on a stream that a server opened for itself. Many servers never send a sign of life, and each end
    /// costs a new request.
    pub silent: Duration,
    /// Of a request to an issuer.
    pub issuer: Duration,
}

impl Default for HttpTimes {
    fn default() -> Self {
        Self {
            result: Duration::from_millis(MAX_MCP_TIMEOUT_MS),
            plain: Duration::from_secs(30),
            silent: Duration::from_secs(5 * 60),
            issuer: Duration::from_secs(30),
        }
    }
}

/// The headers that the protocol itself sets: those of MCP, and those of the connection.
const OWN_HEADERS: [&str; 15] = [
    "accept",
    "content-type",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
];

/// A server at an address.
pub struct HttpEndpoint {
    url: Arc<str>,
    client: EgressClient,
}

impl std::fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpEndpoint").field("client", &self.client).finish_non_exhaustive()
    }
}

impl HttpEndpoint {
    /// An endpoint. It makes no request. The tokens of OAuth are kept under `token_key`.
    ///
    /// # Errors
    /// When the way out refuses the address, or a secret would go there unencrypted. The text says how to fix it.
    pub fn new(
        url: &str,
        auth: ResolvedAuth,
        egress: Egress,
        tokens: &AllTokens,
        token_key: impl Into<TokenKey>,
        times: HttpTimes,
    ) -> Result<Self, String> {
        let judged = egress.judge(url).map_err(|refusal| refusal.to_string())?;
        let host = host_of(&judged)?;
        if !matches!(auth, ResolvedAuth::None) {
            check_secrecy(&judged)?;
        }
        let access = match auth {
            ResolvedAuth::None => Access::None,
            ResolvedAuth::Bearer(token) => {
                let value = format!("Bearer {}", token.expose_secret()).into();
                Access::Header { name: http::header::AUTHORIZATION, value }
            }
            ResolvedAuth::Header { name, .. } if OWN_HEADERS.contains(&name.as_str()) => {
                return Err(format!("The header `{name}` belongs to the protocol: choose another one."));
            }
            ResolvedAuth::Header { name, value } => Access::Header { name, value },
            ResolvedAuth::OAuth { grant, client_id, client_secret, scopes } => {
                if grant == OAuthGrant::ClientCredentials && (client_id.is_none() || client_secret.is_none())
                {
                    return Err("The grant `client_credentials` needs `clientId` and `secretEnv`.".to_owned());
                }
                if client_secret.is_some() && client_id.is_none() {
                    return Err("`secretEnv` needs `clientId`.".to_owned());
                }
                let tokens = tokens.of(token_key.into(), url.to_owned(), client_id.as_deref());
                let settings = OAuthSettings { grant, client_id, client_secret, scopes };
                Access::OAuth(Arc::new(OAuth::new(url.to_owned(), settings, egress.clone(), times, tokens)))
            }
        };
        let origin = Url::parse(url).map_err(|error| error.to_string())?.origin();
        let url: Arc<str> = url.into();
        let client = EgressClient::new(Arc::clone(&url), egress, (host, origin), access, times);
        Ok(Self { url, client })
    }

    /// A connection that has sent nothing yet. It tells `session_end` when the server has ended its session, unless a
    /// call finds it out: that one has the failure.
    ///
    /// rmcp must not begin another session by itself: it would answer the open calls of the old one with an error, though
    /// the server may have done what they ask.
    #[must_use]
    pub fn transport(&self, session_end: Arc<Notify>) -> StreamableHttpClientTransport<EgressClient> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.clone())
            .max_sse_event_size(MAX_EVENT_BYTES)
            .reinit_on_expired_session(false);
        StreamableHttpClientTransport::with_client(self.client.for_session(session_end), config)
    }

    /// Begins a sign-in. The issuer sends the person back to `redirect`. A sign-in that has begun before ends.
    ///
    /// # Errors
    /// When the server or its issuer does not offer it. The text says how to fix it.
    pub async fn start_login(&self, redirect: &str) -> Result<LoginStart, LoginError> {
        self.oauth().map_err(LoginError::refused)?.start_login(redirect).await
    }

    /// Ends a sign-in with the address that the issuer sent the person to.
    ///
    /// # Errors
    /// When the address belongs to no sign-in, or the issuer gives no tokens.
    pub async fn finish_login(&self, callback: &str) -> Result<(), LoginError> {
        self.oauth().map_err(LoginError::refused)?.finish_login(callback, Instant::now()).await
    }

    /// Has the next sign-in ask for the scopes that tokens have lacked elsewhere, too.
    pub(crate) fn learn_missing_scopes(&self, other: &Self) {
        if let (Some(own), Some(other)) = (self.client.oauth(), other.client.oauth()) {
            own.note_missing_scopes(other.missing_scopes());
        }
    }

    /// Forgets the scopes that tokens have lacked.
    pub(crate) fn forget_missing_scopes(&self) {
        if let Some(oauth) = self.client.oauth() {
            oauth.forget_missing_scopes();
        }
    }

    /// Removes the tokens.
    ///
    /// # Errors
    /// When there can be none, or they cannot be removed.
    pub async fn logout(&self) -> Result<(), LoginError> {
        let oauth = self.oauth().map_err(LoginError::refused)?;
        oauth.logout().await.map_err(|text| LoginError { text, kind: LoginErrorKind::Failed })
    }

    /// Whether a person can sign in.
    #[must_use]
    pub fn has_login(&self) -> bool {
        self.client.oauth().is_some_and(|oauth| oauth.has_login())
    }

    /// Whether a person must sign in before the server can be used.
    ///
    /// # Errors
    /// When the tokens cannot be read.
    pub async fn needs_login(&self) -> Result<bool, String> {
        match self.client.oauth() {
            Some(oauth) => oauth.needs_login().await,
            None => Ok(false),
        }
    }

    /// The tokens that are kept, so that no result shows them.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        self.client.oauth().map(|oauth| oauth.secrets()).unwrap_or_default()
    }

    fn oauth(&self) -> Result<&Arc<OAuth>, String> {
        self.client
            .oauth()
            .ok_or_else(|| "The server is not defined with `auth` of the type `oauth`.".to_owned())
    }
}

/// The host and port of an address, which alone may get its credential.
fn host_of(judged: &JudgedUrl) -> Result<HostPattern, String> {
    let host = &judged.host;
    let is_bare_v6 = host.contains(':') && !host.starts_with('[');
    let text =
        if is_bare_v6 { format!("[{host}]:{}", judged.port) } else { format!("{host}:{}", judged.port) };
    HostPattern::parse(&text)
}

/// Refuses an address where a secret would be readable on its way.
pub(crate) fn check_secrecy(judged: &JudgedUrl) -> Result<(), String> {
    if judged.scheme == "https" || judged.is_private {
        return Ok(());
    }
    let (host, port) = (&judged.host, judged.port);
    Err(format!(
        "A secret does not go unencrypted to `{host}`: use https, or add `{host}:{port}` to `[egress] private` if it is \
         in your own network."
    ))
}
