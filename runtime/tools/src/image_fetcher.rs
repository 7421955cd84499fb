//! Downloads the images of messages by the guarded way out.
//!
//! Not a tool: the run asks for it before it calls a model. The address may hold a secret, so no text has more of it than
//! the host.

use crate::ToolSettings;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use redflow_contract::code::RunErrorCode;
use redflow_contract::image::{ImageProblem, MAX_IMAGE_BYTES, format_of, image_from_bytes};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::Image;
use redflow_egress::{EgressError, EgressRequest};
use redflow_ports::{BoxFuture, ImageFetcher, Measurement};
use std::time::Duration;

/// The longest time of one download, with its redirects.
pub const IMAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// The most redirects of one download.
pub const MAX_IMAGE_REDIRECTS: u32 = 5;

/// Downloads images by https.
pub(crate) struct GuardedImages {
    settings: ToolSettings,
    timeout: Duration,
}

impl GuardedImages {
    pub(crate) fn new(settings: ToolSettings) -> Self {
        Self { settings, timeout: IMAGE_TIMEOUT }
    }

    async fn download(&self, url: &str) -> Result<Image, String> {
        let egress = &self.settings.egress;
        let count = |verdict: &str| self.settings.meter.record(Measurement::EgressRequest { verdict });
        let failed = |error: EgressError| {
            count(error.verdict());
            reason_of(&error)
        };
        let judged = egress.judge(url).map_err(|refusal| failed(refusal.into()))?;
        if judged.scheme != "https" {
            return Err(ImageProblem::NotHttps.to_string());
        }
        let mut headers = HeaderMap::new();
        let formats = "image/png, image/jpeg, image/gif, image/webp";
        headers.insert(ACCEPT, HeaderValue::from_static(formats));
        let request = EgressRequest {
            method: Method::GET,
            url: url.to_owned(),
            headers,
            credential: None,
            hosts: None,
            body: Bytes::new(),
            max_redirects: MAX_IMAGE_REDIRECTS,
            timeout: self.timeout,
            max_body_bytes: u64::try_from(MAX_IMAGE_BYTES).unwrap_or(u64::MAX),
        };
        let response = egress.send(request).await.map_err(failed)?;
        if !response.status.is_success() {
            count("answered");
            let status = response.status.as_u16();
            return Err(format!("cannot be downloaded: the server answered with status {status}"));
        }
        let mut incoming = response.body;
        let mut bytes = Vec::new();
        while let Some(chunk) = incoming.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&chunk);
        }
        count("answered");
        let media_type = response.headers.get(CONTENT_TYPE).and_then(|name| name.to_str().ok());
        // Some servers name no type of an image. Then the bytes decide.
        let declared = media_type.and_then(format_of);
        image_from_bytes(&bytes, declared).map_err(|problem| problem.to_string())
    }
}

fn reason_of(error: &EgressError) -> String {
    match error {
        EgressError::TooLarge { .. } => ImageProblem::TooManyBytes.to_string(),
        EgressError::Answered { error, .. } if matches!(**error, EgressError::TooLarge { .. }) => {
            ImageProblem::TooManyBytes.to_string()
        }
        error => format!("cannot be downloaded: {error}"),
    }
}

impl ImageFetcher for GuardedImages {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Image, Failure>> {
        Box::pin(async move {
            self.download(url).await.map_err(|problem| {
                let subject = match self.settings.egress.judge(url) {
                    Ok(judged) => format!("The image of {}", judged.host),
                    Err(_) => "The image of an address".to_owned(),
                };
                Failure { code: RunErrorCode::ImageInvalid, message: format!("{subject} {problem}.") }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{GuardedImages, IMAGE_TIMEOUT};
    use crate::ToolSettings;
    use redflow_egress::{Egress, EgressPolicy, EgressSettings};
    use redflow_ports::ImageFetcher as _;
    use std::time::Duration;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_server_that_never_answers_ends_the_download() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let settings = EgressSettings { private: vec![host.clone()], ..EgressSettings::default() };
        let egress = Egress::new(EgressPolicy::new(&settings).unwrap());
        let mut images = GuardedImages::new(ToolSettings { egress, ..ToolSettings::default() });
        assert_eq!(images.timeout, IMAGE_TIMEOUT);
        images.timeout = Duration::from_millis(50);
        let failure = images.fetch(&format!("https://{host}/a.png?key=secret")).await.unwrap_err();
        assert_eq!(
            failure.message,
            "The image of 127.0.0.1 cannot be downloaded: there was no complete answer in time."
        );
    }
}
