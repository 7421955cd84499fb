//! The body of an answer: decoded, bounded, and under the deadline of its call.

use crate::call_slots::CallSlot;
use crate::deadline::Deadline;
use crate::pool::Lease;
use crate::{EgressError, Refusal, Rule};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, Method, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

/// How many encoded bytes are decoded at once. They become at most about a thousand times as many.
const DECODED_AT_ONCE: usize = 1024;

/// The decoded body of an answer.
pub struct EgressBody {
    /// `None` after the end.
    open: Option<OpenBody>,
    limit: u64,
    deadline: Deadline,
    /// The longest time without a byte, if the body is a stream.
    idle: Option<Duration>,
}

struct OpenBody {
    incoming: Incoming,
    gzip: Option<Gzip>,
    received: u64,
    decoded: u64,
    lease: Option<Lease>,
    _slot: CallSlot,
}

impl EgressBody {
    pub(crate) fn new(
        incoming: Incoming,
        is_gzip: bool,
        limits: BodyLimits,
        held: (Option<Lease>, CallSlot),
    ) -> Self {
        let gzip = is_gzip.then(Gzip::default);
        let (lease, slot) = held;
        let open = OpenBody { incoming, gzip, received: 0, decoded: 0, lease, _slot: slot };
        Self { open: Some(open), limit: limits.max_bytes, deadline: limits.deadline, idle: limits.idle }
    }

    /// The next bytes, or `None` at the end.
    ///
    /// # Errors
    /// When the body is too large, broken or too slow. The connection is closed then.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        let Some(open) = &mut self.open else { return Ok(None) };
        if let Some(idle) = self.idle {
            self.deadline.restart(idle);
        }
        let chunk = self.deadline.wait(open.next(self.limit)).await;
        let chunk = chunk.unwrap_or(Err(EgressError::TimedOut { sent: true }));
        if !matches!(chunk, Ok(Some(_)))
            && let Some(OpenBody { lease: Some(lease), .. }) = self.open.take()
            && chunk.is_ok()
        {
            lease.give_back();
        }
        chunk
    }
}

/// The bounds of a body.
pub(crate) struct BodyLimits {
    pub(crate) max_bytes: u64,
    pub(crate) deadline: Deadline,
    pub(crate) idle: Option<Duration>,
}

impl OpenBody {
    async fn next(&mut self, limit: u64) -> Result<Option<Bytes>, EgressError> {
        // What the server announces need not be read first.
        if self.incoming.size_hint().lower() > limit {
            return Err(EgressError::TooLarge { limit });
        }
        loop {
            if let Some(gzip) = &mut self.gzip {
                let decoded = gzip.decode_more()?;
                if !decoded.is_empty() {
                    count(&mut self.decoded, decoded.len(), limit)?;
                    return Ok(Some(decoded));
                }
            }
            let frame = poll_fn(|cx| Pin::new(&mut self.incoming).poll_frame(cx)).await;
            let Some(frame) = frame else {
                return self.gzip.as_mut().map_or(Ok(()), Gzip::finish).map(|()| None);
            };
            let frame = frame.map_err(|_| broken("the connection was lost before the answer ended"))?;
            let Ok(data) = frame.into_data() else { continue };
            // Also encoded bytes: they may decode to nothing, without an end.
            count(&mut self.received, data.len(), limit)?;
            match &mut self.gzip {
                Some(gzip) => gzip.encoded = data,
                None if data.is_empty() => {}
                None => return Ok(Some(data)),
            }
        }
    }
}

/// A gzip decoder, and the bytes that it has not read yet.
struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    encoded: Bytes,
    is_begun: bool,
}

impl Default for Gzip {
    fn default() -> Self {
        Self { decoder: MultiGzDecoder::new(Vec::new()), encoded: Bytes::new(), is_begun: false }
    }
}

impl Gzip {
    /// Decodes until there are some bytes. Nothing, if more encoded bytes are needed.
    fn decode_more(&mut self) -> Result<Bytes, EgressError> {
        while !self.encoded.is_empty() {
            self.is_begun = true;
            let piece = self.encoded.split_to(self.encoded.len().min(DECODED_AT_ONCE));
            let decoded = self.decoder.write_all(&piece).and_then(|()| self.decoder.flush());
            decoded.map_err(|_| broken("the answer is damaged: its gzip encoding cannot be read"))?;
            if !self.decoder.get_ref().is_empty() {
                return Ok(std::mem::take(self.decoder.get_mut()).into());
            }
        }
        Ok(Bytes::new())
    }

    /// Checks that the encoding is complete. An empty body is, too.
    fn finish(&mut self) -> Result<(), EgressError> {
        if !self.is_begun {
            return Ok(());
        }
        self.decoder.try_finish().map_err(|_| broken("the answer ends before its gzip encoding does"))
    }
}

/// Whether a body is encoded with gzip. Removes the headers that describe the encoded body.
pub(crate) fn take_encoding(
    method: &Method,
    status: StatusCode,
    headers: &mut HeaderMap,
) -> Result<bool, Refusal> {
    let has_body =
        *method != Method::HEAD && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let coding = codings.next().map_or(&b"identity"[..], http::HeaderValue::as_bytes);
    let is_single = codings.next().is_none();
    let is_gzip = coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip");
    let is_plain = coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
    if !has_body || (is_plain && is_single) {
        return Ok(false);
    }
    if !is_gzip || !is_single {
        let reason = "the answer has a content encoding that was not asked for; only gzip is read";
        return Err(Refusal::new(Rule::Bounds, reason));
    }
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    Ok(true)
}

fn count(total: &mut u64, bytes: usize, limit: u64) -> Result<(), EgressError> {
    *total = total.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    if *total > limit { Err(EgressError::TooLarge { limit }) } else { Ok(()) }
}

fn broken(reason: &str) -> EgressError {
    EgressError::Failed { sent: true, reason: reason.to_owned() }
}
