//! The flow, the commands and the list of types in the documentation.

use crate::kit::{redflow, repository};
use redflow_contract::catalogue::STRUCTURE_TYPES;
use redflow_contract::node::NODES;
use redflow_contract::node::declaration::NodeDeclaration;

fn page(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap()
}

#[test]
fn the_documented_flow_runs() {
    let page = page("docs/agent-core.md");
    let flow = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let checked = redflow(["check", "--deny-warnings", "-"]).stdin(flow).run();
    assert_eq!((checked.code, checked.stdout.as_str()), (0, "ok: 0 errors, 0 warnings, 0 notes in 1 flow\n"));
    let ran = redflow(["run", "-"]).stdin(flow).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "It is 4.\n"), "{ran:#?}");
}

#[test]
fn every_documented_option_exists() {
    let page = page("docs/cli.md");
    let table = page.split("## Commands").nth(1).and_then(|rest| rest.split("## ").next()).unwrap();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        for command in row.split('`').skip(1).step_by(2) {
            // Of `runs show RUN [--json]`, the names of commands are `runs show`.
            let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
            let names: Vec<&str> = command.split_whitespace().take_while(is_name).collect();
            // A lone option is not a command to type.
            if names.is_empty() {
                continue;
            }
            let help = redflow(names.iter().copied().chain(["--help"])).run();
            assert_eq!(help.code, 0, "{command}");
            for option in command.split(['[', ']', ' ', '|', '\\']).filter(|word| word.starts_with("--")) {
                assert!(help.stdout.contains(option), "redflow {} has no {option}", names.join(" "));
            }
        }
    }
}

#[test]
fn the_declared_native_types_run() {
    // A config node holds properties of others.
    let runs = |node: &&NodeDeclaration| !STRUCTURE_TYPES.contains(&node.node_type.name) && !node.config;
    for node in NODES.iter().filter(runs) {
        let type_name = node.node_type.name;
        let flow = serde_json::json!([{"id": "n", "type": type_name, "x": 1, "y": 1, "wires": []}]);
        let report = redflow(["check", "--json", "-"]).stdin(flow.to_string()).run();
        assert_eq!(report.stdout.contains("NEEDS_NODE_RED"), !node.native, "{type_name}: {report:#?}");
    }
}
