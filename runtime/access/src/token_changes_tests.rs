use crate::guard::{AccessControl, AuthMethod, Caller};
use crate::settings::AccessSettings;
use crate::tokens::Tokens;
use pretty_assertions::assert_eq;
use redflow_contract::api::{ApiError, ProblemCode, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::console::TokenRequest;
use std::path::Path;

fn access(data: &Path) -> AccessControl {
    AccessControl::new(AccessSettings::default(), Tokens::open(data, None).unwrap(), 0).unwrap()
}

fn request(name: &str, scopes: &[Scope]) -> TokenRequest {
    TokenRequest { name: name.to_owned(), scopes: scopes.to_vec() }
}

fn code<T: std::fmt::Debug>(result: Result<T, ApiError>) -> ProblemCode {
    result.unwrap_err().code
}

// SECURITY: token-admin
#[test]
fn a_token_works_at_once_and_stops_at_once() {
    let data = tempfile::tempdir().unwrap();
    let access = access(data.path());
    let owner = access.owner();
    // All at one time: nothing waits for the next look at the files.
    let added = access.add_token(&owner, &request("guest", &[Scope::Run, Scope::Read]), 5_000).unwrap();
    let guest = access.authenticate_token(&added.token, 5_000).unwrap();
    assert_eq!((&*guest.name, guest.auth_method), ("guest", AuthMethod::Message));
    let list = access.list_tokens(&owner, 5_000).unwrap().tokens;
    let rows: Vec<_> = list
        .iter()
        .map(|token| (token.name.as_str(), &token.scopes[..], token.created_at, token.is_own))
        .collect();
    let guest = ("guest", &[Scope::Read, Scope::Run][..], Some(5_000), false);
    assert_eq!(rows, [guest, ("main", &[Scope::Admin][..], None, true)]);
    access.remove_token(&owner, "guest").unwrap();
    assert!(access.authenticate_token(&added.token, 5_000).is_err());
    assert_eq!(code(access.remove_token(&owner, "guest")), ProblemCode::Api(ApiCode::NotFound));
}

// SECURITY: token-admin
#[test]
fn only_a_token_with_admin_gives_and_only_what_it_has() {
    let data = tempfile::tempdir().unwrap();
    let access = access(data.path());
    for scope in [Scope::Read, Scope::Run, Scope::Deploy] {
        let name = scope.as_str();
        let token = access.add_token(&access.owner(), &request(name, &[scope]), 5_000).unwrap().token;
        let caller = access.authenticate_token(&token, 5_000).unwrap();
        let forbidden = ProblemCode::Api(ApiCode::Forbidden);
        for given in Scope::ALL {
            assert_eq!(code(access.add_token(&caller, &request("more", &[given]), 5_000)), forbidden);
        }
        assert_eq!(code(access.list_tokens(&caller, 5_000)), forbidden);
        assert_eq!(code(access.remove_token(&caller, name)), forbidden);
    }
    let unauthorized = ProblemCode::Api(ApiCode::Unauthorized);
    assert_eq!(code(access.list_tokens(&Caller::anonymous(), 5_000)), unauthorized);
    for (name, scopes) in
        [("", &[Scope::Read][..]), ("main", &[Scope::Read]), ("read", &[Scope::Read]), ("x", &[])]
    {
        let refused = code(access.add_token(&access.owner(), &request(name, scopes), 5_000));
        assert_eq!(refused, ProblemCode::Api(ApiCode::RequestInvalid), "{name}");
    }
}

// SECURITY: token-admin
#[test]
fn the_last_token_with_admin_stays() {
    let data = tempfile::tempdir().unwrap();
    let access = access(data.path());
    let invalid = ProblemCode::Api(ApiCode::RequestInvalid);
    assert_eq!(code(access.remove_token(&access.owner(), "main")), invalid);
    let second = access.add_token(&access.owner(), &request("second", &[Scope::Admin]), 5_000).unwrap();
    let second = access.authenticate_token(&second.token, 5_000).unwrap();
    // The main token is not accepted any more.
    std::fs::write(data.path().join("token"), "").unwrap();
    assert_eq!(code(access.remove_token(&second, "second")), invalid);
    access.add_token(&second, &request("third", &[Scope::Admin]), 9_000).unwrap();
    // Another process removes the third token, and this one has not noticed it.
    crate::tokens::remove(data.path(), "third").unwrap();
    assert_eq!(code(access.remove_token(&second, "second")), invalid);
    access.add_token(&second, &request("third", &[Scope::Admin]), 9_000).unwrap();
    access.remove_token(&second, "second").unwrap();
}

// SECURITY: token-admin
#[test]
fn a_token_in_memory_has_no_others() {
    let access = AccessControl::new(AccessSettings::default(), Tokens::ephemeral(None).unwrap(), 0).unwrap();
    assert_eq!(access.list_tokens(&access.owner(), 0).unwrap().tokens.len(), 1);
    let refused = code(access.add_token(&access.owner(), &request("x", &[Scope::Read]), 0));
    assert_eq!(refused, ProblemCode::Api(ApiCode::RequestInvalid));
}
