//! Places that callers share. One caller can take at most half of them, so that others find a place.

use redflow_access::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places of one kind.
pub(crate) struct Shares {
    most: usize,
    /// The taken places of each token.
    taken: Mutex<HashMap<Arc<str>, usize>>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All places are taken.
    Full(usize),
    /// The caller has as many as one caller may have.
    Share(usize),
}

impl Shares {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a place for a caller.
    pub(super) fn take(self: &Arc<Self>, caller: &Caller) -> Result<Place, NoPlace> {
        let mut taken = self.taken();
        let share = self.most / 2;
        let of_caller = taken.get(&caller.token_name).copied().unwrap_or_default();
        if taken.values().sum::<usize>() >= self.most {
            return Err(NoPlace::Full(self.most));
        }
        if of_caller >= share {
            return Err(NoPlace::Share(share));
        }
        taken.insert(Arc::clone(&caller.token_name), of_caller + 1);
        Ok(Place { shares: Arc::clone(self), token: Arc::clone(&caller.token_name) })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A taken place, until this is dropped.
pub(super) struct Place {
    shares: Arc<Shares>,
    token: Arc<str>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        match taken.get_mut(&self.token) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.token)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NoPlace, Place, Shares};
    use redflow_access::Caller;
    use std::sync::Arc;

    fn caller(name: &str) -> Caller {
        let mut caller = Caller::anonymous();
        caller.token_name = Arc::from(name);
        caller
    }

    #[test]
    fn one_caller_has_half_of_the_places_at_most() {
        let shares = Shares::new(4);
        let refused = |name: &str| shares.take(&caller(name)).err();
        let mut places: Vec<Place> = ["a", "a", "b"].map(|name| shares.take(&caller(name)).unwrap()).into();
        assert_eq!(refused("a"), Some(NoPlace::Share(2)));
        places.push(shares.take(&caller("c")).unwrap());
        assert_eq!(refused("b"), Some(NoPlace::Full(4)));
        places.remove(0);
        assert_eq!(refused("a"), None);
        drop(places);
        assert!(shares.taken().is_empty(), "a place that is given back leaves nothing");
    }
}
