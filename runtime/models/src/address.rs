//! The addresses of requests, made of the address of a server, and whose they are.

use url::Url;

/// Removes the first of these suffixes that the path has.
pub(crate) fn strip_path_suffix(base: &Url, suffixes: &[&str]) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    if let Some(rest) = suffixes.iter().find_map(|suffix| path.strip_suffix(suffix)) {
        url.set_path(rest);
    }
    url
}

/// Appends path segments, however many slashes the address ends with. Keeps its query.
pub(crate) fn join(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    url.set_path(base.path().trim_end_matches('/'));
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// Whether a host is one of these domains, or a subdomain.
pub(crate) fn is_within(host: &str, domains: &[&str]) -> bool {
    domains
        .iter()
        .any(|domain| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}
