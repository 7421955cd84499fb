//! The cost of asking a model over HTTP: whole runs of the product, and a raw loop with the same client and the same
//! bytes. The provider is another process.

pub(crate) mod agent;
pub(crate) mod cost;
pub(crate) mod drive;
mod hyper;
pub(crate) mod images;
pub(crate) mod provider;
mod raw;
pub(crate) mod waiting;

use crate::table::Table;
use crate::{Extent, Failure};
pub(crate) use agent::{KEY, first_request, live_flow};
use provider::Provider;

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rounds = if extent == Extent::Quick { 1 } else { 7 };
    let provider = Provider::start()?;
    show(cost::crowds(&provider, rounds)?)?;
    show(cost::ai_agents(&provider, rounds)?)?;
    show(cost::growth(&provider, rounds)?)?;
    drop(provider);
    show(waiting::table(extent)?)?;
    show(images::table(extent)?)
}
