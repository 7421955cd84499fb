//! The list of tools, which is kept until something it is made of changes.

use super::problem::{error_data, invalid_params};
use super::tools::{ExposedTool, ToolSources};
use crate::response::{Problem, printable};
use redflow_contract::code::ApiCode;
use redflow_contract::tool::provider_name;
use rmcp::ErrorData;
use rmcp::model::Tool;
use std::sync::{Arc, Mutex, PoisonError};

/// The tools at one moment.
pub(super) struct ToolList {
    /// Sorted by id.
    tools: Vec<ExposedTool>,
    /// As clients get them, sorted by id.
    pub(super) described: Vec<Tool>,
}

/// The list that was made last, with what it was made of.
#[derive(Default)]
pub(crate) struct KeptList(Mutex<Option<(ToolSources, Arc<ToolList>)>>);

impl KeptList {
    /// The tools that are made of these sources.
    pub(super) fn made_of(&self, sources: ToolSources) -> Arc<ToolList> {
        // Held while the list is made: others need the same list.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, list)) = &*kept
            && known.is_same(&sources)
        {
            return Arc::clone(list);
        }
        let tools = sources.exposed_tools();
        let list = Arc::new(ToolList { described: sources.describe(&tools), tools });
        *kept = Some((sources, Arc::clone(&list)));
        list
    }
}

impl ToolList {
    /// Finds a tool by its id, by the name that models have for it, or by its last part.
    pub(super) fn find(&self, name: &str) -> Result<&ExposedTool, ErrorData> {
        if let Ok(place) = self.tools.binary_search_by(|tool| tool.id.as_str().cmp(name))
            && let Some(tool) = self.tools.get(place)
        {
            return Ok(tool);
        }
        let last_part = |id: &str| id.split_once('.').is_some_and(|(_, rest)| rest == name);
        let is_named = |tool: &&ExposedTool| last_part(&tool.id) || provider_name(&tool.id) == name;
        let mut named = self.tools.iter().filter(is_named);
        match (named.next(), named.next()) {
            (Some(tool), None) => Ok(tool),
            (Some(_), Some(_)) => {
                let text = format!("Several tools are `{}`. Use an id of `tools/list`.", printable(name));
                Err(error_data(Problem::new(ApiCode::ToolConflict, text)))
            }
            (None, _) => {
                let text = format!("There is no tool `{}`. `tools/list` lists them.", printable(name));
                Err(error_data(Problem::new(ApiCode::NotFound, text)))
            }
        }
    }

    /// A tool as clients get it.
    pub(super) fn describe(&self, name: &str) -> Option<&Tool> {
        let id = &self.find(name).ok()?.id;
        self.described.iter().find(|tool| tool.name == *id)
    }
}

/// The part of a list after the entry that a cursor names, and the cursor of the next part. A cursor is the key of an
/// entry, so new entries neither repeat nor skip others.
pub(super) fn page<T: Clone>(
    items: &[T],
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    most: usize,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let rest = match cursor {
        None => items,
        Some(cursor) => {
            let place = items.iter().position(|item| key(item) == cursor);
            place.and_then(|place| items.get(place + 1..)).ok_or_else(|| {
                invalid_params("`cursor` names no entry of this list. Read the list from its beginning.")
            })?
        }
    };
    let part: Vec<T> = rest.iter().take(most).cloned().collect();
    let next = part.last().filter(|_| rest.len() > most).map(|last| key(last).to_owned());
    Ok((part, next))
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn pages_meet_without_a_gap() {
        let mut items = vec!["a", "b", "c", "d", "e"];
        let read = |items: &[&'static str], cursor: Option<&str>| page(items, |item| item, cursor, 2);
        let first = read(&items, None).unwrap();
        assert_eq!(first, (vec!["a", "b"], Some("b".to_owned())));
        // A new entry moves the others.
        items.insert(0, "new");
        let second = read(&items, first.1.as_deref()).unwrap();
        assert_eq!(second, (vec!["c", "d"], Some("d".to_owned())));
        assert_eq!(read(&items, second.1.as_deref()).unwrap(), (vec!["e"], None));
        assert_eq!(read(&items, Some("e")).unwrap(), (vec![], None));
        for wrong in ["x", "-1", ""] {
            assert!(read(&items, Some(wrong)).is_err(), "{wrong}");
        }
    }
}
