//! Finds every problem of the rules and the roles.

use super::{
    MAX_LIMIT, MAX_POLICY_ITEMS, MAX_POLICY_RULES, MAX_ROLES, PolicyProblem, PolicyRule, RoleMembers,
};
use crate::json::push_pointer;
use crate::rate::Rate;
use crate::tool::is_tool_pattern;
use std::collections::BTreeMap;

/// The permissions that a rule can name, without those of secrets.
const PERMISSIONS: [&str; 5] = ["network.hosts", "network.public", "files.read", "files.write", "process"];

/// What a permission of a secret begins with.
pub(super) const SECRETS: &str = "secrets.";

/// Every problem of a policy, in the order of the manifest.
pub(super) fn check(rules: &[PolicyRule], roles: &BTreeMap<String, RoleMembers>) -> Vec<PolicyProblem> {
    let mut problems = Problems::default();
    problems.check_roles(roles);
    problems.check_count("/policy", rules.len(), MAX_POLICY_RULES, "rules");
    for (index, rule) in rules.iter().enumerate() {
        problems.check_rule(&format!("/policy/{index}"), rule, roles);
    }
    problems.0
}

#[derive(Default)]
struct Problems(Vec<PolicyProblem>);

impl Problems {
    fn add(&mut self, pointer: &str, expected: impl Into<String>, found: impl Into<String>) {
        self.0.push(PolicyProblem {
            pointer: pointer.to_owned(),
            expected: expected.into(),
            found: found.into(),
        });
    }

    fn check_count(&mut self, pointer: &str, count: usize, most: usize, what: &str) {
        if count > most {
            self.add(pointer, format!("at most {most} {what}"), format!("{count} {what}"));
        }
    }

    fn check_roles(&mut self, roles: &BTreeMap<String, RoleMembers>) {
        self.check_count("/roles", roles.len(), MAX_ROLES, "roles");
        for (name, role) in roles {
            let mut pointer = "/roles".to_owned();
            push_pointer(&mut pointer, name);
            if name.is_empty() {
                self.add(&pointer, "a role with a name", "an empty name");
            }
            for (key, members) in
                [("tokens", &role.tokens), ("instances", &role.instances), ("agents", &role.agents)]
            {
                self.check_items(&format!("{pointer}/{key}"), members, is_text, "a text that is not empty");
            }
        }
    }

    fn check_rule(&mut self, pointer: &str, rule: &PolicyRule, roles: &BTreeMap<String, RoleMembers>) {
        let actions =
            [("allow", &rule.allow), ("ask", &rule.ask), ("deny", &rule.deny), ("limit", &rule.limit)];
        let names: Vec<&str> =
            actions.iter().filter(|(_, list)| list.is_some()).map(|(name, _)| *name).collect();
        if names.len() != 1 {
            let found = if names.is_empty() { "none of them".to_owned() } else { names.join(" and ") };
            self.add(pointer, "exactly one of `allow`, `ask`, `deny` and `limit`", found);
        }
        for (key, list) in actions {
            let expected = "the id or the name of a tool, `prefix.*` or `*`";
            self.check_list(pointer, key, list.as_deref(), is_tool_pattern, expected);
        }
        for (key, list) in [("agents", &rule.agents), ("nodes", &rule.nodes), ("servers", &rule.servers)] {
            self.check_list(pointer, key, list.as_deref(), is_text, "a text that is not empty");
        }
        let is_role = |name: &str| roles.contains_key(name);
        self.check_list(pointer, "roles", rule.roles.as_deref(), is_role, "a role that `roles` defines");
        if rule.effect.as_ref().is_some_and(Vec::is_empty) {
            self.add(&format!("{pointer}/effect"), "at least one effect class", "an empty list");
        }
        let permissions = format!("one of {} and `{SECRETS}NAME`", PERMISSIONS.map(quote).join(", "));
        self.check_list(pointer, "permissions", rule.permissions.as_deref(), is_permission, &permissions);
        if rule.limit.is_some() {
            self.check_limit(pointer, rule);
        } else {
            let fields = [
                ("per", rule.per.is_some()),
                ("rate", rule.rate.is_some()),
                ("burst", rule.burst.is_some()),
                ("concurrent", rule.concurrent.is_some()),
            ];
            for (key, _) in fields.into_iter().filter(|(_, is_present)| *is_present) {
                self.add(&format!("{pointer}/{key}"), "a rule with `limit`", "a rule without `limit`");
            }
        }
    }

    fn check_limit(&mut self, pointer: &str, rule: &PolicyRule) {
        if rule.rate.is_none() && rule.concurrent.is_none() {
            self.add(pointer, "`rate`, `concurrent` or both", "a limit without them");
        }
        if let Some(rate) = &rule.rate
            && let Err(expected) = Rate::parse(rate)
        {
            self.add(&format!("{pointer}/rate"), expected, quote(rate));
        }
        if rule.burst.is_some() && rule.rate.is_none() {
            self.add(&format!("{pointer}/burst"), "a limit with `rate`", "a limit without `rate`");
        }
        for (key, number) in [("burst", rule.burst), ("concurrent", rule.concurrent)] {
            if let Some(number) = number.filter(|number| !(1..=MAX_LIMIT).contains(number)) {
                let expected = format!("a number from 1 to {MAX_LIMIT}");
                self.add(&format!("{pointer}/{key}"), expected, number.to_string());
            }
        }
    }

    /// Checks a list of a rule. It may be absent, but not empty.
    fn check_list(
        &mut self,
        rule: &str,
        key: &str,
        list: Option<&[String]>,
        is_valid: impl Fn(&str) -> bool,
        expected: &str,
    ) {
        let Some(list) = list else { return };
        let pointer = format!("{rule}/{key}");
        if list.is_empty() {
            self.add(&pointer, "at least one entry", "an empty list");
        }
        self.check_items(&pointer, list, is_valid, expected);
    }

    fn check_items(
        &mut self,
        pointer: &str,
        items: &[String],
        is_valid: impl Fn(&str) -> bool,
        expected: &str,
    ) {
        self.check_count(pointer, items.len(), MAX_POLICY_ITEMS, "entries");
        for (index, item) in items.iter().enumerate() {
            if !is_valid(item) {
                self.add(&format!("{pointer}/{index}"), expected, quote(item));
            }
        }
    }
}

fn is_text(text: &str) -> bool {
    !text.is_empty()
}

fn is_permission(text: &str) -> bool {
    PERMISSIONS.contains(&text) || text.strip_prefix(SECRETS).is_some_and(is_text)
}

fn quote(text: &str) -> String {
    format!("`{text}`")
}
