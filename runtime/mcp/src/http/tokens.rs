//! The tokens of a server: kept encrypted, and bound to the address of the server and to their issuer.

use redflow_ports::McpStore;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A token is renewed this many seconds before its end.
pub(super) const RENEWAL_SECONDS: u64 = 30;

/// The tokens of a server. Clones share them.
#[derive(Clone)]
pub(super) struct Tokens(Arc<Shared>);

struct Shared {
    store: Arc<dyn McpStore>,
    key: String,
    url: String,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// None before the first read.
    record: Option<Option<Arc<Record>>>,
    /// The secret that an issuer gave with a new client, until the tokens are kept.
    registered_secret: Option<SecretString>,
}

/// What is kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    /// The address of the server that they are for.
    url: String,
    /// The secret of a client that the issuer registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    /// The credentials, as rmcp keeps them.
    credentials: Value,
}

impl Record {
    /// The access token.
    pub(super) fn token(&self) -> Option<SecretString> {
        self.credentials.pointer("/token_response/access_token")?.as_str().map(SecretString::from)
    }

    /// Everything in it that must not be shown.
    pub(super) fn secrets(&self) -> Vec<SecretString> {
        let at = |pointer: &str| self.credentials.pointer(pointer).and_then(Value::as_str);
        let tokens =
            [at("/token_response/access_token"), at("/token_response/refresh_token"), self.client_secret()];
        tokens.into_iter().flatten().map(SecretString::from).collect()
    }

    /// Whether the token is valid for a while. One without an end is.
    pub(super) fn is_fresh(&self) -> bool {
        let seconds = |pointer| self.credentials.pointer(pointer).and_then(Value::as_u64);
        let (Some(lifetime), Some(begin)) =
            (seconds("/token_response/expires_in"), seconds("/token_received_at"))
        else {
            return self.token().is_some();
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        begin.saturating_add(lifetime) > now.saturating_add(RENEWAL_SECONDS)
    }

    pub(super) fn has_refresh_token(&self) -> bool {
        self.credentials.pointer("/token_response/refresh_token").is_some_and(Value::is_string)
    }

    pub(super) fn client_id(&self) -> Option<&str> {
        self.credentials.get("client_id")?.as_str()
    }

    pub(super) fn issuer(&self) -> Option<&str> {
        self.credentials.get("issuer")?.as_str()
    }

    pub(super) fn client_secret(&self) -> Option<&str> {
        self.client_secret.as_deref()
    }
}

impl Tokens {
    pub(super) fn new(store: Arc<dyn McpStore>, key: String, url: String) -> Self {
        Self(Arc::new(Shared { store, key, url, cache: Mutex::default() }))
    }

    /// The tokens that are kept for this address; none if there are none.
    pub(super) fn read(&self) -> Result<Option<Arc<Record>>, String> {
        let mut cache = self.cache();
        if let Some(record) = &cache.record {
            return Ok(record.clone());
        }
        let text = self.0.store.tokens(&self.0.key).map_err(|error| error.to_string())?;
        // A record that is not readable was kept by another version: then a person signs in again.
        let record = text.and_then(|text| serde_json::from_str::<Record>(&text).ok());
        let record = record.filter(|record| record.url == self.0.url).map(Arc::new);
        cache.record = Some(record.clone());
        Ok(record)
    }

    /// Notes the secret of a client that the issuer has just registered.
    pub(super) fn note_registered_secret(&self, secret: Option<String>) {
        self.cache().registered_secret = secret.map(SecretString::from);
    }

    /// Removes the tokens.
    pub(super) fn remove(&self) -> Result<(), String> {
        let mut cache = self.cache();
        self.0.store.set_tokens(&self.0.key, None).map_err(|error| error.to_string())?;
        cache.record = Some(None);
        Ok(())
    }

    fn keep(&self, credentials: &StoredCredentials) -> Result<(), String> {
        let mut cache = self.cache();
        let credentials = serde_json::to_value(credentials).map_err(|error| error.to_string())?;
        let client_secret = cache.registered_secret.take().map(|secret| secret.expose_secret().to_owned());
        let old = cache.record.as_ref().and_then(Option::as_ref);
        let old_secret = old
            .filter(|old| old.client_id() == credentials.get("client_id").and_then(Value::as_str))
            .and_then(|old| old.client_secret.clone());
        let record =
            Record { url: self.0.url.clone(), client_secret: client_secret.or(old_secret), credentials };
        let text = serde_json::to_string(&record).map_err(|error| error.to_string())?;
        self.0.store.set_tokens(&self.0.key, Some(&text)).map_err(|error| error.to_string())?;
        cache.record = Some(Some(Arc::new(record)));
        Ok(())
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

impl CredentialStore for Tokens {
    fn load<'a, 'f>(&'a self) -> StoreFuture<'f, Option<StoredCredentials>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async {
            let record = self.read().map_err(AuthError::CredentialStoreError)?;
            Ok(record.and_then(|record| serde_json::from_value(record.credentials.clone()).ok()))
        })
    }

    fn save<'a, 'f>(&'a self, credentials: StoredCredentials) -> StoreFuture<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move { self.keep(&credentials).map_err(AuthError::CredentialStoreError) })
    }

    fn clear<'a, 'f>(&'a self) -> StoreFuture<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async { self.remove().map_err(AuthError::CredentialStoreError) })
    }
}
