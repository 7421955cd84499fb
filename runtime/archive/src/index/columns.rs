//! What filters need of each entry, in columns.

use super::{Bitmap, Candidate};
use redflow_contract::archive::{EntryKind, EntryState, Trust};
use redflow_ports::{EntryFilter, SearchFilter};
use std::collections::{BTreeSet, HashMap};

/// What the index needs of an entry.
#[derive(Debug, Clone)]
pub(crate) struct IndexRow<'a> {
    pub(crate) kind: EntryKind,
    pub(crate) state: EntryState,
    pub(crate) trust: Trust,
    pub(crate) user: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) tags: &'a [String],
    pub(crate) valid_from: i64,
    pub(crate) valid_to: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(crate) importance: f32,
    pub(crate) text_bytes: u32,
}

/// The columns of a collection. Rows are in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    ids: Vec<i64>,
    marks: Vec<Marks>,
    valid_from: Vec<i64>,
    created_at: Vec<i64>,
    importance: Vec<f32>,
    text_bytes: Vec<u32>,
    /// The sum of `text_bytes` without removed rows.
    all_text_bytes: u64,
    /// The times at which rows end, of the few rows that do.
    ends: HashMap<i64, Ends>,
    /// Each list of tags once.
    tag_lists: Vec<Vec<String>>,
    tag_numbers: HashMap<Vec<String>, u32>,
    names: Vec<String>,
    name_numbers: HashMap<String, u32>,
    removed: usize,
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    valid_to: i64,
    expires_at: i64,
}

/// The small values of a row. A name has the number 0 if there is none.
#[derive(Debug, Clone, Copy)]
struct Marks {
    kind: EntryKind,
    state: EntryState,
    trust: Trust,
    is_removed: bool,
    user: u32,
    session: u32,
    tags: u32,
}

impl Columns {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn removed(&self) -> usize {
        self.removed
    }

    pub(crate) fn bytes(&self) -> usize {
        const ROW: usize = 8 + size_of::<Marks>() + 8 + 8 + 4 + 4;
        const NAME: usize = 160;
        self.ids.capacity() * ROW
            + self.ends.capacity() * 32
            + (self.names.len() + self.tag_lists.len()) * NAME
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.ids.reserve_exact(rows);
        self.marks.reserve_exact(rows);
        self.valid_from.reserve_exact(rows);
        self.created_at.reserve_exact(rows);
        self.importance.reserve_exact(rows);
        self.text_bytes.reserve_exact(rows);
    }

    pub(crate) fn text_bytes(&self, at: usize) -> u32 {
        self.text_bytes[at]
    }

    /// The bytes of all texts.
    pub(crate) fn all_text_bytes(&self) -> u64 {
        self.all_text_bytes
    }

    pub(crate) fn id(&self, at: usize) -> i64 {
        self.ids[at]
    }

    pub(crate) fn find(&self, id: i64) -> Option<usize> {
        self.ids.binary_search(&id).ok().filter(|&at| !self.marks[at].is_removed)
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<usize> {
        let at = self.find(id)?;
        self.marks[at].is_removed = true;
        self.all_text_bytes -= u64::from(self.text_bytes[at]);
        self.removed += 1;
        Some(at)
    }

    /// Sets a row, and returns its place; none if its id is new and not the largest.
    pub(crate) fn set(&mut self, id: i64, row: &IndexRow<'_>) -> Option<usize> {
        let marks = Marks {
            kind: row.kind,
            state: row.state,
            trust: row.trust,
            is_removed: false,
            user: self.name_number(row.user),
            session: self.name_number(row.session),
            tags: self.tag_number(row.tags),
        };
        let at = match self.ids.binary_search(&id) {
            Ok(at) => {
                match self.marks[at].is_removed {
                    true => self.removed -= 1,
                    false => self.all_text_bytes -= u64::from(self.text_bytes[at]),
                }
                self.marks[at] = marks;
                self.valid_from[at] = row.valid_from;
                self.created_at[at] = row.created_at;
                self.importance[at] = row.importance;
                self.text_bytes[at] = row.text_bytes;
                at
            }
            Err(at) if at == self.ids.len() => {
                self.ids.push(id);
                self.marks.push(marks);
                self.valid_from.push(row.valid_from);
                self.created_at.push(row.created_at);
                self.importance.push(row.importance);
                self.text_bytes.push(row.text_bytes);
                at
            }
            Err(_) => return None,
        };
        self.all_text_bytes += u64::from(row.text_bytes);
        if row.valid_to.is_some() || row.expires_at.is_some() {
            let (valid_to, expires_at) =
                (row.valid_to.unwrap_or(i64::MAX), row.expires_at.unwrap_or(i64::MAX));
            self.ends.insert(id, Ends { valid_to, expires_at });
        } else {
            self.ends.remove(&id);
        }
        Some(at)
    }

    fn name_number(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else { return 0 };
        if let Some(&number) = self.name_numbers.get(name) {
            return number;
        }
        self.names.push(name.to_owned());
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.name_numbers.insert(name.to_owned(), number);
        number
    }

    fn tag_number(&mut self, tags: &[String]) -> u32 {
        if tags.is_empty() {
            return 0;
        }
        if let Some(&number) = self.tag_numbers.get(tags) {
            return number;
        }
        self.tag_lists.push(tags.to_vec());
        let number = u32::try_from(self.tag_lists.len()).unwrap_or(u32::MAX);
        self.tag_numbers.insert(tags.to_vec(), number);
        number
    }

    /// The ids of the rows that are listed, in their order.
    pub(crate) fn listed(&self, filter: &EntryFilter) -> Vec<i64> {
        self.listed_rows(filter).map(|row| self.ids[row]).collect()
    }

    /// The sessions after a session of the rows that are listed, in their order.
    pub(crate) fn sessions(&self, filter: &EntryFilter, after: &str, limit: usize) -> Vec<String> {
        let numbers: BTreeSet<u32> = self.listed_rows(filter).map(|row| self.marks[row].session).collect();
        let names = numbers.iter().filter_map(|number| self.names.get(number.checked_sub(1)? as usize));
        let sessions: BTreeSet<&String> = names.filter(|name| name.as_str() > after).collect();
        sessions.into_iter().take(limit).cloned().collect()
    }

    /// The places of the rows that are listed.
    fn listed_rows(&self, filter: &EntryFilter) -> impl Iterator<Item = usize> {
        let (user, session) = (self.number_of(&filter.user), self.number_of(&filter.session));
        let since = filter.since.map(time);
        let is_listed = move |row: &usize| {
            let marks = &self.marks[*row];
            !marks.is_removed
                && (filter.kinds.is_empty() || filter.kinds.contains(&marks.kind))
                && (filter.states.is_empty() || filter.states.contains(&marks.state))
                && user.is_none_or(|user| marks.user == user)
                && session.is_none_or(|session| marks.session == session)
                && since.is_none_or(|since| self.created_at[*row] >= since)
        };
        (0..self.ids.len()).filter(is_listed)
    }

    /// The number of a name in a filter. A name that no row has finds nothing.
    fn number_of(&self, name: &Option<String>) -> Option<u32> {
        name.as_ref().map(|name| self.name_numbers.get(name).copied().unwrap_or(u32::MAX))
    }

    pub(crate) fn allowed(&self, filter: &SearchFilter, now: i64) -> Bitmap {
        let as_of = filter.as_of.map(time);
        let at = as_of.unwrap_or(now);
        let (since, until) = (filter.since.map(time), filter.until.map(time));
        let (user, session) = (self.number_of(&filter.user), self.number_of(&filter.session));
        let has_tag = |tags: &Vec<String>| tags.iter().any(|tag| filter.tags.contains(tag));
        let tag_lists: Vec<bool> = std::iter::once(false).chain(self.tag_lists.iter().map(has_tag)).collect();
        Bitmap::of(self.ids.len(), |row| {
            let marks = &self.marks[row];
            let is_found = match marks.state {
                EntryState::Live | EntryState::Pinned => true,
                // It is found for a time before its end.
                EntryState::Superseded => as_of.is_some() || since.is_some() || until.is_some(),
                EntryState::Archived | EntryState::Quarantined => false,
            };
            let ends = if self.ends.is_empty() { None } else { self.ends.get(&self.ids[row]) };
            let valid_to = ends.map_or(i64::MAX, |ends| ends.valid_to);
            let is_expired =
                marks.state != EntryState::Pinned && ends.is_some_and(|ends| ends.expires_at <= now);
            let is_valid = if as_of.is_none() && (since.is_some() || until.is_some()) {
                since.is_none_or(|since| valid_to >= since)
                    && until.is_none_or(|until| self.valid_from[row] <= until)
            } else {
                // A clock that was set back must not hide what was stored before.
                (as_of.is_none() || self.valid_from[row] <= at)
                    && valid_to > at
                    && since.is_none_or(|since| self.valid_from[row] >= since)
                    && until.is_none_or(|until| self.valid_from[row] <= until)
            };
            !marks.is_removed
                && is_found
                && !is_expired
                && is_valid
                && filter.min_trust.is_none_or(|trust| marks.trust >= trust)
                && (filter.kinds.is_empty() || filter.kinds.contains(&marks.kind))
                && user.is_none_or(|user| marks.user == user)
                && !(filter.has_no_user && marks.user != 0)
                && session.is_none_or(|session| marks.session == session)
                && (filter.tags.is_empty() || tag_lists.get(marks.tags as usize).copied().unwrap_or(false))
        })
    }

    pub(crate) fn candidate(&self, at: usize) -> Candidate {
        // A passage of a manual is as good as on the day it was added.
        let has_age = self.marks[at].kind != EntryKind::Chunk;
        Candidate { created_at: self.created_at[at], importance: self.importance[at], has_age }
    }
}

fn time(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
