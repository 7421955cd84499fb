//! The order of a conversation, the same for every provider: who may speak after whom, and that each call has
//! exactly one result, at its place.

use super::fields::Finder;

/// What one message is, whatever it looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    System,
    User,
    /// With the calls it asks for.
    Assistant(Vec<String>),
    /// Results of calls.
    Results(Vec<String>),
}

/// What differs between providers.
#[derive(Clone, Copy)]
pub(super) struct Order {
    /// Whether calls have ids of their own; if not, they are told apart by their tools.
    pub(super) ids: bool,
    /// Whether user and assistant must take turns, the user first.
    pub(super) turns: bool,
}

pub(super) fn check(finder: &mut Finder, messages: &[(String, Said)], order: Order) {
    let (mut open, mut known) = (Vec::<&String>::new(), Vec::<&String>::new());
    let mut before: Option<&Said> = None;
    for (index, (at, said)) in messages.iter().enumerate() {
        match said {
            Said::System => finder.refuse(index > 0, at, "a system message that is not the first"),
            Said::User | Said::Assistant(_) if !open.is_empty() => {
                finder.say(at, format!("the calls {open:?} have no result"));
                open.clear();
            }
            _ => {}
        }
        match said {
            Said::Assistant(calls) => {
                finder.refuse(matches!(before, Some(Said::Assistant(_))), at, "two assistants in a row");
                finder.refuse(order.turns && before.is_none(), at, "the first is not the user");
                for call in calls {
                    finder.refuse(call.is_empty(), at, "a call without an id");
                    finder.refuse(order.ids && known.contains(&call), at, format!("the call {call} twice"));
                    known.push(call);
                    open.push(call);
                }
            }
            Said::Results(results) => {
                let adjoins = matches!(before, Some(Said::Assistant(_)))
                    || (!order.turns && matches!(before, Some(Said::Results(_))));
                finder.refuse(!adjoins, at, "results that follow no assistant");
                for result in results {
                    match open.iter().position(|call| *call == result) {
                        Some(place) => drop(open.remove(place)),
                        None => finder.say(at, format!("a result of {result}, which nobody waits for")),
                    }
                }
            }
            Said::User => {
                let twice = matches!(before, Some(Said::User | Said::Results(_)));
                finder.refuse(order.turns && twice, at, "two of the user in a row");
            }
            Said::System => {}
        }
        before = Some(said);
    }
    finder.refuse(!open.is_empty(), "", format!("the calls {open:?} have no result"));
    let ends = matches!(before, Some(Said::User | Said::Results(_)));
    finder.refuse(!ends, "", "the last is neither the user nor a result");
}
