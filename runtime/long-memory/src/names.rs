//! The names of long memories and of their entries.

use redflow_contract::archive::{LONG_MEMORY_PREFIX, MAX_COLLECTION_NAME};
use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;
use redflow_contract::node::MemoryScope;

/// The most bytes of a memory's name, without the prefix.
const MAX_NAME: usize = MAX_COLLECTION_NAME - LONG_MEMORY_PREFIX.len();
/// The digits of a digest that keep names apart.
const DIGITS: usize = 8;
/// The digits of a digest that keep resources apart.
const SPAN_DIGITS: usize = 32;
/// The longest id of a run that is a part of a key as it is.
const MAX_RUN: usize = 64;

/// The name of a memory: `FLOW/NODE`, or `FLOW` if all memories of the flow share it.
pub(crate) fn memory_name(flow: &str, node: &str, scope: MemoryScope) -> String {
    match scope {
        MemoryScope::Flow => part(flow, MAX_NAME),
        _ => {
            // A short part leaves its place to the other one.
            let node_room = part(node, MAX_NAME).len().min((MAX_NAME - 1) / 2);
            let flow = part(flow, MAX_NAME - 1 - node_room);
            let node = part(node, MAX_NAME - 1 - flow.len());
            format!("{flow}/{node}")
        }
    }
}

/// A text as one part of a name. Characters that a name cannot have become `-`, and a digest keeps the names of
/// different texts apart.
fn part(text: &str, most: usize) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !text.is_empty() && text.len() <= most && text.chars().all(is_allowed) {
        return text.to_owned();
    }
    let kept =
        text.chars().map(|c| if is_allowed(c) { c } else { '-' }).take(most.saturating_sub(DIGITS + 1));
    format!("{}-{}", kept.collect::<String>(), digits(Digest::of(text.as_bytes()), DIGITS))
}

/// The first hex digits of a digest.
pub(crate) fn digits(digest: Digest, count: usize) -> String {
    digest.to_hex().chars().take(count).collect()
}

/// The key of a turn. The ids of runs sort by time, and so do the keys.
pub(crate) fn episode_key(run: &RunId) -> String {
    let run = run.as_str();
    let is_plain = run.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    match is_plain && run.len() <= MAX_RUN {
        true => format!("turn-{run}"),
        false => format!("turn-{}", Digest::of(run.as_bytes()).to_hex()),
    }
}

/// The key of the copy of a resource.
pub(crate) fn span_key(reference: &str) -> String {
    format!("span-{}", digits(Digest::of(reference.as_bytes()), SPAN_DIGITS))
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME, episode_key, memory_name};
    use redflow_contract::node::MemoryScope;

    #[test]
    fn names_fit_and_stay_apart() {
        let long = "a".repeat(100);
        let name = |flow: &str, node: &str| memory_name(flow, node, MemoryScope::User);
        assert_eq!(name("tab1", "n7"), "tab1/n7");
        assert_eq!(memory_name("tab1", "n7", MemoryScope::Flow), "tab1");
        assert_eq!(name("tab1", &"n".repeat(55)), format!("tab1/{}", "n".repeat(55)));
        let rows = [
            ("a b", "n"),
            ("a/b", "n"),
            ("a-b", "n"),
            ("", "n"),
            (&long, "n"),
            (&long, &long),
            ("é", "n"),
            ("a", &long),
            ("a", "b/c"),
        ];
        let mut names: Vec<String> = rows.iter().map(|(flow, node)| name(flow, node)).collect();
        for name in &names {
            assert!(name.len() <= MAX_NAME && name.matches('/').count() == 1, "{name}");
            assert!(name.split('/').all(|part| !part.is_empty()), "{name}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows.len());
        assert!(memory_name(&long, "n", MemoryScope::Flow).len() <= MAX_NAME);
    }

    #[test]
    fn the_key_of_a_turn_is_that_of_its_run() {
        assert_eq!(episode_key(&"019b76da-a800".into()), "turn-019b76da-a800");
        assert_eq!(episode_key(&"a/b".into()).len(), 69);
    }
}
