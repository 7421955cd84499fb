//! OAuth 2.1: tokens by a sign-in of a person, or with the secret of the client.

use super::HttpTimes;
use super::issuer_client::IssuerClient;
use super::scopes::{bounded, together};
use super::tokens::{Record, Tokens};
use crate::text::clean_line;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use redflow_contract::mcp::OAuthGrant;
use redflow_egress::Egress;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadataSource, AuthorizationRequest, AuthorizationSession,
    ClientCredentialsConfig, OAuthClientConfig,
};
use secrecy::{ExposeSecret, SecretString};
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;
use url::Url;

/// How long a person may take to sign in.
pub const LOGIN_TIME: Duration = Duration::from_secs(10 * 60);

/// The name of the sidecar at issuers.
const CLIENT_NAME: &str = "Redflow";

/// The longest challenge of a server that is kept.
pub(super) const MAX_CHALLENGE_BYTES: usize = 4_096;

/// The most characters of the name of an issuer in a text.
const MAX_ISSUER_CHARS: usize = 200;

/// The message without a token that finds out the challenge of a server.
const UNSIGNED_MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Where a person signs in.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginStart {
    /// The address to open.
    pub url: String,
    /// What the callback repeats, so that it belongs to this sign-in.
    pub state: String,
}

/// Leaves out the state: who knows it can end the sign-in.
impl std::fmt::Debug for LoginStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginStart").finish_non_exhaustive()
    }
}

/// Why a sign-in did not begin or end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginError {
    /// What happened, for people, without secrets.
    pub text: String,
    /// Whose turn it is now.
    pub kind: LoginErrorKind,
}

/// What an error means for a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginErrorKind {
    /// There is no such sign-in. Nothing was sent.
    Refused,
    /// The server or the issuer failed. The sign-in has ended.
    Failed,
    /// The answer is not from the issuer. The right one still counts.
    Forged,
}

impl LoginError {
    fn new(kind: LoginErrorKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind }
    }

    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self::new(LoginErrorKind::Refused, text)
    }

    fn failed(text: impl Into<String>) -> Self {
        Self::new(LoginErrorKind::Failed, text)
    }
}

/// The settings of the operator.
pub(super) struct OAuthSettings {
    pub(super) grant: OAuthGrant,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<SecretString>,
    pub(super) scopes: Vec<String>,
}

/// The tokens of a server, and the ways to get them.
pub(super) struct OAuth {
    url: String,
    settings: OAuthSettings,
    egress: Egress,
    times: HttpTimes,
    tokens: Tokens,
    login: Mutex<Option<OpenLogin>>,
    /// What the server said when it refused a request. It may name the issuer.
    challenge: SyncMutex<Option<String>>,
    /// The scopes that tokens have lacked. The next sign-in asks for them, too.
    missing_scopes: SyncMutex<Vec<String>>,
}

/// A sign-in that a person has not finished yet.
struct OpenLogin {
    state: String,
    until: Instant,
    session: AuthorizationSession,
    issuer: Arc<IssuerClient>,
}

impl OAuth {
    pub(super) fn new(
        url: String,
        settings: OAuthSettings,
        egress: Egress,
        times: HttpTimes,
        tokens: Tokens,
    ) -> Self {
        let (login, challenge, missing_scopes) =
            (Mutex::default(), SyncMutex::default(), SyncMutex::default());
        Self { url, settings, egress, times, tokens, login, challenge, missing_scopes }
    }

    /// The tokens that this process knows.
    pub(super) fn secrets(&self) -> Vec<SecretString> {
        self.tokens.secrets()
    }

    /// Whether a person can sign in.
    pub(super) fn has_login(&self) -> bool {
        self.settings.grant == OAuthGrant::AuthorizationCode
    }

    /// A valid token; none if a person must sign in.
    pub(super) async fn token(self: &Arc<Self>) -> Result<Option<SecretString>, String> {
        match self.tokens.read().await? {
            Some(record) if record.is_fresh() => Ok(record.token()),
            _ => self.renew(None).await,
        }
    }

    /// Another token than the one that the server refused; none if a person must sign in. It goes on if the caller
    /// does not wait any more: an issuer that has given a new refresh token does not accept the old one.
    pub(super) async fn renew(
        self: &Arc<Self>,
        refused: Option<&SecretString>,
    ) -> Result<Option<SecretString>, String> {
        let (this, refused) = (Arc::clone(self), refused.cloned());
        let renewal = tokio::spawn(async move { this.renew_alone(refused.as_ref()).await });
        renewal.await.unwrap_or_else(|_| Err("The renewal of the token was interrupted.".to_owned()))
    }

    async fn renew_alone(&self, refused: Option<&SecretString>) -> Result<Option<SecretString>, String> {
        let _alone = self.tokens.renew_alone().await;
        let record = self.tokens.read().await?;
        // Another request may have renewed it meanwhile.
        if let Some(record) = record.as_ref().filter(|record| record.is_fresh())
            && let Some(token) = record.token()
            && refused.is_none_or(|refused| refused.expose_secret() != token.expose_secret())
        {
            return Ok(Some(token));
        }
        match (self.settings.grant, record) {
            (OAuthGrant::ClientCredentials, _) => self.exchange_client_credentials().await?,
            (OAuthGrant::AuthorizationCode, Some(record)) if record.has_refresh_token() => {
                self.refresh(&record).await?;
            }
            (OAuthGrant::AuthorizationCode, _) => return Ok(None),
        }
        Ok(self.tokens.read().await?.and_then(|record| record.token()))
    }

    async fn exchange_client_credentials(&self) -> Result<(), String> {
        let (mut manager, client) = self.manager().await?;
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: self.settings.client_id.clone().unwrap_or_default(),
            client_secret: self.client_secret().unwrap_or_default(),
            scopes: self.settings.scopes.clone(),
            resource: Some(self.url.clone()),
        };
        let explain = |error: AuthError| explain(&error, &client);
        manager.validate_client_credentials_metadata(&config).map_err(explain)?;
        manager.configure_client_credentials(&config).map_err(explain)?;
        without_logs(manager.exchange_client_credentials(&config)).await.map_err(explain)?;
        Ok(())
    }

    /// Gets new tokens with the refresh token. It removes the tokens if the issuer does not accept them any more.
    async fn refresh(&self, record: &Record) -> Result<(), String> {
        let (mut manager, client) = self.manager().await?;
        let client_id = record.client_id().unwrap_or_default().to_owned();
        if self.settings.client_id.as_ref().is_some_and(|wanted| *wanted != client_id) {
            return self.tokens.drop_invalid().await;
        }
        let mut config = OAuthClientConfig::new(client_id, self.url.clone());
        if let Some(secret) = self.client_secret().or_else(|| record.client_secret().map(str::to_owned)) {
            config = config.with_client_secret(secret);
        }
        manager.configure_client(config).map_err(|error| explain(&error, &client))?;
        match without_logs(manager.refresh_token()).await {
            Ok(_) => Ok(()),
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                // Another process may have used the refresh token, and has kept a new one.
                match self.tokens.read_again().await? {
                    Some(kept) if *kept != *record => Ok(()),
                    _ => self.tokens.drop_invalid().await,
                }
            }
            Err(error) => Err(explain(&error, &client)),
        }
    }

    pub(super) async fn start_login(&self, redirect: &str) -> Result<LoginStart, LoginError> {
        if !self.has_login() {
            return Err(LoginError::refused("The grant `client_credentials` needs no sign-in."));
        }
        let (mut manager, client) = self.manager().await.map_err(LoginError::failed)?;
        let mut scopes = self.settings.scopes.clone();
        // The operator's scopes are the limit: a server must not get more by asking for it.
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
            let missing = self.missing_scopes();
            if !missing.is_empty() {
                // An issuer gives a token for what is asked only, so the old scopes go along.
                let record = self.tokens.read().await.map_err(LoginError::failed)?;
                let granted = record.map(|record| record.granted_scopes()).unwrap_or_default();
                scopes = bounded(together(missing, scopes.into_iter().chain(granted)));
            }
        }
        let (id, secret) = match &self.settings.client_id {
            Some(id) => (id.clone(), self.client_secret()),
            None => {
                let wanted: Vec<&str> = scopes.iter().map(String::as_str).collect();
                let config = manager.register_client(CLIENT_NAME, redirect, &wanted).await;
                let config = config.map_err(|error| LoginError::failed(explain(&error, &client)))?;
                self.tokens.note_registered_secret(&config.client_id, config.client_secret.as_deref());
                (config.client_id, config.client_secret)
            }
        };
        let mut request =
            AuthorizationRequest::new(redirect).with_preregistered_client(id).with_scopes(scopes);
        request.use_initial_scopes = true;
        request.client_secret = secret;
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| LoginError::failed(explain(&error, &client)))?;
        let url = session.get_authorization_url().to_owned();
        let judged = self.egress.judge(&url).map_err(|refusal| LoginError::failed(refusal.to_string()))?;
        super::check_secrecy(&judged).map_err(LoginError::failed)?;
        let state = parameter(&url, "state")
            .ok_or_else(|| LoginError::failed("The issuer has no usable address for a sign-in."))?;
        let open =
            OpenLogin { state: state.clone(), until: Instant::now() + LOGIN_TIME, session, issuer: client };
        *self.login.lock().await = Some(open);
        Ok(LoginStart { url, state })
    }

    /// Ends the sign-in at this time.
    pub(super) async fn finish_login(&self, callback: &str, now: Instant) -> Result<(), LoginError> {
        let mut login = self.login.lock().await;
        let state = parameter(callback, "state").unwrap_or_default();
        let Some(open) = login.take_if(|open| open.until <= now || open.state == state) else {
            return Err(LoginError::refused("No sign-in waits for this answer: begin it again."));
        };
        if open.until <= now {
            return Err(LoginError::refused("The sign-in took too long: begin it again."));
        }
        if let Some(error) = parameter(callback, "error") {
            let is_code =
                error.len() <= 40 && error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            if error == "invalid_scope" {
                // Else every later sign-in would fail, too.
                self.forget_missing_scopes();
            }
            let error = if is_code { error } else { "an error without a code".to_owned() };
            return Err(LoginError::failed(format!("The issuer refused the sign-in: {error}.")));
        }
        match without_logs(open.session.handle_callback_url(callback)).await {
            Ok(_) => {
                self.forget_missing_scopes();
                Ok(())
            }
            Err(error) => {
                let text = explain(&error, &open.issuer);
                if matches!(
                    error,
                    AuthError::AuthorizationServerMismatch { .. }
                        | AuthError::AuthorizationServerMissingIssuer { .. }
                ) {
                    *login = Some(open);
                    return Err(LoginError::new(LoginErrorKind::Forged, text));
                }
                Err(LoginError::failed(text))
            }
        }
    }

    pub(super) async fn logout(&self) -> Result<(), String> {
        self.forget_missing_scopes();
        self.tokens.remove().await
    }

    /// Whether a person must sign in.
    ///
    /// # Errors
    /// When the tokens cannot be read.
    pub(super) async fn needs_login(&self) -> Result<bool, String> {
        let is_usable = |record: &Record| record.is_fresh() || record.has_refresh_token();
        Ok(self.has_login() && !self.tokens.read().await?.is_some_and(|record| is_usable(&record)))
    }

    /// Notes what the server said when it refused a request.
    pub(super) fn note_challenge(&self, challenge: &str) {
        if !challenge.is_empty() && challenge.len() <= MAX_CHALLENGE_BYTES {
            *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge.to_owned());
        }
    }

    /// Notes the scopes that a token has lacked. The newest count first.
    pub(super) fn note_missing_scopes(&self, scopes: Vec<String>) {
        let mut missing = self.lock_missing_scopes();
        let before = std::mem::take(&mut *missing);
        *missing = bounded(together(scopes, before));
    }

    /// Whether the operator says which scopes a sign-in asks for.
    pub(super) fn has_fixed_scopes(&self) -> bool {
        !self.settings.scopes.is_empty()
    }

    /// The scopes that tokens have lacked since the last sign-in.
    pub(super) fn missing_scopes(&self) -> Vec<String> {
        self.lock_missing_scopes().clone()
    }

    pub(super) fn forget_missing_scopes(&self) {
        self.lock_missing_scopes().clear();
    }

    fn lock_missing_scopes(&self) -> MutexGuard<'_, Vec<String>> {
        self.missing_scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client_secret(&self) -> Option<String> {
        self.settings.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned())
    }

    /// What the server says when it refuses a message without a token. Many servers say it only to a POST, and rmcp asks
    /// with a GET.
    async fn ask_for_challenge(&self, client: &IssuerClient) -> Option<String> {
        let request = http::Request::post(self.url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(UNSIGNED_MESSAGE.as_bytes().to_vec());
        let answer = client.exchange_message(request.ok()?).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return None;
        }
        let challenge = answer.headers().get(WWW_AUTHENTICATE)?.to_str().ok()?;
        self.note_challenge(challenge);
        (challenge.len() <= MAX_CHALLENGE_BYTES).then(|| challenge.to_owned())
    }

    /// A manager that knows the issuer of the server. The first issuer that gave tokens stays the only one: a server
    /// could name another one to get the secret of the client.
    async fn manager(&self) -> Result<(AuthorizationManager, Arc<IssuerClient>), String> {
        let client = Arc::new(IssuerClient::new(self.egress.clone(), self.times.issuer));
        let manager =
            AuthorizationManager::new_with_oauth_http_client(self.url.as_str(), client.clone()).await;
        let mut manager = manager.map_err(|error| explain(&error, &client))?;
        manager.set_credential_store(self.tokens.clone());
        let known = self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let challenge = match known {
            Some(challenge) => Some(challenge),
            None => self.ask_for_challenge(&client).await,
        };
        let resolution = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
        let resolution = resolution.map_err(|error| explain(&error, &client))?;
        // Without metadata nothing says who the issuer is, so no answer of it could be checked.
        let issuer = match (resolution.source, resolution.metadata.issuer.clone()) {
            (AuthorizationMetadataSource::LegacyEndpointFallback, _) | (_, None) => {
                return Err(
                    "The server does not say who issues its tokens: use `auth` of the type `bearer` or \
                            `header`."
                        .to_owned(),
                );
            }
            (_, Some(issuer)) => issuer,
        };
        if let Some(known) = self.tokens.issuer().await?.filter(|known| *known != issuer) {
            return Err(format!(
                "The server names another issuer than the one that gave its tokens: `{}` instead of `{}`. If that is \
                 right, remove its tokens with `redflow mcp logout`, and sign in again.",
                clean_line(&issuer, MAX_ISSUER_CHARS),
                clean_line(&known, MAX_ISSUER_CHARS)
            ));
        }
        manager.set_metadata(resolution.metadata);
        Ok((manager, client))
    }
}

/// Runs an exchange of secrets without the logs of rmcp: they have the code, and fields of the answer.
async fn without_logs<F: Future>(exchange: F) -> F::Output {
    exchange.with_subscriber(NoSubscriber::default()).await
}

fn parameter(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Explains an error without its own text, which may have what an issuer sent.
fn explain(error: &AuthError, client: &IssuerClient) -> String {
    if let AuthError::CredentialStoreError(text) = error {
        return text.clone();
    }
    if let Some(failure) = client.failure() {
        return format!("A request to the issuer failed: {failure}");
    }
    let text = match error {
        AuthError::AuthorizationServerMismatch { .. }
        | AuthError::AuthorizationServerMissingIssuer { .. } => {
            "The answer does not come from the issuer of the server: begin the sign-in again, and open only the \
             address that it gives."
        }
        AuthError::RegistrationFailed(_) => {
            "The issuer does not register the sidecar by itself: register it there, and set `clientId`."
        }
        AuthError::PkceUnsupported => "The issuer does not support PKCE with S256, which a sign-in needs.",
        AuthError::TokenExchangeFailed(_) => "The issuer gave no token for the sign-in: begin it again.",
        AuthError::ClientCredentialsError(_) => {
            "The issuer gave no token: check `clientId`, `secretEnv`, `scopes`, and whether it allows the grant \
             `client_credentials`."
        }
        AuthError::TokenRefreshFailed(_) => "The issuer did not renew the token.",
        AuthError::InvalidScope(_) => "The issuer does not offer a sign-in with a code.",
        AuthError::AuthorizationFailed(_) => {
            "The answer of the issuer is not complete: begin the sign-in again."
        }
        AuthError::MetadataError(_) => "What the server says about its issuer is not usable.",
        _ => "The sign-in failed.",
    };
    text.to_owned()
}
