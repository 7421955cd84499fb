//! MCP over streamable HTTP. Every request, also of OAuth, goes through the guarded way out.

mod client;
mod events;
mod failure;
mod issuer_client;
mod oauth;
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
pub use oauth::{LOGIN_TIME, LoginStart};

use self::client::Access;
use self::oauth::{OAuth, OAuthSettings};
use self::tokens::Tokens;
use http::HeaderName;
use redflow_contract::mcp::OAuthGrant;
use redflow_egress::{Egress, HostPattern, JudgedUrl};
use redflow_ports::McpStore;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
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

/// A server at an address. A server has one endpoint, because the endpoint knows its tokens.
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
    /// When the way out refuses the address, or a secret would go there unencrypted. The text says how to mend it.
    pub fn new(
        url: &str,
        auth: ResolvedAuth,
        egress: Egress,
        store: Arc<dyn McpStore>,
        token_key: String,
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
                let settings = OAuthSettings { grant, client_id, client_secret, scopes };
                let tokens = Tokens::new(store, token_key, url.to_owned());
                Access::OAuth(Arc::new(OAuth::new(url.to_owned(), settings, egress.clone(), tokens)))
            }
        };
        let origin = Url::parse(url).map_err(|error| error.to_string())?.origin();
        Ok(Self { url: url.into(), client: EgressClient::new(egress, host, origin, access) })
    }

    /// A connection that has sent nothing yet.
    #[must_use]
    pub fn transport(&self) -> StreamableHttpClientTransport<EgressClient> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.clone())
            .max_sse_event_size(MAX_EVENT_BYTES);
        StreamableHttpClientTransport::with_client(self.client.clone(), config)
    }

    /// Begins a sign-in. The issuer sends the person back to `redirect`. A sign-in that has begun before ends.
    ///
    /// # Errors
    /// When the server or its issuer does not offer it. The text says how to mend it.
    pub async fn start_login(&self, redirect: &str) -> Result<LoginStart, String> {
        self.oauth()?.start_login(redirect).await
    }

    /// Ends a sign-in with the address that the issuer sent the person to.
    ///
    /// # Errors
    /// When the address belongs to no sign-in, or the issuer gives no tokens.
    pub async fn finish_login(&self, callback: &str) -> Result<(), String> {
        self.oauth()?.finish_login(callback, Instant::now()).await
    }

    /// Removes the tokens.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub fn logout(&self) -> Result<(), String> {
        self.oauth()?.logout()
    }

    /// Whether a person must sign in before the server can be used.
    pub async fn needs_login(&self) -> bool {
        match self.oauth() {
            Ok(oauth) => oauth.needs_login().await,
            Err(_) => false,
        }
    }

    /// The tokens that are kept, so that no result shows them.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        self.client.oauth().map(OAuth::secrets).unwrap_or_default()
    }

    fn oauth(&self) -> Result<&OAuth, String> {
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
