//! The rule `redirect`: where a redirect leads, and what may go there.

use crate::address_text::{AddressText, check_characters};
use crate::{Refusal, Rule};
use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};

/// A redirect that has an address.
pub(crate) struct Redirect {
    /// The address, as absolute text that no rule has judged.
    pub(crate) url: String,
    /// The method of the next request.
    pub(crate) method: Method,
    /// Whether the body goes along.
    pub(crate) keeps_body: bool,
}

impl Redirect {
    /// Reads the redirect of an answer. `None`: the answer is no redirect, or one without an address.
    pub(crate) fn read(
        from: &AddressText,
        method: &Method,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, Refusal> {
        let Some(method_and_body) = next_method(method, status) else { return Ok(None) };
        let Some(location) = headers.get(LOCATION) else { return Ok(None) };
        let (method, keeps_body) = method_and_body;
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| unreadable())?;
        Ok(Some(Self { url: absolute(from, location)?, method, keeps_body }))
    }

    /// Refuses to leave https.
    pub(crate) fn check_scheme(from: &AddressText, to: &AddressText) -> Result<(), Refusal> {
        if from.scheme == "https" && to.scheme == "http" {
            return Err(Refusal::new(Rule::Redirect, "the redirect leads from https to http"));
        }
        Ok(())
    }
}

/// The next method, and whether the body goes along. This is what browsers do.
fn next_method(method: &Method, status: StatusCode) -> Option<(Method, bool)> {
    let keep = || (method.clone(), true);
    let get = || (Method::GET, false);
    match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if *method == Method::POST => Some(get()),
        StatusCode::SEE_OTHER if *method != Method::GET && *method != Method::HEAD => Some(get()),
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => Some(keep()),
        _ => None,
    }
}

/// An absolute address, so that the rules see what the server wrote.
fn absolute(from: &AddressText, location: &str) -> Result<String, Refusal> {
    check_characters(location).map_err(|_| unreadable())?;
    if location.starts_with("//") {
        return Ok(format!("{}:{location}", from.scheme));
    }
    let before_path = location.split(['/', '?', '#']).next().unwrap_or_default();
    if before_path.contains(':') {
        return Ok(location.to_owned());
    }
    from.url.join(location).map(String::from).map_err(|_| unreadable())
}

fn unreadable() -> Refusal {
    Refusal::new(Rule::Redirect, "the redirect has an address that cannot be read")
}
