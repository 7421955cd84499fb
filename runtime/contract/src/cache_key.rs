//! What the model calls of one agent in one session have in common.

use crate::digest::Digest;
use crate::id::NodeRef;

/// What calls have in common that begin alike. It borrows, so that a waiting run holds no text for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey<'a> {
    /// The agent that calls.
    pub agent: &'a NodeRef,
    /// The session of its run; none without one.
    pub session: Option<&'a str>,
}

impl CacheKey<'_> {
    /// The key as a provider gets it. It tells nothing about the agent, the session or the user.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let agent = Digest::of(self.agent.instance.as_str().as_bytes());
        let agent = agent.chain(0, self.agent.node_id.as_str().as_bytes());
        self.session.map_or(agent, |session| agent.chain(1, session.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::CacheKey;
    use crate::id::NodeRef;
    use std::collections::HashSet;

    #[test]
    fn every_agent_and_session_has_its_own_key() {
        let agent = |instance: &str, node: &str| NodeRef { instance: instance.into(), node_id: node.into() };
        let agents = [agent("a", "bc"), agent("ab", "c"), agent("a", "c")];
        let sessions = [None, Some(""), Some("f:default"), Some("f:ada")];
        let keys: HashSet<String> = agents
            .iter()
            .flat_map(|agent| sessions.map(|session| CacheKey { agent, session }.digest().to_hex()))
            .collect();
        assert_eq!(keys.len(), agents.len() * sessions.len());
        // OpenAI takes keys of at most 64 characters.
        assert!(keys.iter().all(|key| key.len() == 64 && !key.contains("ada")));
        let again = agent("a", "bc");
        assert!(keys.contains(&CacheKey { agent: &again, session: Some("f:ada") }.digest().to_hex()));
    }
}
