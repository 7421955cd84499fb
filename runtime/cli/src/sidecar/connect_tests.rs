use super::local_tokens;
use redflow_access::Tokens;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;
use url::Url;

/// The tokens for a sidecar at an address that other machines can reach, too.
fn tokens(data: &Path, chosen: Option<&str>) -> Result<Vec<String>, ProblemCode> {
    let url = Url::parse("http://192.168.1.5:1880").unwrap();
    let chosen = chosen.map(SecretString::from);
    let found = local_tokens(&url, data, chosen.as_ref());
    found
        .map_err(|error| error.code)
        .map(|all| all.iter().map(|one| one.expose_secret().to_owned()).collect())
}

#[test]
fn the_token_of_the_data_directory_comes_first() {
    let data = tempfile::tempdir().unwrap();
    assert_eq!(tokens(data.path(), None), Err(ProblemCode::Api(ApiCode::Unauthorized)));
    assert_eq!(tokens(data.path(), Some("chosen")).unwrap(), ["chosen"]);
    let main = Tokens::open(data.path(), None).unwrap().main().unwrap();
    let main = main.expose_secret();
    assert_eq!(tokens(data.path(), None).unwrap(), [main]);
    assert_eq!(tokens(data.path(), Some("chosen")).unwrap(), [main, "chosen"]);
    assert_eq!(tokens(data.path(), Some(main)).unwrap(), [main]);
    // A sidecar with a chosen token does not read the file.
    std::fs::write(data.path().join("token"), "two tokens").unwrap();
    assert_eq!(tokens(data.path(), None), Err(ProblemCode::Api(ApiCode::SecretFileUnsafe)));
    assert_eq!(tokens(data.path(), Some("chosen")).unwrap(), ["chosen"]);
}
