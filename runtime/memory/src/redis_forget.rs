//! Removes the turns of a user from all conversations of a Redis, so that no byte of them is left.

use crate::cipher::user_digest;
use crate::element;
use crate::redis_store::{Keys, RedisStore};
use crate::scripts;
use redflow_contract::input::user_name;
use redflow_contract::memory::DataOwner;
use redflow_contract::run_error::Failure;
use std::collections::BTreeSet;

/// How many turns are read at once.
const PAGE_TURNS: usize = 100;
/// How many keys Redis looks at in one step.
const SCAN_KEYS: &[u8] = b"1000";
/// How often a conversation is read again, because turns were found in it. Other processes may remove turns at the same time,
/// and then a page can miss some.
const PASSES: usize = 5;

/// Removes what belongs to an owner. Returns how many conversations lost something. A conversation that fails does not stop
/// the others; the first failure is returned at the end.
pub(crate) async fn forget(store: &RedisStore, owner: &DataOwner) -> Result<u64, Failure> {
    match owner {
        DataOwner::Session(session) => Ok(u64::from(store.clear(&store.keys(session)).await?)),
        // The name as it is stored.
        DataOwner::User(user) => match user_name(user) {
            Some(user) => UserTurns::new(store, &user).forget().await,
            None => Ok(0),
        },
        DataOwner::Source(_) => Ok(0),
    }
}

/// The turns of a user.
struct UserTurns<'a> {
    store: &'a RedisStore,
    user: &'a str,
    /// The names of the user in keys: with the node's cipher, and as they were before the node had one.
    digests: [String; 2],
}

/// What a conversation has of the user.
#[derive(Default)]
struct FoundTurns {
    /// The elements.
    turns: Vec<Vec<u8>>,
    /// Whether the conversation had turns of the user, as far as it is known.
    had_turns: bool,
    /// Why a turn could not be read.
    unreadable: Option<Failure>,
}

impl<'a> UserTurns<'a> {
    fn new(store: &'a RedisStore, user: &'a str) -> Self {
        let digests = [user_digest(user, store.cipher.as_ref()), user_digest(user, None)];
        Self { store, user, digests }
    }

    async fn forget(&self) -> Result<u64, Failure> {
        let user_keys = self.digests.each_ref().map(|digest| self.store.users_prefix() + digest);
        let user_keys = user_keys.each_ref().map(String::as_str);
        let (_, lists) = self.store.run_script_with(&scripts::USER, &user_keys, &[b"0"]).await?;
        let (mut done, mut failure) = (BTreeSet::new(), None);
        let mut count = self.forget_in(&lists, &mut done, &mut failure).await;
        // Turns that were stored before users had sets, or while a set was lost, are found by their keys.
        let (pattern, mut cursor) = (self.store.pattern(), b"0".to_vec());
        loop {
            let arguments = [cursor.as_slice(), pattern.as_bytes(), SCAN_KEYS];
            let (_, mut found) = self.store.run_script_with(&scripts::FIND, &[], &arguments).await?;
            cursor = if found.is_empty() { b"0".to_vec() } else { found.remove(0) };
            count += self.forget_in(&found, &mut done, &mut failure).await;
            if cursor == b"0" {
                break;
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.store.run_script_with(&scripts::USER, &user_keys, &[b"1"]).await?;
        Ok(count)
    }

    /// Removes the turns in some lists. Keeps the first failure.
    async fn forget_in(
        &self,
        lists: &[Vec<u8>],
        done: &mut BTreeSet<Vec<u8>>,
        failure: &mut Option<Failure>,
    ) -> u64 {
        let mut count = 0;
        for list in lists {
            let keys = std::str::from_utf8(list).ok().and_then(|list| self.store.keys_of_list(list));
            let Some(keys) = keys.filter(|_| done.insert(list.clone())) else { continue };
            match self.forget_in_conversation(&keys).await {
                Ok(removed) => count += u64::from(removed),
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
        count
    }

    /// Returns whether the conversation lost something. A turn that cannot be read does not stop the others.
    async fn forget_in_conversation(&self, keys: &Keys) -> Result<bool, Failure> {
        let mut removed = false;
        for pass in 0..PASSES {
            let found = match self.find(keys).await {
                // Another program's list stays as it is.
                Err(error) if error == element::not_a_conversation(&keys.list) => return Ok(removed),
                found => found?,
            };
            if !found.turns.is_empty() || (pass == 0 && found.had_turns) {
                let users = self.store.users_prefix();
                let [own, plain] = self.digests.each_ref().map(String::as_bytes);
                let turns = found.turns.iter().map(Vec::as_slice);
                let arguments: Vec<&[u8]> = [users.as_bytes(), own, plain].into_iter().chain(turns).collect();
                let (_, values) = self.store.run_script(&scripts::FORGET, keys, &arguments).await?;
                removed |= values.first().is_some_and(|count| count != b"0");
            }
            match found.unreadable {
                Some(failure) => return Err(failure),
                None if found.turns.is_empty() => break,
                None => (),
            }
        }
        Ok(removed)
    }

    async fn find(&self, keys: &Keys) -> Result<FoundTurns, Failure> {
        let (mut found, mut skip) = (FoundTurns::default(), 0);
        loop {
            let [after, size] = [skip, PAGE_TURNS].map(|number: usize| number.to_string());
            let digests = self.digests.each_ref().map(String::as_bytes);
            let arguments: Vec<&[u8]> =
                [after.as_bytes(), size.as_bytes()].into_iter().chain(digests).collect();
            let (_, values) = self.store.run_script(&scripts::PAGE, keys, &arguments).await?;
            let Some((flag, page)) = values.split_first() else { return Ok(found) };
            found.had_turns |= flag == b"1";
            for element in page {
                match element::decode(&keys.list, element, self.store.cipher.as_ref()) {
                    Ok(turn) if turn.user.as_deref() == Some(self.user) => found.turns.push(element.clone()),
                    Ok(_) => (),
                    Err(failure) => drop(found.unreadable.get_or_insert(failure)),
                }
            }
            if page.len() < PAGE_TURNS {
                return Ok(found);
            }
            // New turns come after the page: they shift it, and no turn is missed.
            skip += PAGE_TURNS;
        }
    }
}
