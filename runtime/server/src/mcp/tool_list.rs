//! The list of tools, which is kept until something it is made of changes.

use super::problem::{error_data, invalid_params};
use super::tools::{ExposedTool, ToolSources};
use crate::response::{Problem, printable};
use redflow_contract::code::ApiCode;
use rmcp::ErrorData;
use rmcp::model::Tool;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The tools at one moment.
pub(super) struct ToolList {
    /// Sorted by name.
    tools: Vec<ExposedTool>,
    /// The place of the tool that a text names; none if it names several.
    places: HashMap<String, Option<usize>>,
    /// As clients get them, sorted by name.
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
        let (places, described) = (places_of(&tools), sources.describe(&tools));
        let list = Arc::new(ToolList { tools, places, described });
        *kept = Some((sources, Arc::clone(&list)));
        list
    }
}

/// The places of the tools by everything that a call may name: their names, their ids, and then what identifies only one
/// tool of its aliases.
fn places_of(tools: &[ExposedTool]) -> HashMap<String, Option<usize>> {
    let mut places: HashMap<String, Option<usize>> = HashMap::with_capacity(tools.len() * 4);
    for (place, tool) in tools.iter().enumerate() {
        places.insert(tool.name.clone(), Some(place));
        places.insert(tool.id.clone(), Some(place));
    }
    let mut aliases: HashMap<String, Option<usize>> = HashMap::new();
    for (place, tool) in tools.iter().enumerate() {
        for alias in tool.origin.aliases(&tool.id) {
            let known = aliases.entry(alias).or_insert(Some(place));
            if *known != Some(place) {
                *known = None;
            }
        }
    }
    for (alias, place) in aliases {
        places.entry(alias).or_insert(place);
    }
    places
}

impl ToolList {
    /// Finds a tool by its name, by its id, or by another name that only this tool has.
    pub(super) fn find(&self, name: &str) -> Result<&ExposedTool, ErrorData> {
        match self.places.get(name) {
            Some(Some(place)) => self.tools.get(*place).ok_or_else(|| error_data(Problem::internal())),
            Some(None) => {
                let text = format!("Several tools are `{}`. Use a name of `tools/list`.", printable(name));
                Err(error_data(Problem::new(ApiCode::ToolConflict, text)))
            }
            None => {
                let text = format!("There is no tool `{}`. `tools/list` lists them.", printable(name));
                Err(error_data(Problem::new(ApiCode::NotFound, text)))
            }
        }
    }

    /// A tool as clients get it.
    pub(super) fn describe(&self, name: &str) -> Option<&Tool> {
        let name = self.find(name).ok()?.name.as_str();
        let place = self.described.binary_search_by(|tool| (*tool.name).cmp(name)).ok()?;
        self.described.get(place)
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
