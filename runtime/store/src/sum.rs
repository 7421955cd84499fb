//! The sum of a row: what tells a damaged journal from a sound one.
//!
//! Owns what goes into it. Lines of a journal are chained among themselves, but nothing follows the last one;
//! this sum covers it, and everything else in a row. Each takes the one before, so rows cannot change places,
//! be left out or come from another run. Only rows missing at the end cannot be seen from the rows; see
//! `read`.

use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;

/// What the chain's links are of.
const HEAD: u8 = 1;
const LINES: u8 = 2;

/// One row of a journal.
pub(crate) struct Row<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) seq: i64,
    pub(crate) epoch: i64,
    pub(crate) active_ms: i64,
    /// The plan whose line was left out after the first one.
    pub(crate) plan: Option<Digest>,
    pub(crate) lines: &'a [u8],
}

impl Row<'_> {
    /// Its sum, after the sum of the row before it.
    pub(crate) fn sum(&self, before: &Digest) -> Digest {
        let mut head = Vec::with_capacity(160);
        for number in [self.seq, self.epoch, self.active_ms] {
            head.extend_from_slice(&number.to_be_bytes());
        }
        head.push(u8::from(self.plan.is_some()));
        if let Some(plan) = self.plan {
            head.extend_from_slice(plan.to_hex().as_bytes());
        }
        head.extend_from_slice(self.run.as_str().as_bytes());
        before.chain(HEAD, &head).chain(LINES, self.lines)
    }
}
