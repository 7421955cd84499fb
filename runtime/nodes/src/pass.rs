//! `junction`, `link in` and `link out` hand messages on; `comment` does nothing.

use redflow_contract::flow_message::FlowMessage;
use redflow_ports::{Adapters, BuildError, FlowNode, NodeConfig, NodeContext, NodeOutput};
use std::sync::Arc;

pub(crate) fn register(adapters: &mut Adapters) {
    for type_name in ["junction", "link in", "link out"] {
        adapters.nodes.insert(type_name, Arc::new(build_pass));
    }
    adapters.nodes.insert("comment", Arc::new(build_comment));
}

struct Pass;

impl FlowNode for Pass {
    fn receive(&self, message: Arc<FlowMessage>, _: &NodeContext<'_>) -> NodeOutput {
        NodeOutput::send(message)
    }
}

struct Comment;

impl FlowNode for Comment {
    fn receive(&self, _: Arc<FlowMessage>, _: &NodeContext<'_>) -> NodeOutput {
        NodeOutput::default()
    }
}

fn build_pass(_: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    Ok(Box::new(Pass))
}

fn build_comment(_: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    Ok(Box::new(Comment))
}
