//! The details of an iteration, read from the journal.

use crate::script::{ScriptStep, ScriptedRun, calculate, final_answer, run_script, send_mail, spec};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::console::{IterationDetail, TEXT_BYTES};
use redflow_machine::{Strategies, iteration_detail};
use redflow_react::React;
use serde_json::json;
use std::sync::Arc;

fn read_journal(journal: &[u8], iteration: u32) -> Option<IterationDetail> {
    iteration_detail(journal, iteration, TEXT_BYTES, &Strategies::new([Arc::new(React) as _]))
}

fn read(run: &ScriptedRun, iteration: u32) -> Option<IterationDetail> {
    read_journal(&run.journal(), iteration)
}

#[test]
fn each_answer_has_its_confidence() {
    let run =
        run_script(spec(), &[calculate("2+2", 0.25), ScriptStep::ToolOutput(json!(4)), final_answer("4")]);
    let (first, last) = (read(&run, 1).unwrap(), read(&run, 2).unwrap());
    assert_eq!((first.confidence, last.confidence), (Some(0.25), Some(0.75)));
    assert_eq!((first.calls[0].tool.as_str(), first.calls[0].success), ("calculator", Some(true)));
    assert!(first.usage.is_some() && first.output.is_none() && last.prompt.text.contains('4'), "{last:?}");
    assert_eq!((last.output.unwrap().text.as_str(), last.calls.len()), ("4", 0));
}

#[test]
fn a_run_that_waits_or_failed_has_what_is_known() {
    let mut run = ScriptedRun::start(spec(), json!({"payload": "?"}), None);
    for next in [send_mail(), ScriptStep::OutcomeUnknown] {
        run.next(next).unwrap();
    }
    let call = &read(&run, 1).unwrap().calls[0];
    assert_eq!((call.success, &call.result, call.tries), (None, &None, None));
    assert!(call.input.text.contains("ada") && call.duration_ms.is_none(), "{call:?}");
    run.next(ScriptStep::NeverHappened).unwrap();
    let call = &read(&run, 1).unwrap().calls[0];
    assert_eq!((call.success, call.tries), (Some(false), None));
    assert_eq!(call.result.as_ref().unwrap().text, "It never happened.");
    let failed = run_script(spec(), &[ScriptStep::ModelFailure(RunErrorCode::ModelError)]);
    let detail = read(&failed, 1).unwrap();
    assert!(detail.answer.is_none() && detail.called_at.is_some() && detail.output.is_some(), "{detail:?}");
    let refused = run_script(spec(), &[ScriptStep::ModelText("no JSON".to_owned())]);
    let detail = read(&refused, 1).unwrap();
    assert_eq!((detail.answer.unwrap().text.as_str(), detail.confidence), ("no JSON", None));
}

/// A journal is read up to its first wrong line.
#[test]
fn a_damaged_journal_has_the_iterations_before_the_damage() {
    let run =
        run_script(spec(), &[calculate("2+2", 0.25), ScriptStep::ToolOutput(json!(4)), final_answer("4")]);
    let whole = run.journal();
    let line_of = |name: &str| run.lines.iter().rposition(|line| line.contains(name)).unwrap();
    let lines = |count: usize| run.lines[..count].iter().map(|line| line.len() + 1).sum::<usize>();
    // The second answer is not a journal line any more.
    let mut wrong = whole.clone();
    wrong[lines(line_of("model_answered"))] = b'?';
    assert_eq!(read_journal(&wrong, 1), read(&run, 1));
    let second = read_journal(&wrong, 2).unwrap();
    assert!(second.answer.is_none() && second.output.is_none(), "{second:?}");
    // The journal ends in the middle of the line.
    assert_eq!(read_journal(&whole[..lines(line_of("tool_returned")) + 5], 2), None);
    for journal in [&b""[..], b"\xff\n", b"{}\n"] {
        assert_eq!(read_journal(journal, 1), None);
    }
}
