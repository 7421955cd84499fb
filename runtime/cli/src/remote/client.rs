//! One sidecar and how it is asked: a request, an answer, and what it means if there is none.
//!
//! Owns the HTTP of it. Every failure comes out as an `ApiError`: the sidecar's own, or `SIDECAR_UNREACHABLE`.
//! Nothing is asked twice here, and no answer is read without bound.

use crate::terminal::printable_line;
use redflow_contract::api::ApiError;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::RunId;
use redflow_models::transport::{HttpSettings, ReqwestTransport, TransportError, is_local};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// Bytes of an answer: the largest journal that is replayed.
const MAX_ANSWER_BYTES: usize = 512 * 1024 * 1024;
/// How long a sidecar may say nothing before it is taken for gone.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// A sidecar, and the right to ask it.
#[derive(Clone)]
pub(crate) struct Sidecar {
    url: Url,
    client: Client,
    bearer: HeaderValue,
}

/// Without the token.
impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl Sidecar {
    pub(super) fn new(url: Url, token: &SecretString, http: &HttpSettings) -> Result<Self, String> {
        // A proxy is for what is elsewhere; it must not see the token of this machine's sidecar.
        let proxy = http.proxy.clone().filter(|_| !is_local(&url));
        let transport = ReqwestTransport::new(&HttpSettings { proxy, ..http.clone() })?;
        let client = transport.client(&url).clone();
        let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
        let mut bearer = bearer.map_err(|_| "the token cannot stand in a header".to_owned())?;
        bearer.set_sensitive(true);
        Ok(Self { url, client, bearer })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Looks at something.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, ApiError> {
        let request = self.request(Method::GET, path, query);
        self.read(self.answer(request).await?).await
    }

    /// Has something done.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let body = serde_json::to_vec(body).map_err(|_| self.foreign("the question cannot be written"))?;
        self.post_bytes(path, body).await
    }

    /// Has something done that needs no words.
    pub(crate) async fn post_nothing<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ApiError> {
        let request = self.request(Method::POST, path, &[]);
        self.read(self.answer(request).await?).await
    }

    /// The same with a body that is JSON already.
    pub(crate) async fn post_bytes<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: Vec<u8>,
    ) -> Result<T, ApiError> {
        let request =
            self.request(Method::POST, path, &[]).header(CONTENT_TYPE, "application/json").body(body);
        self.read(self.answer(request).await?).await
    }

    /// Looks at something that is no JSON.
    pub(crate) async fn bytes(&self, path: &[&str]) -> Result<Vec<u8>, ApiError> {
        let response = self.answer(self.request(Method::GET, path, &[])).await?;
        self.body(response).await
    }

    /// Opens a stream of events.
    pub(super) async fn stream(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Stream<'_>, ApiError> {
        let request = self.request(Method::GET, path, query).header(ACCEPT, "text/event-stream");
        let response = self.answer(request).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Err(self.foreign("it gives no stream of events"));
        }
        Ok(Stream { sidecar: self, response })
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.client.request(method, url).header(AUTHORIZATION, self.bearer.clone())
    }

    /// The answer, if all is well; else what the sidecar says of it.
    async fn answer(&self, request: RequestBuilder) -> Result<Response, ApiError> {
        let response = match timeout(SILENCE, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(&TransportError::from(&error).to_string())),
            Err(_) => return Err(self.unreachable("it does not answer")),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.body(response).await?;
        Err(serde_json::from_slice(&body)
            .unwrap_or_else(|_| self.foreign(&format!("it answers with status {}", status.as_u16()))))
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, ApiError> {
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map_err(|_| self.foreign("its answer is not what was asked for"))
    }

    async fn body(&self, response: Response) -> Result<Vec<u8>, ApiError> {
        let mut stream = Stream { sidecar: self, response };
        let mut bytes = Vec::new();
        while let Some(piece) = stream.next().await? {
            if bytes.len() + piece.len() > MAX_ANSWER_BYTES {
                return Err(self.foreign("its answer has no end"));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn unreachable(&self, why: &str) -> ApiError {
        let url = &self.url;
        let text = format!("No sidecar answers at {url}: {why}. Is `redflow serve` running there?");
        ApiError::new(ApiCode::SidecarUnreachable, text)
    }

    pub(super) fn foreign(&self, why: &str) -> ApiError {
        let text = format!("What answers at {} is no sidecar of this version: {why}.", self.url);
        ApiError::new(ApiCode::SidecarUnreachable, text)
    }
}

/// An answer that is read piece by piece.
pub(super) struct Stream<'a> {
    sidecar: &'a Sidecar,
    response: Response,
}

impl Stream<'_> {
    /// The next piece; none at the end.
    pub(super) async fn next(
        &mut self,
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]>>, ApiError> {
        match timeout(SILENCE, self.response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.sidecar.unreachable(&TransportError::from(&error).to_string())),
            Err(_) => Err(self.sidecar.unreachable("it says nothing any more")),
        }
    }
}

/// The way to a run. An id that would lead elsewhere is the id of none.
pub(super) fn run_path<'a>(run: &'a RunId, rest: &[&'a str]) -> Result<Vec<&'a str>, ApiError> {
    let id = run.as_str();
    if matches!(id, "" | "." | "..") {
        let text = "This is the id of no run: give that of a run.";
        return Err(ApiError {
            code: ProblemCode::Store(StoreCode::RunUnknown),
            ..ApiError::new(ApiCode::NotFound, text)
        });
    }
    Ok(["api", "runs", id].into_iter().chain(rest.iter().copied()).collect())
}

/// An address as it is shown.
pub(super) fn shown(url: &Url) -> String {
    printable_line(url.as_str(), 200)
}
