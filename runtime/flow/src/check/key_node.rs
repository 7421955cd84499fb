//! Checks the `keyNode` of models: it must name a config node with a key of the model's provider.

use super::Checker;
use crate::resolved::{NodeIx, Wire};
use crate::shared_key::key_node_type;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::editor_values::text_of;
use redflow_contract::node::KEY_NODE;
use redflow_contract::phrases;
use serde_json::{Map, Value};

impl Checker<'_> {
    pub(super) fn check_key_node(&mut self, ix: NodeIx, config: &Map<String, Value>) {
        let type_name = &self.flow.raw(ix).type_name;
        let (Some(expected), Some(id)) = (key_node_type(type_name), text_of(config, KEY_NODE)) else {
            return;
        };
        let is_option = config.get(KEY_NODE).is_none_or(|own| own == "");
        let pointer = Some(format!("{}/{KEY_NODE}", if is_option { "/options" } else { "" }));
        let help = phrases::key_node_help(expected);
        let expected = Some(expected.to_owned());
        let found = self.flow.find_from(self.flow.nodes[ix].scope, id);
        let (code, other, found, message) = match found {
            Wire::To(key) if expected.as_ref() == Some(&self.flow.raw(key).type_name) => return,
            Wire::To(other) => {
                let found = self.flow.raw(other).type_name.clone();
                let message = phrases::key_node_mismatch(KEY_NODE, self.label(other), &found);
                (DiagnosticCode::EdgeKindMismatch, Some(other), found, message)
            }
            Wire::Disabled => {
                let message = phrases::property_target_disabled(KEY_NODE, id);
                (DiagnosticCode::EdgeTargetMissing, None, id.to_owned(), message)
            }
            Wire::Missing(id) => {
                let message = phrases::property_target_missing(KEY_NODE, &id);
                (DiagnosticCode::EdgeTargetMissing, None, id, message)
            }
        };
        self.diagnostics.push(code, ix, other, || Diagnostic {
            pointer,
            expected,
            found: Some(found),
            ..Diagnostic::new(code, message, help)
        });
    }
}
