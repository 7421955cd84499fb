//! Refuses requests whose end two HTTP readers could see at different places, as request smuggling needs.
//!
//! Owns the rules beyond hyper's own. hyper refuses lengths that differ, a coding that does not end with
//! `chunked`, and any coding in HTTP/1.0. It accepts a length together with a coding, and then hides the
//! length. It also accepts codings before `chunked`. Both are refused here.

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const LENGTH_LINE: &[u8] = b"\ncontent-length:";

/// Compares the `Content-Length` lines that a connection received with those that hyper shows.
///
/// A line of a body can look like such a header, but no line of JSON does. The lines of a pipelined request
/// can count too early. Then the chunked request before it is refused, and the client has to wait for each
/// response.
#[derive(Debug, Default)]
pub(crate) struct RequestFraming {
    /// Bytes of `LENGTH_LINE` that the last received bytes match.
    matched: AtomicUsize,
    received: AtomicU64,
    parsed: AtomicU64,
}

impl RequestFraming {
    /// Counts the lines in the next bytes of the connection.
    pub(crate) fn scan(&self, bytes: &[u8]) {
        let (mut matched, mut rest) = (self.matched.load(Relaxed), bytes);
        while let Some((byte, after)) = rest.split_first() {
            if matched == 0 && *byte != b'\n' {
                rest = memchr::memchr(b'\n', rest).map_or(&[], |at| &rest[at..]);
                continue;
            }
            let continues = byte.eq_ignore_ascii_case(&LENGTH_LINE[matched]);
            matched = if continues { matched + 1 } else { usize::from(*byte == b'\n') };
            if matched == LENGTH_LINE.len() {
                self.received.fetch_add(1, Relaxed);
                matched = 0;
            }
            rest = after;
        }
        self.matched.store(matched, Relaxed);
    }

    /// Checks the next request of the connection.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let lengths = headers.get_all(CONTENT_LENGTH).iter().count() as u64;
        let parsed = self.parsed.fetch_add(lengths, Relaxed) + lengths;
        let has_length = lengths > 0 || self.received.load(Relaxed) > parsed;
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let problem = match (codings.next(), codings.next()) {
            (None, _) => return Ok(()),
            (Some(_), Some(_)) => "The request names several transfer codings",
            (Some(coding), None) if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
                "The body has a transfer coding besides `chunked`"
            }
            _ if has_length => "The request has both a length and a transfer coding",
            _ => return Ok(()),
        };
        let remedy = "send `Content-Length` or `Transfer-Encoding: chunked`, and one request at a time";
        Err(ApiError::new(ApiCode::RequestInvalid, format!("{problem}: {remedy}.")))
    }
}

/// A response that closes the connection, because the start of the next request is uncertain.
pub(crate) fn refusal<B: From<String>>(error: &ApiError) -> Response<B> {
    let mut response = Response::new(B::from(to_json(error)));
    *response.status_mut() = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

pub(crate) fn to_json(error: &ApiError) -> String {
    serde_json::to_string(error).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{LENGTH_LINE, RequestFraming};
    use http::{HeaderMap, HeaderName};
    use redflow_contract::api::ProblemCode;
    use redflow_contract::code::ApiCode;
    use std::sync::atomic::Ordering;

    #[test]
    fn counts_length_lines_however_the_bytes_are_split() {
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
                let framing = RequestFraming::default();
                bytes.chunks(step).for_each(|part| framing.scan(part));
                let received = framing.received.load(Ordering::Relaxed);
                assert_eq!(received, *expected, "{} by {step}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn a_body_has_one_way_to_end() {
        // Checks a request of a connection that received so many length lines.
        let check = |received: usize, lines: &[(&'static str, &'static str)]| {
            let framing = RequestFraming::default();
            (0..received).for_each(|_| framing.scan(LENGTH_LINE));
            let header = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            };
            framing.check(&lines.iter().map(header).collect::<HeaderMap>()).map_err(|error| error.code)
        };
        let good: &[(usize, &[(&str, &str)])] = &[
            (0, &[]),
            (1, &[("content-length", "3")]),
            (0, &[("transfer-encoding", "chunked")]),
            (0, &[("transfer-encoding", "Chunked")]),
            // Without a coding, a further length does not matter.
            (2, &[("content-length", "3")]),
        ];
        for (received, lines) in good {
            assert_eq!(check(*received, lines), Ok(()), "{lines:?}");
        }
        let bad: &[(usize, &[(&str, &str)])] = &[
            (1, &[("transfer-encoding", "chunked")]),
            (1, &[("transfer-encoding", "chunked"), ("content-length", "3")]),
            (0, &[("transfer-encoding", "gzip, chunked")]),
            (0, &[("transfer-encoding", "identity")]),
            (0, &[("transfer-encoding", "chunked, chunked")]),
            (0, &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")]),
            (0, &[("transfer-encoding", "xchunked")]),
        ];
        for (received, lines) in bad {
            let refused = Err(ProblemCode::Api(ApiCode::RequestInvalid));
            assert_eq!(check(*received, lines), refused, "{lines:?}");
        }
    }
}
