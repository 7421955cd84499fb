//! The HTTP client of a sidecar.
//!
//! Every failure is an `ApiError`: that of the sidecar, or `SIDECAR_UNREACHABLE`. The client never retries,
//! and limits the size of every response.

use super::events::EventReader;
use crate::errors::store_error;
use redflow_contract::api::ApiError;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::RunId;
use redflow_models::transport::{HttpSettings, ReqwestTransport, TransportError};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// The largest response in bytes, which is the largest journal that can be replayed.
const MAX_RESPONSE_BYTES: usize = 512 * 1024 * 1024;
/// The time without any data after which a sidecar counts as unreachable.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct SidecarClient {
    url: Url,
    client: Client,
    bearer: HeaderValue,
}

/// Leaves out the token.
impl fmt::Debug for SidecarClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SidecarClient").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl SidecarClient {
    pub(crate) fn new(url: Url, token: &SecretString, http: &HttpSettings) -> Result<Self, String> {
        let client = ReqwestTransport::new(http)?.client(&url).clone();
        Self::with_client(url, token, client)
    }

    /// A sidecar of this machine, also at an address that others can reach. A proxy is only for other machines; it must
    /// not see the token.
    pub(crate) fn on_this_machine(
        url: Url,
        token: &SecretString,
        http: &HttpSettings,
    ) -> Result<Self, String> {
        let client = ReqwestTransport::new(http)?.direct_client().clone();
        Self::with_client(url, token, client)
    }

    fn with_client(url: Url, token: &SecretString, client: Client) -> Result<Self, String> {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
        let mut bearer =
            bearer.map_err(|_| "the token has characters that a header cannot contain".to_owned())?;
        bearer.set_sensitive(true);
        Ok(Self { url, client, bearer })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, ApiError> {
        let request = self.request(Method::GET, path, query);
        self.send(request).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        self.send(self.json_request(Method::POST, path, body)?).await
    }

    /// Posts a request that may take any time. A sidecar whose machine is gone still ends it: the system probes the
    /// connection.
    pub(crate) async fn post_long<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        self.send_long(self.json_request(Method::POST, path, body)?).await
    }

    /// Replaces something, if a condition holds. The answer may take any time.
    pub(crate) async fn put_long<T: DeserializeOwned>(
        &self,
        path: &[&str],
        condition: Option<(&'static str, String)>,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let mut request = self.json_request(Method::PUT, path, body)?;
        if let Some((name, value)) = condition {
            request = request.header(name, value);
        }
        self.send_long(request).await
    }

    /// Posts bytes. The answer may take any time.
    pub(crate) async fn post_bytes<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        bytes: Vec<u8>,
    ) -> Result<T, ApiError> {
        let request = self.request(Method::POST, path, query);
        self.send_long(request.header(CONTENT_TYPE, "application/octet-stream").body(bytes)).await
    }

    /// Deletes something. The answer has no body, and may take any time.
    pub(crate) async fn delete(&self, path: &[&str], query: &[(&str, String)]) -> Result<(), ApiError> {
        let response = self.check(self.request(Method::DELETE, path, query).send().await).await?;
        self.read_body(response).await.map(drop)
    }

    fn json_request(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<RequestBuilder, ApiError> {
        let body =
            serde_json::to_vec(body).map_err(|_| self.incompatible("the request cannot be encoded"))?;
        let request = self.request(method, path, &[]);
        Ok(request.header(CONTENT_TYPE, "application/json").body(body))
    }

    pub(crate) async fn post_empty<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ApiError> {
        self.send(self.request(Method::POST, path, &[])).await
    }

    /// Gets a response that is not JSON.
    pub(crate) async fn get_bytes(&self, path: &[&str]) -> Result<Vec<u8>, ApiError> {
        let response = self.execute(self.request(Method::GET, path, &[])).await?;
        self.read_body(response).await
    }

    pub(super) async fn open_stream(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Stream<'_>, ApiError> {
        let request = self.request(Method::GET, path, query).header(ACCEPT, "text/event-stream");
        let response = self.execute(request).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Err(self.incompatible("it sends no event stream"));
        }
        Ok(Stream { sidecar: self, response })
    }

    /// Passes each event of a stream to `print`. Returns only with an error, because such a stream has no end.
    pub(crate) async fn read_stream<T: DeserializeOwned>(
        &self,
        path: &[&str],
        print: &mut (dyn FnMut(&T) + Send),
    ) -> Result<(), ApiError> {
        let mut stream = self.open_stream(path, &[]).await?;
        let mut reader = EventReader::new();
        while let Some(piece) = stream.next().await? {
            for data in reader.push(&piece).map_err(|_| self.incompatible("an event is too large"))? {
                let event = serde_json::from_str(&data);
                print(&event.map_err(|_| self.incompatible("an event has another format"))?);
            }
        }
        Err(self.unreachable("it closed the connection"))
    }

    pub(crate) fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.client.request(method, url).header(AUTHORIZATION, self.bearer.clone())
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ApiError> {
        self.read_json(self.execute(request).await?).await
    }

    async fn send_long<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ApiError> {
        self.read_json(self.check(request.send().await).await?).await
    }

    async fn read_json<T: DeserializeOwned>(&self, response: Response) -> Result<T, ApiError> {
        let body = self.read_body(response).await?;
        serde_json::from_slice(&body).map_err(|_| self.incompatible("its answer has another format"))
    }

    /// Sends a request, and waits for the beginning of the response.
    async fn execute(&self, request: RequestBuilder) -> Result<Response, ApiError> {
        match timeout(READ_TIMEOUT, request.send()).await {
            Ok(response) => self.check(response).await,
            Err(_) => Err(self.unreachable("it does not answer")),
        }
    }

    /// A response with another status than success becomes the sidecar's error.
    async fn check(&self, response: reqwest::Result<Response>) -> Result<Response, ApiError> {
        let response =
            response.map_err(|error| self.unreachable(&TransportError::from(&error).to_string()))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.read_body(response).await?;
        Err(serde_json::from_slice(&body)
            .unwrap_or_else(|_| self.incompatible(&format!("it answers with status {}", status.as_u16()))))
    }

    async fn read_body(&self, response: Response) -> Result<Vec<u8>, ApiError> {
        let mut stream = Stream { sidecar: self, response };
        let mut bytes = Vec::new();
        while let Some(piece) = stream.next().await? {
            if bytes.len() + piece.len() > MAX_RESPONSE_BYTES {
                return Err(self.incompatible("its answer is too large"));
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

    pub(super) fn incompatible(&self, why: &str) -> ApiError {
        let text = format!("The server at {} is not a sidecar of this version: {why}.", self.url);
        ApiError::new(ApiCode::SidecarUnreachable, text)
    }
}

/// A response that is read in pieces.
pub(super) struct Stream<'a> {
    sidecar: &'a SidecarClient,
    response: Response,
}

impl Stream<'_> {
    /// The next piece. None at the end.
    pub(super) async fn next(
        &mut self,
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]>>, ApiError> {
        match timeout(READ_TIMEOUT, self.response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.sidecar.unreachable(&TransportError::from(&error).to_string())),
            Err(_) => Err(self.sidecar.unreachable("it stopped sending")),
        }
    }
}

/// The path of a run. An id that would change the path is refused, because no run has it.
pub(crate) fn run_path<'a>(run: &'a RunId, rest: &[&'a str]) -> Result<Vec<&'a str>, ApiError> {
    let id = run.as_str();
    if matches!(id, "" | "." | "..") {
        let text = "No run has this id: give the id of a run.".to_owned();
        return Err(store_error(StoreCode::RunUnknown, text));
    }
    Ok(["api", "runs", id].into_iter().chain(rest.iter().copied()).collect())
}
