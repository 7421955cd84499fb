//! Manifests of tools: YAML, JSON, and what they mean.

use super::{Outcome, Target};
use redflow_contract::manifest::Manifest;
use redflow_contract::policy::Policy;
use redflow_flow::{check_manifest, check_node_tools, check_tool};
use redflow_store::{ManifestFormat, parse_manifest};
use redflow_tools::http::RequestTemplate;
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../../../examples/tools.yaml");

/// Parts of YAML that a change of bytes rarely finds.
const YAML: [&str; 6] = [
    "a: &x [1]\nb: *x\nc: !!str 1\n<<: {d: 1}\n",
    "? key\n: 'it''s'\n? [a, b]\n: |2-\n    text\n   more\n",
    "%YAML 1.2\n---\na: >+\n  folded\n\n---\nb\n...\n",
    "{a: [1, 2.5, 0x1F, 0o17, .inf, ~, no], \"b\\u0041\\n\": \"\\ud83d\\ude00\", c: {}}",
    "- - - a\n  - b: c\n    d:\n    - e\n-\t# comment\n",
    "\u{feff}# comment\r\ntools:\r\n- id: a.b\r\n",
];

pub(super) struct ManifestText;

impl Target for ManifestText {
    fn name(&self) -> &'static str {
        "manifest"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let nodes = json!({"nodes": {"mail": {"send": {
            "description": "Sends.", "inputSchema": {"type": "object"}, "timeout": 1, "retry": {"max": 1},
            "msg": {"payload": "{{input.text}}"}, "result": "payload.id",
        }}}});
        let example = parse_manifest(EXAMPLE.as_bytes(), ManifestFormat::Yaml).unwrap_or_default();
        let texts = [EXAMPLE.to_owned(), example.to_string(), nodes.to_string()];
        texts.into_iter().chain(YAML.map(str::to_owned)).map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let yaml = parse_manifest(input, ManifestFormat::Yaml);
        let json = parse_manifest(input, ManifestFormat::Json);
        if let (Ok(yaml), Ok(json)) = (&yaml, &json)
            && without_numbers(yaml) != without_numbers(json)
        {
            return Err("YAML and JSON read the same text as different values".to_owned());
        }
        let mut outcomes = Vec::new();
        for read in [yaml, json] {
            outcomes.push(match read {
                Ok(value) => check(&value)?,
                Err(problems) if problems.is_empty() => return Err("refused without a problem".to_owned()),
                Err(_) => "unreadable",
            });
        }
        Ok(outcomes.join(" "))
    }
}

fn check(value: &Value) -> Result<&'static str, String> {
    let _ = (check_tool(value), check_node_tools(value));
    let problems = match check_manifest(value) {
        Ok(manifest) => return check_valid(&manifest).map(|()| "valid"),
        Err(problems) => problems,
    };
    if problems.iter().any(|problem| problem.message.is_empty() || problem.help.is_empty()) {
        return Err("a problem without a text".to_owned());
    }
    if problems.is_empty() { Err("refused without a problem".to_owned()) } else { Ok("refused") }
}

/// A valid manifest compiles, its tools can be built, and it is valid again after it was written.
fn check_valid(manifest: &Manifest) -> Result<(), String> {
    let written = serde_json::to_value(manifest).map_err(|error| error.to_string())?;
    if check_manifest(&written).as_ref() != Ok(manifest) {
        return Err("a valid manifest is another one after it was written".to_owned());
    }
    for tool in &manifest.tools {
        RequestTemplate::read(tool)
            .map_err(|problems| format!("a valid tool cannot be built: {problems:?}"))?;
    }
    Policy::new(&manifest.policy, &manifest.roles)
        .map(drop)
        .map_err(|_| "a valid policy does not compile".to_owned())
}

/// YAML and JSON write some numbers in different ways.
fn without_numbers(value: &Value) -> Value {
    match value {
        Value::Number(_) => Value::Null,
        Value::Array(items) => items.iter().map(without_numbers).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), without_numbers(value))).collect(),
        other => other.clone(),
    }
}
