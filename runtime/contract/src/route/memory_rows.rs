//! The rows of the route table about long memories.

use super::{Answer, Method, Query, Route, RouteId, get, post};
use crate::api::Scope;

const USER: Query = Query { name: "user", about: "Only entries of this user." };
const SESSION: Query =
    Query { name: "session", about: "Only entries of this session, by its key `FLOW:NAME`." };

const ENTRIES_QUERY: &[Query] = &[
    USER,
    SESSION,
    Query {
        name: "state",
        about: "Only entries in this state: `live`, `pinned`, `archived`, `superseded` or `quarantined`.",
    },
    Query {
        name: "kind",
        about: "Only entries of this kind: `episode`, `fact`, `preference`, `decision`, `summary`, `span`, `chunk` or \
                `log`.",
    },
    Query { name: "limit", about: "The most entries on a page, from 1 to 200; 50 if absent." },
    Query { name: "after", about: "Only entries after this key: `next` of the previous page." },
];

const EXPORT_QUERY: &[Query] = &[USER, SESSION];

/// The media type of an export: one JSON object per line.
pub const EXPORT_TYPE: &str = "application/x-ndjson";

pub(super) const MEMORIES: Route =
    get(RouteId::Memories, "/api/memory", "The long memories.", Answer::Json("MemoryList"));

pub(super) const MEMORY_ENTRIES: Route = Route {
    query: ENTRIES_QUERY,
    ..get(
        RouteId::MemoryEntries,
        "/api/memory/{name}/entries",
        "The entries of a memory, sorted by key. The name of a memory is `FLOW/NODE`, and its `/` is written `%2F`.",
        Answer::Json("MemoryEntryList"),
    )
};

pub(super) const SEARCH_MEMORY: Route = post(
    RouteId::SearchMemory,
    "/api/memory/{name}/search",
    Scope::Read,
    "Searches a memory, the best entry first. Each says why it was found.",
    Some("MemorySearch"),
    Answer::Json("MemorySearchResult"),
);

pub(super) const MEMORY_ENTRY: Route = get(
    RouteId::MemoryEntry,
    "/api/memory/{name}/entries/{key}",
    "An entry with its former versions. `ETag` is its version.",
    Answer::Json("MemoryEntryDetail"),
);

pub(super) const PUT_MEMORY_ENTRY: Route = Route {
    method: Method::Put,
    scope: Some(Scope::Deploy),
    body: Some("MemoryPut"),
    ..get(
        RouteId::PutMemoryEntry,
        "/api/memory/{name}/entries/{key}",
        "Stores an entry with the trust of the operator. `If-Match: \"3\"` replaces version 3 only, `If-Match: *` any \
         version of an entry that exists, `If-None-Match: *` stores a new entry only; otherwise the answer is 409 with the \
         current version in its text.",
        Answer::Json("Entry"),
    )
};

pub(super) const REMOVE_MEMORY_ENTRY: Route = Route {
    method: Method::Delete,
    scope: Some(Scope::Deploy),
    answer: (204, Answer::Empty),
    ..get(
        RouteId::RemoveMemoryEntry,
        "/api/memory/{name}/entries/{key}",
        "Removes an entry with its former versions.",
        Answer::Empty,
    )
};

pub(super) const REMOVE_MEMORY: Route = Route {
    method: Method::Delete,
    scope: Some(Scope::Deploy),
    answer: (204, Answer::Empty),
    ..get(
        RouteId::RemoveMemory,
        "/api/memory/{name}",
        "Removes a long memory with all its entries. Its node makes it again when it stores the next one.",
        Answer::Empty,
    )
};

pub(super) const EXPORT_MEMORY: Route = Route {
    query: EXPORT_QUERY,
    ..get(
        RouteId::ExportMemory,
        "/api/memory/{name}/export",
        "All entries of a memory, one JSON object per line: `memory`, `entry`. Without former versions.",
        Answer::Text(EXPORT_TYPE),
    )
};

pub(super) const EXPORT_MEMORIES: Route = Route {
    query: EXPORT_QUERY,
    ..get(
        RouteId::ExportMemories,
        "/api/memory/export",
        "All entries of all long memories, one JSON object per line: `memory`, `entry`. Without former versions.",
        Answer::Text(EXPORT_TYPE),
    )
};

pub(super) const REVIEW_MEMORY: Route = post(
    RouteId::ReviewMemory,
    "/api/memory/review",
    Scope::Admin,
    "Decides about entries that wait for a review: approved ones can be recalled, rejected ones are removed. Other \
     entries stay as they are.",
    Some("MemoryReview"),
    Answer::Json("MemoryReviewed"),
);

pub(super) const FORGET: Route = post(
    RouteId::Forget,
    "/api/memory/forget",
    Scope::Admin,
    "Removes the data of a user, a session or a source, so that no byte is left: entries of long memories, conversations, \
     and with `runs` the runs with their journals, events and chats. What could not be removed is in `problems`; the same \
     request again goes on.",
    Some("ForgetRequest"),
    Answer::Json("ForgetAnswer"),
);
