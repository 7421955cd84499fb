//! The rows of the route table about knowledge bases.

use super::{Answer, BYTES_BODY, Method, Query, Route, RouteId, get, post};
use crate::api::Scope;

const DOCUMENTS_QUERY: &[Query] = &[
    Query { name: "limit", about: "The most documents on a page, from 1 to 1000; 100 if absent." },
    Query { name: "after", about: "Only documents after this name: `next` of the previous page." },
];

const PASSAGES_QUERY: &[Query] = &[
    Query { name: "document", about: "The name of the document." },
    Query { name: "limit", about: "The most passages on a page, from 1 to 200; 50 if absent." },
    Query { name: "after", about: "Only passages after this number: `next` of the previous page." },
];

const ADD_QUERY: &[Query] = &[
    Query { name: "document", about: "The name of the document. One with the same name is replaced." },
    Query {
        name: "kind",
        about: "What the body is: `md`, `txt`, `html`, `pdf`, `csv`, `tsv`, `json` or `jsonl`. If absent, the end of \
                the name says it.",
    },
    Query { name: "origin", about: "Where the document was read; the name if absent." },
    Query { name: "tag", about: "A tag of the document; can be repeated." },
    Query {
        name: "retentionDays",
        about: "Remove the document after so many days, from 1 to 36500; never if absent.",
    },
    Query { name: "dryRun", about: "With `true`, nothing is stored: the answer says what it would cost." },
    Query { name: "embeddings", about: "Who makes the vectors of a new knowledge base; `auto` if absent." },
    Query { name: "embeddingModel", about: "The model of a new knowledge base." },
    Query { name: "dimensions", about: "The length of its vectors." },
    Query { name: "baseURL", about: "The address of a compatible server." },
    Query { name: "deployment", about: "The deployment, for Azure." },
    Query { name: "apiVersion", about: "The version of the API, for Azure." },
];

const REMOVE_QUERY: &[Query] = &[Query { name: "document", about: "The name of the document." }];

pub(super) const KNOWLEDGE_BASES: Route =
    get(RouteId::KnowledgeBases, "/api/kb", "The knowledge bases.", Answer::Json("KnowledgeBaseList"));

pub(super) const REMOVE_KNOWLEDGE_BASE: Route = Route {
    method: Method::Delete,
    scope: Some(Scope::Deploy),
    answer: (204, Answer::Empty),
    ..get(
        RouteId::RemoveKnowledgeBase,
        "/api/kb/{name}",
        "Removes a knowledge base with all its documents.",
        Answer::Empty,
    )
};

pub(super) const KNOWLEDGE_DOCUMENTS: Route = Route {
    query: DOCUMENTS_QUERY,
    ..get(
        RouteId::KnowledgeDocuments,
        "/api/kb/{name}/documents",
        "The documents of a knowledge base, sorted by name.",
        Answer::Json("KnowledgeDocumentList"),
    )
};

pub(super) const ADD_DOCUMENT: Route = Route {
    query: ADD_QUERY,
    ..post(
        RouteId::AddDocument,
        "/api/kb/{name}/documents",
        Scope::Deploy,
        "Adds a document, in place of an earlier one of the same name. The body is the document, 32 MiB at most. Makes \
         the knowledge base if there is none. Answers when the document is stored.",
        Some(BYTES_BODY),
        Answer::Json("DocumentAnswer"),
    )
};

pub(super) const REMOVE_DOCUMENT: Route = Route {
    method: Method::Delete,
    scope: Some(Scope::Deploy),
    query: REMOVE_QUERY,
    answer: (204, Answer::Empty),
    ..get(RouteId::RemoveDocument, "/api/kb/{name}/documents", "Removes a document.", Answer::Empty)
};

pub(super) const KNOWLEDGE_PASSAGES: Route = Route {
    query: PASSAGES_QUERY,
    ..get(
        RouteId::KnowledgePassages,
        "/api/kb/{name}/passages",
        "The passages of a document, in their order.",
        Answer::Json("KnowledgePassageList"),
    )
};

pub(super) const SEARCH_KNOWLEDGE: Route = post(
    RouteId::SearchKnowledge,
    "/api/kb/{name}/search",
    Scope::Read,
    "Searches a knowledge base, the best passage first. Each says why it was found.",
    Some("KnowledgeSearch"),
    Answer::Json("KnowledgeSearchResult"),
);

pub(super) const REINDEX_KNOWLEDGE: Route = post(
    RouteId::ReindexKnowledge,
    "/api/kb/{name}/reindex",
    Scope::Deploy,
    "Makes all vectors of a knowledge base again. Searches use the earlier ones until all are there. Answers at the end; \
     the same request goes on where an earlier one was cut off.",
    Some("EmbedderChoice"),
    Answer::Json("DocumentAnswer"),
);
