//! The address of a Node-RED, and the URLs below it.

use url::Url;

/// The variable with the access token. There is no flag for it, because a list of processes would show it.
pub const TOKEN_VARIABLE: &str = "NODE_RED_TOKEN";

/// Parses the address of a Node-RED. A path in it is its `httpAdminRoot`.
///
/// # Errors
/// A sentence that says what is expected. It does not quote the text, which may hold a password.
pub fn parse_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let mut url = url.ok_or_else(|| "it must be an address such as http://127.0.0.1:1880".to_owned())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!(
            "it must hold no name and no password: put an access token of Node-RED in {TOKEN_VARIABLE}"
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must end with its path".to_owned());
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// A URL below the address. `path` starts with a slash and is not changed. None for a path that leaves the
/// address or that is not in its normal form.
pub(crate) fn join(base: &Url, path: &str, query: Option<&str>) -> Option<Url> {
    let full_path = format!("{}{path}", base.path().trim_end_matches('/'));
    let mut url = base.clone();
    url.set_path(&full_path);
    url.set_query(query);
    (path.starts_with('/') && url.path() == full_path && url.query() == query).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::{join, parse_address};

    #[test]
    fn an_address_is_http_and_holds_no_password() {
        for good in ["http://127.0.0.1:1880", "https://flows.example/", "http://[::1]:1880/admin"] {
            assert!(parse_address(good).is_ok_and(|url| url.path().ends_with('/')), "{good}");
        }
        for bad in
            ["", "127.0.0.1:1880", "ftp://a", "file:///etc/passwd", "http://", "http://a/?b", "http://a/#b"]
        {
            assert!(parse_address(bad).is_err(), "{bad}");
        }
        for secret in ["http://user:hush@a/", "http://hush@a/"] {
            let why = parse_address(secret).unwrap_err();
            assert!(why.contains("NODE_RED_TOKEN") && !why.contains("hush"), "{why}");
        }
    }

    #[test]
    fn a_joined_url_stays_below_the_address() {
        let base = parse_address("http://a:1880/admin").unwrap();
        let joined = |path, query| join(&base, path, query).map(String::from);
        assert_eq!(joined("/flows", None).as_deref(), Some("http://a:1880/admin/flows"));
        assert_eq!(
            joined("/nodes/a%2Fb", Some("x=1")).as_deref(),
            Some("http://a:1880/admin/nodes/a%2Fb?x=1")
        );
        assert_eq!(joined("//evil.example/", None).as_deref(), Some("http://a:1880/admin//evil.example/"));
        for out in
            ["/../settings", "/%2e%2e/settings", "/a/.%2E/../..", "/..\\settings", "settings", "/./flows", ""]
        {
            assert_eq!(joined(out, None), None, "{out}");
        }
    }
}
