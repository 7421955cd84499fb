//! Serves the files of the console: its page at `/`, the others under a digest of all files.
//!
//! The files are the same for every caller and hold no data, so they need no token.

use super::files::{Console, ConsoleFile};
use crate::app::App;
use crate::response::{ApiResult, Problem, raw};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use redflow_contract::code::ApiCode;
use std::sync::Arc;

/// What the page of the console may load and do.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

/// The address of a file contains the digest of its content, so the content never changes.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The console that requests get now. A developer's folder is read each time.
fn current(app: &App) -> Arc<Console> {
    match &app.settings.console_folder {
        Some(folder) => Arc::new(Console::read(folder)),
        None => Arc::clone(&app.console),
    }
}

pub(crate) async fn page(State(app): State<Arc<App>>) -> Response {
    let mut response = raw(200, "text/html; charset=utf-8", current(&app).page.clone());
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

pub(crate) async fn file(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> ApiResult {
    let console = current(&app);
    let mut parts = uri.path().rsplit('/').map(str::to_owned);
    let (name, digest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if digest != console.digest {
        return Err(Problem::new(ApiCode::NotFound, "The console was updated: reload the page."));
    }
    let Some(file) = console.find(&name) else {
        return Err(Problem::new(ApiCode::NotFound, "The console has no such file: reload the page."));
    };
    let kind = file.content_type();
    let mut response = if accepts_gzip(&headers) {
        let compressed = match file.compressed() {
            Some(compressed) => compressed,
            None => {
                let console = Arc::clone(&console);
                let compress = move || console.find(&name).map(ConsoleFile::gzip).unwrap_or_default();
                app.run_blocking(compress).await?
            }
        };
        let mut response = raw(200, kind, compressed);
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        raw(200, kind, file.bytes.clone())
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, IMMUTABLE);
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Ok(response)
}

/// Whether the client names gzip among the encodings it takes, and does not give it the weight 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|encoding| {
        let mut parts = encoding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        is_gzip && weight.is_none_or(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::accepts_gzip;
    use axum::http::{HeaderMap, HeaderValue, header};

    #[test]
    fn only_a_client_that_takes_gzip_gets_it() {
        let accepts = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            accepts_gzip(&headers)
        };
        for yes in ["gzip", "deflate, GZIP;q=0.5, br", "gzip;q=1", "br,gzip"] {
            assert!(accepts(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0", "*", "gzipped", "identity;q=1"] {
            assert!(!accepts(no), "{no}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
