//! `catch`: hands errors on. The engine decides by its `scope` which errors reach it.

use redflow_contract::flow_message::FlowMessage;
use redflow_ports::{BuildError, FlowNode, NodeConfig, NodeContext, NodeOutput};
use std::sync::Arc;

struct Catch;

impl FlowNode for Catch {
    fn receive(&self, message: Arc<FlowMessage>, _: &NodeContext<'_>) -> NodeOutput {
        NodeOutput::send(message)
    }
}

pub(crate) fn build(_: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    Ok(Box::new(Catch))
}
