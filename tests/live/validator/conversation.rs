//! The order of messages, the same for every provider: which role follows which, and one result for each call.

use super::fields::Finder;

/// The kind of a message, in any provider's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MessageKind {
    System,
    User,
    /// With the ids of its calls.
    Assistant(Vec<String>),
    /// Results of calls.
    Results(Vec<String>),
}

/// The differences between providers.
#[derive(Clone, Copy)]
pub(super) struct Order {
    /// Whether calls have ids. If not, the names of their tools identify them.
    pub(super) ids: bool,
    /// Whether user and assistant must alternate, beginning with the user.
    pub(super) turns: bool,
    /// Whether results have a turn of their own, which a turn of the user may follow.
    pub(super) own_results: bool,
}

pub(super) fn check(finder: &mut Finder, messages: &[(String, MessageKind)], order: Order) {
    let (mut open, mut known) = (Vec::<&String>::new(), Vec::<&String>::new());
    let mut before: Option<&MessageKind> = None;
    for (index, (at, kind)) in messages.iter().enumerate() {
        match kind {
            MessageKind::System => finder.add_if(index > 0, at, "a system message that is not the first"),
            MessageKind::User | MessageKind::Assistant(_) if !open.is_empty() => {
                finder.add(at, format!("the calls {open:?} have no result"));
                open.clear();
            }
            _ => {}
        }
        match kind {
            MessageKind::Assistant(calls) => {
                finder.add_if(
                    matches!(before, Some(MessageKind::Assistant(_))),
                    at,
                    "two assistants in a row",
                );
                finder.add_if(order.turns && before.is_none(), at, "the first is not the user");
                for call in calls {
                    finder.add_if(call.is_empty(), at, "a call without an id");
                    finder.add_if(order.ids && known.contains(&call), at, format!("the call {call} twice"));
                    known.push(call);
                    open.push(call);
                }
            }
            MessageKind::Results(results) => {
                let adjoins = matches!(before, Some(MessageKind::Assistant(_)))
                    || (!order.turns && matches!(before, Some(MessageKind::Results(_))));
                finder.add_if(!adjoins, at, "results that follow no assistant");
                for result in results {
                    match open.iter().position(|call| *call == result) {
                        Some(place) => drop(open.remove(place)),
                        None => finder.add(at, format!("a result of {result}, which no call waits for")),
                    }
                }
            }
            MessageKind::User => {
                let twice = match before {
                    Some(MessageKind::User) => true,
                    Some(MessageKind::Results(_)) => !order.own_results,
                    _ => false,
                };
                finder.add_if(order.turns && twice, at, "two of the user in a row");
            }
            MessageKind::System => {}
        }
        before = Some(kind);
    }
    finder.add_if(!open.is_empty(), "", format!("the calls {open:?} have no result"));
    let ends = matches!(before, Some(MessageKind::User | MessageKind::Results(_)));
    finder.add_if(!ends, "", "the last is neither the user nor a result");
}
