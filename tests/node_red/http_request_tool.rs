//! `http-request-tool` of the palette: its credentials, as Node-RED keeps them, reach only its service.

use crate::kit::flow::{final_answer, tool_call};
use crate::kit::node_red::NodeRed;
use crate::kit::on_both_lines;
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::Scene;
use crate::kit::sidecar::{Sidecar, files_containing};
use crate::kit::witness::Witness;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    four_kinds_of_credentials_reach_the_service
}

const SECRET: &str = "s3cret-of-the-service";

async fn four_kinds_of_credentials_reach_the_service(line: ReleaseLine) {
    let witness = Witness::start().await;
    let service = witness.url("/service");
    let host = service.trim_start_matches("http://").trim_end_matches("/service").to_owned();
    let sidecar = Sidecar::with_config(&format!("drain_ms = 300\n[egress]\nprivate = [\"{host}\"]\n")).await;
    let mut scene = Scene { witness, sidecar, node_red: NodeRed::start(line).await };
    scene.sidecar.start();
    let basic = "Basic YWRhOnMzY3JldC1vZi10aGUtc2VydmljZQ==".to_owned();
    let query = format!("/service?api_key={SECRET}");
    type Row<'a> = (Value, &'a str, Option<(&'a str, String)>);
    let rows: [Row<'_>; 5] = [
        (
            json!({"authentication": "basic", "user": "ada", "credentials": {"password": SECRET}}),
            "/service",
            Some(("authorization", basic)),
        ),
        (
            json!({"authentication": "header", "headerName": "X-Auth", "credentials": {"headerValue": SECRET}}),
            "/service",
            Some(("x-auth", SECRET.to_owned())),
        ),
        (
            json!({"authentication": "bearer", "credentials": {"token": SECRET}}),
            "/service",
            Some(("authorization", format!("Bearer {SECRET}"))),
        ),
        (
            json!({"authentication": "apiKey", "credentials": {"apiKey": SECRET}}),
            "/service",
            Some(("x-api-key", SECRET.to_owned())),
        ),
        (
            json!({"authentication": "apiKey", "apiKeyIn": "query", "credentials": {"apiKey": SECRET}}),
            &query,
            None,
        ),
    ];
    for (props, path, header) in rows {
        // The service sends the secret back, and nothing of it stays.
        scene.witness.set_answers(path, [json!({"degrees": 4, "you sent": SECRET})]);
        let call = tool_call("http_request", json!({"url": service, "method": "GET"}));
        let flow = scene
            .flow()
            .standard_agent(&scene.witness, &["http_request"], &["http"])
            .scripted(&[call, final_answer("Four degrees.")])
            .node("http", "http-request-tool", json!([["agent"]]), json!({"hosts": host}))
            .change("http", props);
        scene.deploy(&flow).await;
        let before = scene.count_requests(path);
        let result = scene.ask().await;
        assert!(result.to_string().contains("Four degrees."), "{result}");
        // A later deploy of the editor has no credentials: Node-RED keeps them.
        scene.deploy(&flow.clone().without_credentials().change("agent", json!({"name": "Other"}))).await;
        scene.ask().await;
        let requests = scene.witness.requests(path);
        assert_eq!(requests.len(), before + 2);
        if let Some((name, value)) = header {
            assert_eq!(requests.last().unwrap().headers.get(name), Some(&value));
        }
    }
    let flows = scene.node_red.admin.ask("GET", "/flows").await.ok(200).to_string();
    let results: String =
        scene.witness.requests("/results").into_iter().map(|request| request.body.to_string()).collect();
    scene.sidecar.stop().await;
    scene.node_red.stop().await;
    for (place, text) in [("flows", &flows), ("results", &results), ("log", &scene.node_red.log())] {
        assert!(!text.contains(SECRET), "in {place}: {text}");
    }
    assert_eq!(scene.sidecar.places_containing(SECRET), Vec::<String>::new());
    assert_eq!(files_containing(scene.node_red.user(), SECRET), Vec::<String>::new());
}
