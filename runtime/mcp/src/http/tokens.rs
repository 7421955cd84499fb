//! The tokens of servers: kept encrypted, and bound to the address of the server and to their issuer.

use redflow_ports::{FileStoreError, McpStore};
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// A token is renewed this many seconds before its end.
pub(super) const RENEWAL_SECONDS: u64 = 30;

/// What happens when tokens change.
type OnChange = Arc<dyn Fn() + Send + Sync>;

/// The names that the tokens of a server are kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenKey {
    /// The name.
    pub name: String,
    /// The name that an earlier version used; none if it is the same one. It told no clients apart.
    pub old_name: Option<String>,
}

impl From<String> for TokenKey {
    fn from(name: String) -> Self {
        Self { name, old_name: None }
    }
}

/// The tokens of all servers of a process. Servers with the same key and address share them: a refresh token may be
/// valid once.
pub struct AllTokens {
    store: Arc<dyn McpStore>,
    on_change: OnChange,
    shared: Mutex<HashMap<(String, String), Weak<Shared>>>,
}

impl AllTokens {
    /// The tokens in a store. `on_change` is called when the tokens that this process knows change.
    #[must_use]
    pub fn new(store: Arc<dyn McpStore>, on_change: impl Fn() + Send + Sync + 'static) -> Self {
        Self { store, on_change: Arc::new(on_change), shared: Mutex::default() }
    }

    /// The tokens under a key, for the server at an address. Those that an earlier version kept for this client count,
    /// too.
    pub(super) fn of(&self, key: TokenKey, url: String, client_id: Option<&str>) -> Tokens {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|_, known| known.strong_count() > 0);
        let TokenKey { name, old_name } = key;
        let old = old_name.zip(client_id).map(|(key, id)| OldPlace { key, client_id: id.to_owned() });
        let place = (name, url);
        if let Some(known) = shared.get(&place).and_then(Weak::upgrade) {
            return Tokens(known);
        }
        let tokens = Arc::new(Shared {
            store: Arc::clone(&self.store),
            on_change: Arc::clone(&self.on_change),
            key: place.0.clone(),
            old,
            url: place.1.clone(),
            cache: Mutex::default(),
            file: tokio::sync::Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        });
        shared.insert(place, Arc::downgrade(&tokens));
        Tokens(tokens)
    }
}

/// The tokens of a server. Clones share them.
#[derive(Clone)]
pub(super) struct Tokens(Arc<Shared>);

struct Shared {
    store: Arc<dyn McpStore>,
    on_change: OnChange,
    key: String,
    old: Option<OldPlace>,
    url: String,
    /// It is never held while a file is read or written.
    cache: Mutex<Cache>,
    /// One use of the file at a time.
    file: tokio::sync::Mutex<()>,
    /// One renewal at a time.
    renewal: tokio::sync::Mutex<()>,
}

/// Where an earlier version kept the tokens.
struct OldPlace {
    key: String,
    /// The client that they must be for. Other nodes may use the key.
    client_id: String,
}

#[derive(Default)]
struct Cache {
    /// None if none were read. Another process may write some then.
    record: Option<Arc<Record>>,
    /// The id and the secret of a client that an issuer has registered, until its tokens are kept.
    registered: Option<(String, SecretString)>,
}

/// What is kept.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    /// The address of the server that they are for.
    url: String,
    /// The secret of a client that the issuer registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    /// The issuer of tokens that are no longer valid. Only a person gives up this bond, with a logout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// The credentials, as rmcp keeps them.
    credentials: Value,
}

impl Record {
    fn text(&self, pointer: &str) -> Option<&str> {
        self.credentials.pointer(pointer)?.as_str()
    }

    /// The access token.
    pub(super) fn token(&self) -> Option<SecretString> {
        self.text("/token_response/access_token").map(SecretString::from)
    }

    /// Everything in it that must not be shown.
    pub(super) fn secrets(&self) -> Vec<SecretString> {
        let tokens = [
            self.text("/token_response/access_token"),
            self.text("/token_response/refresh_token"),
            self.client_secret(),
        ];
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
        // rmcp writes the time of the system, so no other clock can be compared with it.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        begin.saturating_add(lifetime) > now.saturating_add(RENEWAL_SECONDS)
    }

    pub(super) fn has_refresh_token(&self) -> bool {
        self.text("/token_response/refresh_token").is_some()
    }

    /// What the issuer allowed.
    pub(super) fn granted_scopes(&self) -> Vec<String> {
        let scopes = self.credentials.get("granted_scopes").and_then(Value::as_array);
        scopes.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub(super) fn client_id(&self) -> Option<&str> {
        self.text("/client_id")
    }

    /// The only issuer that gets secrets for this server.
    fn issuer(&self) -> Option<&str> {
        self.text("/issuer").or(self.issuer.as_deref())
    }

    pub(super) fn client_secret(&self) -> Option<&str> {
        self.client_secret.as_deref()
    }
}

impl Tokens {
    /// The tokens that are kept for this address; none if there are none.
    pub(super) async fn read(&self) -> Result<Option<Arc<Record>>, String> {
        let known = self.cache().record.clone();
        if known.is_some() {
            return Ok(known);
        }
        let _one = self.0.file.lock().await;
        self.read_file().await
    }

    /// The tokens in the file, which another process may have renewed.
    pub(super) async fn read_again(&self) -> Result<Option<Arc<Record>>, String> {
        let _one = self.0.file.lock().await;
        self.read_file().await
    }

    async fn read_file(&self) -> Result<Option<Arc<Record>>, String> {
        let stored = match self.stored(&self.0.key).await? {
            Some(stored) => Some(stored),
            None => self.move_old().await?,
        };
        let record = stored.filter(|record| record.url == self.0.url).map(Arc::new);
        self.set_record(record.clone());
        Ok(record)
    }

    /// Moves what an earlier version kept for this client and this address. None if there is nothing.
    async fn move_old(&self) -> Result<Option<Record>, String> {
        let Some((key, record)) = self.old_record().await? else { return Ok(None) };
        // Without room for it, the old place still has it.
        if self.write_to(&self.0.key, Some(&record)).await.is_ok() {
            let _ = self.write_to(key, None).await;
        }
        Ok(Some(record))
    }

    /// What an earlier version kept for this client and this address, with its key.
    async fn old_record(&self) -> Result<Option<(&str, Record)>, String> {
        let Some(old) = &self.0.old else { return Ok(None) };
        let is_own =
            |record: &Record| record.url == self.0.url && record.client_id() == Some(old.client_id.as_str());
        let record = self.stored(&old.key).await?.filter(is_own);
        Ok(record.map(|record| (old.key.as_str(), record)))
    }

    /// What the store has under a key, also for another address.
    async fn stored(&self, key: &str) -> Result<Option<Record>, String> {
        let (store, key) = (Arc::clone(&self.0.store), key.to_owned());
        let text = run_blocking(move || store.tokens(&key)).await?;
        // A record that is not readable was kept by another version: then a person signs in again.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Waits until no other renewal is under way, and keeps others from beginning one.
    pub(super) async fn renew_alone(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.renewal.lock().await
    }

    /// The issuer that these tokens came from, also after they have ended; none before the first ones.
    pub(super) async fn issuer(&self) -> Result<Option<String>, String> {
        Ok(self.read().await?.and_then(|record| record.issuer().map(str::to_owned)))
    }

    /// The tokens that this process knows, so that no text shows them.
    pub(super) fn secrets(&self) -> Vec<SecretString> {
        let cache = self.cache();
        let kept = cache.record.as_ref().map(|record| record.secrets()).unwrap_or_default();
        kept.into_iter().chain(cache.registered.as_ref().map(|(_, secret)| secret.clone())).collect()
    }

    /// Notes the secret of a client that the issuer has just registered.
    pub(super) fn note_registered_secret(&self, client_id: &str, secret: Option<&str>) {
        self.cache().registered =
            secret.map(|secret| (client_id.to_owned(), SecretString::from(secret.to_owned())));
        (self.0.on_change)();
    }

    /// Removes the tokens, and what they are bound to.
    pub(super) async fn remove(&self) -> Result<(), String> {
        let _one = self.0.file.lock().await;
        if let Some((key, _)) = self.old_record().await? {
            self.write_to(key, None).await?;
        }
        self.write(None).await?;
        self.set_record(None);
        Ok(())
    }

    /// Removes tokens that are no longer valid. The server stays bound to their issuer.
    pub(super) async fn drop_invalid(&self) -> Result<(), String> {
        let _one = self.0.file.lock().await;
        let known = self.cache().record.clone();
        let issuer = known.as_ref().and_then(|record| record.issuer()).map(str::to_owned);
        let bond = issuer.map(|issuer| Record {
            url: self.0.url.clone(),
            client_secret: None,
            issuer: Some(issuer),
            credentials: Value::Null,
        });
        if self.is_own_file().await? {
            self.write(bond.as_ref()).await?;
        }
        self.set_record(bond.map(Arc::new));
        Ok(())
    }

    /// Whether the file has nothing of another address under the key. An edited definition may use the key by now.
    async fn is_own_file(&self) -> Result<bool, String> {
        Ok(self.stored(&self.0.key).await?.is_none_or(|record| record.url == self.0.url))
    }

    async fn keep(&self, credentials: &StoredCredentials) -> Result<(), String> {
        let _one = self.0.file.lock().await;
        let credentials = serde_json::to_value(credentials).map_err(|error| error.to_string())?;
        let client_id = credentials.get("client_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (client_secret, is_renewal) = {
            let cache = self.cache();
            let new = cache.registered.as_ref().filter(|(id, _)| *id == client_id);
            let old = cache.record.as_ref().filter(|old| old.client_id() == Some(client_id.as_str()));
            let new_secret = new.map(|(_, secret)| secret.expose_secret().to_owned());
            (
                new_secret.or_else(|| old.and_then(|old| old.client_secret.clone())),
                new.is_none() && old.is_some(),
            )
        };
        let record = Record { url: self.0.url.clone(), client_secret, issuer: None, credentials };
        // A run may still renew the tokens of a definition that has another address now.
        if !is_renewal || self.is_own_file().await? {
            self.write(Some(&record)).await?;
        }
        self.cache().registered.take_if(|(id, _)| *id == client_id);
        self.set_record(Some(Arc::new(record)));
        Ok(())
    }

    async fn write(&self, record: Option<&Record>) -> Result<(), String> {
        self.write_to(&self.0.key, record).await
    }

    async fn write_to(&self, key: &str, record: Option<&Record>) -> Result<(), String> {
        let text = record.map(serde_json::to_string).transpose().map_err(|error| error.to_string())?;
        let (store, key) = (Arc::clone(&self.0.store), key.to_owned());
        run_blocking(move || store.set_tokens(&key, text.as_deref())).await
    }

    fn set_record(&self, record: Option<Arc<Record>>) {
        let is_same = {
            let mut cache = self.cache();
            let is_same = cache.record == record;
            cache.record = record;
            is_same
        };
        if !is_same {
            (self.0.on_change)();
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Uses a file. It may wait for another process, so it must not hold up other tasks.
async fn run_blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, FileStoreError> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(act).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("The file with the tokens cannot be used.".to_owned()),
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
            let record = self.read().await.map_err(AuthError::CredentialStoreError)?;
            Ok(record.and_then(|record| serde_json::from_value(record.credentials.clone()).ok()))
        })
    }

    fn save<'a, 'f>(&'a self, credentials: StoredCredentials) -> StoreFuture<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move { self.keep(&credentials).await.map_err(AuthError::CredentialStoreError) })
    }

    fn clear<'a, 'f>(&'a self) -> StoreFuture<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async { self.drop_invalid().await.map_err(AuthError::CredentialStoreError) })
    }
}
