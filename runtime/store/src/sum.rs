//! The sums of a run: what tells a damaged one from a sound one.
//!
//! Owns what goes into them. Lines of a journal are chained among themselves, but nothing follows the last one;
//! the sum of a row covers it, and everything else in the row. Each takes the one before, so rows cannot change
//! places, be left out or come from another run. The first takes the head: what never changes of the run itself.
//! Where a run stops, a seal over the last sum says where, so that a missing end shows too.
//!
//! Not covered: `delivered` and `driver`, which change without the journal. The first decides only whether a
//! result leaves once more, the second only whether a run counts as running or as interrupted.

use redflow_contract::digest::Digest;

/// What the chain's links are of.
const ROW: u8 = 1;
const LINES: u8 = 2;
const HEAD: u8 = 3;
const SEAL: u8 = 4;

/// What never changes of a run, as it is stored.
pub(crate) struct Head<'a> {
    pub(crate) run: &'a str,
    pub(crate) instance: &'a str,
    pub(crate) node_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) started_at: i64,
    pub(crate) cause: Option<&'a str>,
    pub(crate) source: Option<&'a str>,
}

impl Head<'_> {
    pub(crate) fn sum(&self) -> Digest {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&self.started_at.to_be_bytes());
        let texts = [Some(self.run), Some(self.instance), Some(self.node_id), Some(self.name)];
        for text in texts.into_iter().chain([self.cause, self.source]) {
            put(&mut bytes, text);
        }
        Digest::ZERO.chain(HEAD, &bytes)
    }
}

/// One row of a journal.
pub(crate) struct Row<'a> {
    pub(crate) run: &'a str,
    pub(crate) seq: i64,
    pub(crate) epoch: i64,
    pub(crate) active_ms: i64,
    /// The plan whose line was left out after the first one.
    pub(crate) plan: Option<Digest>,
    pub(crate) lines: &'a [u8],
}

impl Row<'_> {
    /// Its sum, after the sum of the row before it, or after the head if it is the first.
    pub(crate) fn sum(&self, before: &Digest) -> Digest {
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

/// Where a run stopped, as it is stored.
pub(crate) struct Seal<'a> {
    pub(crate) status: &'a str,
    pub(crate) code: Option<&'a str>,
    pub(crate) waiting: Option<&'a str>,
    pub(crate) ended_at: Option<i64>,
    pub(crate) batches: i64,
}

impl Seal<'_> {
    /// Its sum, after the sum of the last row.
    pub(crate) fn sum(&self, last: &Digest) -> Digest {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&self.batches.to_be_bytes());
        bytes.push(u8::from(self.ended_at.is_some()));
        bytes.extend_from_slice(&self.ended_at.unwrap_or_default().to_be_bytes());
        for text in [Some(self.status), self.code, self.waiting] {
            put(&mut bytes, text);
        }
        last.chain(SEAL, &bytes)
    }
}

/// A text that may not be there. Its length goes before it, so that two can never be read as one.
fn put(bytes: &mut Vec<u8>, text: Option<&str>) {
    bytes.push(u8::from(text.is_some()));
    if let Some(text) = text {
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
}
