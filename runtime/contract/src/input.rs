//! What is known about the message that starts a run, besides its payload: whose it is, when it was made, and its tags.

use crate::Millis;
use crate::archive::{MAX_TAG, MAX_TAGS};
use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// The most bytes of a user's name. A longer one is replaced by its digest.
pub const MAX_USER: usize = 256;

/// What is known about the message that starts a run, besides its payload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InputDetails {
    /// Whose message it is; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it was made; absent if it was made when the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub time: Option<Millis>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub tags: Vec<String>,
}

/// How an agent finds the details of a message: texts with places such as `{{msg.userId}}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputTemplates {
    /// The user; none for `msg.userId`.
    pub user: Option<String>,
    /// The time; none for `msg.timestamp`.
    pub time: Option<String>,
    /// Tags, in addition to `msg.tags`.
    pub tags: Vec<String>,
}

impl InputDetails {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The name of a user as it is stored. Blank names are none, and a long one becomes its digest.
#[must_use]
pub fn user_name(text: &str) -> Option<String> {
    match text.trim() {
        "" => None,
        name if name.len() > MAX_USER => Some(Digest::of(name.as_bytes()).to_hex()),
        name => Some(name.to_owned()),
    }
}

/// The first tags, without blanks and repetitions. A tag that is too long is left out.
#[must_use]
pub fn kept_tags<'a>(tags: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for tag in tags.into_iter().map(str::trim).filter(|tag| !tag.is_empty() && tag.len() <= MAX_TAG) {
        if kept.len() == MAX_TAGS {
            break;
        }
        if !kept.iter().any(|known| known == tag) {
            kept.push(tag.to_owned());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{InputDetails, MAX_USER, kept_tags, user_name};
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn details_leave_out_what_is_not_known() {
        assert_eq!(serde_json::to_value(InputDetails::default()).unwrap(), json!({}));
        assert!(InputDetails::default().is_empty());
        let details =
            InputDetails { user: Some("ada".to_owned()), time: Some(5), tags: vec!["bug".to_owned()] };
        let expected = json!({"user": "ada", "time": 5, "tags": ["bug"]});
        assert_eq!(serde_json::to_value(&details).unwrap(), expected);
        assert_eq!(serde_json::from_value::<InputDetails>(expected).unwrap(), details);
    }

    #[test]
    fn a_long_name_becomes_its_digest() {
        assert_eq!(user_name(" \t"), None);
        assert_eq!(user_name(" ada "), Some("ada".to_owned()));
        assert_eq!(user_name(&"u".repeat(MAX_USER)), Some("u".repeat(MAX_USER)));
        let long = user_name(&"u".repeat(MAX_USER + 1)).unwrap();
        assert_eq!(long.len(), 64);
        assert_ne!(Some(long), user_name(&"u".repeat(MAX_USER + 2)));
    }

    #[test]
    fn tags_are_bounded_and_not_repeated() {
        let long = "x".repeat(65);
        assert_eq!(kept_tags(["a", " a ", "", long.as_str(), "b"]), ["a", "b"]);
        let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        assert_eq!(kept_tags(many.iter().map(String::as_str)).len(), 16);
    }
}
