//! Values that JSON cannot hold, on the way from a message to a result.

use crate::client::Request;
use crate::kit::flow::final_answer;
use crate::kit::on_both_lines;
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::Scene;
use serde_json::json;

on_both_lines! {
    an_http_request_is_answered
}

/// Adds values to a message that JSON cannot hold.
pub(crate) const SET_VALUES: &str = r#"
    msg.bytes = Buffer.from([0, 255, 1]);
    msg.when = new Date(86400000);
    msg.nothing = undefined;
    msg.loop = {name: "loop"};
    msg.loop.self = msg.loop;
    msg.lone = "a\ud800b";
    msg.large = 12345678901234567890n;
    msg.odd = [NaN, Infinity, -0];
    msg.pattern = /a+/gi;
    msg.pairs = new Map([["k", {v: 1}]]);
    msg.some = new Set([1, "two"]);
    msg.wrong = new TypeError("no");
    msg.tagged = {"$redflow": "date", data: 5};
    msg.plain = {deep: [1, {x: null}]};
    return msg;
"#;

/// Lists the values that have changed.
pub(crate) const CHECK_VALUES: &str = r#"
    const kind = (value) => Object.prototype.toString.call(value);
    const holds = {
        bytes: () => Buffer.isBuffer(msg.bytes) && msg.bytes.equals(Buffer.from([0, 255, 1])),
        when: () => kind(msg.when) === "[object Date]" && msg.when.getTime() === 86400000,
        nothing: () => "nothing" in msg && msg.nothing === undefined,
        loop: () => msg.loop.self === msg.loop && msg.loop.name === "loop",
        lone: () => msg.lone === "a\ud800b",
        large: () => msg.large === 12345678901234567890n,
        odd: () => Number.isNaN(msg.odd[0]) && msg.odd[1] === Infinity && Object.is(msg.odd[2], -0),
        pattern: () => kind(msg.pattern) === "[object RegExp]" && msg.pattern.source === "a+" && msg.pattern.flags === "gi",
        pairs: () => kind(msg.pairs) === "[object Map]" && msg.pairs.get("k").v === 1,
        some: () => kind(msg.some) === "[object Set]" && msg.some.has("two") && msg.some.size === 2,
        wrong: () => kind(msg.wrong) === "[object Error]" && msg.wrong.name === "TypeError" && msg.wrong.message === "no",
        tagged: () => msg.tagged.$redflow === "date" && msg.tagged.data === 5,
        plain: () => JSON.stringify(msg.plain) === '{"deep":[1,{"x":null}]}',
    };
    const lost = Object.keys(holds).filter((name) => {
        try { return !holds[name](); } catch (error) { return true; }
    });
    msg.payload = {said: msg.payload, lost, keys: Object.keys(msg)};
    for (const name of Object.keys(holds)) { delete msg[name]; }
    return msg;
"#;

async fn an_http_request_is_answered(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene
        .flow()
        .node(
            "in",
            "http in",
            json!([["put"]]),
            json!({"url": "/ask", "method": "post", "upload": false, "swaggerDoc": ""}),
        )
        .function("put", SET_VALUES, &["agent"])
        .agent("agent", &["calculator"], json!([["model"], ["calc"], [], ["look"], []]))
        .calculator()
        .scripted(&[final_answer("Here you are.")])
        .function("look", CHECK_VALUES, &["out"])
        .node("out", "http response", json!([]), json!({"statusCode": "", "headers": {}}));
    scene.deploy(&flow).await;
    for question in ["one", "two"] {
        let request = Request::new(scene.node_red.addr(), "POST", "/ask").json(json!({"question": question}));
        let answer = request.send().await.ok(200);
        assert_eq!(answer["said"], "Here you are.", "{answer:#}");
        assert_eq!(answer["lost"], json!([]), "{answer:#}");
    }
}
