//! The scopes that a server asks for when a token does not allow a request.

use crate::text::clean_line;
use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// The most scopes that a server can make a sign-in ask for, with those of before.
pub(super) const MAX_SCOPES: usize = 32;

/// The most bytes of them. They are part of an address.
const MAX_ALL_BYTES: usize = 4_096;

/// The longest scope that is kept.
pub(super) const MAX_SCOPE_BYTES: usize = 256;

/// The most characters of scopes in a text for people.
const MAX_SHOWN_CHARS: usize = 160;

/// The scopes that a refusal asks for; none if it is another refusal, or names none that can be sent.
pub(super) fn missing_scopes(challenge: &str, url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let parameters = WWWAuthenticateParams::parse(challenge, &url);
    if !parameters.is_insufficient_scope() {
        return Vec::new();
    }
    let all = parameters.scope.unwrap_or_default();
    let all = all.split_ascii_whitespace().filter(|scope| is_scope(scope)).map(str::to_owned);
    bounded(together(Vec::new(), all))
}

/// Old and new scopes, each once, in their order.
pub(super) fn together(mut old: Vec<String>, new: impl IntoIterator<Item = String>) -> Vec<String> {
    for scope in new {
        if !old.contains(&scope) {
            old.push(scope);
        }
    }
    old
}

/// The first of these scopes, so that an address can hold them.
pub(super) fn bounded(mut scopes: Vec<String>) -> Vec<String> {
    let mut bytes = 0;
    let fits = |scope: &&String| {
        bytes += scope.len() + 1;
        bytes <= MAX_ALL_BYTES
    };
    let fitting = scopes.iter().take(MAX_SCOPES).take_while(fits).count();
    scopes.truncate(fitting);
    scopes
}

/// Whether a text is a scope of OAuth 2 (RFC 6749, 3.3) that is not too long.
fn is_scope(text: &str) -> bool {
    text.len() <= MAX_SCOPE_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// What a token that lacks scopes means, for people.
pub(super) fn missing_text(scopes: Option<&str>) -> String {
    match scopes {
        Some(scopes) => {
            let scopes = clean_line(scopes, MAX_SHOWN_CHARS);
            format!("the token does not allow this: the server asks for the scope `{scopes}`")
        }
        None => "the token does not allow this, and the server does not say which scope it needs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_ALL_BYTES, MAX_SCOPE_BYTES, MAX_SCOPES, bounded, missing_scopes, missing_text};
    use pretty_assertions::assert_eq;

    #[test]
    fn a_refusal_names_the_scopes_that_are_missing() {
        let rows = [
            (
                r#"Bearer error="insufficient_scope", scope="files:read files:write""#,
                "files:read files:write",
            ),
            (r#"Bearer error="insufficient_scope", scope="a a b a""#, "a b"),
            (r#"Bearer error="insufficient_scope""#, ""),
            (r#"Bearer error="invalid_token", scope="a""#, ""),
            (r#"Bearer scope="a""#, ""),
            ("Basic realm=x", ""),
            ("", ""),
        ];
        for (challenge, expected) in rows {
            let scopes = missing_scopes(challenge, "https://mcp.example.org/mcp");
            assert_eq!(scopes.join(" "), expected, "{challenge}");
        }
    }

    #[test]
    fn scopes_are_bounded() {
        let (longest, longer) = ("x".repeat(MAX_SCOPE_BYTES), "x".repeat(MAX_SCOPE_BYTES + 1));
        let challenge = format!(r#"Bearer error="insufficient_scope", scope="{longest} {longer} é""#);
        assert_eq!(missing_scopes(&challenge, "https://mcp.example.org/mcp"), [longest]);
        let many: Vec<String> = (0..100).map(|number| format!("repo:{number}")).collect();
        assert_eq!(bounded(many.clone()), many[..MAX_SCOPES]);
        let large: Vec<String> = (0..30).map(|number| format!("{number:0>200}")).collect();
        let fitting = bounded(large.clone());
        assert!(large.starts_with(&fitting) && fitting.join(" ").len() > MAX_ALL_BYTES - 202);
        assert!(fitting.join(" ").len() <= MAX_ALL_BYTES);
        let text = missing_text(Some(&"scope ".repeat(1_000)));
        assert!(text.chars().count() < 250, "{text}");
        assert!(missing_text(None).contains("does not say which scope"));
    }
}
