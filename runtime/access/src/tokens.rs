//! The tokens: the main one in `DATA/token`, further ones in `DATA/tokens.json`, of which only digests are kept.
//!
//! Owns both files. A sidecar that runs takes up what changes in them. Never shows a token but to who made it, and
//! never compares one in a way whose time would tell something about it.

use crate::fingerprint::{Fingerprint, make_secret};
use crate::{lock, secret_file};
use redflow_contract::Millis;
use redflow_contract::api::{ApiError, Scope};
use redflow_contract::code::ApiCode;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The name of the main token.
pub const MAIN: &str = "main";
/// The longest token, in bytes. Longer ones are not even hashed.
pub const MAX_TOKEN_BYTES: usize = 512;
/// The shortest token somebody may choose.
pub const MIN_TOKEN_BYTES: usize = 16;
/// The most further tokens.
pub const MAX_TOKENS: usize = 256;
/// The longest name of a token.
pub const MAX_NAME_BYTES: usize = 64;
/// Bytes of `tokens.json` that are read at most: room for every token that may be in it.
const MAX_LIST_BYTES: u64 = 256 * 1024;
/// How long the files are trusted to be as they were.
const LOOK_AGAIN: Millis = 1000;

/// A token that is accepted.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) name: Arc<str>,
    pub(crate) scopes: Arc<[Scope]>,
    pub(crate) print: Fingerprint,
}

/// A further token, without what would let anybody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEntry {
    /// What it is called.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Millis,
}

/// A further token, as `tokens.json` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kept {
    name: String,
    scopes: Vec<Scope>,
    hash: String,
    created_at: Millis,
}

/// The tokens that are accepted.
#[derive(Debug)]
pub struct Tokens {
    main: Main,
    /// Where the files are, if there are any.
    data: Option<PathBuf>,
    state: Mutex<State>,
}

/// Where the main token comes from.
#[derive(Debug)]
enum Main {
    /// The environment, or memory.
    Fixed(SecretString),
    /// `token` in this directory.
    File(PathBuf),
}

#[derive(Debug)]
struct State {
    looked: Millis,
    stamps: [Option<secret_file::Stamp>; 2],
    main: Option<Known>,
    further: Vec<Known>,
}

impl Tokens {
    /// The tokens of a data directory, which is there already. Makes the main token if there is none. A token of the
    /// environment takes the main one's place.
    ///
    /// # Errors
    /// `SECRET_FILE_UNSAFE` if others can read the files, or they are not what they should be; `CONFIG_FILE_INVALID`
    /// for a token of the environment that is too short; and what hinders writing (`DATA_READ_ONLY`, `DATA_FULL`).
    pub fn open(data: &Path, chosen: Option<SecretString>) -> Result<Self, ApiError> {
        let main = match &chosen {
            Some(token) => Some(check_chosen(token)?.clone()),
            None => Some(main_token(data)?),
        };
        // Looked at before they are read for good: what changes in between is read again.
        let stamps = look(data);
        let main = if chosen.is_some() { main } else { read_main(data)? };
        let further = read_list(data)?.iter().filter_map(known).collect();
        let state = State { looked: 0, stamps, main: main.as_ref().map(known_main), further };
        let main = chosen.map_or_else(|| Main::File(data.to_owned()), Main::Fixed);
        Ok(Self { main, data: Some(data.to_owned()), state: Mutex::new(state) })
    }

    /// One token, in memory alone: of the environment, or a new one.
    ///
    /// # Errors
    /// `CONFIG_FILE_INVALID` for a token of the environment that is too short.
    pub fn ephemeral(chosen: Option<SecretString>) -> Result<Self, ApiError> {
        let token = chosen.map_or_else(|| make_secret::<32>("rf_"), Ok)?;
        let main = Some(known_main(check_chosen(&token)?));
        let state = State { looked: 0, stamps: [None, None], main, further: Vec::new() };
        Ok(Self { main: Main::Fixed(token), data: None, state: Mutex::new(state) })
    }

    /// The main token, to print it or to use it.
    ///
    /// # Errors
    /// `SECRET_FILE_UNSAFE` if its file has become unsafe since.
    pub fn main(&self) -> Result<SecretString, ApiError> {
        match &self.main {
            Main::Fixed(token) => Ok(token.clone()),
            Main::File(data) => main_token(data),
        }
    }

    /// Whose token this is.
    pub(crate) fn find(&self, text: &str, now: Millis) -> Option<Known> {
        // The length of what a stranger sent is no secret.
        if text.len() > MAX_TOKEN_BYTES {
            return None;
        }
        self.owner(&Fingerprint::of(text), now)
    }

    /// Whose token has this fingerprint, as long as it is accepted. Every token is compared.
    pub(crate) fn owner(&self, print: &Fingerprint, now: Millis) -> Option<Known> {
        let mut state = lock(&self.state);
        if let Some(data) = &self.data {
            state.refresh(data, matches!(self.main, Main::Fixed(_)), now);
        }
        let mut found = None;
        for known in state.main.iter().chain(&state.further) {
            if known.print.is(print) {
                found = Some(known);
            }
        }
        found.cloned()
    }

    /// The main token as it is accepted now.
    pub(crate) fn first(&self) -> Option<Known> {
        lock(&self.state).main.clone()
    }
}

impl State {
    /// Reads what changed, if it is time to look. What cannot be read any more is not accepted any more.
    fn refresh(&mut self, data: &Path, main_is_fixed: bool, now: Millis) {
        if now.abs_diff(self.looked) < LOOK_AGAIN {
            return;
        }
        self.looked = now;
        let stamps = look(data);
        if !main_is_fixed && stamps[0] != self.stamps[0] {
            let read = read_main(data).and_then(|token| token.ok_or_else(|| gone(&main_path(data))));
            self.main = match read {
                Ok(token) => {
                    tracing::info!("the main token has changed");
                    Some(known_main(&token))
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
        }
        if stamps[1] != self.stamps[1] {
            let read = read_list(data).map(|list| list.iter().filter_map(known).collect::<Vec<_>>());
            self.further = read.unwrap_or_else(|error| {
                tracing::error!(code = error.code.as_str(), "{} Its tokens are not accepted.", error.message);
                Vec::new()
            });
        }
        self.stamps = stamps;
    }
}

/// The main token of a data directory. Makes it if there is none.
///
/// # Errors
/// As [`Tokens::open`].
pub fn main_token(data: &Path) -> Result<SecretString, ApiError> {
    if let Some(token) = read_main(data)? {
        return Ok(token);
    }
    let _lock = secret_file::lock(data)?;
    // Somebody else may have made it meanwhile.
    match read_main(data)? {
        Some(token) => Ok(token),
        None => write_main(data),
    }
}

/// Puts a new main token in the place of the old one, which is worthless then, and so are the sessions it made.
///
/// # Errors
/// What hinders writing: `DATA_READ_ONLY`, `DATA_FULL`, `DATA_UNUSABLE`.
pub fn rotate(data: &Path) -> Result<SecretString, ApiError> {
    let _lock = secret_file::lock(data)?;
    write_main(data)
}

/// Makes a further token and gives its text, which is kept nowhere.
///
/// # Errors
/// `REQUEST_INVALID` for a name that is taken or not a name, no scopes, or too many tokens; else as [`Tokens::open`].
pub fn add(data: &Path, name: &str, scopes: &[Scope], now: Millis) -> Result<SecretString, ApiError> {
    check_name(name)?;
    if scopes.is_empty() {
        return Err(invalid(
            "A token without a scope can do nothing: give it one of read, run, deploy, admin.",
        ));
    }
    let _lock = secret_file::lock(data)?;
    let mut list = read_list(data)?;
    if list.iter().any(|kept| kept.name == name) {
        return Err(invalid(&format!(
            "There is a token `{name}` already: remove it first, or take another name."
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
    list.push(Kept { name: name.to_owned(), scopes, hash, created_at: now });
    write_list(data, &list)?;
    Ok(token)
}

/// Makes a further token worthless.
///
/// # Errors
/// `NOT_FOUND` if there is no such token; else as [`Tokens::open`].
pub fn remove(data: &Path, name: &str) -> Result<(), ApiError> {
    let _lock = secret_file::lock(data)?;
    let mut list = read_list(data)?;
    let before = list.len();
    list.retain(|kept| kept.name != name);
    if list.len() == before {
        return Err(ApiError::new(
            ApiCode::NotFound,
            format!(
                "There is no token `{}`: list the tokens to see which there are.",
                crate::shown(name.as_bytes())
            ),
        ));
    }
    write_list(data, &list)
}

/// The further tokens, in the order they were made.
///
/// # Errors
/// `SECRET_FILE_UNSAFE`.
pub fn list(data: &Path) -> Result<Vec<TokenEntry>, ApiError> {
    let entry = |kept: Kept| TokenEntry { name: kept.name, scopes: kept.scopes, created_at: kept.created_at };
    Ok(read_list(data)?.into_iter().map(entry).collect())
}

fn main_path(data: &Path) -> PathBuf {
    data.join("token")
}

fn list_path(data: &Path) -> PathBuf {
    data.join("tokens.json")
}

fn look(data: &Path) -> [Option<secret_file::Stamp>; 2] {
    [secret_file::look(&main_path(data)), secret_file::look(&list_path(data))]
}

fn read_main(data: &Path) -> Result<Option<SecretString>, ApiError> {
    read_token(&main_path(data))
}

/// The token in a file, for who asks a sidecar; None if there is no file. Makes nothing.
///
/// # Errors
/// `SECRET_FILE_UNSAFE` if others can read the file, or it is not what it should be.
pub fn read_token(path: &Path) -> Result<Option<SecretString>, ApiError> {
    let Some(text) = secret_file::read(path, MAX_TOKEN_BYTES as u64 + 2)? else { return Ok(None) };
    let text = SecretString::from(text);
    let line = text.expose_secret().trim_end_matches(['\r', '\n']);
    if !is_token(line) {
        return Err(malformed_main(path, "does not hold one token in one line"));
    }
    Ok(Some(SecretString::from(line)))
}

fn write_main(data: &Path) -> Result<SecretString, ApiError> {
    let token = make_secret::<32>("rf_")?;
    let line = SecretString::from(format!("{}\n", token.expose_secret()));
    secret_file::replace(&main_path(data), line.expose_secret().as_bytes())?;
    Ok(token)
}

fn read_list(data: &Path) -> Result<Vec<Kept>, ApiError> {
    let path = list_path(data);
    let Some(text) = secret_file::read(&path, MAX_LIST_BYTES)? else { return Ok(Vec::new()) };
    let list: Vec<Kept> = serde_json::from_str(&text)
        .map_err(|why| malformed_list(&path, &format!("is not a list of tokens (line {})", why.line())))?;
    let mut names = std::collections::HashSet::new();
    let good =
        |kept: &Kept| known(kept).is_some() && check_name(&kept.name).is_ok() && !kept.scopes.is_empty();
    if list.len() > MAX_TOKENS || !list.iter().all(|kept| good(kept) && names.insert(kept.name.as_str())) {
        return Err(malformed_list(&path, "has a token with a bad or doubled name, hash or scope"));
    }
    Ok(list)
}

fn write_list(data: &Path, list: &[Kept]) -> Result<(), ApiError> {
    let path = list_path(data);
    let mut text = serde_json::to_string_pretty(list)
        .map_err(|why| malformed_list(&path, &format!("cannot be written as JSON ({why})")))?;
    text.push('\n');
    secret_file::replace(&path, text.as_bytes())
}

fn known(kept: &Kept) -> Option<Known> {
    let print = Fingerprint::parse_hex(&kept.hash)?;
    Some(Known { name: kept.name.as_str().into(), scopes: kept.scopes.as_slice().into(), print })
}

fn known_main(token: &SecretString) -> Known {
    Known { name: MAIN.into(), scopes: [Scope::Admin].into(), print: Fingerprint::of(token.expose_secret()) }
}

/// Visible ASCII of a sensible length: it can stand in a header as it is.
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
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if name != MAIN && (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(good) {
        return Ok(());
    }
    Err(invalid(&format!(
        "A token cannot be called `{}`: take up to {MAX_NAME_BYTES} letters, digits, `-`, `.` and `_`, and not \
         `{MAIN}`.",
        crate::shown(name.as_bytes())
    )))
}

fn invalid(message: &str) -> ApiError {
    ApiError::new(ApiCode::RequestInvalid, message)
}

fn malformed_main(path: &Path, what: &str) -> ApiError {
    secret_file::unsafe_file(path, what, "run `redflow token --rotate` to have a new one")
}

fn malformed_list(path: &Path, what: &str) -> ApiError {
    secret_file::unsafe_file(path, what, "restore it, or remove it: the tokens in it are worthless then")
}

fn gone(path: &Path) -> ApiError {
    malformed_main(path, "is gone")
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
