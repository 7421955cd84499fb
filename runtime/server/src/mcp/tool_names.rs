//! The names by which MCP clients see tools. Clients pass them on to model providers, which take 64 letters, digits, `_`
//! and `-`. A tool keeps its name whatever the order of the nodes is.

use super::tools::ExposedTool;
use redflow_contract::tool::{distinct_provider_name, provider_name};
use std::collections::{HashMap, HashSet};

/// What a name is made of.
#[derive(Debug, Clone)]
pub(super) struct NameOrigin {
    /// The id of the tool without a number, so several tools may have it.
    pub(super) base: String,
    /// Whether the base has all that people called the tool.
    is_exact: bool,
    /// What no other tool has.
    identity: String,
}

impl NameOrigin {
    pub(super) fn new(base: String, is_exact: bool, identity: String) -> Self {
        Self { base, is_exact, identity }
    }

    fn distinct_name(&self) -> String {
        distinct_provider_name(&self.base, &self.identity)
    }
}

impl ExposedTool {
    /// Further names of the tool. Another tool may have them too.
    pub(super) fn aliases(&self) -> impl Iterator<Item = String> {
        let last_part = self.id.split_once('.').map(|(_, rest)| rest.to_owned());
        // The tool had the distinct name while another one was called like it.
        [provider_name(&self.id), self.origin.distinct_name()].into_iter().chain(last_part)
    }
}

/// Gives each tool a name: its id as providers take it. If characters were lost or several tools have the id, the name
/// ends with a digest.
pub(super) fn name_tools(tools: &mut [ExposedTool]) {
    let mut counts: HashMap<String, usize> = HashMap::with_capacity(tools.len());
    for tool in &*tools {
        *counts.entry(provider_name(&tool.origin.base)).or_default() += 1;
    }
    let mut taken: HashSet<String> = HashSet::with_capacity(tools.len());
    for tool in tools {
        let plain = provider_name(&tool.origin.base);
        let is_plain = tool.origin.is_exact && counts.get(&plain) == Some(&1);
        let mut name = if is_plain { plain } else { tool.origin.distinct_name() };
        // Somebody called a node like the distinct name of another one.
        while !taken.insert(name.clone()) {
            name = distinct_provider_name(&tool.origin.base, &format!("{name}{}", tool.origin.identity));
        }
        tool.name = name;
    }
}
