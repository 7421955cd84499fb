//! The node catalogue: the role, ports and property schemas of each node type. An unlisted type is a data
//! node.

pub use crate::node::declaration::{FixedTool, NodeType};
use crate::node::{self, DATA, NODES};

/// The catalogue's row of every declared type.
pub const CATALOGUE: &[NodeType] = &{
    let mut rows = [DATA.node_type; NODES.len()];
    let mut at = 0;
    while at < NODES.len() {
        rows[at] = NODES[at].node_type;
        at += 1;
    }
    rows
};

/// Finds a type: its own row, else the row of its prefix, else a plain data node.
#[must_use]
pub fn lookup(type_name: &str) -> &'static NodeType {
    &node::find(type_name).node_type
}

/// Types that structure a flow and never run as nodes.
pub const STRUCTURE_TYPES: [&str; 4] = ["tab", "subflow", "group", "global-config"];

#[cfg(test)]
mod tests {
    use super::lookup;
    use crate::edge::Role;

    #[test]
    fn finds_the_role_of_a_type() {
        let rows = [
            ("agent-core", Role::Agent),
            ("ai-agent", Role::Agent),
            ("ai-simple-agent", Role::Agent),
            ("ai-extractor", Role::Agent),
            ("ai-classifier", Role::Agent),
            ("ai-summarizer", Role::Agent),
            ("scripted-model", Role::Model),
            ("model.azure.openai", Role::Model),
            ("memory.anything", Role::Memory),
            ("redis-memory", Role::Memory),
            ("tool.mine", Role::Tool),
            ("flow-tool", Role::Tool),
            ("flow-tool-return", Role::Data),
            ("chat-node", Role::Chat),
            ("function", Role::Data),
            ("model", Role::Data),
            ("*", Role::Data),
        ];
        for (name, role) in rows {
            assert_eq!(lookup(name).role, role, "{name}");
        }
    }
}
