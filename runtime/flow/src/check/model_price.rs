//! Checks that a model has both prices or none.

use super::Checker;
use crate::resolved::NodeIx;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::phrases;
use serde_json::{Map, Value};

/// The price that another one needs.
const NEEDS: [(&str, &str); 3] =
    [("inputPrice", "outputPrice"), ("outputPrice", "inputPrice"), ("cachedPrice", "inputPrice")];

impl Checker<'_> {
    /// Requires the prices of input and output together. They may also stand in `options`, which the schema cannot say.
    pub(super) fn check_model_price(&mut self, ix: NodeIx, config: &Map<String, Value>) {
        let options = config.get("options").and_then(Value::as_object);
        let has = |name: &str| config.contains_key(name) || options.is_some_and(|map| map.contains_key(name));
        let Some((set, missing)) = NEEDS.iter().find(|(set, missing)| has(set) && !has(missing)) else {
            return;
        };
        let pointer = if config.contains_key(*set) { format!("/{set}") } else { format!("/options/{set}") };
        self.diagnostics.push(DiagnosticCode::ConfigInvalid, ix, None, || Diagnostic {
            pointer: Some(pointer),
            ..Diagnostic::new(
                DiagnosticCode::ConfigInvalid,
                phrases::price_incomplete(*set, *missing),
                phrases::price_incomplete_help(),
            )
        });
    }
}
