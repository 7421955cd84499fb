//! Admits tool calls: the policy decides, then the limits count.

use super::Registry;
use redflow_contract::Millis;
use redflow_contract::code::ToolCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::policy::{CallSubject, Decision, Limit, LimitScope, Policy};
use redflow_contract::rate::RateLimiter;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts calls for the limits of one policy. Another policy begins to count anew.
#[derive(Default)]
pub(super) struct Limiter {
    policy: Arc<Policy>,
    /// By the number of the rule.
    rates: HashMap<usize, RateLimiter>,
    /// The open calls, by the number of the rule and the key. A count of zero is removed.
    open: HashMap<(usize, Arc<str>), u32>,
}

/// The permission to make a call. It holds its places among the calls at the same time.
pub(crate) struct Permit {
    limiter: Arc<Mutex<Limiter>>,
    policy: Arc<Policy>,
    places: Vec<(usize, Arc<str>)>,
}

impl Registry {
    /// Admits a call, or gives its result.
    pub(crate) fn admit(
        &self,
        policy: &Arc<Policy>,
        call: &CallSubject<'_>,
        now: Millis,
    ) -> Result<Option<Permit>, Box<ToolResult>> {
        match policy.decide(call) {
            Decision::Allow => {}
            Decision::Deny { rule } => {
                let text = format!("The policy does not allow this call of `{}` (rule {rule}).", call.id);
                return Err(Box::new(ToolResult::refused(ToolCode::ToolDenied, text)));
            }
            Decision::Ask { rule } => {
                let text = format!(
                    "The policy asks a person to approve this call of `{}` (rule {rule}). This version cannot ask, so \
                     the call is refused.",
                    call.id
                );
                return Err(Box::new(ToolResult::refused(ToolCode::ToolDenied, text)));
            }
        }
        let limits: Vec<(&Limit, Arc<str>)> =
            policy.limits(call).map(|(limit, key)| (limit, Arc::from(key))).collect();
        if limits.is_empty() {
            return Ok(None);
        }
        let mut limiter = lock(&self.limiter);
        if !Arc::ptr_eq(&limiter.policy, policy) {
            *limiter = Limiter { policy: Arc::clone(policy), ..Limiter::default() };
        }
        limiter.take(&limits, now)?;
        let places = limits.into_iter().filter(|(limit, _)| limit.concurrent.is_some());
        let places = places.map(|(limit, key)| (limit.rule, key)).collect();
        Ok(Some(Permit { limiter: Arc::clone(&self.limiter), policy: Arc::clone(policy), places }))
    }
}

fn lock(limiter: &Mutex<Limiter>) -> MutexGuard<'_, Limiter> {
    // No holder of the lock leaves the counts half changed, so a poisoned lock is still good.
    limiter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Limiter {
    /// Counts a call, or gives the limit that refuses it. A refused call counts for no limit.
    fn take(&mut self, limits: &[(&Limit, Arc<str>)], now: Millis) -> Result<(), Box<ToolResult>> {
        for (limit, key) in limits {
            let open = self.open.get(&(limit.rule, Arc::clone(key))).copied().unwrap_or_default();
            if limit.concurrent.is_some_and(|most| open >= most) {
                return Err(Box::new(limited(limit)));
            }
        }
        for (limit, key) in limits {
            let Some(rate) = limit.rate else { continue };
            let rates = self.rates.entry(limit.rule).or_insert_with(|| RateLimiter::new(rate, limit.burst));
            if !rates.has_turn(key, now) {
                return Err(Box::new(limited(limit)));
            }
        }
        for (limit, key) in limits {
            if let Some(rates) = self.rates.get_mut(&limit.rule) {
                rates.take(key, now);
            }
        }
        for (limit, key) in limits.iter().filter(|(limit, _)| limit.concurrent.is_some()) {
            *self.open.entry((limit.rule, Arc::clone(key))).or_default() += 1;
        }
        Ok(())
    }
}

fn limited(limit: &Limit) -> ToolResult {
    let scope = match limit.scope {
        LimitScope::Tool => "tool",
        LimitScope::Agent => "agent",
        LimitScope::Session => "session",
        LimitScope::Principal => "principal",
    };
    let rate = limit.rate.map(|rate| format!("{rate} calls"));
    let concurrent = limit.concurrent.map(|most| format!("{most} at the same time"));
    let most: Vec<String> = rate.into_iter().chain(concurrent).collect();
    let text = format!(
        "The policy allows {} for each {scope} (rule {}). Try again later.",
        most.join(" and "),
        limit.rule
    );
    ToolResult::refused(ToolCode::ToolRateLimited, text)
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut limiter = lock(&self.limiter);
        if !Arc::ptr_eq(&limiter.policy, &self.policy) {
            return;
        }
        for place in self.places.drain(..) {
            if let Some(open) = limiter.open.get_mut(&place) {
                *open -= 1;
                if *open == 0 {
                    limiter.open.remove(&place);
                }
            }
        }
    }
}
