//! The cost of serving: small messages, many subscribers, subscribers that do not read, and starting.
//!
//! Each server is its own process with one thread. Only its processor time and its memory are measured.

pub(crate) mod bare;
mod client;
mod live_runs;
mod requests;
pub(crate) mod server;
mod slow_readers;
mod start;
mod subscribers;

use crate::clock::micros_of;
use crate::table::Table;
use crate::{Extent, Failure};

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if micros_of("self").is_err() {
        let mut table = Table::new("serve", "servers in processes of their own", Vec::new());
        table.note("not measured: this system does not tell the time and the memory of other processes");
        return show(table);
    }
    let rounds = if extent == Extent::Quick { 1 } else { 7 };
    show(requests::round_trips(rounds, extent)?)?;
    show(requests::starts(rounds, extent)?)?;
    show(live_runs::table(rounds, extent)?)?;
    show(subscribers::table(extent)?)?;
    show(slow_readers::table(extent)?)?;
    show(start::table(extent)?)
}
