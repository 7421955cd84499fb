//! Parts of a run: one iteration, pages of the journal, the summary alone.

use crate::kit::{TOKEN, TestSidecar, flow, plain_flow, tool_flow};
use crate::llama_stand_in::flow_with_model;
use pretty_assertions::assert_eq;
use redflow_contract::console::{JOURNAL_PAGE_BYTES, TEXT_BYTES};
use redflow_testkit::{HttpServer, json_response};
use rusqlite::Connection;
use serde_json::{Value, json};

fn id(run: &Value) -> &str {
    run["runId"].as_str().unwrap()
}

async fn start_run(sidecar: &TestSidecar, payload: &str) -> Value {
    sidecar.run(json!({"payload": payload})).await["runs"][0].clone()
}

/// The texts need no `debug`.
#[tokio::test]
async fn shows_an_iteration() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let ended = start_run(&sidecar, "How much is it?").await;
    let path = format!("/api/runs/{}/iterations", id(&ended));
    let first = sidecar.get(&format!("{path}/1")).await.ok(200);
    assert!(first["prompt"]["text"].as_str().unwrap().contains("How much is it?"), "{first}");
    assert!(first["answer"]["text"].as_str().unwrap().contains("6 * 7"), "{first}");
    assert_eq!(first["confidence"], 1.0);
    let call = &first["calls"][0];
    assert_eq!(call["input"], json!({"text": "{\n  \"expression\": \"6 * 7\"\n}"}));
    assert!(call["result"]["text"].as_str().unwrap().contains("42"), "{first}");
    assert_eq!(
        (&call["tool"], &call["success"], &call["effect"]),
        (&json!("act"), &json!(true), &json!("read"))
    );
    assert_eq!(first.get("output"), None);
    let last = sidecar.get(&format!("{path}/2")).await.ok(200);
    assert!(last["prompt"]["text"].as_str().unwrap().contains("42"), "{last}");
    assert_eq!((&last["calls"], &last["output"]), (&json!([]), &json!({"text": "42"})));
    sidecar.get(&format!("{path}/3")).await.refused(404, "NOT_FOUND");
    for wrong in ["0", "-1", "x", "4294967296", "%ff", "1?more=1", "1?full=no"] {
        sidecar.get(&format!("{path}/{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
}

/// A text is cut at a character, and says how long it is.
#[tokio::test]
async fn a_long_text_of_an_iteration_is_cut_unless_it_is_wanted_in_full() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let long = "<b>\u{202e}é".repeat(TEXT_BYTES / 4);
    let path = format!("/api/runs/{}/iterations/1", id(&start_run(&sidecar, &long).await));
    let cut = sidecar.get(&path).await.ok(200)["prompt"].clone();
    let text = cut["text"].as_str().unwrap();
    assert!(text.len() <= TEXT_BYTES && text.len() > TEXT_BYTES - 4, "{}", text.len());
    assert!(cut["bytes"].as_u64().unwrap() >= long.len() as u64, "{}", cut["bytes"]);
    for full in ["full", "full=true"] {
        let prompt = sidecar.get(&format!("{path}?{full}")).await.ok(200)["prompt"].clone();
        assert!(prompt["text"].as_str().unwrap().contains(&long));
        assert_eq!(prompt.get("bytes"), None);
    }
}

/// A run that has not ended, or that failed, has its iterations so far.
#[tokio::test]
async fn shows_the_iterations_of_a_run_that_waits_or_failed() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let waiting = start_run(&sidecar, "?").await;
    let detail = sidecar.get(&format!("/api/runs/{}/iterations/1", id(&waiting))).await.ok(200);
    let call = detail["calls"][0].clone();
    assert_eq!((&call["callId"], call.get("result")), (&waiting["waiting"]["callId"], None), "{detail}");
    assert!(call["input"]["text"].as_str().unwrap().contains("6 * 7"), "{detail}");
    assert!(detail["answer"]["text"].is_string() && call.get("success").is_none(), "{detail}");
    let report = sidecar.get(&format!("/api/runs/{}/report", id(&waiting))).await;
    assert!(String::from_utf8(report.body).unwrap().contains("| waits for the outcome of | `act` |"));
    let sidecar = TestSidecar::start(flow_of("no JSON")).await;
    let failed = start_run(&sidecar, "?").await;
    assert_eq!(failed["status"], "failed");
    let detail = sidecar.get(&format!("/api/runs/{}/iterations/1", id(&failed))).await.ok(200);
    assert!(detail["answer"]["text"].as_str().unwrap().contains("no JSON"), "{detail}");
    assert!(detail["output"]["text"].is_string() && detail.get("confidence").is_none(), "{detail}");
}

#[tokio::test]
async fn gives_the_summary_alone() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let run = start_run(&sidecar, "?").await;
    let path = format!("/api/runs/{}", id(&run));
    let summary = sidecar.get(&format!("{path}?only=summary")).await.ok(200);
    assert_eq!(summary, sidecar.get(&path).await.ok(200)["summary"]);
    for wrong in ["only=", "only=events", "more=1"] {
        sidecar.get(&format!("{path}?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
}

#[tokio::test]
async fn gives_the_journal_page_by_page() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let path = format!("/api/runs/{}/journal", id(&start_run(&sidecar, "?").await));
    let whole = String::from_utf8(sidecar.get(&path).await.body).unwrap();
    let (mut lines, mut next) = (Vec::new(), Some(1));
    while let Some(from) = next {
        let page = sidecar.get(&format!("{path}?from={from}&lines=3")).await.ok(200);
        assert_eq!((&page["from"], &page["total"]), (&json!(from), &json!(whole.lines().count())));
        lines.extend(page["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()));
        next = page.get("next").map(|next| next.as_u64().unwrap());
    }
    assert_eq!(lines, whole.lines().collect::<Vec<_>>());
    let all = sidecar.get(&format!("{path}?from=1")).await.ok(200);
    assert_eq!(all["lines"].as_array().unwrap().len(), lines.len());
    for wrong in ["from=0", "from=x", "lines=0", "lines=201", "more=1"] {
        sidecar.get(&format!("{path}?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
}

/// The first fact has the whole message.
#[tokio::test]
async fn a_journal_line_longer_than_a_page_is_cut() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let payload = "x".repeat(JOURNAL_PAGE_BYTES);
    let path = format!("/api/runs/{}/journal", id(&start_run(&sidecar, &payload).await));
    let page = sidecar.get(&format!("{path}?from=3")).await.ok(200);
    let line = page["lines"][0].as_str().unwrap();
    assert_eq!((line.len(), page["lines"].as_array().unwrap().len()), (JOURNAL_PAGE_BYTES, 1));
    assert!(page["cut"].as_u64().unwrap() > payload.len() as u64);
    assert_eq!(page["next"], 4);
}

/// A report has what a run did, and nothing of what was said.
// SECURITY: run-report
#[tokio::test]
async fn a_report_has_no_words_and_no_secrets() {
    let mut flow = tool_flow("calculator-tool");
    flow[2]["name"] = json!(format!("Ada ada@example.org {TOKEN}"));
    let sidecar = TestSidecar::start(flow).await;
    let run = start_run(&sidecar, "Where is Grace?").await;
    let report = sidecar.get(&format!("/api/runs/{}/report", id(&run))).await;
    assert_eq!((report.status, report.header("content-type")), (200, Some("text/markdown; charset=utf-8")));
    let text = String::from_utf8(report.body).unwrap();
    for said in ["Grace", "6 * 7", "ada@example.org", TOKEN] {
        assert!(!text.contains(said), "{said}: {text}");
    }
    for shown in
        ["It cannot be replayed", "[email]", "completed", "| model_answered | 1 |", "`act`", "confidence: 1"]
    {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    sidecar.get(&format!("/api/runs/{}/report?more=1", id(&run))).await.refused(400, "REQUEST_INVALID");
    sidecar.get("/api/runs/unknown/report").await.refused(404, "RUN_UNKNOWN");
    let sidecar = TestSidecar::start(flow_of("no JSON")).await;
    let failed = start_run(&sidecar, "?").await;
    let report = sidecar.get(&format!("/api/runs/{}/report", id(&failed))).await;
    assert!(String::from_utf8(report.body).unwrap().contains("## Error\n\nINVALID_JSON: "));
}

/// The message of an error can have what a person, a tool or a provider said. The report has its code.
// SECURITY: run-report
#[tokio::test]
async fn a_report_has_no_message_of_an_error() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let path = format!("/api/runs/{}", id(&start_run(&sidecar, "?").await));
    sidecar.post(&format!("{path}/cancel"), json!({"reason": "Grace is ill"})).await.ok(200);
    check_error_in_report(&sidecar, &path, "CANCELLED: The run was cancelled.", "Grace is ill").await;

    let mut flow = tool_flow("tool.lost");
    let tool = flow.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "act").unwrap();
    tool["onUnknown"] = json!("fail");
    let sidecar = TestSidecar::start(flow).await;
    let path = format!("/api/runs/{}", id(&start_run(&sidecar, "?").await));
    let error = "TOOL_OUTCOME_UNKNOWN: It is unknown whether a tool call happened.";
    check_error_in_report(&sidecar, &path, error, "the connection was lost").await;

    let answer = json!({"error": {"code": 404, "message": "no model for Grace"}});
    let server = HttpServer::start(move |_| {
        let answer = answer.clone();
        async move { json_response(404, &[], &answer) }
    });
    let server = server.await.unwrap();
    let sidecar = TestSidecar::start(flow_with_model(&server)).await;
    let path = format!("/api/runs/{}", id(&start_run(&sidecar, "?").await));
    let error = "MODEL_NOT_FOUND: The provider does not know the model.";
    check_error_in_report(&sidecar, &path, error, "no model for Grace").await;
}

/// Checks that the events of a run have these words, and its report only this error.
async fn check_error_in_report(sidecar: &TestSidecar, path: &str, error: &str, said: &str) {
    let events = sidecar.get(&format!("{path}/events")).await.ok(200).to_string();
    assert!(events.contains(said), "{events}");
    let report = String::from_utf8(sidecar.get(&format!("{path}/report")).await.body).unwrap();
    assert!(report.contains(&format!("## Error\n\n{error} Iteration: 1\n")), "{report}");
    assert!(!report.contains(said), "{report}");
}

/// A flow whose model gives this answer.
fn flow_of(answer: &str) -> Value {
    flow(json!([answer]), &[])
}

/// The part before the damage can be read, and says that it is a part.
#[tokio::test]
async fn shows_the_intact_part_of_a_damaged_run() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let run = start_run(&sidecar, "?").await;
    let path = format!("/api/runs/{}", id(&run));
    let whole = String::from_utf8(sidecar.get(&format!("{path}/journal")).await.body).unwrap();
    let second = whole.lines().position(|line| line.contains("tool_returned")).unwrap();
    damage(&sidecar, "tool_returned");
    assert_eq!(sidecar.get(&path).await.ok(200)["summary"]["status"], "damaged");
    // The row alone does not show it.
    assert_eq!(sidecar.get(&format!("{path}?only=summary")).await.ok(200)["status"], "completed");
    sidecar.get(&format!("{path}/journal")).await.refused(500, "DATA_CORRUPT");
    sidecar.get(&format!("{path}/trace")).await.refused(500, "DATA_CORRUPT");
    let page = sidecar.get(&format!("{path}/journal?from=1")).await.ok(200);
    assert_eq!(page["problem"]["code"], "DATA_CORRUPT");
    let lines = page["lines"].as_array().unwrap();
    assert!(lines.len() <= second && !lines.is_empty(), "{page}");
    let first = sidecar.get(&format!("{path}/iterations/1")).await.ok(200);
    assert!(first["answer"]["text"].as_str().unwrap().contains("6 * 7"), "{first}");
    assert_eq!(first["calls"][0].get("result"), None, "{first}");
    sidecar.get(&format!("{path}/iterations/2")).await.refused(404, "NOT_FOUND");
    let replayed = sidecar.request("POST", &format!("{path}/replay")).token(TOKEN).send().await.ok(200);
    assert_eq!((&replayed["equal"], &replayed["problem"]["code"]), (&json!(false), &json!("DATA_CORRUPT")));
    assert!(replayed["facts"].as_u64().unwrap() > 0 && replayed["difference"].is_null(), "{replayed}");
    let report = String::from_utf8(sidecar.get(&format!("{path}/report")).await.body).unwrap();
    assert!(report.contains("DATA_CORRUPT: ") && report.contains("| model_answered | 1 |"), "{report}");
}

/// Changes a byte of the stored lines that contain a text.
fn damage(sidecar: &TestSidecar, text: &str) {
    let database = Connection::open(sidecar.dir.path().join("redflow.db")).unwrap();
    let changed = database
        .execute(
            "UPDATE batches SET lines = CAST(replace(CAST(lines AS TEXT), ?1, upper(?1)) AS BLOB)
             WHERE instr(CAST(lines AS TEXT), ?1) > 0",
            [text],
        )
        .unwrap();
    assert_eq!(changed, 1);
}
