//! The tokens: the main one in `DATA/token`, and the digests of further ones in `DATA/tokens.json`.
//!
//! Owns both files. A running sidecar notices their changes. Prints a token only to the user who made it, and
//! compares tokens in constant time.

use crate::fingerprint::{Fingerprint, make_secret};
use crate::{lock, secret_file};
use redflow_contract::Millis;
use redflow_contract::api::{ApiError, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::console::TokenEntry;
use redflow_contract::secret::REDACTED;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// The name of the main token. No further token may have it.
pub const MAIN: &str = "main";
/// The longest token. Longer ones are not even hashed.
pub const MAX_TOKEN_BYTES: usize = 512;
/// The shortest token that a user may choose.
pub const MIN_TOKEN_BYTES: usize = 16;
/// The shortest start of the main token that is masked. Shorter ones occur in ordinary text.
const MIN_MASKED_BYTES: usize = 12;
/// The most tokens besides the main one.
pub const MAX_TOKENS: usize = 256;
/// The longest name of a token, in ASCII letters, digits, `-`, `.` and `_`.
pub const MAX_NAME_BYTES: usize = 64;
/// The largest `tokens.json`, with room for every token that may be in it.
const MAX_LIST_BYTES: u64 = 256 * 1024;
/// How long the files are not checked again for changes.
const CHECK_INTERVAL: Millis = 1000;

#[derive(Debug, Clone)]
pub(crate) struct AcceptedToken {
    pub(crate) name: Arc<str>,
    pub(crate) scopes: Arc<[Scope]>,
    pub(crate) fingerprint: Fingerprint,
    /// None for the main token.
    pub(crate) created_at: Option<Millis>,
}

/// An entry of `tokens.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredToken {
    name: String,
    scopes: Vec<Scope>,
    hash: String,
    created_at: Millis,
}

/// The tokens that requests may use.
#[derive(Debug)]
pub struct Tokens {
    main: MainToken,
    /// The directory of the token files. None for a token in memory.
    data: Option<PathBuf>,
    cache: Mutex<TokenCache>,
}

#[derive(Debug)]
enum MainToken {
    /// From the environment, or only in memory.
    Fixed(SecretString),
    /// In the file `token` of this directory.
    File(PathBuf),
}

/// The content of the token files when they last changed.
#[derive(Debug)]
struct TokenCache {
    checked_at: Millis,
    stamps: [Option<secret_file::Stamp>; 2],
    main: Option<AcceptedToken>,
    main_text: Option<SecretString>,
    further: Vec<AcceptedToken>,
}

impl Tokens {
    /// Reads the tokens of an existing data directory, and makes the main token if it is missing. A `chosen`
    /// token of the environment replaces the main one.
    ///
    /// # Errors
    /// `SECRET_FILE_UNSAFE` if other users can access the files, or the files are malformed;
    /// `CONFIG_FILE_INVALID` for a chosen token that is too short; `DATA_READ_ONLY`, `DATA_FULL` or
    /// `DATA_UNUSABLE` if writing fails.
    pub fn open(data: &Path, chosen: Option<SecretString>) -> Result<Self, ApiError> {
        let main = match &chosen {
            Some(token) => Some(check_chosen(token)?.clone()),
            None => Some(main_token(data)?),
        };
        // Take the stamps before reading, so that a change in between causes another read.
        let stamps = read_stamps(data);
        let main = if chosen.is_some() { main } else { read_main(data)? };
        let further = read_list(data)?.iter().filter_map(accept).collect();
        let accepted = main.as_ref().map(accept_main);
        let cache = TokenCache { checked_at: 0, stamps, main: accepted, main_text: main, further };
        let main = chosen.map_or_else(|| MainToken::File(data.to_owned()), MainToken::Fixed);
        Ok(Self { main, data: Some(data.to_owned()), cache: Mutex::new(cache) })
    }

    /// One token, in memory only: the `chosen` one of the environment, or a new one.
    ///
    /// # Errors
    /// `CONFIG_FILE_INVALID` for a chosen token that is too short.
    pub fn ephemeral(chosen: Option<SecretString>) -> Result<Self, ApiError> {
        let token = chosen.map_or_else(|| make_secret::<32>("rf_"), Ok)?;
        let main = Some(accept_main(check_chosen(&token)?));
        let main_text = Some(token.clone());
        let cache = TokenCache { checked_at: 0, stamps: [None, None], main, main_text, further: Vec::new() };
        Ok(Self { main: MainToken::Fixed(token), data: None, cache: Mutex::new(cache) })
    }

    /// The text of the main token, to print it or to send it.
    ///
    /// # Errors
    /// `SECRET_FILE_UNSAFE` if its file has become unsafe.
    pub fn main(&self) -> Result<SecretString, ApiError> {
        match &self.main {
            MainToken::Fixed(token) => Ok(token.clone()),
            MainToken::File(data) => main_token(data),
        }
    }

    /// Finds the token with this text.
    pub(crate) fn find(&self, text: &str, now: Millis) -> Option<AcceptedToken> {
        // The client knows the length already, so this reveals nothing.
        if text.len() > MAX_TOKEN_BYTES {
            return None;
        }
        self.find_fingerprint(&Fingerprint::of(text), now)
    }

    /// Finds the token with this fingerprint. Compares every token, so that the time reveals nothing.
    pub(crate) fn find_fingerprint(&self, wanted: &Fingerprint, now: Millis) -> Option<AcceptedToken> {
        let newest = |found, token: &'_ AcceptedToken| {
            if token.fingerprint.matches(wanted) { Some(token.clone()) } else { found }
        };
        self.current(now).tokens().fold(None, newest)
    }

    /// Finds the token with this name.
    pub(crate) fn find_name(&self, name: &str, now: Millis) -> Option<AcceptedToken> {
        self.current(now).tokens().find(|token| &*token.name == name).cloned()
    }

    /// Every token that requests may use.
    pub(crate) fn accepted(&self, now: Millis) -> Vec<AcceptedToken> {
        self.current(now).tokens().cloned().collect()
    }

    fn current(&self, now: Millis) -> MutexGuard<'_, TokenCache> {
        let mut cache = lock(&self.cache);
        if let Some(data) = &self.data {
            cache.refresh(data, &self.main, now);
        }
        cache
    }

    /// Removes a further token, unless no token with the scope `admin` would be left. It stops working at once.
    ///
    /// # Errors
    /// `REQUEST_INVALID` for the last token with `admin`; else as [`remove`].
    pub(crate) fn remove(&self, name: &str) -> Result<(), ApiError> {
        remove_if(self.data()?, name, |others| {
            self.reload();
            let is_admin = |token: &StoredToken| token.scopes.contains(&Scope::Admin);
            if self.accepted_main().is_some() || others.iter().any(is_admin) {
                return Ok(());
            }
            Err(invalid(
                "No other token has the scope `admin`: fix the file of the main token, or make another one, first.",
            ))
        })?;
        self.reload();
        Ok(())
    }

    /// The directory of the token files.
    pub(crate) fn data(&self) -> Result<&Path, ApiError> {
        let problem = "This sidecar has one token in memory, and no file for others.";
        self.data.as_deref().ok_or_else(|| invalid(problem))
    }

    /// Reads the files again if they have changed. Otherwise a change is noticed within a second.
    pub(crate) fn reload(&self) {
        if let Some(data) = &self.data {
            lock(&self.cache).read_changes(data, &self.main);
        }
    }

    /// Replaces the main token in a text, in any case and also if the text was cut in it. A person can choose that
    /// token, so it can look like ordinary words. The others are known by their form.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let cache = lock(&self.cache);
        let token = cache.main_text.as_ref().map_or(&b""[..], |token| token.expose_secret().as_bytes());
        let (mut masked, mut rest) = (String::new(), text);
        let find = |text: &str| {
            let same_bytes = |at: usize| {
                let pairs = text.as_bytes()[at..].iter().zip(token);
                pairs.take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count()
            };
            (0..text.len()).map(|at| (at, same_bytes(at))).find(|(_, length)| *length >= MIN_MASKED_BYTES)
        };
        while let Some((at, length)) = find(rest) {
            masked.extend([&rest[..at], REDACTED]);
            rest = &rest[at + length..];
        }
        if masked.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(masked + rest) }
    }

    /// The main token. None while its file is unsafe or missing.
    pub(crate) fn accepted_main(&self) -> Option<AcceptedToken> {
        lock(&self.cache).main.clone()
    }
}

impl TokenCache {
    fn tokens(&self) -> impl Iterator<Item = &AcceptedToken> {
        self.main.iter().chain(&self.further)
    }

    /// Reads the files that changed, at most once per interval.
    fn refresh(&mut self, data: &Path, main: &MainToken, now: Millis) {
        if now.abs_diff(self.checked_at) >= CHECK_INTERVAL {
            self.checked_at = now;
            self.read_changes(data, main);
        }
    }

    /// Reads the files that changed. Rejects the tokens of a file that it cannot read.
    fn read_changes(&mut self, data: &Path, main: &MainToken) {
        let stamps = read_stamps(data);
        if matches!(main, MainToken::File(_)) && stamps[0] != self.stamps[0] {
            let missing = || malformed_main(&main_path(data), "is missing");
            let read = read_main(data).and_then(|token| token.ok_or_else(missing));
            self.main_text = match read {
                Ok(token) => {
                    tracing::info!("the main token has changed");
                    Some(token)
                }
                Err(error) => {
                    tracing::error!(
                        code = error.code.as_str(),
                        "{} The main token is not accepted.",
                        error.message
                    );
                    None
                }
            };
            self.main = self.main_text.as_ref().map(accept_main);
        }
        if stamps[1] != self.stamps[1] {
            let read = read_list(data).map(|list| list.iter().filter_map(accept).collect::<Vec<_>>());
            self.further = read.unwrap_or_else(|error| {
                tracing::error!(code = error.code.as_str(), "{} Its tokens are not accepted.", error.message);
                Vec::new()
            });
        }
        self.stamps = stamps;
    }
}

/// Reads the main token of a data directory. Makes it if it is missing.
///
/// # Errors
/// As [`Tokens::open`].
pub fn main_token(data: &Path) -> Result<SecretString, ApiError> {
    if let Some(token) = read_main(data)? {
        return Ok(token);
    }
    let _lock = secret_file::lock(data)?;
    // Another process may have made it before this one had the lock.
    match read_main(data)? {
        Some(token) => Ok(token),
        None => write_main(data),
    }
}

/// Replaces the main token. The old one stops working, and so do the sessions that it opened.
///
/// # Errors
/// `DATA_READ_ONLY`, `DATA_FULL` or `DATA_UNUSABLE` if writing fails.
pub fn rotate(data: &Path) -> Result<SecretString, ApiError> {
    let _lock = secret_file::lock(data)?;
    write_main(data)
}

/// Makes a further token and returns its text, which no file holds.
///
/// # Errors
/// `REQUEST_INVALID` for a name that is invalid or in use, no scopes, or too many tokens; else as
/// [`Tokens::open`].
pub fn add(data: &Path, name: &str, scopes: &[Scope], now: Millis) -> Result<SecretString, ApiError> {
    check_name(name)?;
    if scopes.is_empty() {
        return Err(invalid(
            "A token without a scope can do nothing: give it one of read, run, deploy, admin.",
        ));
    }
    let _lock = secret_file::lock(data)?;
    let mut list = read_list(data)?;
    if list.iter().any(|token| token.name == name) {
        return Err(invalid(&format!(
            "There is a token `{name}` already: remove it first, or choose another name."
        )));
    }
    if list.len() >= MAX_TOKENS {
        return Err(invalid(&format!("There are {MAX_TOKENS} tokens already: remove some first.")));
    }
    let token = make_secret::<32>("rf_")?;
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    let hash = Fingerprint::of(token.expose_secret()).to_hex();
    list.push(StoredToken { name: name.to_owned(), scopes, hash, created_at: now });
    write_list(data, &list)?;
    Ok(token)
}

/// Removes a further token. It stops working within a second.
///
/// # Errors
/// `NOT_FOUND` if there is no such token; else as [`Tokens::open`].
pub fn remove(data: &Path, name: &str) -> Result<(), ApiError> {
    remove_if(data, name, |_| Ok(()))
}

/// Removes a further token, unless `check` refuses the further tokens that would be left. No other process changes
/// them meanwhile.
fn remove_if(
    data: &Path,
    name: &str,
    check: impl FnOnce(&[StoredToken]) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let _lock = secret_file::lock(data)?;
    let mut list = read_list(data)?;
    let before = list.len();
    list.retain(|token| token.name != name);
    if list.len() == before {
        return Err(ApiError::new(
            ApiCode::NotFound,
            format!(
                "There is no token `{}`: list the tokens to see their names.",
                crate::printable_excerpt(name.as_bytes())
            ),
        ));
    }
    check(&list)?;
    write_list(data, &list)
}

/// The further tokens, the oldest first.
///
/// # Errors
/// `SECRET_FILE_UNSAFE`.
pub fn list(data: &Path) -> Result<Vec<TokenEntry>, ApiError> {
    let entry = |token: StoredToken| TokenEntry {
        name: token.name,
        scopes: token.scopes,
        created_at: Some(token.created_at),
        is_own: false,
    };
    Ok(read_list(data)?.into_iter().map(entry).collect())
}

fn main_path(data: &Path) -> PathBuf {
    data.join("token")
}

fn list_path(data: &Path) -> PathBuf {
    data.join("tokens.json")
}

fn read_stamps(data: &Path) -> [Option<secret_file::Stamp>; 2] {
    [secret_file::stamp(&main_path(data)), secret_file::stamp(&list_path(data))]
}

fn read_main(data: &Path) -> Result<Option<SecretString>, ApiError> {
    read_token(&main_path(data))
}

/// Reads the token in a file, for clients of a sidecar. None if the file does not exist.
///
/// # Errors
/// `SECRET_FILE_UNSAFE` if other users can access the file, or it does not hold one token.
pub fn read_token(path: &Path) -> Result<Option<SecretString>, ApiError> {
    let Some(text) = secret_file::read(path, MAX_TOKEN_BYTES as u64 + 2)? else { return Ok(None) };
    let text = SecretString::from(text);
    let line = text.expose_secret().trim_end_matches(['\r', '\n']);
    if !is_token(line) {
        return Err(malformed_main(path, "does not hold exactly one token on one line"));
    }
    Ok(Some(SecretString::from(line)))
}

fn write_main(data: &Path) -> Result<SecretString, ApiError> {
    let token = make_secret::<32>("rf_")?;
    let line = SecretString::from(format!("{}\n", token.expose_secret()));
    secret_file::replace(&main_path(data), line.expose_secret().as_bytes())?;
    Ok(token)
}

fn read_list(data: &Path) -> Result<Vec<StoredToken>, ApiError> {
    let path = list_path(data);
    let Some(text) = secret_file::read(&path, MAX_LIST_BYTES)? else { return Ok(Vec::new()) };
    let list: Vec<StoredToken> = serde_json::from_str(&text)
        .map_err(|why| malformed_list(&path, &format!("is not a list of tokens (line {})", why.line())))?;
    let mut names = std::collections::HashSet::new();
    let is_valid = |token: &StoredToken| {
        accept(token).is_some() && check_name(&token.name).is_ok() && !token.scopes.is_empty()
    };
    if list.len() > MAX_TOKENS
        || !list.iter().all(|token| is_valid(token) && names.insert(token.name.as_str()))
    {
        return Err(malformed_list(&path, "has a token with an invalid or duplicate name, hash or scope"));
    }
    Ok(list)
}

fn write_list(data: &Path, list: &[StoredToken]) -> Result<(), ApiError> {
    let path = list_path(data);
    let mut text = serde_json::to_string_pretty(list)
        .map_err(|why| malformed_list(&path, &format!("cannot be written as JSON ({why})")))?;
    text.push('\n');
    secret_file::replace(&path, text.as_bytes())
}

fn accept(token: &StoredToken) -> Option<AcceptedToken> {
    Some(AcceptedToken {
        name: token.name.as_str().into(),
        scopes: token.scopes.as_slice().into(),
        fingerprint: Fingerprint::parse_hex(&token.hash)?,
        created_at: Some(token.created_at),
    })
}

fn accept_main(token: &SecretString) -> AcceptedToken {
    AcceptedToken {
        name: MAIN.into(),
        scopes: [Scope::Admin].into(),
        fingerprint: Fingerprint::of(token.expose_secret()),
        created_at: None,
    }
}

/// Visible ASCII of a sensible length, so that it can be a header value.
fn is_token(text: &str) -> bool {
    (MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn check_chosen(token: &SecretString) -> Result<&SecretString, ApiError> {
    if is_token(token.expose_secret()) {
        return Ok(token);
    }
    Err(ApiError::new(
        ApiCode::ConfigFileInvalid,
        format!(
            "REDFLOW_TOKEN is not {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} visible ASCII characters: choose a longer \
             one, for example with `openssl rand -hex 32`, or leave it out."
        ),
    ))
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if name != MAIN && (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_valid) {
        return Ok(());
    }
    Err(invalid(&format!(
        "A token cannot have the name `{}`: use up to {MAX_NAME_BYTES} letters, digits, `-`, `.` and `_`, and not \
         `{MAIN}`.",
        crate::printable_excerpt(name.as_bytes())
    )))
}

pub(crate) fn invalid(message: &str) -> ApiError {
    ApiError::new(ApiCode::RequestInvalid, message)
}

fn malformed_main(path: &Path, problem: &str) -> ApiError {
    secret_file::unsafe_file(path, problem, "run `redflow token --rotate` to make a new one")
}

fn malformed_list(path: &Path, problem: &str) -> ApiError {
    secret_file::unsafe_file(path, problem, "restore it, or remove it and make its tokens again")
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
