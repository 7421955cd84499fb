//! The knowledge bases of a sidecar.

use crate::sidecar::SidecarClient;
use redflow_contract::api::ApiError;
use redflow_contract::archive::Collection;
use redflow_contract::knowledge_api::{
    DocumentAnswer, EmbedderChoice, KnowledgeBaseList, KnowledgeDocumentList, KnowledgePassageList,
    KnowledgeSearch, KnowledgeSearchResult, MAX_DOCUMENTS_PAGE, MAX_ORIGIN, MAX_PASSAGES_PAGE,
};
use redflow_knowledge::check_name;
use redflow_ports::{KnowledgeAnswer, KnowledgeBases, NewDocument, OnProgress};

pub(crate) struct RemoteKnowledge {
    sidecar: SidecarClient,
}

impl RemoteKnowledge {
    pub(crate) fn new(sidecar: SidecarClient) -> Self {
        Self { sidecar }
    }
}

/// The path of a knowledge base. A name that would change the path is refused, because no knowledge base has it.
fn path<'a>(name: &'a str, rest: &[&'a str]) -> Result<Vec<&'a str>, ApiError> {
    check_name(name)?;
    Ok(["api", "kb", name].into_iter().chain(rest.iter().copied()).collect())
}

/// What is known about a document, as a query.
fn query_of(document: NewDocument) -> (Vec<(&'static str, String)>, Vec<u8>) {
    let NewDocument { name, kind, origin, tags, retention_days, bytes, embedder, is_dry_run } = document;
    let mut query = vec![("document", name), ("kind", kind.ending().to_owned())];
    // A longer path is of no use to people.
    query.extend(Some(origin).filter(|origin| origin.len() <= MAX_ORIGIN).map(|origin| ("origin", origin)));
    query.extend(tags.into_iter().map(|tag| ("tag", tag)));
    query.extend(retention_days.map(|days| ("retentionDays", days.to_string())));
    query.extend(is_dry_run.then(|| ("dryRun", "true".to_owned())));
    let EmbedderChoice { embeddings, embedding_model, dimensions, base_url, deployment, api_version } =
        embedder;
    let settings = [
        ("embeddings", embeddings.map(|embeddings| embeddings.as_str().to_owned())),
        ("embeddingModel", embedding_model),
        ("dimensions", dimensions.map(|number| number.to_string())),
        ("baseURL", base_url),
        ("deployment", deployment),
        ("apiVersion", api_version),
    ];
    query.extend(settings.into_iter().filter_map(|(name, value)| Some((name, value?))));
    (query, bytes)
}

impl KnowledgeBases for RemoteKnowledge {
    fn list(&self) -> KnowledgeAnswer<'_, Vec<Collection>> {
        Box::pin(async {
            let list: KnowledgeBaseList = self.sidecar.get(&["api", "kb"], &[]).await?;
            Ok(list.knowledge_bases)
        })
    }

    fn documents<'a>(
        &'a self,
        name: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> KnowledgeAnswer<'a, KnowledgeDocumentList> {
        Box::pin(async move {
            let mut query = vec![("limit", limit.min(MAX_DOCUMENTS_PAGE).to_string())];
            query.extend(after.map(|after| ("after", after.to_owned())));
            self.sidecar.get(&path(name, &["documents"])?, &query).await
        })
    }

    fn passages<'a>(
        &'a self,
        name: &'a str,
        document: &'a str,
        after: u32,
        limit: usize,
    ) -> KnowledgeAnswer<'a, KnowledgePassageList> {
        Box::pin(async move {
            let limit = limit.min(MAX_PASSAGES_PAGE).to_string();
            let query = [("document", document.to_owned()), ("after", after.to_string()), ("limit", limit)];
            self.sidecar.get(&path(name, &["passages"])?, &query).await
        })
    }

    fn search<'a>(
        &'a self,
        name: &'a str,
        search: KnowledgeSearch,
    ) -> KnowledgeAnswer<'a, KnowledgeSearchResult> {
        Box::pin(async move { self.sidecar.post_long(&path(name, &["search"])?, &search).await })
    }

    fn add<'a>(
        &'a self,
        name: &'a str,
        document: NewDocument,
        _: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer> {
        Box::pin(async move {
            let (query, bytes) = query_of(document);
            self.sidecar.post_bytes(&path(name, &["documents"])?, &query, bytes).await
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> KnowledgeAnswer<'a, ()> {
        Box::pin(async move { self.sidecar.delete(&path(name, &[])?, &[]).await })
    }

    fn remove_document<'a>(&'a self, name: &'a str, document: &'a str) -> KnowledgeAnswer<'a, ()> {
        Box::pin(async move {
            self.sidecar.delete(&path(name, &["documents"])?, &[("document", document.to_owned())]).await
        })
    }

    fn reindex<'a>(
        &'a self,
        name: &'a str,
        embedder: EmbedderChoice,
        _: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer> {
        Box::pin(async move { self.sidecar.post_long(&path(name, &["reindex"])?, &embedder).await })
    }
}
