//! Checks that a `knowledge-base-tool` names its knowledge base.

use super::Checker;
use super::schema::Violation;
use crate::resolved::NodeIx;
use redflow_contract::editor_values::text_of;
use redflow_contract::phrases;
use serde_json::{Map, Value};

/// The node type that is checked here.
const KNOWLEDGE_BASE_TOOL: &str = "knowledge-base-tool";

const COLLECTION: &str = "collection";

impl Checker<'_> {
    /// Requires `collection`. It may also stand in `options`, which the schema cannot say. Leaves other types alone.
    pub(super) fn check_knowledge_base(&mut self, ix: NodeIx, config: &Map<String, Value>) {
        // The schema reports a value that is no text.
        let is_given = text_of(config, COLLECTION).is_some()
            || config.get(COLLECTION).is_some_and(|value| !value.is_string());
        if is_given || self.flow.raw(ix).type_name != KNOWLEDGE_BASE_TOOL {
            return;
        }
        let violation = Violation {
            pointer: format!("/{COLLECTION}"),
            rule: "required".to_owned(),
            expected: phrases::a_property(COLLECTION),
            found: phrases::nothing(),
        };
        self.config_invalid(ix, violation, None);
    }
}
