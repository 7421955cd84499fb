//! Lists, makes and removes tokens of a running sidecar.

use crate::guard::{AccessControl, Caller};
use crate::tokens::{self, MAIN, invalid};
use redflow_contract::Millis;
use redflow_contract::api::{ApiError, Scope};
use redflow_contract::console::{NewToken, TokenEntry, TokenList, TokenRequest};
use secrecy::ExposeSecret as _;

impl AccessControl {
    /// The tokens that work now, by name.
    ///
    /// # Errors
    /// `UNAUTHORIZED` or `FORBIDDEN` without the scope `admin`.
    pub fn list_tokens(&self, caller: &Caller, now: Millis) -> Result<TokenList, ApiError> {
        self.require(caller, Scope::Admin)?;
        let accepted = self.tokens.accepted(now).into_iter();
        let mut tokens: Vec<TokenEntry> = accepted
            .map(|token| TokenEntry {
                name: token.name.to_string(),
                scopes: token.scopes.to_vec(),
                created_at: token.created_at,
                is_own: caller.token.is_some_and(|own| own.matches(&token.fingerprint)),
            })
            .collect();
        tokens.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(TokenList { tokens })
    }

    /// Makes a token, which works at once. It waits for the disk.
    ///
    /// # Errors
    /// `UNAUTHORIZED` or `FORBIDDEN` without the scope `admin`, or without a scope that the token would have; else as
    /// [`tokens::add`].
    pub fn add_token(
        &self,
        caller: &Caller,
        request: &TokenRequest,
        now: Millis,
    ) -> Result<NewToken, ApiError> {
        self.require(caller, Scope::Admin)?;
        request.scopes.iter().try_for_each(|scope| self.require(caller, *scope))?;
        let token = tokens::add(self.tokens.data()?, &request.name, &request.scopes, now)?;
        self.tokens.reload();
        Ok(NewToken { name: request.name.clone(), token: token.expose_secret().to_owned() })
    }

    /// Removes a token. It stops working at once, and so do its sessions. It waits for the disk.
    ///
    /// # Errors
    /// `UNAUTHORIZED` or `FORBIDDEN` without the scope `admin`; `REQUEST_INVALID` for the main token, and for the
    /// last token with `admin`; else as [`tokens::remove`].
    pub fn remove_token(&self, caller: &Caller, name: &str) -> Result<(), ApiError> {
        self.require(caller, Scope::Admin)?;
        if name == MAIN {
            return Err(invalid(
                "The main token cannot be removed: replace it with `redflow token --rotate`.",
            ));
        }
        self.tokens.remove(name)
    }
}

#[cfg(test)]
#[path = "token_changes_tests.rs"]
mod tests;
