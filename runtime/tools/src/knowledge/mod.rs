//! `knowledge-base-tool`: searches a knowledge base.

use redflow_contract::Message;
use redflow_contract::archive::{Collection, KnowledgePassage, SearchMode, SourceKind, Trust};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::editor_values::text_of;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::{
    EffectClass, Embeddings, KnowledgeBaseConfig, MAX_LIMIT_FACTOR, MAX_TOP_K, TextList,
};
use redflow_contract::phrases;
use redflow_contract::source::Source;
use redflow_knowledge::{KnowledgeBase, KnowledgeQuery};
use redflow_ports::{
    ArchiveError, BoxFuture, BuildError, Builder, Embedder, EmbedderSource, NodeConfig, SearchFilter, Tool,
    ToolOutcome,
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
    /// The knowledge bases.
    pub base: KnowledgeBase,
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
            base: settings.base.clone(),
            collection,
            source: (settings.embedder)(config)?,
            embedder: Mutex::default(),
            query,
            top_k: node.top_k.unwrap_or(DEFAULT_TOP_K).clamp(1, MAX_TOP_K),
        }))
    }

    async fn search(&self, input: &Message) -> Result<ToolResult, String> {
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
        let (mut results, mut sources, mut bytes) = (Vec::new(), Vec::new(), 0);
        for passage in found {
            let source = self.source_of(&passage);
            let result = result(passage);
            bytes += result.to_string().len();
            // The engine would refuse a larger result as a whole.
            if bytes > MAX_RESULT_BYTES {
                break;
            }
            results.push(result);
            sources.push(source);
        }
        Ok(ToolResult { sources, ..ToolResult::ok(json!({ "results": results })) })
    }

    fn source_of(&self, passage: &KnowledgePassage) -> Source {
        let KnowledgePassage { score, metadata, digest, trust, .. } = passage;
        Source {
            kind: SourceKind::Knowledge,
            reference: format!("{}/{}#{}", self.collection, metadata.document, metadata.chunk),
            version: None,
            digest: *digest,
            score: Some(rounded(*score)),
            trust: trust.unwrap_or(Trust::External),
        }
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
    json!({"content": content, "score": rounded(score), "metadata": metadata})
}

/// A score with three digits.
fn rounded(score: f32) -> f64 {
    f64::from((score * 1_000.0).round()) / 1_000.0
}

/// Whether the vectors of a knowledge base show only which words a text has.
fn is_lexical(known: &Collection) -> bool {
    text_of(&known.settings, "embeddings") == Some(Embeddings::Hash.as_str())
}

impl Tool for KnowledgeBaseTool {
    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        Box::pin(async move {
            let name = &self.collection;
            let notice = match self.base.find(name).await {
                Ok(Some(known)) if is_lexical(&known) && self.query.mode != Some(SearchMode::Lexical) => {
                    let help = phrases::embeddings_lexical_help(name);
                    Diagnostic::new(
                        DiagnosticCode::EmbeddingsLexical,
                        phrases::embeddings_lexical(name),
                        help,
                    )
                }
                Ok(None) => {
                    let help = phrases::collection_unknown_help(name);
                    Diagnostic::new(
                        DiagnosticCode::CollectionUnknown,
                        phrases::collection_unknown(name),
                        help,
                    )
                }
                // A call says what is wrong with the name or the archive.
                Ok(Some(_)) | Err(_) => return Vec::new(),
            };
            vec![Diagnostic { pointer: Some("/collection".to_owned()), ..notice }]
        })
    }

    fn effect(&self, _input: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            ToolOutcome::Returned(match self.search(&call.input).await {
                Ok(result) => result,
                Err(problem) => ToolResult::failed(format!("Knowledge base search failed: {problem}")),
            })
        })
    }
}

#[cfg(test)]
#[path = "knowledge_tests.rs"]
mod tests;
