//! Logs the origins of web pages that were refused: each origin once, and only the first few.

use crate::response::printable;
use axum::http::{HeaderMap, header};
use redflow_access::Tokens;
use redflow_contract::code::ApiCode;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Origins that are logged. Clients choose the header freely, so the log needs a bound.
const MAX_LOGGED: usize = 16;

/// Refused origins of a sidecar that expects a Redflow UI. Most likely one of them is that UI at another
/// address.
#[derive(Default)]
pub(crate) struct RefusedOrigins {
    logged: Mutex<BTreeSet<String>>,
}

impl RefusedOrigins {
    /// Logs the origins of a refused request that are new.
    pub(crate) fn log(&self, headers: &HeaderMap, admitted: &str, tokens: &Tokens) {
        for origin in headers.get_all(header::ORIGIN) {
            let origin = printable(&String::from_utf8_lossy(origin.as_bytes()));
            let origin = tokens.mask(&origin).into_owned();
            // The Redflow UI itself is refused at routes that are not for it. That is no wrong address.
            let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
            if origin != admitted && logged.len() < MAX_LOGGED && logged.insert(origin.clone()) {
                tracing::warn!(
                    code = ApiCode::OriginRefused.as_str(),
                    origin,
                    admitted,
                    "refused a page of this origin; --redflow-ui admits another origin"
                );
            }
        }
    }
}
