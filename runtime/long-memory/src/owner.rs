//! Whose entries a conversation may see.

use redflow_contract::archive::{Entry, EntryKind, EntryState};
use redflow_contract::code::ArchiveCode;
use redflow_contract::node::MemoryScope;
use redflow_ports::{ArchiveError, EntryFilter, SearchFilter};

/// What is searched. Copies of resources are recalled by their names, and belong to no user.
const SEARCHED_KINDS: [EntryKind; 7] = [
    EntryKind::Episode,
    EntryKind::Fact,
    EntryKind::Preference,
    EntryKind::Decision,
    EntryKind::Summary,
    EntryKind::Chunk,
    EntryKind::Log,
];

/// The owner of the entries that a conversation may see: a user, a session, or all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Owner {
    pub(crate) user: Option<String>,
    pub(crate) session: Option<String>,
    /// Only entries without a user. The filter of a list cannot say this, so [`Owner::has`] must be asked too.
    pub(crate) has_no_user: bool,
}

impl Owner {
    /// The owner in a scope.
    ///
    /// # Errors
    /// When the scope needs a user or a session, and there is none.
    pub(crate) fn new(
        scope: MemoryScope,
        user: Option<&str>,
        session: Option<&str>,
    ) -> Result<Self, ArchiveError> {
        let text = |text: &str| text.to_owned();
        let owner = match (scope, user, session) {
            (MemoryScope::Agent | MemoryScope::Flow, ..) => Self::default(),
            (MemoryScope::User, Some(user), _) => Self { user: Some(text(user)), ..Self::default() },
            // Named users may have spoken in the same session.
            (MemoryScope::User, None, Some(session)) => {
                Self { user: None, session: Some(text(session)), has_no_user: true }
            }
            (MemoryScope::Session, _, Some(session)) => {
                Self { session: Some(text(session)), ..Self::default() }
            }
            (MemoryScope::User | MemoryScope::Session, ..) => {
                return Err(ArchiveError::new(
                    ArchiveCode::EntryInvalid,
                    "The run has no session and no user, so it has no entries: wire a memory to the agent, or set the \
                     scope of the long memory to `agent`.",
                ));
            }
        };
        Ok(owner)
    }

    /// Whose entries count together in limits: those of the user, else those of the session without a user.
    pub(crate) fn of_speaker(user: Option<&str>, session: Option<&str>) -> Self {
        match user {
            Some(user) => Self { user: Some(user.to_owned()), ..Self::default() },
            None => Self { user: None, session: session.map(str::to_owned), has_no_user: true },
        }
    }

    /// Whose entries are compared with those of a turn. What one user says never ends or confirms an entry of another,
    /// even if all see both.
    pub(crate) fn of_turn(scope: MemoryScope, turn: &Entry) -> Self {
        let speaker = Self::of_speaker(turn.user.as_deref(), turn.session.as_deref());
        match scope {
            MemoryScope::Session => Self { session: turn.session.clone(), ..speaker },
            MemoryScope::User | MemoryScope::Agent | MemoryScope::Flow => speaker,
        }
    }

    /// Only entries of this owner, for searches.
    pub(crate) fn search_filter(&self) -> SearchFilter {
        SearchFilter {
            user: self.user.clone(),
            has_no_user: self.has_no_user,
            session: self.session.clone(),
            kinds: SEARCHED_KINDS.to_vec(),
            ..SearchFilter::default()
        }
    }

    /// Only entries of this owner, for lists.
    pub(crate) fn entry_filter(&self) -> EntryFilter {
        EntryFilter { user: self.user.clone(), session: self.session.clone(), ..EntryFilter::default() }
    }

    /// Whether an entry belongs to this owner.
    pub(crate) fn has(&self, entry: &Entry) -> bool {
        let is_same = |wanted: &Option<String>, own: &Option<String>| wanted.is_none() || wanted == own;
        is_same(&self.user, &entry.user)
            && is_same(&self.session, &entry.session)
            && !(self.has_no_user && entry.user.is_some())
    }
}

/// Whether an entry may be shown at a time.
pub(crate) fn is_found(entry: &Entry, now: u64) -> bool {
    match entry.state {
        EntryState::Pinned => true,
        EntryState::Live => entry.expires_at.is_none_or(|end| end > now),
        EntryState::Archived | EntryState::Superseded | EntryState::Quarantined => false,
    }
}
