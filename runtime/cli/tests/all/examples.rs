//! `examples/`: every example ends as its table says.

use crate::kit::{Output, normalize, normalize_json, port3, redflow, repository};
use pretty_assertions::assert_eq;
use std::collections::BTreeSet;

struct Row {
    file: String,
    what: String,
    check: i32,
    run: i32,
}

fn table() -> Vec<Row> {
    let text = std::fs::read_to_string(repository().join("examples/README.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ["));
    // Other tests call live models, with a stand-in for each provider.
    let rows = rows.filter(|line| !line.starts_with("| [live-"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [flow, what, check, run] = cells[..] else { panic!("{line}") };
        let file = flow.trim_start_matches('[').split(']').next().unwrap().to_owned();
        assert_eq!(flow, format!("[{file}]({file})"));
        let what = what.to_owned();
        Row { file, what, check: check.parse().unwrap(), run: run.parse().unwrap() }
    })
    .collect()
}

/// The options that an example needs to reach its agent.
fn more(file: &str) -> &'static [&'static str] {
    match file {
        "redflow-chat.json" => &["--profile", "redflow", "--input", "\"hi\""],
        _ => &[],
    }
}

/// A model that thinks needs more time than models of earlier years.
#[test]
fn the_nodes_of_azure_in_examples_have_the_default_time() {
    let mut found = 0;
    for folder in ["examples", "node-red-bridge/examples"] {
        for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "json") {
                continue;
            }
            let flow: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            for node in
                flow.as_array().into_iter().flatten().filter(|node| node["type"] == "model.azure.openai")
            {
                found += 1;
                assert!(
                    node["timeoutMs"].as_u64().is_none_or(|time| time == 600_000),
                    "{}: {node}",
                    path.display()
                );
            }
        }
    }
    assert!(found >= 2, "{found}");
}

#[test]
fn every_example_is_in_the_table() {
    let entries = std::fs::read_dir(repository().join("examples")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let (manifests, rest): (Vec<String>, Vec<String>) = names.partition(|name| name.ends_with(".yaml"));
    let files: Vec<String> = rest.into_iter().filter(|name| name.ends_with(".json")).collect();
    let (live, files): (BTreeSet<String>, BTreeSet<String>) =
        files.into_iter().partition(|name| name.starts_with("live-"));
    let listed: BTreeSet<String> = table().into_iter().map(|row| row.file).collect();
    assert_eq!(listed, files);
    assert!(listed.len() >= 6);
    let text = std::fs::read_to_string(repository().join("examples/README.md")).unwrap();
    for name in manifests {
        assert!(text.contains(&format!("[{name}]({name})")), "{name}");
        assert_eq!(redflow(["tools", "check", &format!("examples/{name}")]).run().code, 0, "{name}");
    }
    for name in live {
        assert!(text.contains(&format!("\n| [{name}]({name}) | ")), "{name}");
        let checked = redflow(["check", &format!("examples/{name}")]).run();
        assert_eq!(checked.code, 0, "{checked:#?}");
    }
}

#[test]
fn a_second_turn_recalls_the_first() {
    for name in ["memory-buffer", "memory-window"] {
        let output = run(&format!("{name}.json"), &[]);
        let recalled = r#"[{"role":"user","content":"My name is Ada."},{"role":"assistant","content":"Nice to meet you, Ada."}]"#;
        assert!(output.stderr.contains(recalled), "{output:#?}");
    }
}

/// The line of a debug node.
fn debug_line(file: &str, node: &str) -> String {
    let output = run(file, &[]);
    let start = format!("[debug {node}]");
    let line = output.stderr.lines().find(|line| line.contains(&start));
    line.unwrap_or_else(|| panic!("{output:#?}")).to_owned()
}

#[test]
fn a_long_memory_recalls_the_tickets_that_fit() {
    let text = debug_line("memory-long.json", "Recalled");
    assert!(text.contains("Notes recalled from earlier conversations."), "{text}");
    for ticket in ["Ticket 101: ", "Ticket 102: "] {
        assert!(text.contains(ticket), "{text}");
    }
    let sources = debug_line("memory-long.json", "Sources");
    assert!(sources.matches("\"ref\":\"tab/memory/turn-").count() >= 2, "{sources}");
}

#[test]
fn a_summary_takes_the_place_of_the_first_turns() {
    let text = debug_line("memory-summary.json", "Recalled");
    assert!(text.contains("The user plans a trip to Lisbon in May with two children."), "{text}");
    assert!(!text.contains("I plan a trip to Lisbon"), "{text}");
    assert!(text.contains("The hotel should have a kitchen"), "{text}");
}

#[test]
fn exit_codes_match_the_table() {
    for Row { file, check, run, .. } in table() {
        let path = format!("examples/{file}");
        assert_eq!(redflow(["check", &path]).run().code, check, "check {file}");
        assert_eq!(redflow(["run", &path]).run().code, run, "run {file}");
    }
}

#[test]
fn every_result_matches_the_schemas() {
    for Row { file, what, run, .. } in table() {
        let path = format!("examples/{file}");
        let args = ["run", &path, "--json"].into_iter().chain(more(&file).iter().copied());
        let output = redflow(args).run();
        assert_eq!(output.code, run, "{file}");
        let message = port3(&output);
        let result = &message["agentResult"];
        let error = &result["error"];
        assert_eq!(result["stopReason"] == "error", run != 0, "{file}");
        if run == 0 {
            assert_eq!((error, message.get("error")), (&serde_json::Value::Null, None), "{file}");
            assert_eq!(output.errors(), [] as [&str; 0], "{file}");
            continue;
        }
        // The error is the same in all places, is printed once, and is in the table.
        let code = error["code"].as_str().unwrap();
        assert_eq!(&message["payload"], error, "{file}");
        assert_eq!(
            [&message["error"]["code"], &message["error"]["message"]],
            [&error["code"], &error["message"]]
        );
        assert_eq!(output.errors().iter().filter(|error| **error == code).count(), 1, "{file}: {output:#?}");
        assert!(what.contains(&format!("`{code}`")), "{file}: {code} is not in: {what}");
        if run == 1 {
            assert_eq!(output.errors(), [code], "{file}");
        }
    }
}

#[test]
fn the_message_as_json() {
    let output = redflow(["run", "examples/calculator-loop.json", "--json"]).run();
    insta::assert_json_snapshot!(normalize_json(output.json()));
}

fn run(file: &str, more: &[&str]) -> Output {
    redflow(["run", &format!("examples/{file}")].into_iter().chain(more.iter().copied())).run()
}

#[test]
fn the_timeline() {
    for name in ["calculator-loop", "confidence-stop", "tool-failure", "overflow"] {
        let output = run(&format!("{name}.json"), &[]);
        insta::assert_snapshot!(
            format!("timeline-{name}"),
            format!("{}---\n{}", normalize(&output.stderr), output.stdout)
        );
    }
}

#[test]
fn a_caught_error_is_printed_once() {
    let output = run("prose-answer.json", &[]);
    insta::assert_snapshot!(normalize(&output.stderr));
    assert_eq!((output.code, output.stdout.as_str(), output.errors()), (1, "", vec!["INVALID_JSON"]));
}

#[test]
fn a_refused_agent_prints_its_problems() {
    let output = run("refused-edge.json", &["--quiet"]);
    insta::assert_snapshot!(output.stderr);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
}

#[test]
fn quiet_prints_only_the_answer() {
    let output = run("calculator-loop.json", &["--quiet"]);
    let expected = Output { code: 0, stdout: "You pay 235.99.\n".to_owned(), stderr: String::new() };
    assert_eq!(output, expected);
    assert_eq!(run("calculator-loop.json", &["-q"]), expected);
    // Errors are printed in quiet mode too.
    let output = run("tool-not-allowed.json", &["-q"]);
    insta::assert_snapshot!(output.stderr);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
}
