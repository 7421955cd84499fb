//! Checksums of a run: they tell a damaged run from an intact one.
//!
//! Owns what they cover. Journal lines are chained among themselves, but nothing follows the last line. The
//! checksum of a batch row covers it, and all other columns of the row. Each one includes the one before, so
//! rows cannot change places, be left out or come from another run. The first one includes the head: the
//! columns of the run that never change. Where a run stops, a seal over the last checksum records the end, so
//! a missing end shows too.
//!
//! Not covered: `delivered` and `driver`, which change without the journal. The first decides only whether a
//! result is sent again, the second only whether a run counts as running or as interrupted. Also not `started_by`,
//! `tally` and `parent`: only lists use them, and the journal or the cause has them; and not `user` and `session`, by
//! which a run is forgotten.

use redflow_contract::digest::Digest;

/// Distinguishes what a link of the chain covers.
const ROW: u8 = 1;
const LINES: u8 = 2;
const HEAD: u8 = 3;
const SEAL: u8 = 4;

/// The columns of a run that never change.
pub(super) struct RunHead<'a> {
    pub(super) run: &'a str,
    pub(super) instance: &'a str,
    pub(super) node_id: &'a str,
    pub(super) name: &'a str,
    pub(super) started_at: i64,
    pub(super) cause: Option<&'a str>,
    pub(super) source: Option<&'a str>,
}

impl RunHead<'_> {
    pub(super) fn checksum(&self) -> Digest {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&self.started_at.to_be_bytes());
        let texts = [Some(self.run), Some(self.instance), Some(self.node_id), Some(self.name)];
        for text in texts.into_iter().chain([self.cause, self.source]) {
            push_text(&mut bytes, text);
        }
        Digest::ZERO.chain(HEAD, &bytes)
    }
}

/// One row of `batches`.
pub(super) struct BatchRow<'a> {
    pub(super) run: &'a str,
    pub(super) seq: i64,
    pub(super) epoch: i64,
    pub(super) active_ms: i64,
    /// The plan whose line is left out after the first line of the row.
    pub(super) plan: Option<Digest>,
    pub(super) lines: &'a [u8],
}

impl BatchRow<'_> {
    /// Continues the checksum of the row before, or that of the head for the first row.
    pub(super) fn checksum(&self, before: &Digest) -> Digest {
        let mut bytes = Vec::with_capacity(160);
        for number in [self.seq, self.epoch, self.active_ms] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(u8::from(self.plan.is_some()));
        if let Some(plan) = self.plan {
            bytes.extend_from_slice(plan.to_hex().as_bytes());
        }
        bytes.extend_from_slice(self.run.as_bytes());
        before.chain(ROW, &bytes).chain(LINES, self.lines)
    }
}

/// The columns that say where a run stopped.
pub(super) struct EndSeal<'a> {
    pub(super) status: &'a str,
    pub(super) code: Option<&'a str>,
    pub(super) waiting: Option<&'a str>,
    pub(super) ended_at: Option<i64>,
    pub(super) batches: i64,
}

impl EndSeal<'_> {
    /// Continues the checksum of the last row.
    pub(super) fn checksum(&self, last: &Digest) -> Digest {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&self.batches.to_be_bytes());
        bytes.push(u8::from(self.ended_at.is_some()));
        bytes.extend_from_slice(&self.ended_at.unwrap_or_default().to_be_bytes());
        for text in [Some(self.status), self.code, self.waiting] {
            push_text(&mut bytes, text);
        }
        last.chain(SEAL, &bytes)
    }
}

/// Adds an optional text. Its length goes before it, so that two texts can never be read as one.
fn push_text(bytes: &mut Vec<u8>, text: Option<&str>) {
    bytes.push(u8::from(text.is_some()));
    if let Some(text) = text {
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
}
