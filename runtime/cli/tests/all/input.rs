//! `--input`: a value, a file, standard input.

use crate::kit::{Folder, final_answer, flow, port3, run_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn folder() -> Folder {
    Folder::with_flow(&flow(final_answer("hi"), vec![]))
}

#[test]
fn values_are_inputs() {
    let rows = ["1", "-1", "null", "true", "\"text\"", "[1, {\"a\": 0.1}]", "{\"b\": 1, \"a\": \"🙂\"}"];
    for row in rows {
        let output = run_flow(&flow(final_answer("hi"), vec![]), &["--json", "--input", row]);
        assert_eq!(output.code, 0, "{output:#?}");
        assert_eq!(port3(&output)["envelope"]["input"], serde_json::from_str::<Value>(row).unwrap());
    }
}

#[test]
fn a_hostile_value_is_unchanged_in_json_and_escaped_in_text() {
    let hostile = "\u{0}\u{1b}[31m\u{7f}\u{9b}2J\u{202e}\u{feff}\u{e0041}🙂\u{2028}\\";
    let input = json!(hostile).to_string();
    let output = run_flow(&flow(final_answer(hostile), vec![]), &["--json", "--input", &input]);
    let message = port3(&output);
    assert_eq!([&message["envelope"]["input"], &message["payload"]], [hostile; 2]);
    let output = run_flow(&flow(final_answer(hostile), vec![]), &["--input", &input]);
    let escaped = "\\u{0}\\u{1b}[31m\\u{7f}\\u{9b}2J\\u{202e}\\u{feff}\\u{e0041}🙂\\u{2028}\\";
    assert_eq!(output.stdout, format!("{escaped}\n"));
    assert!(output.stderr.contains(&format!("[debug d] msg.payload: {escaped}\n")), "{output:#?}");
}

#[test]
fn files_and_standard_input_are_inputs() {
    let folder = folder();
    folder.write("in.json", "{\"from\": \"file\"}");
    let output = folder.redflow(["run", "flow.json", "--json", "--input", "@in.json"]).run();
    assert_eq!(port3(&output)["envelope"]["input"], json!({"from": "file"}));
    let output = folder.redflow(["run", "flow.json", "--json", "--input", "-"]).stdin("[\"pipe\"]\n").run();
    assert_eq!(port3(&output)["envelope"]["input"], json!(["pipe"]));
    let text = folder.read("flow.json");
    let output = folder.redflow(["run", "-", "--json", "--input", "@in.json"]).stdin(text).run();
    assert_eq!(port3(&output)["envelope"]["input"], json!({"from": "file"}));
    folder
        .redflow(["run", "-", "--input", "-"])
        .run()
        .assert_refused("the flow and the input cannot both come from standard input");
}

#[test]
fn wrong_inputs_are_refused() {
    let hint = "text needs quotes: --input '\"hello\"'";
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let rows = [
        ("hello", hint),
        ("", hint),
        ("{\"a\": 1} 2", hint),
        ("{'a': 1}", hint),
        ("{\"a\": {\"b\": 1, \"b\": 2}}", "the input names a key twice: /a/b"),
        ("@gone.json", "cannot read the input gone.json: there is no such file"),
        ("@.", "cannot read the input .: it is a folder"),
        (&deep, "the input nests deeper than 100 levels"),
    ];
    let folder = folder();
    for (input, words) in rows {
        folder.redflow(["run", "flow.json", "--json", "--input", input]).run().assert_refused(words);
    }
    folder.redflow(["run", "flow.json", "--input", "-"]).run().assert_refused(hint);
}

#[test]
fn too_large_inputs_are_refused() {
    let folder = folder();
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let limit = 4 * 1024 * 1024;
    folder.write("in.json", text(limit + 1));
    let words = "the input has more than 4194304 bytes";
    folder.redflow(["run", "flow.json", "--json", "--input", "@in.json"]).run().assert_refused(words);
    folder
        .redflow(["run", "flow.json", "--json", "--input", "-"])
        .stdin(text(50_000_000))
        .run()
        .assert_refused(words);

    // The payload is within the limit, but the message is not: the agent refuses it.
    folder.write("in.json", text(limit));
    let output = folder.redflow(["run", "flow.json", "--json", "--input", "@in.json"]).run();
    assert_eq!((output.code, output.errors()), (2, vec!["CONTEXT_LENGTH"]));
    assert_eq!(port3(&output)["payload"]["rule"], "maxMessageBytes");

    folder.write("in.json", text(limit - 100));
    assert_eq!(folder.redflow(["run", "flow.json", "--quiet", "--input", "@in.json"]).run().code, 0);
}

#[test]
fn images_are_files_or_addresses() {
    let folder = folder();
    let flow = json!([
        {"id": "a", "type": "ai-agent", "model": "m", "wires": [["d"], []]},
        {"id": "m", "type": "scripted-model", "replies": ["A pixel."], "wires": [[]]},
        {"id": "d", "type": "debug", "complete": "payload", "wires": []},
    ]);
    folder.write("images.json", flow.to_string());
    folder.write("a.gif", "GIF89a\u{1}\0\u{1}\0\u{7f}\0\0");
    folder.write("no-image.png", "hello");
    let run = |more: &[&str]| {
        let start = ["run", "images.json", "--json", "--input", "\"What is it?\""];
        folder.redflow(start.iter().chain(more).copied()).run()
    };
    let output = run(&["--image", "a.gif", "--image", "a.gif"]);
    assert_eq!(output.code, 0, "{output:#?}");
    let gif = "data:image/gif;base64,R0lGODlhAQABAH8AAA==";
    let message = port3(&output);
    assert_eq!((&message["payload"], &message["images"]), (&json!("A pixel."), &json!([gif, gif])));
    // The address is private, so it is not reached.
    let output = run(&["--image", "https://127.0.0.1/a.png?key=secret"]);
    assert_eq!(port3(&output)["error"]["code"], "IMAGE_INVALID");
    run(&["--image", "no-image.png"])
        .assert_refused("the image `no-image.png` is no PNG, JPEG, GIF or WebP file");
    run(&["--image", "missing.png"]).assert_refused("the image `missing.png` cannot be read");
    let five: Vec<&str> = ["--image", "a.gif"].repeat(5);
    run(&five).assert_refused("at most 4 images are allowed; leave out an --image");
}

#[test]
fn images_for_an_agent_that_does_not_read_them_are_refused() {
    let folder = folder();
    folder.write("a.gif", "GIF89a\u{1}\0\u{1}\0\u{7f}\0\0");
    for (type_name, images, text) in [
        (
            "ai-agent",
            json!("{{json.photo}}"),
            "the agent `a` does not read `msg.images`: set its property `images`",
        ),
        ("ai-summarizer", json!(null), "because a ai-summarizer has no property `images`"),
    ] {
        let flow = json!([
            {"id": "a", "type": type_name, "model": "m", "images": images, "wires": [["d"], []]},
            {"id": "m", "type": "scripted-model", "replies": ["A pixel."], "wires": [[]]},
            {"id": "d", "type": "debug", "complete": "payload", "wires": []},
        ]);
        folder.write("images.json", flow.to_string());
        let args = ["run", "images.json", "--input", "\"What is it?\"", "--image", "a.gif"];
        folder.redflow(args).run().assert_refused(text);
    }
}
