//! The sign-ins that have begun and not ended.

use crate::http::LOGIN_TIME;
use std::collections::HashMap;
use tokio::time::Instant;

/// The most sign-ins that have begun and not ended.
pub(crate) const MAX_LOGINS: usize = 64;

/// The sign-ins that have begun, by their state, with whose they are.
pub(crate) struct OpenLogins<T>(HashMap<String, (T, Instant)>);

impl<T> Default for OpenLogins<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Clone> OpenLogins<T> {
    /// Adds a sign-in that begins now. Those for which `is_other` does not hold end.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn add(
        &mut self,
        state: String,
        login: T,
        now: Instant,
        is_other: impl Fn(&T) -> bool,
    ) -> Result<(), String> {
        self.0.retain(|_, (known, until)| *until > now && is_other(known));
        if self.0.len() >= MAX_LOGINS {
            let minutes = LOGIN_TIME.as_secs() / 60;
            return Err(format!(
                "{MAX_LOGINS} sign-ins have begun and not ended. Finish one of them, or wait {minutes} minutes."
            ));
        }
        self.0.insert(state, (login, now + LOGIN_TIME));
        Ok(())
    }

    /// A sign-in that has not ended.
    pub(crate) fn find(&self, state: &str, now: Instant) -> Option<T> {
        self.0.get(state).filter(|(_, until)| *until > now).map(|(login, _)| login.clone())
    }

    pub(crate) fn remove(&mut self, state: &str) {
        self.0.remove(state);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LOGINS, OpenLogins};
    use crate::http::LOGIN_TIME;
    use tokio::time::Instant;

    #[test]
    fn sign_ins_are_bounded_and_end_by_themselves() {
        let (mut logins, now) = (OpenLogins::default(), Instant::now());
        let add = |logins: &mut OpenLogins<usize>, number: usize, now| {
            logins.add(number.to_string(), number, now, |known| *known != number)
        };
        for number in 0..MAX_LOGINS {
            add(&mut logins, number, now).unwrap();
        }
        assert!(add(&mut logins, MAX_LOGINS, now).unwrap_err().contains("wait 10 minutes"));
        // Another one of the same server takes the place of the first one.
        logins.add("again".to_owned(), 5, now, |known| *known != 5).unwrap();
        assert_eq!((logins.find("5", now), logins.find("again", now)), (None, Some(5)));
        logins.remove("again");
        assert_eq!(logins.find("again", now), None);
        let later = now + LOGIN_TIME;
        assert_eq!((logins.find("7", now), logins.find("7", later)), (Some(7), None));
        for number in 0..MAX_LOGINS {
            add(&mut logins, number, later).unwrap();
        }
    }
}
