//! Hostile inputs, by class: schemas, inputs of tools, flows, and texts for bodies and frames. Each one was or
//! could be an attack. The fault tests send them to a sidecar under load, and the fuzzers start from them.

use serde_json::{Map, Value, json};

/// A hostile value and what it tries.
#[derive(Debug, Clone)]
pub struct HostileCase {
    /// What it tries.
    pub name: &'static str,
    /// The value.
    pub value: Value,
}

fn case(name: &'static str, value: Value) -> HostileCase {
    HostileCase { name, value }
}

/// Schemas of tools that must be refused when they are deployed.
#[must_use]
pub fn schemas() -> Vec<HostileCase> {
    let old_draft = "http://json-schema.org/draft-04/schema#";
    let unevaluated = |inner| json!({"unevaluatedProperties": false, "allOf": [inner]});
    vec![
        case("doubles forty times", doubling("a")),
        case("doubles forty times behind percent-escapes", doubling("%61")),
        case("refers to itself for ever", json!({"$ref": "#"})),
        case(
            "refers to itself twice",
            json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}),
        ),
        case("is a long chain of references", chain(20_000)),
        case("looks again at every level", (0..30).fold(json!({}), |inner, _| unevaluated(inner))),
        case("has a reference whose target changes", json!({"$dynamicRef": "#a"})),
        case("has an id inside", json!({"properties": {"a": {"$id": "b", "$ref": "#"}}})),
        case(
            "has an old id inside",
            json!({"$schema": old_draft, "properties": {"a": {"id": "http://b", "$ref": "#"}}}),
        ),
        case("refers to a file", json!({"$ref": "file:///etc/passwd"})),
        case("refers to a host", json!({"$ref": "http://169.254.169.254/latest"})),
        case("repeats a pattern a billion times", json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"})),
        case("looks around", json!({"pattern": "(?=(a+)+$)b"})),
        case("has many large patterns", many_patterns()),
    ]
}

/// A schema that refers twice to the next of forty schemas. `prefix` decodes to `a`.
fn doubling(prefix: &str) -> Value {
    let mut schema = json!({"$ref": format!("#/$defs/{prefix}0"), "$defs": {"a40": {"type": "object"}}});
    for number in 0..40 {
        let next = json!({"$ref": format!("#/$defs/{prefix}{}", number + 1)});
        schema["$defs"][format!("a{number}")] = json!({"allOf": [next, next]});
        if prefix != "a" {
            // What a reader finds that decodes nothing.
            schema["$defs"][format!("{prefix}{number}")] = json!({"type": "object"});
        }
    }
    schema
}

/// A schema that refers to the next of many schemas.
fn chain(length: usize) -> Value {
    let next = |number| (format!("a{number}"), json!({"$ref": format!("#/$defs/a{}", number + 1)}));
    let mut definitions: Map<String, Value> = (0..length).map(next).collect();
    definitions.insert(format!("a{length}"), json!({}));
    json!({"$ref": "#/$defs/a0", "$defs": definitions})
}

fn many_patterns() -> Value {
    let pattern = |number| (format!("p{number}"), json!({"pattern": format!("({number}[a-z]{{90}}){{30}}")}));
    json!({"properties": (0..200).map(pattern).collect::<Map<_, _>>()})
}

/// Legal schemas, each with a tool input that takes far too long to validate.
#[must_use]
pub fn inputs() -> Vec<(&'static str, Value, Value)> {
    let of_text = |schema: Value| json!({"properties": {"a": schema}});
    let lists: Value = (0..30_000).map(|number| json!([number])).collect();
    // All these lists have the same hash.
    let shape = |width: usize, depth: usize| {
        (0..depth).fold(json!(vec![json!([]); width]), |inner, _| json!([inner]))
    };
    let equal_hashes: Value =
        (0..60).flat_map(|width| (0..40).map(move |depth| shape(width, depth))).collect();
    vec![
        (
            "a long text for a pattern",
            of_text(json!({"pattern": "[ab]*a[ab]{500}c"})),
            json!({"a": random_text(900_000)}),
        ),
        ("many lists for a long enum", of_text(json!({"items": {"enum": lists}})), json!({"a": lists})),
        ("lists with the same hash", of_text(json!({"uniqueItems": true})), json!({"a": equal_hashes})),
        (
            "many violations of alternatives",
            of_text(json!({"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "object"}}]})),
            json!({"a": vec![1; 300_000]}),
        ),
    ]
}

/// A text of `a` and `b` without a period, so that every search reads all of it.
fn random_text(length: usize) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 64 == 0 { 'a' } else { 'b' }
    };
    (0..length).map(next).collect()
}

/// Flows that are hostile, or hold a hostile schema.
#[must_use]
pub fn flows() -> Vec<HostileCase> {
    let mut flows: Vec<HostileCase> = schemas()
        .into_iter()
        .map(|HostileCase { name, value }| case(name, agent_flow(&value, &done())))
        .collect();
    let ids = 0..2_197;
    let never =
        ids.clone().map(|number| inject(number, json!({"crontab": format!("{} 0 30 2 *", number % 60)})));
    let rare = ids.map(|number| inject(number, json!({"crontab": format!("{} 0 29 2 1", number % 60)})));
    let numbers = ["repeat", "onceDelay", "timeout", "x", "y"];
    let large = numbers.map(|name| (name.to_owned(), json!(1e308)));
    let wires: Vec<String> = (0..1_500).map(|number| format!("i{number}")).collect();
    let hub = |number: usize| json!({"id": format!("i{number}"), "type": "junction", "z": "t", "x": 1, "y": 1, "wires": [wires]});
    let mut deep = agent_flow(&json!({"type": "object"}), &done());
    deep[0]["info"] = (0..110).fold(json!(1), |inner, _| json!([inner]));
    let mut tools = agent_flow(&json!({"type": "object"}), &done());
    for (number, name) in ["calc", "CALC", "Calc"].iter().enumerate() {
        tools[3 + number] = tool(&format!("tool{number}"), name, &json!({"type": "object"}));
    }
    tools[1]["wires"][1] = json!(["tool0", "tool1", "tool2"]);
    tools[1]["allowedTools"] = json!(["calc", "CALC", "Calc"]);
    flows.extend([
        case("2,197 crontabs that never come", with_tab(never)),
        case("2,197 crontabs that come once in 28 years", with_tab(rare)),
        case(
            "numbers that no timer can hold",
            with_tab([inject(0, Value::Object(large.into_iter().collect()))]),
        ),
        case("every junction wired to every other", with_tab((0..1_500).map(hub))),
        case("a property that nests deep", deep),
        case("tools whose names differ in case", tools),
        case("the same id everywhere", (0..500).map(|_| inject(1, json!({}))).collect()),
        case(
            "a subflow inside itself",
            json!([
                {"id": "s", "type": "subflow", "name": "s", "in": [{"wires": [{"id": "n"}]}], "out": []},
                {"id": "n", "type": "subflow:s", "z": "s", "wires": []},
                {"id": "t", "type": "tab"}, {"id": "u", "type": "subflow:s", "z": "t", "wires": []},
            ]),
        ),
        case("a list where an object belongs", json!([[], null, true])),
        case("a name that looks like a secret", agent_flow(&json!({"title": "${SECRET_KEY_BASE}"}), &done())),
    ]);
    flows
}

fn with_tab(nodes: impl IntoIterator<Item = Value>) -> Value {
    std::iter::once(json!({"id": "t", "type": "tab", "label": "hostile"})).chain(nodes).collect()
}

fn inject(number: usize, more: Value) -> Value {
    let mut node = json!({"id": format!("i{number}"), "type": "inject", "z": "t", "x": 1, "y": 1, "wires": [[]],
        "props": [{"p": "payload"}], "payload": "", "payloadType": "date"});
    if let (Some(node), Value::Object(more)) = (node.as_object_mut(), more) {
        node.extend(more);
    }
    node
}

fn tool(id: &str, name: &str, schema: &Value) -> Value {
    json!({"id": id, "type": "tool.witness", "z": "t", "x": 1, "y": 1, "wires": [], "toolName": name,
           "description": "calculates", "inputSchema": schema})
}

/// The replies of a model that answers at once.
fn done() -> Value {
    json!([{"action": "final", "message": "done"}])
}

/// A flow with an agent, a model that gives these replies, and a tool with this schema. Only a build with failpoints
/// can run the tool.
#[must_use]
pub fn agent_flow(schema: &Value, replies: &Value) -> Value {
    json!([
        {"id": "t", "type": "tab", "label": "hostile"},
        {"id": "hostile-agent", "type": "agent-core", "z": "t", "x": 1, "y": 1, "strategy": "react",
         "wires": [["hostile-model"], ["hostile-tool"], [], [], []], "maxIterations": 3,
         "allowedTools": ["hostile"]},
        {"id": "hostile-model", "type": "scripted-model", "z": "t", "x": 1, "y": 1, "wires": [],
         "replies": replies},
        tool("hostile-tool", "hostile", schema),
        {"id": "hostile-debug", "type": "debug", "z": "t", "x": 1, "y": 1, "wires": []},
        {"id": "hostile-comment", "type": "comment", "z": "t", "x": 1, "y": 1, "wires": []},
    ])
}

/// Texts for any body and any frame. None is a valid request. The large ones have about `bytes`.
#[must_use]
pub fn texts(bytes: usize) -> Vec<(&'static str, String)> {
    let fill = |piece: &str| piece.repeat(bytes / piece.len());
    let key = |number: usize| format!("\"k{number}\":{number}");
    vec![
        ("zeros", format!("[{}0]", fill("0,"))),
        ("empty lists", format!("[{}[]]", fill("[],"))),
        ("many keys", format!("{{{}}}", (0..bytes / 16).map(key).collect::<Vec<_>>().join(","))),
        ("one key again and again", format!("{{{}\"a\":1}}", fill("\"a\":1,"))),
        ("a long text", format!("\"{}\"", fill("x"))),
        ("a text of escapes", format!("\"{}\"", fill("\\u0041"))),
        ("deep lists", fill("[")),
        ("deep objects", fill("{\"a\":")),
        ("a long number", fill("9")),
        ("spaces", fill(" ")),
        ("an integer beyond 64 bits", r#"{"type":"start","seq":18446744073709551616}"#.to_owned()),
        ("half a character", r#"{"type":"\ud800"}"#.to_owned()),
        ("a zero byte", "{\"type\":\"\u{0}\"}".to_owned()),
        ("a list where an object belongs", r#"[[],null,true]"#.to_owned()),
        ("an unknown type", r#"{"type":"__proto__"}"#.to_owned()),
        ("nothing", String::new()),
        ("null", "null".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::{flows, inputs, schemas, texts};

    #[test]
    fn has_every_class() {
        assert!(schemas().len() >= 14 && inputs().len() >= 4 && flows().len() >= 24);
        assert!(texts(1_000_000).iter().filter(|(_, text)| text.len() > 900_000).count() >= 9);
    }
}
