//! Node-RED's Admin API: one tab at a time.

use crate::client::Reply;
use crate::kit::{TOKEN, TestSidecar, plain_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn ask(sidecar: &TestSidecar, method: &str, path: &str, body: Value) -> Reply {
    sidecar.request(method, path).token(TOKEN).json(body).send().await
}

async fn delete(sidecar: &TestSidecar, id: &str) -> Reply {
    sidecar.request("DELETE", &format!("/flow/{id}")).token(TOKEN).send().await
}

async fn flows(sidecar: &TestSidecar) -> Vec<Value> {
    sidecar.get("/flows").await.ok(200).as_array().unwrap().clone()
}

/// Two tabs, one that only its node names, a subflow, and nodes on each and on none.
fn large_flow() -> Value {
    let mut nodes = plain_flow();
    nodes.as_array_mut().unwrap().extend([
        json!({"id": "two / \u{e9}", "type": "tab", "label": "Two", "disabled": true, "info": "text", "env": [{"name": "A"}],
               "projectId": "p"}),
        json!({"id": "two.1", "type": "debug", "z": "two / \u{e9}", "x": 1, "y": 2, "wires": []}),
        json!({"id": "two.config", "type": "some-config", "z": "two / \u{e9}"}),
        json!({"id": "box", "type": "group", "z": "two / \u{e9}", "nodes": ["two.1"]}),
        json!({"id": "only named", "type": "debug", "z": "gone", "x": 1, "y": 2, "wires": []}),
        json!({"id": "sub", "type": "subflow", "name": "Sub", "in": [], "out": []}),
        json!({"id": "in sub", "type": "debug", "z": "sub", "x": 1, "y": 2, "wires": []}),
        json!({"id": "sub config", "type": "some-config", "z": "sub"}),
        json!({"id": "config", "type": "some-config", "any": 1}),
        json!({"id": "config 2", "type": "some-config", "z": ""}),
    ]);
    nodes
}

#[tokio::test]
async fn returns_a_tab_with_its_nodes() {
    let sidecar = TestSidecar::start(large_flow()).await;
    let nodes = large_flow();
    let expected = json!({"id": "two / \u{e9}", "label": "Two", "disabled": true, "info": "text", "env": [{"name": "A"}],
                          "projectId": "p", "nodes": [nodes[7], nodes[9]], "configs": [nodes[8]]});
    assert_eq!(sidecar.get("/flow/two%20%2F%20%C3%A9").await.ok(200), expected);
    // Nodes without a position but with wires are no config nodes.
    let home = sidecar.get("/flow/tab").await.ok(200);
    let without_tab: Vec<Value> = plain_flow().as_array().unwrap()[1..].to_vec();
    assert_eq!(home, json!({"id": "tab", "label": "Home", "nodes": without_tab}));
    assert_eq!(sidecar.get("/flow/gone").await.ok(200), json!({"id": "gone", "nodes": [nodes[10]]}));
    let mut sub = nodes[11].clone();
    sub["nodes"] = json!([nodes[12]]);
    sub["configs"] = json!([nodes[13]]);
    let global = json!({"id": "global", "configs": [nodes[14], nodes[15]], "subflows": [sub]});
    assert_eq!(sidecar.get("/flow/global").await.ok(200), global);
    for id in ["unknown", "agent", "sub", "config", "two", "%2e%2e"] {
        sidecar.get(&format!("/flow/{id}")).await.refused(404, "NOT_FOUND");
    }
    sidecar.get("/flow/%ff").await.refused(400, "REQUEST_INVALID");
    sidecar.get("/flow/").await.refused(404, "ROUTE_UNKNOWN");
}

#[tokio::test]
async fn putting_an_unchanged_tab_changes_nothing() {
    let sidecar = TestSidecar::start(large_flow()).await;
    for id in ["tab", "two%20%2F%20%C3%A9"] {
        let tab = sidecar.get(&format!("/flow/{id}")).await.ok(200);
        let answer = ask(&sidecar, "PUT", &format!("/flow/{id}"), tab.clone()).await.ok(200);
        assert_eq!(answer, json!({"id": tab["id"]}));
        // The tab and its nodes stay in their places.
        assert_eq!(sidecar.get(&format!("/flow/{id}")).await.ok(200), tab);
        let tabs: Vec<Value> =
            flows(&sidecar).await.into_iter().filter(|node| node["type"] == "tab").collect();
        assert_eq!((tabs[0]["id"].clone(), tabs[1]["id"].clone()), (json!("tab"), json!("two / \u{e9}")));
    }
    let global = sidecar.get("/flow/global").await.ok(200);
    ask(&sidecar, "PUT", "/flow/global", global.clone()).await.ok(200);
    assert_eq!(sidecar.get("/flow/global").await.ok(200), global);
    // No node was lost.
    let sorted = |nodes: Vec<Value>| {
        nodes
            .into_iter()
            .map(|node| {
                let props: BTreeSet<String> =
                    node.as_object().unwrap().iter().map(|(k, v)| format!("{k}={v}")).collect();
                format!("{props:?}")
            })
            .collect::<BTreeSet<String>>()
    };
    assert_eq!(sorted(flows(&sidecar).await), sorted(large_flow().as_array().unwrap().clone()));
    // A tab that only its node named has become a node.
    let tab = sidecar.get("/flow/gone").await.ok(200);
    ask(&sidecar, "PUT", "/flow/gone", tab).await.ok(200);
    assert!(flows(&sidecar).await.contains(&json!({"id": "gone", "type": "tab"})));
}

#[tokio::test]
async fn adds_changes_and_deletes_a_tab() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let sent = json!({"id": "tab", "label": "New", "disabled": false, "info": "i",
                      "nodes": [{"id": "n", "type": "inject", "z": "elsewhere", "x": 1, "y": 1, "wires": [["agent"]]}],
                      "configs": [{"id": "c", "type": "some-config"}]});
    let added = ask(&sidecar, "POST", "/flow", sent).await.ok(200);
    let id = added["id"].as_str().unwrap().to_owned();
    assert_eq!((added.as_object().unwrap().len(), id.len()), (1, 16), "{added}");
    let now = flows(&sidecar).await;
    assert_eq!(now[..plain_flow().as_array().unwrap().len()], *plain_flow().as_array().unwrap());
    let expected = json!([
        {"id": id, "type": "tab", "label": "New", "disabled": false, "info": "i"},
        {"id": "n", "type": "inject", "z": id, "x": 1, "y": 1, "wires": [["agent"]]},
        {"id": "c", "type": "some-config", "z": id}
    ]);
    assert_eq!(Value::from(now[plain_flow().as_array().unwrap().len()..].to_vec()), expected);
    // The new tab runs.
    assert_eq!(sidecar.run(json!({"node": "n", "payload": "?"})).await["runs"][0]["status"], "completed");

    let path = format!("/flow/{id}");
    let changed = json!({"label": "Changed", "nodes": [{"id": "m", "type": "debug"}]});
    assert_eq!(ask(&sidecar, "PUT", &path, changed).await.ok(200), json!({"id": id}));
    let tab = sidecar.get(&path).await.ok(200);
    assert_eq!((tab["label"].clone(), tab["nodes"].clone()), (json!("Changed"), json!([])));
    assert_eq!(tab["configs"], json!([{"id": "m", "type": "debug", "z": id}]));

    let deleted = delete(&sidecar, &id).await;
    assert_eq!((deleted.status, deleted.body.as_slice()), (204, &b""[..]));
    assert_eq!(Value::from(flows(&sidecar).await), plain_flow());
    delete(&sidecar, &id).await.refused(404, "NOT_FOUND");
    ask(&sidecar, "PUT", &path, json!({"nodes": []})).await.refused(404, "NOT_FOUND");
    delete(&sidecar, "global").await.refused(400, "REQUEST_INVALID");
    // An empty tab, as the UI adds it.
    let empty = ask(&sidecar, "POST", "/flow", json!({"label": "Empty", "nodes": []})).await.ok(200);
    assert_eq!(delete(&sidecar, empty["id"].as_str().unwrap()).await.status, 204);
}

#[tokio::test]
async fn a_duplicated_tab_is_independent() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    // As the UI sends it: without ids.
    let mut nodes: Vec<Value> = flows(&sidecar).await.into_iter().filter(|node| node["z"] == "tab").collect();
    for node in &mut nodes {
        node.as_object_mut().unwrap().shift_remove("id");
    }
    let added = ask(&sidecar, "POST", "/flow", json!({"label": "Home (copy)", "nodes": nodes})).await.ok(200);
    let copy = sidecar.get(&format!("/flow/{}", added["id"].as_str().unwrap())).await.ok(200);
    let original = sidecar.get("/flow/tab").await.ok(200);
    assert_eq!(copy["nodes"].as_array().unwrap().len(), original["nodes"].as_array().unwrap().len());
    let ids: BTreeSet<String> =
        flows(&sidecar).await.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), plain_flow().as_array().unwrap().len() * 2);
    // Both tabs run independently: the wires of the copy lead to copied nodes.
    let listed = sidecar.get("/api/flows").await.ok(200)["flows"].clone();
    for tab in listed.as_array().unwrap() {
        assert_eq!(tab["agents"][0]["ready"], true, "{tab:#}");
    }
    let fire = copy["nodes"].as_array().unwrap().iter().find(|node| node["type"] == "inject").unwrap();
    let ran = sidecar.run(json!({"node": fire["id"]})).await;
    assert_eq!(ran["runs"].as_array().unwrap().len(), 1);
    assert_eq!(ran["runs"][0]["agent"]["id"], listed[1]["agents"][0]["node"]["id"]);
    assert_eq!(ran["runs"][0]["status"], "completed");
}

#[tokio::test]
async fn refuses_an_invalid_tab_with_a_code_and_changes_nothing() {
    let sidecar = TestSidecar::start(large_flow()).await;
    let before = flows(&sidecar).await;
    let bodies = [
        json!([]),
        json!("text"),
        json!(null),
        json!({"nodes": 5}),
        json!({"nodes": ["n"]}),
        json!({"nodes": {"id": "n"}}),
        json!({"nodes": [], "configs": "c"}),
        json!({"nodes": [{"id": "t", "type": "tab"}]}),
        json!({"nodes": [], "configs": [{"id": "s", "type": "subflow"}]}),
    ];
    for body in bodies {
        ask(&sidecar, "POST", "/flow", body.clone()).await.refused(400, "BODY_INVALID");
        ask(&sidecar, "PUT", "/flow/tab", body).await.refused(400, "BODY_INVALID");
    }
    ask(&sidecar, "POST", "/flow", json!({"label": "no nodes"})).await.refused(400, "BODY_INVALID");
    let twice = [
        json!({"nodes": [{"id": "two.1", "type": "debug"}]}),
        json!({"nodes": [{"id": "n", "type": "debug"}, {"id": "n", "type": "debug"}]}),
        json!({"nodes": [{"id": "two / \u{e9}", "type": "debug"}]}),
        json!({"nodes": [{"id": 5, "type": "debug"}]}),
    ];
    for body in twice {
        for (method, path) in [("POST", "/flow"), ("PUT", "/flow/tab")] {
            let answer = ask(&sidecar, method, path, body.clone()).await;
            answer.refused(400, "FLOW_REFUSED");
            assert_eq!(answer.json()["report"]["diagnostics"][0]["code"], "DUPLICATE_ID", "{body}");
        }
    }
    let globals = [
        json!({"configs": [{"id": "x", "type": "tab"}]}),
        json!({"configs": [{"id": "x", "type": "y", "z": "tab"}]}),
        json!({"subflows": [{"id": "x", "type": "tab"}]}),
        json!({"subflows": [{"type": "subflow"}]}),
        json!({"subflows": [{"id": "x", "type": "subflow", "nodes": [{"id": "y", "type": "subflow"}]}]}),
        json!({"subflows": 5}),
    ];
    for body in globals {
        ask(&sidecar, "PUT", "/flow/global", body).await.refused(400, "BODY_INVALID");
    }
    for (method, path) in [("POST", "/flow"), ("PUT", "/flow/tab"), ("PUT", "/flow/unknown")] {
        let raw = |kind: &'static str, text: &'static str| {
            sidecar.request(method, path).token(TOKEN).header("content-type", kind).bytes(text).send()
        };
        raw("text/html", "<html>").await.refused(415, "CONTENT_TYPE_REFUSED");
        raw("application/json", "<html>").await.refused(400, "BODY_INVALID");
        raw("application/json", r#"{"nodes":[],"nodes":[]}"#).await.refused(400, "BODY_INVALID");
    }
    ask(&sidecar, "PUT", "/flow/unknown", json!({"nodes": []})).await.refused(404, "NOT_FOUND");
    assert_eq!(flows(&sidecar).await, before);
}

#[tokio::test]
async fn keeps_all_tabs_that_are_added_at_once() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let add = |n: usize| {
        let body = json!({"label": n.to_string(), "nodes": [{"id": format!("n{n}"), "type": "debug"}]});
        ask(&sidecar, "POST", "/flow", body)
    };
    let answers = futures::future::join_all((0..16).map(|n| {
        let add = &add;
        async move { add(n).await.ok(200)["id"].as_str().unwrap().to_owned() }
    }))
    .await;
    let now = flows(&sidecar).await;
    for (n, id) in answers.iter().enumerate() {
        assert!(now.contains(&json!({"id": id, "type": "tab", "label": n.to_string()})), "{n}");
        assert!(now.contains(&json!({"id": format!("n{n}"), "type": "debug", "z": id})), "{n}");
    }
}
