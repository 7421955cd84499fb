//! The text of models on a terminal while it arrives, of one run at a time.

use crate::text::printable;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run::RunSummary;
use redflow_contract::stream::ModelDelta;
use std::collections::HashSet;

/// Stands before each line of the text.
const INDENT: &str = "       ";

/// Decides which pieces are printed. The text of other agents is no text for people.
#[derive(Default)]
pub(crate) struct StreamedText {
    /// The agents whose text is printed.
    agents: HashSet<NodeId>,
    /// Their runs.
    runs: HashSet<RunId>,
    /// The run, iteration and attempt of the text on the last line.
    current: Option<(RunId, u32, u32)>,
}

impl StreamedText {
    /// The event of an interrupted model call is not sent again, so resumed runs are known from the start.
    pub(crate) fn of_agents<'a>(
        agents: HashSet<NodeId>,
        resumed: impl IntoIterator<Item = &'a RunSummary>,
    ) -> Self {
        let resumed = resumed.into_iter().filter(|run| agents.contains(&run.agent.node_id));
        let runs = resumed.map(|run| run.run_id.clone()).collect();
        Self { agents, runs, current: None }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        !self.agents.is_empty()
    }

    pub(crate) fn observe(&mut self, event: &RunEvent) {
        match &event.event {
            RunEventKind::ModelCalled { .. } if self.agents.contains(&event.agent.node_id) => {
                self.runs.insert(event.run_id.clone());
            }
            RunEventKind::RunFinished { .. } => {
                self.runs.remove(&event.run_id);
            }
            _ => {}
        }
    }

    /// What is printed of a piece. Nothing while the text of another run is on the line.
    pub(crate) fn push(&mut self, delta: &ModelDelta) -> Option<String> {
        let ModelDelta { run_id, iteration, attempt, text } = delta;
        if !self.runs.contains(run_id) {
            return None;
        }
        let before = match &self.current {
            None => INDENT.to_owned(),
            Some((run, ..)) if run != run_id => return None,
            Some((_, same, again)) if (same, again) == (iteration, attempt) => String::new(),
            Some(_) => format!("\n{INDENT}"),
        };
        self.current = Some((run_id.clone(), *iteration, *attempt));
        Some(before + &printable(text).replace('\n', &format!("\n{INDENT}")))
    }

    /// Ends the text on the last line. Gives whether there was one.
    pub(crate) fn end_line(&mut self) -> bool {
        self.current.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::StreamedText;
    use redflow_contract::event::{RunEvent, RunEventKind};
    use redflow_contract::id::{InstanceId, NodeRef};
    use redflow_contract::run::RunSummary;
    use redflow_contract::stream::ModelDelta;
    use serde_json::json;

    fn called(run: &str, agent: &str) -> RunEvent {
        RunEvent {
            run_id: run.into(),
            seq: 1,
            at: 0,
            agent: NodeRef { instance: InstanceId::local(), node_id: agent.into() },
            event: RunEventKind::ModelCalled { iteration: 1, preview: None },
        }
    }

    fn piece(run: &str, attempt: u32, text: &str) -> ModelDelta {
        ModelDelta { run_id: run.into(), iteration: 1, attempt, text: text.to_owned() }
    }

    #[test]
    fn prints_the_rest_of_an_interrupted_answer() {
        let run = |id: &str, agent: &str| -> RunSummary {
            let agent = called(id, agent).agent;
            let run = json!({"runId": id, "agent": agent, "name": "", "status": "interrupted", "startedAt": 0,
                             "delivered": false});
            serde_json::from_value(run).unwrap()
        };
        let runs = [run("r1", "a"), run("r2", "core")];
        let mut text = StreamedText::of_agents(["a".into()].into(), &runs);
        assert_eq!(text.push(&piece("r1", 1, "Hi")).as_deref(), Some("       Hi"));
        assert!(text.end_line());
        assert_eq!(text.push(&piece("r2", 1, "{")), None, "another kind of agent");
    }

    #[test]
    fn prints_one_run_of_a_streaming_agent_at_a_time() {
        let mut text = StreamedText::of_agents(["a".into()].into(), []);
        assert!(text.is_wanted() && !StreamedText::default().is_wanted());
        for (run, agent) in [("r1", "a"), ("r2", "a"), ("r3", "core")] {
            text.observe(&called(run, agent));
        }
        assert_eq!(text.push(&piece("r3", 1, "{\"action\"")), None, "another kind of agent");
        assert_eq!(text.push(&piece("r1", 1, "Hel")).as_deref(), Some("       Hel"));
        assert_eq!(text.push(&piece("r2", 1, "Good")), None, "the line is taken");
        assert_eq!(text.push(&piece("r1", 1, "lo\n\u{1b}[2J")).as_deref(), Some("lo\n       \\u{1b}[2J"));
        assert_eq!(text.push(&piece("r1", 2, "Hello")).as_deref(), Some("\n       Hello"));
        assert!(text.end_line() && !text.end_line());
        assert_eq!(text.push(&piece("r2", 1, "Good")).as_deref(), Some("       Good"));
    }
}
