//! The parts that the engine of every Node-RED is built from.

use crate::active_flow::FlowBuilder;
use crate::agent_counts::AgentCounts;
use crate::hub::Hub;
use crate::work_slots::WorkSlots;
use redflow_ports::{Clock, Meter, RunReader, RunStore};
use std::sync::Arc;

pub(crate) struct EngineParts {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) run_reader: Arc<dyn RunReader>,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) agent_counts: Arc<AgentCounts>,
    pub(crate) flow_builder: FlowBuilder,
    pub(crate) work_slots: Arc<WorkSlots>,
}
