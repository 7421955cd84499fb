//! How much callers may use at the same time. One caller gets at most half of it, so that others get something too.

use redflow_access::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The quota of one thing, such as sessions.
pub(crate) struct CallerQuota {
    most: usize,
    /// The permits of each token.
    taken: Mutex<HashMap<Arc<str>, usize>>,
}

/// Why there is no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaError {
    /// All permits are taken.
    Full(usize),
    /// The caller has as many as one caller may have.
    Caller(usize),
}

impl CallerQuota {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a permit for a caller.
    pub(super) fn take(self: &Arc<Self>, caller: &Caller) -> Result<QuotaPermit, QuotaError> {
        let mut taken = self.taken();
        let most_of_caller = self.most / 2;
        let of_caller = taken.get(&caller.token_name).copied().unwrap_or_default();
        if taken.values().sum::<usize>() >= self.most {
            return Err(QuotaError::Full(self.most));
        }
        if of_caller >= most_of_caller {
            return Err(QuotaError::Caller(most_of_caller));
        }
        taken.insert(Arc::clone(&caller.token_name), of_caller + 1);
        Ok(QuotaPermit { quota: Arc::clone(self), token: Arc::clone(&caller.token_name) })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of the quota, until this is dropped.
pub(super) struct QuotaPermit {
    quota: Arc<CallerQuota>,
    token: Arc<str>,
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut taken = self.quota.taken();
        match taken.get_mut(&self.token) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.token)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CallerQuota, QuotaError, QuotaPermit};
    use redflow_access::Caller;
    use std::sync::Arc;

    fn caller(name: &str) -> Caller {
        let mut caller = Caller::anonymous();
        caller.token_name = Arc::from(name);
        caller
    }

    #[test]
    fn one_caller_has_half_of_the_permits_at_most() {
        let quota = CallerQuota::new(4);
        let refused = |name: &str| quota.take(&caller(name)).err();
        let mut permits: Vec<QuotaPermit> =
            ["a", "a", "b"].map(|name| quota.take(&caller(name)).unwrap()).into();
        assert_eq!(refused("a"), Some(QuotaError::Caller(2)));
        permits.push(quota.take(&caller("c")).unwrap());
        assert_eq!(refused("b"), Some(QuotaError::Full(4)));
        permits.remove(0);
        assert_eq!(refused("a"), None);
        drop(permits);
        assert!(quota.taken().is_empty(), "a permit that is given back leaves nothing");
    }
}
