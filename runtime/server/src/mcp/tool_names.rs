//! The names by which MCP clients see tools. Clients pass them on to model providers, which take 64 letters, digits, `_`
//! and `-`. A tool keeps its name whatever the order of the nodes is.

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

    /// Further names of the tool with this id. Another tool may have them too.
    pub(super) fn aliases(&self, id: &str) -> impl Iterator<Item = String> + use<> {
        let last_part = id.split_once('.').map(|(_, rest)| rest.to_owned());
        // The tool had the distinct name while another one was called like it.
        [provider_name(id), self.distinct_name()].into_iter().chain(last_part)
    }
}

/// The names of tools, in their order: each is an id as providers take it. If characters were lost or several tools have
/// the id, the name ends with a digest.
pub(super) fn distinct_names(origins: &[&NameOrigin]) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::with_capacity(origins.len());
    for origin in origins {
        *counts.entry(provider_name(&origin.base)).or_default() += 1;
    }
    let mut taken: HashSet<String> = HashSet::with_capacity(origins.len());
    let name_of = |origin: &&NameOrigin| {
        let plain = provider_name(&origin.base);
        let is_plain = origin.is_exact && counts.get(&plain) == Some(&1);
        let mut name = if is_plain { plain } else { origin.distinct_name() };
        // Somebody called a node like the distinct name of another one.
        while !taken.insert(name.clone()) {
            name = distinct_provider_name(&origin.base, &format!("{name}{}", origin.identity));
        }
        name
    };
    origins.iter().map(name_of).collect()
}
