//! The rows of the route table that read one run, and the row that draws a flow.

use super::{Answer, Query, Route, RouteId, get};

pub(super) const LIST_QUERY: &[Query] = &[
    Query { name: "status", about: "Only runs with this status. Separate several by commas." },
    Query { name: "agent", about: "Only runs of the agent with this node id, in any Node-RED." },
    Query {
        name: "instance",
        about: "Only runs of agents of this Node-RED; `local` is the sidecar's own flow.",
    },
    Query {
        name: "since",
        about: "Only runs that started at this time or later, in milliseconds since 1970.",
    },
    Query { name: "until", about: "Only runs that started before this time, in milliseconds since 1970." },
    Query { name: "code", about: "Only runs that failed with this code." },
    Query { name: "prefix", about: "Only runs whose id begins with this; listed by their ids." },
    Query { name: "roots", about: "With `true`, only runs that no other run started." },
    Query { name: "limit", about: "The most runs on a page, from 1 to 1000; 50 if absent." },
    Query { name: "before", about: "Only runs that started before this one: `next` of the previous page." },
];

pub(super) const STATS_QUERY: &[Query] = &[
    Query { name: "by", about: "What the sums are grouped by: `agent`, `model`, `tool` or `code`." },
    Query {
        name: "from",
        about: "The first day, such as 2026-11-16; 14 days in all if absent. 400 days at most.",
    },
    Query { name: "to", about: "The last day; today if absent." },
];

pub(super) const RUN: Route = Route {
    query: &[Query {
        name: "only",
        about: "`summary` gives the run as a list shows it, and reads no journal.",
    }],
    ..get(
        RouteId::Run,
        "/api/runs/{id}",
        "One run with its events, tool calls and result.",
        Answer::OneOf(&["RunDetail", "RunSummary"]),
    )
};

pub(super) const EVENTS: Route = Route {
    query: &[
        Query {
            name: "after",
            about: "Only events with a larger `seq`. In a stream, `Last-Event-ID` means the same.",
        },
        Query {
            name: "before",
            about: "Only events with a smaller `seq`, the last `limit` of them. Not in a stream.",
        },
        Query {
            name: "limit",
            about: "The most events, from 1 to 1000. If absent: 1000 with `before`, else all. Not in a stream.",
        },
    ],
    ..get(
        RouteId::RunEvents,
        "/api/runs/{id}/events",
        "The events of a run. For `text/event-stream`, a stream until the run ends; else the events so far.",
        Answer::Events("RunEvent"),
    )
};

pub(super) const ITERATION: Route = Route {
    query: &[Query {
        name: "full",
        about: "Texts of up to 4 MiB together. If absent, each text is cut at 64 KiB.",
    }],
    ..get(
        RouteId::RunIteration,
        "/api/runs/{id}/iterations/{number}",
        "One iteration of a run, from 1: what the model was asked and answered, and what its tools got and gave.",
        Answer::Json("IterationDetail"),
    )
};

pub(super) const JOURNAL: Route = Route {
    query: &[
        Query { name: "from", about: "The number of the first line of a page, from 1." },
        Query { name: "lines", about: "The most lines of a page, from 1 to 200; 200 if absent." },
    ],
    ..get(
        RouteId::RunJournal,
        "/api/runs/{id}/journal",
        "The journal of a run, for `redflow replay`. With `from` or `lines`, a page of up to 1 MiB.",
        Answer::TextOrJson("application/jsonl", "JournalPage"),
    )
};

pub(super) const TRACE: Route = Route {
    query: &[Query { name: "after", about: "Only steps after this number." }],
    ..get(
        RouteId::RunTrace,
        "/api/runs/{id}/trace",
        "The decision trace of a run: what it recalled, decided and called. For `text/event-stream`, a stream until the \
         run ends, closed by the event `end`.",
        Answer::JsonOrEvents("RunTrace", "TraceStep"),
    )
};

pub(super) const REPORT: Route = get(
    RouteId::RunReport,
    "/api/runs/{id}/report",
    "A report of a run to show to others, up to 4 MiB: its steps, times and costs without what was said, and without \
     secrets. It cannot be replayed.",
    Answer::Text("text/markdown; charset=utf-8"),
);

pub(super) const FLOW_GRAPH: Route = Route {
    query: &[
        Query { name: "tab", about: "The tab or subflow to draw; the first tab if absent." },
        Query {
            name: "instance",
            about: "The Node-RED whose flow is drawn; the sidecar's own flow if absent.",
        },
    ],
    ..get(
        RouteId::FlowGraph,
        "/api/flows/graph",
        "One tab or subflow of the active flow as a drawing: up to 2000 nodes, their wires by kind, and their problems.",
        Answer::Json("FlowGraph"),
    )
};
