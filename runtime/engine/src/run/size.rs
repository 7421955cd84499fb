//! Limits on what services return, so that a journal can be read back.

use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult};
use redflow_contract::id::EffectId;
use redflow_contract::json::{nests_within, size_of};
use redflow_contract::limits::RunLimits;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_ports::Recalled;

/// Cuts an answer that is too large. It stays one byte too long, so that the machine refuses it.
pub(super) fn cut_answer(mut answer: ModelAnswer, limits: &RunLimits) -> ModelAnswer {
    let most = to_usize(limits.max_answer_bytes).saturating_add(1);
    if answer.text.len() > most {
        answer.text.truncate(answer.text.ceil_char_boundary(most));
    }
    answer
}

/// Why a reply is too large to be stored; none if it is not.
pub(super) fn reply_failure(answer: &ModelAnswer, limits: &RunLimits) -> Option<Failure> {
    let calls = answer.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
    let parts = answer.reasoning.iter().flat_map(|reasoning| &reasoning.parts).map(size_of);
    let bytes = answer.text.len() + calls.sum::<usize>() + parts.sum::<usize>();
    let (most, levels) = (to_usize(limits.max_answer_bytes), to_usize(limits.max_value_depth));
    let mut parts = answer.reasoning.iter().flat_map(|reasoning| &reasoning.parts);
    let message = if bytes > most {
        format!("the model's answer has {bytes} bytes; {most} are allowed")
    } else if !parts.all(|part| nests_within(part, levels)) {
        format!("the model's reasoning nests deeper than {levels} levels")
    } else {
        return None;
    };
    Some(Failure { code: RunErrorCode::ModelError, message })
}

/// The fact of a recalled conversation. One longer than a message may be loses its first turns. If the last
/// turn alone is too long, the recall has failed.
pub(super) fn recall_fact(
    effect: EffectId,
    Recalled { mut turns, mut sources }: Recalled,
    limits: &RunLimits,
    at: Millis,
) -> Fact {
    let most = to_usize(limits.max_message_bytes);
    let mut bytes: usize = turns.iter().map(ChatMessage::bytes).sum();
    let mut first = 0;
    while bytes > most {
        let next = turns.iter().skip(first + 1).position(|message| message.role == ChatRole::User);
        let Some(next) = next.map(|next| first + 1 + next) else {
            let message = format!("the memory gave {bytes} bytes in one turn; the limit is {most}");
            let error = Failure { code: RunErrorCode::MemoryError, message };
            return Fact::MemoryFailed { at, effect, error };
        };
        bytes -= turns[first..next].iter().map(ChatMessage::bytes).sum::<usize>();
        first = next;
    }
    turns.drain(..first);
    if first > 0 {
        // The entries of a long memory are the first message. The model does not read them.
        sources.clear();
    }
    Fact::MemoryRecalled { at, effect, turns, sources }
}

/// What makes a tool result too large, as the end of a sentence.
pub(crate) fn result_problem(result: &ToolResult, limits: &RunLimits) -> Option<String> {
    let levels = to_usize(limits.max_value_depth);
    if !result.output.as_ref().is_none_or(|output| nests_within(output, levels)) {
        return Some(format!("nests deeper than {levels} levels"));
    }
    let most = to_usize(limits.max_result_bytes);
    let texts = result.output.as_ref().map_or(0, size_of) + result.error.as_ref().map_or(0, String::len);
    if most_json_bytes(texts) <= most {
        return None;
    }
    let bytes = result.observation().len();
    (bytes > most).then(|| format!("has {bytes} bytes; the limit is {most}"))
}

/// The most bytes of JSON for a value of this size, so that the text of a small value need not be written. An escape
/// takes six bytes for one, and [`size_of`] counts at least as many bytes for a value as its brackets, commas and
/// digits take.
pub(crate) fn most_json_bytes(size: usize) -> usize {
    size.saturating_mul(6).saturating_add(256)
}

pub(crate) fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::{most_json_bytes, recall_fact, reply_failure, result_problem};
    use redflow_contract::archive::{SourceKind, Trust};
    use redflow_contract::fact::{Fact, ModelAnswer, ToolResult};
    use redflow_contract::id::EffectId;
    use redflow_contract::json::size_of;
    use redflow_contract::limits::RunLimits;
    use redflow_contract::source::Source;
    use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts};
    use redflow_ports::Recalled;
    use serde_json::{Value, json};

    #[test]
    fn a_result_at_its_limit_fits_and_a_larger_one_does_not() {
        for output in
            [json!("x".repeat(900)), json!("\u{1}".repeat(150)), json!(vec![0.1; 200]), json!({"a": [1, 2]})]
        {
            let result = ToolResult::ok(output);
            let bytes = serde_json::to_string(&result).unwrap().len();
            let limits = |bytes: usize| {
                let max_result_bytes = u32::try_from(bytes).unwrap();
                RunLimits { max_result_bytes, ..RunLimits::default() }
            };
            assert_eq!(result_problem(&result, &limits(bytes)), None);
            let problem = format!("has {bytes} bytes; the limit is {}", bytes - 1);
            assert_eq!(result_problem(&result, &limits(bytes - 1)), Some(problem));
            assert_eq!(result_problem(&result, &RunLimits::default()), None);
        }
    }

    /// The first message has the entries of a long memory.
    #[test]
    fn what_is_cut_off_has_no_sources() {
        let source = Source {
            kind: SourceKind::Memory,
            reference: "m/1".to_owned(),
            version: None,
            digest: None,
            score: None,
            trust: Trust::User,
        };
        let turns = ["notes".repeat(20), "hello".to_owned()];
        let turns: Vec<_> = turns.into_iter().map(|text| ChatMessage::new(ChatRole::User, text)).collect();
        for (max_message_bytes, expected) in [(10_000, (2, 1)), (60, (1, 0))] {
            let limits = RunLimits { max_message_bytes, ..RunLimits::default() };
            let recalled = Recalled { turns: turns.clone(), sources: vec![source.clone()] };
            let fact = recall_fact(EffectId(1), recalled, &limits, 0);
            let Fact::MemoryRecalled { turns, sources, .. } = fact else { panic!("{fact:?}") };
            assert_eq!((turns.len(), sources.len()), expected);
        }
    }

    /// Small values are accepted by this estimate alone.
    #[test]
    fn no_json_is_longer_than_its_estimate() {
        let values = [
            json!(null),
            json!(""),
            json!("\u{1}\"\\".repeat(1_000)),
            json!(vec![f64::MIN_POSITIVE; 1_000]),
            json!(vec![i64::MIN; 1_000]),
            json!(vec![json!({}); 1_000]),
            json!({"\u{1}".repeat(1_000): {"": [[], {}]}}),
        ];
        for value in values {
            assert!(value.to_string().len() <= most_json_bytes(size_of(&value)));
        }
    }

    #[test]
    fn reasoning_must_fit_into_a_journal() {
        let nested = |levels: u32| (0..levels).fold(json!(1), |value, _| json!([value]));
        let failure = |part: Value, limits: &RunLimits| {
            let reasoning = Some(OpaqueParts::new("w", vec![part]));
            let failure = reply_failure(&ModelAnswer { reasoning, ..ModelAnswer::default() }, limits);
            failure.map(|failure| failure.message)
        };
        let limits = RunLimits::default();
        assert_eq!(failure(nested(100), &limits), None);
        let message = "the model's reasoning nests deeper than 100 levels";
        assert_eq!(failure(nested(101), &limits).as_deref(), Some(message));
        let small = RunLimits { max_answer_bytes: 50, ..limits };
        assert!(
            failure(json!("x".repeat(60)), &small).is_some_and(|message| message.contains("50 are allowed"))
        );
    }
}
