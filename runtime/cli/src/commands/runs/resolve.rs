//! `redflow runs resolve`: a person answers whether a call happened.

use super::outcome::PrintedOutcome;
use crate::args::ResolveOptions;
use crate::errors::{print_with_help, store_error};
use crate::exit::{CommandResult, Exit};
use crate::hints::display_run_id;
use crate::input::read_json;
use crate::run_source::{Actor, Change, RunSource, print_run_error};
use crate::text::count;
use redflow_contract::code::StoreCode;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{CallId, RunId};
use redflow_contract::journal::JournalRecord;
use redflow_contract::limits::RunLimits;
use redflow_contract::replay::{RunDetail, StoreProblem};
use redflow_contract::run::{RunRequest, RunStatus, RunSummary, WaitingCall};
use redflow_strategies::read_journal;
use serde_json::Value;

pub(super) fn resolve(options: &ResolveOptions, source: &dyn RunSource) -> CommandResult {
    let run = RunId::from(options.run.as_str());
    let hints = source.hints();
    let fail = |error| print_run_error(hints, &run, error);
    let RunDetail { summary, problem, .. } = source.detail(&run).map_err(fail)?;
    if let Some(StoreProblem { code, message }) = problem {
        return Err(fail(store_error(code, message)));
    }
    let id = display_run_id(&run);
    if summary.status.is_over() {
        return Err(fail(store_error(StoreCode::RunOver, format!("Run {id} is over already."))));
    }
    if summary.status != RunStatus::Waiting || summary.waiting.is_none() {
        return Err(refuse_not_waiting(&summary, source));
    }
    let call = choose_call(summary.open_questions(), options.call.as_deref());
    let call =
        call.map_err(|text| fail(store_error(StoreCode::RunNotWaiting, format!("Run {id} {text}"))))?;
    let result = tool_result(options).map_err(|text| fail(store_error(StoreCode::ResultInvalid, text)))?;
    let change =
        source.request(&run, RunRequest::Resolve { call_id: call.call_id.clone(), result }).map_err(fail)?;
    let others = questions_left(&change, &call.call_id);
    let text = match change.actor {
        Actor::Driver | Actor::Sidecar | Actor::ThisProcess if others > 0 => {
            format!("run {id} still has {}: {}", count(others, "question"), hints.show(&run))
        }
        Actor::Driver => format!("run {id} is answered and continues in the process that drives it"),
        Actor::Sidecar => format!("run {id} is answered and continues at the sidecar"),
        Actor::ThisProcess => format!("run {id} is answered; resume it with: {}", hints.resume(&run)),
        Actor::Pending => return Ok(PrintedOutcome::pending(&run).print(&run, options.json)),
    };
    Ok(PrintedOutcome { word: "recorded", text }.print(&run, options.json))
}

/// The questions after an answer. Other people may have answered some of them too.
fn questions_left(change: &Change, answered: &CallId) -> usize {
    let questions = change.summary.as_ref().map_or(&[][..], RunSummary::open_questions);
    questions.iter().filter(|call| call.call_id != *answered).count()
}

/// The call that an answer is for. Without an id there must be only one, because an answer for the wrong call
/// would be worse than none.
fn choose_call<'a>(questions: &'a [WaitingCall], wanted: Option<&str>) -> Result<&'a WaitingCall, String> {
    let ids: Vec<&str> = questions.iter().map(|call| call.call_id.as_str()).collect();
    match (wanted, questions) {
        (None, [call]) => Ok(call),
        (None, _) => Err(format!("waits for several calls: name one with --call: {}.", ids.join(", "))),
        (Some(id), _) => questions
            .iter()
            .find(|call| call.call_id.as_str() == id)
            .ok_or_else(|| format!("does not wait for this call, but for {}.", ids.join(", "))),
    }
}

fn refuse_not_waiting(summary: &RunSummary, source: &dyn RunSource) -> Exit {
    let (run, hints) = (&summary.run_id, source.hints());
    let id = display_run_id(run);
    let (text, help) = if summary.status == RunStatus::Interrupted && !hints.is_remote() {
        let is_answered = source.journal(run).is_ok_and(|journal| is_answered(&journal));
        let state = if is_answered { "has been answered" } else { "is interrupted" };
        (format!("Run {id} {state} and waits for nothing now: resume it."), hints.resume(run))
    } else {
        (format!("Run {id} is {} and waits for nothing.", summary.status.as_str()), hints.show(run))
    };
    print_with_help(store_error(StoreCode::RunNotWaiting, text), &[help])
}

/// Whether the last fact is a person's answer.
fn is_answered(journal: &[u8]) -> bool {
    let records = read_journal(journal).map(|journal| journal.records).unwrap_or_default();
    let last = records.iter().rev().find_map(|record| match record {
        JournalRecord::Fact { fact } => Some(fact),
        _ => None,
    });
    last.is_some_and(|fact| matches!(**fact, Fact::OutcomeResolved { .. }))
}

/// The result that the model receives.
fn tool_result(options: &ResolveOptions) -> Result<ToolResult, String> {
    if options.not_done {
        let why = options.error.as_deref().unwrap_or("a person says so");
        return Ok(ToolResult::failed(format!("the call did not happen: {why}")));
    }
    let output = options.result.as_deref().map_or(Ok(Value::Null), |text| read_json(text, "result"))?;
    let result = ToolResult::ok(output);
    // The limit is for the stored form, so that spaces in the input do not count.
    let bytes = serde_json::to_string(&result).map_or(usize::MAX, |text| text.len());
    let limit = RunLimits::default().max_result_bytes;
    if bytes > usize::try_from(limit).unwrap_or(usize::MAX) {
        return Err(format!(
            "the stored result has {bytes} bytes; the limit is {limit}: give only the part that the model needs"
        ));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::{choose_call, questions_left};
    use crate::run_source::{Actor, Change};
    use redflow_contract::run::{RunSummary, WaitingCall};
    use serde_json::json;

    fn call(id: &str) -> WaitingCall {
        WaitingCall {
            call_id: id.into(),
            tool: "pay".to_owned(),
            iteration: 1,
            asked_at: 0,
            input: serde_json::Map::new(),
        }
    }

    #[test]
    fn the_questions_left_are_those_after_the_answer() {
        let agent = json!({"instance": "local", "nodeId": "a"});
        let run = json!({"runId": "r", "agent": agent, "name": "", "status": "waiting", "startedAt": 0,
                         "delivered": false});
        let left = |questions: &[&str]| {
            let mut summary: RunSummary = serde_json::from_value(run.clone()).unwrap();
            summary.set_questions(questions.iter().map(|id| call(id)).collect());
            questions_left(&Change { actor: Actor::Driver, summary: Some(summary) }, &"a".into())
        };
        assert_eq!([left(&["b", "c"]), left(&["b"]), left(&[]), left(&["a", "b"])], [2, 1, 0, 1]);
        assert_eq!(questions_left(&Change { actor: Actor::Driver, summary: None }, &"a".into()), 0);
    }

    #[test]
    fn an_answer_is_for_the_only_call_or_for_the_one_it_names() {
        let two = [call("a"), call("b")];
        let chosen =
            |calls: &[WaitingCall], wanted| choose_call(calls, wanted).map(|call| call.call_id.to_string());
        assert_eq!(chosen(&two[..1], None).unwrap(), "a");
        assert_eq!(chosen(&two, Some("b")).unwrap(), "b");
        assert_eq!(chosen(&two, None).unwrap_err(), "waits for several calls: name one with --call: a, b.");
        assert_eq!(chosen(&two[..1], Some("b")).unwrap_err(), "does not wait for this call, but for a.");
    }
}
