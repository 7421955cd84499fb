//! The tags of entries: without secrets, hidden characters and prompt injection.

use crate::clean::clean;
use crate::prompt_injection::addresses_assistant;
use crate::words::single_spaced;
use redflow_contract::input::kept_tags;
use redflow_contract::secret::REDACTED;

/// The tags that are stored. A model reads them with the entry, so one with a secret or prompt injection is left out.
pub(crate) fn stored_tags<'a>(tags: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let cleaned = tags.into_iter().map(|tag| single_spaced(&clean(tag, usize::MAX)));
    let allowed: Vec<String> =
        cleaned.filter(|tag| !tag.contains(REDACTED) && !addresses_assistant(tag)).collect();
    kept_tags(allowed.iter().map(String::as_str))
}
