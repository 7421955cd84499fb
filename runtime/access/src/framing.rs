//! Requests whose end two readers could see at different places, which is what smuggling lives on.
//!
//! Owns the rules beyond the HTTP library's own. The library refuses lengths that differ, a coding that does not end
//! with `chunked`, and any coding in HTTP/1.0. It lets through a length beside a coding, of which it then hides the
//! length, and codings before `chunked`; these are refused here.

use futures::future::{Either, Ready, ready};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lines that begin with `Content-Length:`, counted as they arrive on a connection.
///
/// A line of a body can be one as well, but none of JSON is. A request that was sent before the answer to the one
/// before it came can be counted too early; then a chunked request before it is refused, and its sender has to wait
/// for answers.
#[derive(Debug, Default)]
pub(crate) struct LengthLines {
    matched: usize,
    seen: Arc<AtomicU64>,
}

impl LengthLines {
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.seen)
    }

    pub(crate) fn read(&mut self, mut bytes: &[u8]) {
        const LINE: &[u8] = b"\ncontent-length:";
        while !bytes.is_empty() {
            if self.matched == 0 {
                let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
                bytes = &bytes[end + 1..];
                self.matched = 1;
                continue;
            }
            let byte = bytes[0];
            if !byte.eq_ignore_ascii_case(&LINE[self.matched]) {
                self.matched = 0;
                continue;
            }
            bytes = &bytes[1..];
            self.matched += 1;
            if self.matched == LINE.len() {
                self.seen.fetch_add(1, Ordering::Relaxed);
                self.matched = 0;
            }
        }
    }
}

/// Stands before the service of one connection.
pub(crate) struct Gate<S> {
    service: S,
    arrived: Arc<AtomicU64>,
    told: AtomicU64,
}

impl<S> Gate<S> {
    pub(crate) fn new(service: S, arrived: Arc<AtomicU64>) -> Self {
        Self { service, arrived, told: AtomicU64::new(0) }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let lengths = headers.get_all(CONTENT_LENGTH).iter().count() as u64;
        let told = self.told.fetch_add(lengths, Ordering::Relaxed) + lengths;
        check_coding(headers, self.arrived.load(Ordering::Relaxed) > told)
    }
}

fn check_coding(headers: &HeaderMap, hidden_length: bool) -> Result<(), ApiError> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let problem = match (codings.next(), codings.next()) {
        (None, _) => return Ok(()),
        (Some(one), None) if !one.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            "The body has a transfer coding besides `chunked`"
        }
        (Some(_), Some(_)) => "The request names several transfer codings",
        _ if hidden_length || headers.contains_key(CONTENT_LENGTH) => {
            "The request has both a length and a transfer coding"
        }
        _ => return Ok(()),
    };
    Err(ApiError::new(
        ApiCode::RequestInvalid,
        format!(
            "{problem}: send `Content-Length` or `Transfer-Encoding: chunked`, and one request at a time."
        ),
    ))
}

impl<S, B> hyper::service::Service<Request<Incoming>> for Gate<S>
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone,
    B: From<String>,
{
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response<B>, Infallible>>, S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        match self.check(request.headers()) {
            Ok(()) => Either::Right(self.service.clone().call(request)),
            Err(error) => Either::Left(ready(Ok(refusal(&error)))),
        }
    }
}

/// An error as JSON.
pub(crate) fn json(error: &ApiError) -> String {
    serde_json::to_string(error).unwrap_or_default()
}

fn refusal<B: From<String>>(error: &ApiError) -> Response<B> {
    let mut response = Response::new(B::from(json(error)));
    *response.status_mut() = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Where the next request begins is the very thing that is not known.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::{LengthLines, check_coding};
    use http::{HeaderMap, HeaderName};
    use redflow_contract::api::ProblemCode;
    use redflow_contract::code::ApiCode;
    use std::sync::atomic::Ordering;

    #[test]
    fn lengths_are_counted_however_they_arrive() {
        let cases: &[(&[u8], u64)] = &[
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0),
            (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 1),
            (b"POST / HTTP/1.1\ncontent-length:3\n\nabc", 1),
            (b"POST / HTTP/1.1\r\nCONTENT-LENGTH: 3\r\ncontent-length: 3\r\n\r\n", 2),
            (b"Content-Length: 3\r\nX-Content-Length: 4\r\nContent-Lengths: 5\r\n", 0),
            (b"\n\ncontent-length:\ncontent-\ncontent-length:", 2),
            (b"{\n  \"content-length: 3\",\n  \"Content-Length\": 3\n}", 0),
        ];
        for (bytes, expected) in cases {
            for step in 1..=bytes.len() {
                let mut lines = LengthLines::default();
                bytes.chunks(step).for_each(|part| lines.read(part));
                let seen = lines.counter().load(Ordering::Relaxed);
                assert_eq!(seen, *expected, "{} by {step}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn a_body_has_one_way_to_end() {
        let headers = |lines: &[(&'static str, &'static str)]| -> HeaderMap {
            lines
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
                .collect()
        };
        let good: &[&[(&str, &str)]] = &[
            &[],
            &[("content-length", "3")],
            &[("transfer-encoding", "chunked")],
            &[("transfer-encoding", "Chunked")],
        ];
        for lines in good {
            assert_eq!(check_coding(&headers(lines), false), Ok(()), "{lines:?}");
        }
        // Without a coding, what else was seen is of no matter.
        assert_eq!(check_coding(&headers(&[("content-length", "3")]), true), Ok(()));
        let bad: &[(&[(&str, &str)], bool)] = &[
            (&[("transfer-encoding", "chunked")], true),
            (&[("transfer-encoding", "chunked"), ("content-length", "3")], false),
            (&[("transfer-encoding", "gzip, chunked")], false),
            (&[("transfer-encoding", "identity")], false),
            (&[("transfer-encoding", "chunked, chunked")], false),
            (&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], false),
            (&[("transfer-encoding", "xchunked")], false),
        ];
        for (lines, hidden) in bad {
            let error = check_coding(&headers(lines), *hidden).unwrap_err();
            assert_eq!(error.code, ProblemCode::Api(ApiCode::RequestInvalid), "{lines:?}");
        }
    }
}
