//! Who may call which tool, and how often.

mod check;
mod compiled;

pub use crate::policy_rule::{LimitScope, PolicyRule, RoleMembers};
pub use compiled::{CallSubject, Decision, Limit, Policy};

/// The most rules of a policy.
pub const MAX_POLICY_RULES: usize = 200;

/// The most entries of one list of a rule or of a role.
pub const MAX_POLICY_ITEMS: usize = 100;

/// The most roles.
pub const MAX_ROLES: usize = 100;

/// The highest `burst` and `concurrent` of a limit.
pub const MAX_LIMIT: u32 = 1_000_000;

/// A problem of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// JSON pointer to the place in the manifest, such as `/policy/3/rate`.
    pub pointer: String,
    /// What belongs in this place.
    pub expected: String,
    /// What is in this place.
    pub found: String,
}

#[cfg(test)]
mod tests;
