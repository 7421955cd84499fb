//! Which Catch nodes an error goes to, by Node-RED's rules.

use crate::build::BuiltFlow;
use redflow_contract::Message;
use redflow_contract::id::NodeId;
use redflow_contract::run_error::MessageError;
use redflow_flow::NodeIx;
use serde_json::Value;

/// A node may fail on the same message this often before its errors are no longer handed on.
pub(crate) const MAX_REPEATS: u32 = 9;

/// The Catch nodes for an error of a node: those that name it, then those for the whole tab or group; those
/// for uncaught errors only if there are no others. A subflow's errors go further out if nobody inside takes
/// them.
pub(crate) fn catchers(built: &BuiltFlow, source: NodeIx) -> Vec<NodeIx> {
    let flow = &built.flow;
    for reporter in flow.reporters(source) {
        let (mut named, mut all, mut uncaught) = (Vec::new(), Vec::new(), Vec::new());
        for ix in built.catches.iter().copied().filter(|ix| flow.same_scope(*ix, reporter)) {
            let raw = flow.raw(ix);
            match raw.props.get("scope") {
                Some(Value::Array(ids)) => {
                    if ids.iter().filter_map(Value::as_str).any(|id| flow.means(ix, id, reporter)) {
                        named.push(ix);
                    }
                }
                Some(Value::String(word)) if word == "group" => {
                    let groups = flow.groups_of(reporter);
                    if flow.groups_of(ix).first().is_some_and(|group| groups.contains(group)) {
                        named.push(ix);
                    }
                }
                _ if raw.flag("uncaught") => uncaught.push(ix),
                _ => all.push(ix),
            }
        }
        named.append(&mut all);
        let found = if named.is_empty() { uncaught } else { named };
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// How often the same node has failed on this message before.
pub(crate) fn earlier_failures(message: &Message, source: &NodeId) -> u32 {
    let older = message.get("error").and_then(|error| error.get("source"));
    let same = older.filter(|from| from.get("id").and_then(Value::as_str) == Some(source.as_str()));
    let count = same.and_then(|from| from.get("count")).and_then(Value::as_u64).unwrap_or(0);
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The message with an error, as Node-RED puts it there: an older one stays readable.
pub(crate) fn with_error(mut message: Message, error: &MessageError) -> Message {
    if let Some(older) = message.get("error").cloned() {
        message.insert("_error".to_owned(), older);
    }
    message.insert("error".to_owned(), serde_json::to_value(error).unwrap_or_default());
    message
}
