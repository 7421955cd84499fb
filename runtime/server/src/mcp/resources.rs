//! The resources of the sidecar's own MCP server: runs, and documents of knowledge bases.

use super::problem::{error_data, invalid_params};
use crate::app::App;
use crate::console::traces::fold;
use crate::response::{Problem, printable};
use crate::runs::unknown_run;
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_contract::id::RunId;
use redflow_contract::secret::mask_secrets;
use redflow_contract::trace::RunTrace;
use redflow_ports::{KnowledgeAnswer, RunFilter};
use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

/// The newest runs that are listed.
const MAX_RUNS: usize = 50;

/// The documents that are listed, of all knowledge bases together.
const MAX_DOCUMENTS: usize = 200;

/// Bytes of a resource that is read.
const MAX_BYTES: usize = 1024 * 1024;

/// Passages that are read at once.
const PASSAGES: usize = 100;

pub(super) const RUNS: &str = "redflow://runs/";
pub(super) const KNOWLEDGE: &str = "redflow://kb/";

/// The newest runs, and the documents of knowledge bases.
pub(super) async fn list(app: &App, caller: &Caller) -> Result<Vec<Resource>, ErrorData> {
    let filter = RunFilter { limit: MAX_RUNS, ..RunFilter::default() };
    let runs = app.run_reader.list(filter).await.map_err(|error| error_data(error.into()))?;
    let mut resources: Vec<Resource> = runs
        .runs
        .into_iter()
        .map(|run| {
            let name = if run.name.is_empty() { run.agent.node_id.to_string() } else { run.name };
            Resource::new(format!("{RUNS}{}", run.run_id), format!("{name} {}", run.run_id))
                .with_description("The state and the decision trace of a run.")
                .with_mime_type("application/json")
        })
        .collect();
    let _slot = app.work_slots.search(&caller.name).await.map_err(error_data)?;
    for (base, document) in documents(app).await? {
        let uri = format!("{KNOWLEDGE}{}/{}", encode(&base), encode(&document));
        resources.push(Resource::new(uri, document).with_mime_type("text/plain"));
    }
    Ok(resources)
}

/// The documents of all knowledge bases, `(base, document)`. A base that cannot be read is left out: the others, and the
/// runs, do not depend on it.
async fn documents(app: &App) -> Result<Vec<(String, String)>, ErrorData> {
    let mut documents = Vec::new();
    for base in bases(app).await? {
        let left = MAX_DOCUMENTS - documents.len();
        if left == 0 {
            break;
        }
        match finish(app, app.knowledge.documents(&base, None, left)).await {
            Ok(page) => {
                let names = page.documents.into_iter().take(left);
                documents.extend(names.map(|document| (base.clone(), document.name)));
            }
            Err(error) if app.stop.is_cancelled() => return Err(error),
            Err(error) => tracing::warn!(base, "a knowledge base is not listed: {}", error.message),
        }
    }
    Ok(documents)
}

/// The names of the knowledge bases; none if they cannot be read.
pub(super) async fn bases(app: &App) -> Result<Vec<String>, ErrorData> {
    let names = |name: &str| name.strip_prefix("kb/").unwrap_or(name).to_owned();
    match finish(app, app.knowledge.list()).await {
        Ok(collections) => Ok(collections.iter().map(|collection| names(&collection.name)).collect()),
        Err(error) if app.stop.is_cancelled() => Err(error),
        Err(error) => {
            tracing::warn!("the knowledge bases are not listed: {}", error.message);
            Ok(Vec::new())
        }
    }
}

/// The names of the first documents of a knowledge base that begin with a text; none if there is no such base. A few
/// other names may be among them.
pub(super) async fn documents_of(app: &App, base: &str, beginning: &str) -> Vec<String> {
    let after = text_before(beginning);
    let page = finish(app, app.knowledge.documents(base, after.as_deref(), MAX_DOCUMENTS)).await;
    page.map(|page| page.documents.into_iter().map(|document| document.name).collect()).unwrap_or_default()
}

/// A text that sorts just before another one and before all that begin with it. None before the empty text.
fn text_before(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let last = chars.next_back()?;
    let mut before = chars.as_str().to_owned();
    if let Some(number) = u32::from(last).checked_sub(1) {
        // Below the surrogates, which are no characters, is U+D7FF.
        before.push(char::from_u32(number).unwrap_or('\u{d7ff}'));
        before.push(char::MAX);
    }
    Some(before)
}

/// The ids of the newest runs.
pub(super) async fn newest_runs(app: &App) -> Result<Vec<String>, ErrorData> {
    let filter = RunFilter { limit: MAX_RUNS, ..RunFilter::default() };
    let runs = app.run_reader.list(filter).await.map_err(|error| error_data(error.into()))?;
    Ok(runs.runs.into_iter().map(|run| run.run_id.to_string()).collect())
}

/// The forms of the addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{RUNS}{{run}}"), "run")
            .with_description("The state and the decision trace of a run.")
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{KNOWLEDGE}{{base}}/{{document}}"), "document")
            .with_description("The text of a document of a knowledge base.")
            .with_mime_type("text/plain"),
    ]
}

/// The content of a resource, up to a limit.
pub(super) async fn read(app: &App, caller: &Caller, uri: &str) -> Result<ResourceContents, ErrorData> {
    if let Some(run) = uri.strip_prefix(RUNS).filter(|run| !run.is_empty()) {
        let text = read_run(app, caller, &RunId::from(run)).await.map_err(error_data)?;
        return Ok(ResourceContents::text(text, uri).with_mime_type("application/json"));
    }
    if let Some((base, document)) = uri.strip_prefix(KNOWLEDGE).and_then(|path| path.split_once('/')) {
        let text = read_document(app, caller, &decode(base), &decode(document)).await?;
        return Ok(ResourceContents::text(text, uri));
    }
    let text = format!("There is no resource `{}`. `resources/list` lists them.", printable(uri));
    Err(error_data(Problem::new(ApiCode::NotFound, text)))
}

async fn read_run(app: &App, caller: &Caller, run: &RunId) -> Result<String, Problem> {
    let summary = app.run_reader.summary(run).await?.ok_or_else(|| unknown_run(run))?;
    let trace = fold(app, caller, run).await?;
    app.run_blocking(move || {
        let (trace, is_cut) = cut_trace(trace);
        json!({"summary": summary, "trace": trace, "cut": is_cut}).to_string()
    })
    .await
}

/// The first steps of a trace that have room in a resource, and whether some are missing.
fn cut_trace(mut trace: RunTrace) -> (RunTrace, bool) {
    let mut left = MAX_BYTES;
    let mut kept = 0;
    for step in &trace.steps {
        match left.checked_sub(serde_json::to_vec(step).map_or(usize::MAX, |json| json.len())) {
            Some(rest) => (left, kept) = (rest, kept + 1),
            None => break,
        }
    }
    let is_cut = kept < trace.steps.len();
    trace.steps.truncate(kept);
    (trace, is_cut)
}

async fn read_document(app: &App, caller: &Caller, base: &str, document: &str) -> Result<String, ErrorData> {
    if base.is_empty() || document.is_empty() {
        return Err(invalid_params(format!("An address of a document is {KNOWLEDGE}BASE/DOCUMENT.")));
    }
    let _slot = app.work_slots.search(&caller.name).await.map_err(error_data)?;
    let (mut text, mut after) = (String::new(), 0);
    loop {
        let page = finish(app, app.knowledge.passages(base, document, after, PASSAGES)).await?;
        for passage in page.passages {
            if text.len() + passage.content.len() > MAX_BYTES {
                text.push_str("\n\n[The rest of the document is left out.]");
                return Ok(text);
            }
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&passage.content);
        }
        match page.next {
            Some(next) if next > after => after = next,
            _ => return Ok(text),
        }
    }
}

/// Waits for an answer, unless the sidecar stops. Errors may quote names of the request, which can be secrets.
async fn finish<T>(app: &App, answer: KnowledgeAnswer<'_, T>) -> Result<T, ErrorData> {
    let answer = tokio::select! {
        answer = answer => answer,
        () = app.stop.cancelled() => return Err(error_data(Problem::stopping())),
    };
    answer.map_err(|mut error| {
        error.message = mask_secrets(&error.message).into_owned();
        error_data(error.into())
    })
}

/// A text as one part of an address.
fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

fn decode(part: &str) -> String {
    let query = format!("p={}", part.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(query.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, cut_trace, decode, encode, text_before};
    use redflow_contract::id::RunId;
    use redflow_contract::trace::{RunTrace, TraceStep, TraceStepKind};

    #[test]
    fn a_long_trace_is_cut_and_says_so() {
        let step = |number: u32| TraceStep {
            number,
            at: 1,
            iteration: 1,
            step: TraceStepKind::Recall { messages: 1, sources: Vec::new(), code: None, duration_ms: 1 },
        };
        let trace = |count: u32| RunTrace {
            run_id: RunId::from("r"),
            steps: (1..=count).map(step).collect(),
            provenance: Vec::new(),
            ended: true,
        };
        let (whole, is_cut) = cut_trace(trace(10));
        assert_eq!((whole.steps.len(), is_cut), (10, false));
        let (part, is_cut) = cut_trace(trace(30_000));
        let bytes = serde_json::to_vec(&part).unwrap().len();
        assert!(is_cut && part.steps.len() < 30_000 && bytes < MAX_BYTES * 11 / 10, "{bytes}");
        assert!(bytes > MAX_BYTES * 9 / 10, "as many steps as have room stay: {bytes}");
    }

    #[test]
    fn a_text_sorts_after_the_one_before_it() {
        for text in ["a", "abc", "report-9", "\u{0}", "x\u{0}", "\u{e000}", "ä", "\u{10ffff}"] {
            let before = text_before(text).unwrap();
            assert!(before.as_str() < text, "{text:?} {before:?}");
            let smaller = ["", "A", "Z", "ab", "abb", "abbz", "report-8", "report-8.md", "\u{d7ff}z"];
            for other in smaller.into_iter().filter(|other| *other < text) {
                assert!(other <= before.as_str(), "{other:?} is not between {before:?} and {text:?}");
            }
        }
        assert_eq!(text_before(""), None);
    }

    #[test]
    fn a_name_survives_in_an_address() {
        for name in ["a b.md", "a+b&c=d.txt", "straße/üb%20er.pdf", "x;y?z#w"] {
            let part = encode(name);
            assert!(!part.contains(['/', ' ', '?', '#']), "{part}");
            assert_eq!(decode(&part), name);
        }
    }
}
