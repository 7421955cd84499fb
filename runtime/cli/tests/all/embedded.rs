//! What the binary contains: schemas, types, completions, help.

use crate::kit::{Folder, Output, redflow, repository};
use pretty_assertions::assert_eq;
use redflow_contract::schemas::SCHEMAS;

fn success(stdout: String) -> Output {
    Output { code: 0, stdout, stderr: String::new() }
}

#[test]
fn types_never_overwrite_a_foreign_file() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("src")).unwrap();
    folder.write("src/index.ts", "export const mine = 1;\n");
    folder
        .redflow(["types", "src"])
        .run()
        .assert_refused("src/index.ts exists and was not written by `redflow types`");
    assert_eq!(folder.read("src/index.ts"), "export const mine = 1;\n");
    assert!(!folder.path("src/types.ts").exists());
    // It can overwrite its own files, also those of an earlier build with other first lines.
    for _ in 0..2 {
        assert_eq!(folder.redflow(["types", "new"]).run().code, 0);
        folder.write("new/client.ts", "// The client of an earlier build.\n");
    }
    assert_eq!(folder.redflow(["types", "new"]).run().code, 0);
    assert_ne!(folder.read("new/client.ts"), "// The client of an earlier build.\n");
}

#[test]
fn schemas_are_listed_and_printed() {
    let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
    assert_eq!(redflow(["schema"]).run(), success(names.join("\n") + "\n"));
    for name in names {
        let file = repository().join(format!("schemas/{name}.schema.json"));
        let expected = success(std::fs::read_to_string(file).unwrap());
        assert_eq!(redflow(["schema", name]).run(), expected);
        assert_eq!(redflow(["schema", &format!("{name}.schema.json")]).run(), expected);
        jsonschema::validator_for(&serde_json::from_str(&expected.stdout).unwrap()).unwrap();
    }
    redflow(["schema", "agent"])
        .run()
        .assert_refused("there is no schema `agent`; `redflow schema` lists them all");
}

#[test]
fn types_are_the_sources_of_the_bindings() {
    let folder = Folder::new();
    let output = folder.redflow(["types", "new/deep"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert_eq!(output.stderr, "wrote 12 files into new/deep\n");
    // All files are needed, because they import each other.
    for entry in std::fs::read_dir(repository().join("bindings/src")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(folder.read(&format!("new/deep/{name}")), std::fs::read_to_string(path).unwrap());
    }
    assert_eq!(folder.redflow(["types", "new/deep"]).run().code, 0, "they can be written again");
}

#[test]
fn types_report_a_folder_that_cannot_be_written() {
    let folder = Folder::new();
    folder.write("file", "mine");
    folder.redflow(["types", "file"]).run().assert_refused("cannot write into file: ");
    folder.redflow(["types", "file/below"]).run().assert_refused("cannot write into file/below: ");
    std::fs::create_dir_all(folder.path("taken/types.ts")).unwrap();
    folder.redflow(["types", "taken"]).run().assert_refused("taken/types.ts exists");
    assert_eq!(folder.read("file"), "mine");
    redflow(["types"]).run().assert_refused("<DIR>");
}

#[test]
fn version() {
    let expected = success(format!("redflow {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(redflow(["--version"]).run(), expected);
    assert_eq!(redflow(["-V"]).run(), expected);
}

const COMMANDS: [&str; 17] = [
    "check",
    "run",
    "import",
    "export",
    "serve",
    "runs",
    "models",
    "tools",
    "replay",
    "backup",
    "token",
    "config",
    "explain",
    "schema",
    "types",
    "completions",
    "flows",
];
const RUNS_COMMANDS: [&str; 8] =
    ["list", "show", "events", "export", "cancel", "resolve", "prune", "recount"];

#[test]
fn help() {
    let top = redflow(["--help"]).run();
    insta::assert_snapshot!(top.stdout);
    assert_eq!((top.code, top.stderr.as_str()), (0, ""));
    for command in COMMANDS {
        let output = redflow([command, "--help"]).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.contains(&format!("Usage: redflow {command}")), "{output:#?}");
        assert_eq!(redflow(["help", command]).run(), output);
    }
    for command in RUNS_COMMANDS {
        let output = redflow(["runs", command, "--help"]).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.contains(&format!("Usage: redflow runs {command}")), "{output:#?}");
        assert!(output.stdout.contains("REDFLOW_DATA"), "{output:#?}");
    }
}

#[test]
fn help_of_commands_with_options() {
    for name in ["run", "runs", "replay", "backup", "serve", "token", "import", "export", "flows"] {
        insta::assert_snapshot!(format!("help-{name}"), redflow([name, "--help"]).run().stdout);
    }
    insta::assert_snapshot!("help-models-test", redflow(["models", "test", "--help"]).run().stdout);
    insta::assert_snapshot!("help-tools", redflow(["tools", "--help"]).run().stdout);
    insta::assert_snapshot!("help-tools-check", redflow(["tools", "check", "--help"]).run().stdout);
    for name in ["import", "export"] {
        let help = redflow(["credentials", name, "--help"]).run().stdout;
        insta::assert_snapshot!(format!("help-credentials-{name}"), help);
    }
    for name in ["pull", "push", "diff"] {
        insta::assert_snapshot!(
            format!("help-flows-{name}"),
            redflow(["flows", name, "--help"]).run().stdout
        );
    }
    insta::assert_snapshot!("help-config-show", redflow(["config", "show", "--help"]).run().stdout);
    for name in ["prune", "recount"] {
        insta::assert_snapshot!(format!("help-runs-{name}"), redflow(["runs", name, "--help"]).run().stdout);
    }
}

#[test]
fn completions_contain_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = redflow(["completions", shell]).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{shell}");
        for word in COMMANDS.iter().chain(&RUNS_COMMANDS).chain(&[
            "deny-warnings",
            "journal",
            "resume",
            "older-than",
            "token-file",
            "listen",
        ]) {
            assert!(output.stdout.contains(word), "{shell}: {word}");
        }
    }
    redflow(["completions", "cmd"]).run().assert_refused("invalid value 'cmd'");
}
