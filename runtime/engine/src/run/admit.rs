//! Asks the policy before a tool is called.

use super::drive::RunDriver;
use crate::registry::{Permit, tool_permissions};
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::fact::Fact;
use redflow_contract::mcp::mcp_server_of;
use redflow_contract::policy::CallSubject;
use redflow_contract::tool::own_tool_id;
use redflow_machine::RunCaller;
use redflow_ports::Measurement;

impl RunDriver {
    /// Admits an effect, or gives the fact of a call that is not made. Only tool calls need a permit.
    pub(super) fn admit(&self, effect: &Effect) -> Result<Option<Permit>, Box<Fact>> {
        let Effect::CallTool { id, call } = effect else { return Ok(None) };
        let snapshot = self.ports.registry.snapshot();
        if snapshot.policy().is_empty() {
            return Ok(None);
        }
        let now = self.ports.clock.now();
        let admitted =
            self.subject(call, |subject| self.ports.registry.admit(snapshot.policy(), subject, now));
        admitted.map_err(|result| {
            if let Some(code) = result.code {
                self.ports.meter.record(Measurement::ToolRefused { tool: &call.tool, code });
            }
            Box::new(Fact::ToolReturned { at: now, effect: *id, result: *result, tries: 0 })
        })
    }

    fn subject<T>(&self, call: &ToolCall, decide: impl FnOnce(&CallSubject<'_>) -> T) -> T {
        let spec = self.agent.compiled.spec();
        let RunCaller { session, by, .. } = self.recorder.machine().caller();
        let tool = self.agent.tool(call);
        let node_type = self.agent.tool_node(call).map_or("", |node| node.type_name.as_str());
        let entry = tool.and_then(|tool| tool.definition.as_ref()).map(|definition| &definition.entry);
        let id = match entry {
            Some(entry) => entry.id.clone(),
            None => own_tool_id(node_type, &call.tool),
        };
        let own = tool_permissions(node_type);
        decide(&CallSubject {
            id: &id,
            name: &call.tool,
            node: call.node.as_str(),
            node_type,
            server: entry.and_then(|entry| mcp_server_of(&entry.id)),
            agent: Some(spec.agent.node_id.as_str()),
            agent_name: &spec.name,
            instance: spec.agent.instance.as_str(),
            session,
            by: by.map(|by| by.as_str()),
            effect: self.agent.effect_class(call),
            permissions: entry.map_or(&own, |entry| &entry.permissions),
        })
    }
}
