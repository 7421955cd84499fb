//! The compiled policy: decides about a call in a time that does not grow with the number of rules.
//!
//! Each rule is a bit of a set. Each list of the rules is an index from an entry to the rules that have it. So the
//! rules about a call are the intersection of a few sets.

use super::check::{SECRETS, check};
use super::{LimitScope, MAX_POLICY_RULES, PolicyProblem, PolicyRule, RoleMembers};
use crate::node::EffectClass;
use crate::rate::Rate;
use crate::tool::{
    FilePermission, MatchedCalls, NetworkPermission, REGISTRY_TOOL, RuleAction, ToolEntry, ToolOrigin,
    ToolPermissions, ToolRule,
};
use std::collections::{BTreeMap, HashMap};

/// The words of 64 bits that have a bit for each rule.
const WORDS: usize = MAX_POLICY_RULES.div_ceil(64);

/// A call that a policy decides about.
#[derive(Debug, Clone, Copy)]
pub struct CallSubject<'a> {
    /// The id of the tool.
    pub id: &'a str,
    /// The name that the model calls it by.
    pub name: &'a str,
    /// The id of the node that the tool comes from.
    pub node: &'a str,
    /// The type of that node.
    pub node_type: &'a str,
    /// The MCP server that the tool comes from.
    pub server: Option<&'a str>,
    /// The id of the agent that calls; none for a call outside a run.
    pub agent: Option<&'a str>,
    /// The name of that agent; empty if it has none.
    pub agent_name: &'a str,
    /// The Node-RED that the flow belongs to.
    pub instance: &'a str,
    /// The session of the run.
    pub session: Option<&'a str>,
    /// The principal that started the run or makes the call.
    pub by: Option<&'a str>,
    /// The effect class of the call.
    pub effect: EffectClass,
    /// What the tool needs.
    pub permissions: &'a ToolPermissions,
}

/// What a policy says about a call. Rules count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The call may be made.
    Allow,
    /// A person must approve the call.
    Ask {
        /// The first rule that says so.
        rule: usize,
    },
    /// The call is refused.
    Deny {
        /// The first rule that denies the call, or the first `allow` rule of the tool if none of them allows it.
        rule: usize,
    },
}

/// A limit of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The rule, from 1.
    pub rule: usize,
    /// What is counted.
    pub scope: LimitScope,
    /// The most calls in a time.
    pub rate: Option<Rate>,
    /// The most calls at once within the rate; 0 without a rate.
    pub burst: u32,
    /// The most calls at the same time.
    pub concurrent: Option<u32>,
}

impl Limit {
    fn new(rule: usize, written: &PolicyRule) -> Self {
        let rate = written.rate.as_deref().and_then(|rate| Rate::parse(rate).ok());
        Self {
            rule,
            scope: written.per.unwrap_or_default(),
            rate,
            burst: written.burst.or(rate.map(Rate::calls)).unwrap_or(0),
            concurrent: written.concurrent,
        }
    }

    /// What a call is counted under. Agents and sessions of two Node-REDs may have the same id. So the key has the
    /// length of the instance, which makes it unique.
    fn key(&self, call: &CallSubject<'_>) -> String {
        let within = |kind: &str, id: &str| {
            let instance = call.instance;
            format!("{kind}:{}:{instance}:{id}", instance.len())
        };
        let instance = || format!("instance:{}", call.instance);
        let principal = || call.by.map(|by| format!("principal:{by}"));
        let agent = || call.agent.map(|agent| within("agent", agent));
        match self.scope {
            LimitScope::Tool => format!("tool:{}", call.id),
            LimitScope::Agent => agent().or_else(principal).unwrap_or_else(instance),
            LimitScope::Session => {
                let session = call.session.map(|session| within("session", session));
                session.or_else(agent).or_else(principal).unwrap_or_else(instance)
            }
            LimitScope::Principal => principal().unwrap_or_else(instance),
        }
    }
}

/// The compiled policy. The default has no rules, so it allows every call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    written: Vec<PolicyRule>,
    allow: RuleSet,
    ask: RuleSet,
    deny: RuleSet,
    limit: RuleSet,
    limits: Vec<Limit>,
    tools: ToolIndex,
    agents: ListIndex,
    nodes: ListIndex,
    servers: ListIndex,
    effects: ListIndex,
    permissions: ListIndex,
    roles: RoleIndex,
}

impl Policy {
    /// Compiles the rules of a manifest.
    ///
    /// # Errors
    /// Every problem of the rules and the roles.
    pub fn new(
        rules: &[PolicyRule],
        roles: &BTreeMap<String, RoleMembers>,
    ) -> Result<Self, Vec<PolicyProblem>> {
        let problems = check(rules, roles);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut policy = Self { written: rules.to_vec(), ..Self::default() };
        for (index, rule) in rules.iter().enumerate() {
            policy.add(index, rule, roles);
        }
        Ok(policy)
    }

    fn add(&mut self, index: usize, rule: &PolicyRule, roles: &BTreeMap<String, RoleMembers>) {
        for (set, list) in [
            (&mut self.allow, &rule.allow),
            (&mut self.ask, &rule.ask),
            (&mut self.deny, &rule.deny),
            (&mut self.limit, &rule.limit),
        ] {
            if let Some(list) = list {
                set.insert(index);
                self.tools.add(index, list);
            }
        }
        if rule.limit.is_some() {
            self.limits.push(Limit::new(index + 1, rule));
        }
        self.agents.add(index, rule.agents.as_deref());
        self.nodes.add(index, rule.nodes.as_deref());
        self.servers.add(index, rule.servers.as_deref());
        self.permissions.add(index, rule.permissions.as_deref());
        let effects = rule.effect.as_ref();
        let effects: Option<Vec<&str>> =
            effects.map(|list| list.iter().map(|class| class_name(*class)).collect());
        self.effects.add(index, effects.as_deref());
        self.roles.add(index, rule.roles.as_deref(), roles);
    }

    /// The rules as the manifest has them.
    #[must_use]
    pub fn written(&self) -> &[PolicyRule] {
        &self.written
    }

    /// Whether it has no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        [self.allow, self.ask, self.deny, self.limit].into_iter().all(RuleSet::is_empty)
    }

    /// Decides about a call. `deny` wins over `ask`, and `ask` over `allow`. If `allow` rules name the tool, one of
    /// them must match the call.
    #[must_use]
    pub fn decide(&self, call: &CallSubject<'_>) -> Decision {
        let named = self.tools.find(call.id, call.name);
        if named.is_empty() {
            return Decision::Allow;
        }
        let matched = self.narrow(named, call);
        if let Some(index) = matched.and(self.deny).first() {
            return Decision::Deny { rule: index + 1 };
        }
        if let Some(index) = named.and(self.allow).first()
            && matched.and(self.allow).is_empty()
        {
            return Decision::Deny { rule: index + 1 };
        }
        matched.and(self.ask).first().map_or(Decision::Allow, |index| Decision::Ask { rule: index + 1 })
    }

    /// The limits of a call, each with the key that it counts the call under.
    pub fn limits<'p>(&'p self, call: &CallSubject<'_>) -> impl Iterator<Item = (&'p Limit, String)> {
        let named = self.tools.find(call.id, call.name).and(self.limit);
        let matched = if named.is_empty() { named } else { self.narrow(named, call) };
        let limits = self.limits.iter().filter(move |limit| matched.contains(limit.rule - 1));
        limits.map(|limit| (limit, limit.key(call)))
    }

    /// The rules that name a tool, and which of its calls they match.
    #[must_use]
    pub fn rules_of(&self, tool: &ToolEntry) -> Vec<ToolRule> {
        let named = self.tools.find(&tool.id, &tool.name);
        let node_type = tool.node_type.as_deref().unwrap_or(REGISTRY_TOOL);
        // Several nodes may have the same tool of the registry or of a package, each with its own id.
        let is_own = matches!(tool.origin, ToolOrigin::Builtin | ToolOrigin::Flow);
        let node = is_own.then_some(tool.provider.as_str());
        let of_node = self.nodes.find([Some(node_type), node].into_iter().flatten());
        let of_effect = self.effects.find(tool.effect.map(class_name));
        let server = (tool.origin == ToolOrigin::Mcp).then_some(tool.provider.as_str());
        let of_server = self.servers.find(server);
        let fixed = named.and(of_server).and(self.permissions.find(permission_names(&tool.permissions)));
        let some = if is_own { fixed.and(of_node) } else { fixed };
        let some = if tool.effect.is_some() { some.and(of_effect) } else { some };
        let every = some.and(of_node).and(of_effect).and(self.agents.without).and(self.roles.without);
        let calls = |index| match (every.contains(index), some.contains(index)) {
            (true, _) => MatchedCalls::Every,
            (false, true) => MatchedCalls::Some,
            (false, false) => MatchedCalls::None,
        };
        let rule = |(rule, index): (u32, usize)| {
            let action = match index {
                _ if self.allow.contains(index) => RuleAction::Allow,
                _ if self.ask.contains(index) => RuleAction::Ask,
                _ if self.deny.contains(index) => RuleAction::Deny,
                _ => RuleAction::Limit,
            };
            ToolRule { rule, action, calls: calls(index) }
        };
        (1..).zip(0..self.written.len()).filter(|(_, index)| named.contains(*index)).map(rule).collect()
    }

    /// Leaves the rules whose other lists all match.
    fn narrow(&self, named: RuleSet, call: &CallSubject<'_>) -> RuleSet {
        let agent = || [call.agent, Some(call.agent_name)].into_iter().flatten();
        named
            .and(self.agents.find(agent()))
            .and(self.nodes.find([call.node, call.node_type]))
            .and(self.servers.find(call.server))
            .and(self.effects.find([class_name(call.effect)]))
            .and(self.permissions.find(permission_names(call.permissions)))
            .and(self.roles.find(call, agent()))
    }
}

/// A set of rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RuleSet([u64; WORDS]);

impl RuleSet {
    fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    fn contains(self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }

    fn first(self) -> Option<usize> {
        let place = self.0.iter().position(|word| *word != 0)?;
        let bit = usize::try_from(self.0.get(place)?.trailing_zeros()).ok()?;
        Some(place * 64 + bit)
    }

    fn and(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        self
    }

    fn or(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
        self
    }
}

/// The rules that have an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct EntryIndex(HashMap<Box<str>, RuleSet>);

impl EntryIndex {
    fn add(&mut self, index: usize, entry: &str) {
        self.0.entry(entry.into()).or_default().insert(index);
    }

    fn find(&self, entry: &str) -> RuleSet {
        if self.0.is_empty() { RuleSet::default() } else { self.0.get(entry).copied().unwrap_or_default() }
    }
}

/// The rules that name a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ToolIndex {
    every: RuleSet,
    /// By id and by name.
    exact: EntryIndex,
    /// By the part before `.*`.
    prefixes: EntryIndex,
}

impl ToolIndex {
    fn add(&mut self, index: usize, patterns: &[String]) {
        for pattern in patterns {
            match pattern.strip_suffix(".*") {
                Some(prefix) => self.prefixes.add(index, prefix),
                None if pattern == "*" => self.every.insert(index),
                None => self.exact.add(index, pattern),
            }
        }
    }

    fn find(&self, id: &str, name: &str) -> RuleSet {
        let mut rules = self.every.or(self.exact.find(id)).or(self.exact.find(name));
        if !self.prefixes.0.is_empty() {
            for (end, _) in id.match_indices('.') {
                rules = rules.or(self.prefixes.find(id.get(..end).unwrap_or_default()));
            }
        }
        rules
    }
}

/// The rules whose list of one kind matches. A rule without such a list matches every call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ListIndex {
    without: RuleSet,
    entries: EntryIndex,
}

impl ListIndex {
    fn add(&mut self, index: usize, list: Option<&[impl AsRef<str>]>) {
        match list {
            Some(list) => list.iter().for_each(|entry| self.entries.add(index, entry.as_ref())),
            None => self.without.insert(index),
        }
    }

    fn find(&self, values: impl IntoIterator<Item = impl AsRef<str>>) -> RuleSet {
        if self.entries.0.is_empty() {
            return self.without;
        }
        values.into_iter().fold(self.without, |rules, value| rules.or(self.entries.find(value.as_ref())))
    }
}

/// The rules whose roles the call has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RoleIndex {
    without: RuleSet,
    tokens: EntryIndex,
    instances: EntryIndex,
    agents: EntryIndex,
}

impl RoleIndex {
    fn add(&mut self, index: usize, names: Option<&[String]>, roles: &BTreeMap<String, RoleMembers>) {
        let Some(names) = names else { return self.without.insert(index) };
        for role in names.iter().filter_map(|name| roles.get(name)) {
            role.tokens.iter().for_each(|token| self.tokens.add(index, token));
            role.instances.iter().for_each(|instance| self.instances.add(index, instance));
            role.agents.iter().for_each(|agent| self.agents.add(index, agent));
        }
    }

    fn find<'a>(&self, call: &CallSubject<'_>, agent: impl Iterator<Item = &'a str>) -> RuleSet {
        let token = call.by.and_then(|by| by.strip_prefix("token:"));
        let rules = self.without.or(self.instances.find(call.instance));
        let rules = token.map_or(rules, |token| rules.or(self.tokens.find(token)));
        agent.fold(rules, |rules, name| rules.or(self.agents.find(name)))
    }
}

fn class_name(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Read => "read",
        EffectClass::Idempotent => "idempotent",
        EffectClass::AtMostOnce => "at_most_once",
    }
}

/// The permissions as rules name them.
fn permission_names(permissions: &ToolPermissions) -> impl Iterator<Item = String> {
    let network = match permissions.network {
        NetworkPermission::None => None,
        NetworkPermission::Hosts => Some("network.hosts"),
        NetworkPermission::Public => Some("network.public"),
    };
    let files = match permissions.files {
        FilePermission::None => None,
        FilePermission::Read => Some("files.read"),
        FilePermission::Write => Some("files.write"),
    };
    let process = permissions.process.then_some("process");
    let secrets = permissions.secrets.iter().map(|name| format!("{SECRETS}{name}"));
    [network, files, process].into_iter().flatten().map(str::to_owned).chain(secrets)
}
