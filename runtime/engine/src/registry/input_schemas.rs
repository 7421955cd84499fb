//! The compiled input schemas of tools that are called outside a run.

use redflow_contract::digest::Digest;
use redflow_machine::ValueSchema;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most schemas that are kept.
const MAX_KEPT: usize = 256;

/// Compiled schemas by the digest of their text. To compile one takes longer than to check an input.
#[derive(Default)]
pub(crate) struct InputSchemas(Mutex<HashMap<Digest, Arc<ValueSchema>>>);

impl InputSchemas {
    /// Compiles a schema, unless it is kept.
    ///
    /// # Errors
    /// A phrase that tells why the schema cannot be used.
    pub(crate) fn compile(&self, schema: &Value) -> Result<Arc<ValueSchema>, String> {
        let digest = Digest::of(schema.to_string().as_bytes());
        if let Some(compiled) = self.kept().get(&digest) {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(ValueSchema::compile(schema)?);
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(digest, Arc::clone(&compiled));
        Ok(compiled)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Digest, Arc<ValueSchema>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{InputSchemas, MAX_KEPT};
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_schema_is_compiled_once_and_few_are_kept() {
        let schemas = InputSchemas::default();
        let number = json!({"type": "object", "properties": {"n": {"type": "number"}}});
        let first = schemas.compile(&number).unwrap();
        assert!(Arc::ptr_eq(&first, &schemas.compile(&number).unwrap()));
        assert!(first.violation(&json!({"n": "x"})).is_some());
        let text =
            schemas.compile(&json!({"type": "object", "properties": {"n": {"type": "string"}}})).unwrap();
        assert_eq!(text.violation(&json!({"n": "x"})), None);
        for most in 0..2 * MAX_KEPT {
            schemas.compile(&json!({"type": "object", "maxProperties": most})).unwrap();
            assert!(schemas.kept().len() <= MAX_KEPT);
        }
        assert!(schemas.compile(&json!({"type": 7})).is_err());
    }
}
