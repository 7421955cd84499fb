//! `knowledge-base-tool`: searches a knowledge base.

use redflow_contract::Message;
use redflow_contract::archive::{KnowledgePassage, SearchMode};
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::{EffectClass, KnowledgeBaseConfig, MAX_LIMIT_FACTOR, MAX_TOP_K, TextList};
use redflow_knowledge::{KnowledgeBase, KnowledgeQuery};
use redflow_ports::{
    Archive, ArchiveError, BoxFuture, BuildError, Builder, Embedder, EmbedderSource, NodeConfig,
    SearchFilter, Tool, ToolOutcome,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The passages of a search, if the node does not say.
const DEFAULT_TOP_K: u32 = 5;

/// The most bytes of all passages of a result. The best ones are first.
const MAX_RESULT_BYTES: usize = 200 * 1024;

/// What knowledge base tools share.
#[derive(Clone)]
pub struct KnowledgeSettings {
    /// The archive with the knowledge bases.
    pub archive: Arc<dyn Archive>,
    /// Reads the key and the model of a node.
    pub embedder: Builder<EmbedderSource>,
}

/// Searches a knowledge base for a model.
pub struct KnowledgeBaseTool {
    base: KnowledgeBase,
    collection: String,
    source: EmbedderSource,
    /// The embedder of the last search, and the settings of the knowledge base that it was built with.
    embedder: Mutex<Option<(Message, Arc<dyn Embedder>)>>,
    query: KnowledgeQuery,
    top_k: u32,
}

impl KnowledgeBaseTool {
    /// Builds the tool from the properties of its node. The knowledge base may be made later.
    ///
    /// # Errors
    /// When a property cannot be used.
    pub fn build(config: NodeConfig<'_>, settings: &KnowledgeSettings) -> Result<Arc<dyn Tool>, BuildError> {
        let node: KnowledgeBaseConfig = config.typed_with_options()?;
        let collection = node.collection.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let collection = collection.ok_or_else(|| config.error("`collection` names no knowledge base"))?;
        let tags = node.tags.as_ref().map(TextList::list).unwrap_or_default();
        let tags = tags.into_iter().map(str::to_owned).collect();
        let query = KnowledgeQuery {
            mode: node.mode,
            min_score: node.min_score.map(|score| score as f32),
            filter: SearchFilter { tags, ..SearchFilter::default() },
            ..KnowledgeQuery::default()
        };
        Ok(Arc::new(Self {
            base: KnowledgeBase::new(Arc::clone(&settings.archive)),
            collection,
            source: (settings.embedder)(config)?,
            embedder: Mutex::default(),
            query,
            top_k: node.top_k.unwrap_or(DEFAULT_TOP_K).clamp(1, MAX_TOP_K),
        }))
    }

    async fn search(&self, input: &Message) -> Result<Value, String> {
        let text = input.get("query").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Err("`query` must be a text".to_owned());
        }
        let limit = input.get("limit").and_then(Value::as_u64).unwrap_or_else(|| u64::from(self.top_k));
        let limit = limit.clamp(1, u64::from(self.top_k * MAX_LIMIT_FACTOR));
        let query = KnowledgeQuery {
            text: text.to_owned(),
            limit: usize::try_from(limit).ok(),
            ..self.query.clone()
        };
        let search = async {
            let known = self.base.get(&self.collection).await?;
            let embedder = match self.query.mode {
                Some(SearchMode::Lexical) => None,
                _ => Some(self.embedder_for(&known.settings)?),
            };
            self.base.search(&self.collection, embedder.as_deref(), &query).await
        };
        let found = search.await.map_err(|error| format!("{}: {}", error.code, error.message))?;
        let (mut results, mut bytes) = (Vec::new(), 0);
        for passage in found.into_iter().map(result) {
            bytes += passage.to_string().len();
            // The engine would refuse a larger result as a whole.
            if bytes > MAX_RESULT_BYTES {
                break;
            }
            results.push(passage);
        }
        Ok(json!({ "results": results }))
    }

    fn embedder_for(&self, settings: &Message) -> Result<Arc<dyn Embedder>, ArchiveError> {
        let mut last = self.embedder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, embedder)) = last.as_ref()
            && known == settings
        {
            return Ok(Arc::clone(embedder));
        }
        let embedder = (self.source)(settings)?;
        *last = Some((settings.clone(), Arc::clone(&embedder)));
        Ok(embedder)
    }
}

/// A passage as the model reads it.
fn result(passage: KnowledgePassage) -> Value {
    let KnowledgePassage { content, score, metadata, .. } = passage;
    json!({"content": content, "score": f64::from((score * 1_000.0).round()) / 1_000.0, "metadata": metadata})
}

impl Tool for KnowledgeBaseTool {
    fn effect(&self, _input: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            ToolOutcome::Returned(match self.search(&call.input).await {
                Ok(output) => ToolResult::ok(output),
                Err(problem) => ToolResult::failed(format!("Knowledge base search failed: {problem}")),
            })
        })
    }
}

#[cfg(test)]
#[path = "knowledge_tests.rs"]
mod tests;
