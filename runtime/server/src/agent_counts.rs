//! What agents have done since the sidecar started: runs, reads of memory and tool calls.

use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::NodeRef;
use redflow_contract::tool_api::ToolCallCount;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// The agents that are counted. Later ones are left out.
const MAX_AGENTS: usize = 1_000;

/// The tools of one agent that are counted apart. Later ones are counted together.
const MAX_TOOLS: usize = 200;

/// The name under which the other tools of an agent are counted.
const OTHER_TOOLS: &str = "other";

/// The counts of all agents.
#[derive(Default)]
pub(crate) struct AgentCounts {
    agents: Mutex<HashMap<NodeRef, AgentCount>>,
}

/// The counts of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentCount {
    pub(crate) runs: u32,
    pub(crate) recalls: u32,
    pub(crate) hits: u32,
    /// The calls and the failed calls of each tool.
    tools: BTreeMap<String, (u32, u32)>,
}

impl AgentCounts {
    pub(crate) fn add(&self, event: &RunEvent) {
        let is_counted = matches!(
            event.event,
            RunEventKind::RunStarted { .. }
                | RunEventKind::MemoryRecalled { .. }
                | RunEventKind::ToolReturned { .. }
        );
        if !is_counted {
            return;
        }
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if agents.len() < MAX_AGENTS || agents.contains_key(&event.agent) {
            agents.entry(event.agent.clone()).or_default().add(&event.event);
        }
    }

    pub(crate) fn of(&self, agent: &NodeRef) -> AgentCount {
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.get(agent).cloned().unwrap_or_default()
    }
}

impl AgentCount {
    fn add(&mut self, event: &RunEventKind) {
        match event {
            RunEventKind::RunStarted { .. } => self.runs = self.runs.saturating_add(1),
            RunEventKind::MemoryRecalled { messages, .. } => {
                self.recalls = self.recalls.saturating_add(1);
                self.hits = self.hits.saturating_add(u32::from(*messages > 0));
            }
            RunEventKind::ToolReturned { tool, success, .. } => {
                let is_known = self.tools.len() < MAX_TOOLS || self.tools.contains_key(tool);
                let tool = if is_known { tool } else { OTHER_TOOLS };
                let (calls, failed) = self.tools.entry(tool.to_owned()).or_default();
                *calls = calls.saturating_add(1);
                *failed = failed.saturating_add(u32::from(!success));
            }
            _ => {}
        }
    }

    pub(crate) fn calls(self) -> Vec<ToolCallCount> {
        let count = |(tool, (calls, failed))| ToolCallCount { tool, calls, failed };
        self.tools.into_iter().map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentCounts, MAX_AGENTS, MAX_TOOLS};
    use redflow_contract::event::{RunEvent, RunEventKind};
    use redflow_contract::id::NodeRef;

    fn event(agent: &str, event: RunEventKind) -> RunEvent {
        let agent = NodeRef { instance: "local".into(), node_id: agent.into() };
        RunEvent { run_id: "r".into(), seq: 1, at: 0, agent, event }
    }

    fn returned(tool: &str, success: bool) -> RunEventKind {
        RunEventKind::ToolReturned {
            iteration: 1,
            tool: tool.to_owned(),
            id: None,
            call_id: "c".into(),
            success,
            error: None,
            code: None,
            tries: None,
            duration_ms: 1,
            preview: None,
            sources: Vec::new(),
            image_bytes: Vec::new(),
        }
    }

    #[test]
    fn counts_each_agent_and_each_of_its_tools() {
        let counts = AgentCounts::default();
        for messages in [0, 2, 5] {
            counts.add(&event("a", RunEventKind::MemoryRecalled { messages, sources: Vec::new() }));
        }
        counts.add(&event("a", returned("mail", true)));
        counts.add(&event("a", returned("mail", false)));
        counts.add(&event("b", returned("mail", true)));
        let a = counts.of(&event("a", returned("", true)).agent);
        assert_eq!((a.runs, a.recalls, a.hits), (0, 3, 2));
        let calls: Vec<_> =
            a.calls().into_iter().map(|count| (count.tool, count.calls, count.failed)).collect();
        assert_eq!(calls, [("mail".to_owned(), 2, 1)]);
    }

    #[test]
    fn agents_and_tools_are_bounded() {
        let counts = AgentCounts::default();
        for number in 0..MAX_TOOLS + 5 {
            counts.add(&event("a", returned(&format!("tool {number}"), true)));
        }
        let calls = counts.of(&event("a", returned("", true)).agent).calls();
        let other = calls.iter().find(|count| count.tool == "other").map(|count| count.calls);
        assert_eq!((calls.len(), other), (MAX_TOOLS + 1, Some(5)));
        for number in 0..MAX_AGENTS + 5 {
            counts.add(&event(&number.to_string(), returned("mail", true)));
        }
        assert_eq!(counts.agents.lock().unwrap().len(), MAX_AGENTS);
    }
}
