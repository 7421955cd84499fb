//! Where the results of tools come from.

use crate::archive::{SourceKind, Trust};
use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// The most sources of a run, and of one result: those that it used first. A memory that gets as many knows that there may
/// have been others.
pub const MAX_RUN_SOURCES: usize = 64;
/// The most bytes of a source's `ref`. A longer one is cut.
pub const MAX_SOURCE_REF: usize = 512;

/// Something that a tool result comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// The kind of source.
    pub kind: SourceKind,
    /// Its name. Of a passage: the knowledge base, the document and the number of the passage, such as
    /// `manuals/pump.md#2`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Counts its versions from 1; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The digest of its text; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// How well it fits the question, from 0 to 1; absent if nothing was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Who vouches for it.
    pub trust: Trust,
}

impl Source {
    /// Cuts a long `ref`, and drops a score that JSON cannot hold.
    fn limit(&mut self) {
        if self.reference.len() > MAX_SOURCE_REF {
            self.reference.truncate(self.reference.floor_char_boundary(MAX_SOURCE_REF - '…'.len_utf8()));
            self.reference.push('…');
        }
        self.score = self.score.filter(|score| score.is_finite());
    }

    /// Whether both are the same thing with the same content.
    fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.reference, self.digest) == (other.kind, &other.reference, other.digest)
    }
}

/// Keeps as many sources of a result or a memory as a run may have, and the beginnings of long names.
pub fn limit_sources(sources: &mut Vec<Source>) {
    sources.truncate(MAX_RUN_SOURCES);
    sources.iter_mut().for_each(Source::limit);
}

/// Adds the sources of a tool result to those of its run, each one once.
pub fn add_sources(all: &mut Vec<Source>, new: &[Source]) {
    for source in new {
        if all.len() < MAX_RUN_SOURCES && !all.iter().any(|known| known.is_same(source)) {
            all.push(source.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_RUN_SOURCES, MAX_SOURCE_REF, Source, add_sources, limit_sources};
    use crate::archive::{SourceKind, Trust};
    use crate::digest::Digest;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn source(reference: &str) -> Source {
        Source {
            kind: SourceKind::Knowledge,
            reference: reference.to_owned(),
            version: None,
            digest: None,
            score: None,
            trust: Trust::External,
        }
    }

    #[test]
    fn a_source_leaves_out_what_is_not_known() {
        let whole = Source {
            version: Some(3),
            digest: Some(Digest::ZERO),
            score: Some(0.756),
            ..source("manuals/pump.md#2")
        };
        let expected = json!({"kind": "knowledge", "ref": "manuals/pump.md#2", "version": 3,
            "digest": "0".repeat(64), "score": 0.756, "trust": "external"});
        for (source, expected) in
            [(whole, expected), (source("x"), json!({"kind": "knowledge", "ref": "x", "trust": "external"}))]
        {
            assert_eq!(serde_json::to_value(&source).unwrap(), expected);
            assert_eq!(serde_json::from_value::<Source>(expected).unwrap(), source);
        }
        let unknown = json!({"kind": "knowledge", "ref": "x", "trust": "external", "text": "a"});
        assert!(serde_json::from_value::<Source>(unknown).is_err());
    }

    #[test]
    fn a_result_keeps_its_first_sources_and_the_beginnings_of_their_names() {
        let mut sources: Vec<Source> = (0..100).map(|n| source(&n.to_string())).collect();
        sources[1].reference = "ü".repeat(400);
        sources[2].reference = "x".repeat(MAX_SOURCE_REF);
        sources[3].score = Some(f64::NAN);
        sources[4].score = Some(f64::INFINITY);
        limit_sources(&mut sources);
        assert_eq!(sources.len(), MAX_RUN_SOURCES);
        assert_eq!(sources[63].reference, "63");
        assert_eq!(sources[1].reference, format!("{}…", "ü".repeat(254)));
        assert_eq!(sources[2].reference, "x".repeat(MAX_SOURCE_REF));
        assert_eq!((sources[3].score, sources[4].score), (None, None));
    }

    #[test]
    fn a_run_has_each_source_once() {
        let mut all = Vec::new();
        let again = Source { score: Some(0.5), ..source("a") };
        let changed = Source { digest: Some(Digest::ZERO), ..source("a") };
        let other_kind = Source { kind: SourceKind::Memory, ..source("a") };
        let new = [source("b"), source("a"), again, changed.clone(), other_kind.clone(), source("b")];
        add_sources(&mut all, &new);
        assert_eq!(all, [source("b"), source("a"), changed, other_kind]);
        let many: Vec<Source> = (0..100).map(|n| source(&n.to_string())).collect();
        add_sources(&mut all, &many);
        assert_eq!((all.len(), all[63].reference.as_str()), (MAX_RUN_SOURCES, "59"));
    }
}
