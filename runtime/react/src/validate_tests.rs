use super::{ValidAnswer, validate_answer};
use crate::compile::CompiledAgent;
use crate::compile::tests::{expression_schema, spec};
use pretty_assertions::assert_eq;
use redflow_contract::action::ModelAction;
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::run_error::RunError;
use serde_json::{Value, json};
use std::sync::Arc;

fn agent() -> Arc<CompiledAgent> {
    let tools = [("calculator", "", Some(expression_schema())), ("anything", "", None)];
    let mut spec = (*spec(&tools)).clone();
    spec.limits.max_answer_bytes = 2_000;
    spec.limits.max_answer_depth = 10;
    CompiledAgent::compile(Arc::new(spec)).unwrap()
}

fn validate(text: &str) -> Result<ValidAnswer, RunError> {
    let answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
    validate_answer(agent().action_rules(), &answer, 3)
}

/// The code, pointer and rule of the error. Also checks that the message is one sentence.
fn broken(text: &str) -> (String, String, String) {
    let error = validate(text).expect_err(text);
    assert_eq!(error.iteration, 3);
    assert!(error.message.ends_with('.') && error.message.len() < 500, "{}", error.message);
    assert!(!error.message.contains(['\n', '\u{1b}']), "{}", error.message);
    (error.code.to_string(), error.pointer.unwrap_or_default(), error.rule.unwrap_or_default())
}

fn check(cases: &[(&str, &str, &str, &str)]) {
    for (text, code, pointer, rule) in cases {
        let expected = ((*code).to_owned(), (*pointer).to_owned(), (*rule).to_owned());
        assert_eq!(broken(text), expected, "{text}");
    }
}

fn tool(change: impl FnOnce(&mut Value)) -> String {
    let mut action =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "1+1"}, "confidence": 0.9});
    change(&mut action);
    action.to_string()
}

// SECURITY: strict-answer
#[test]
fn accepts_only_one_json_object() {
    let deep = format!("{}1{}", "{\"a\":".repeat(11), "}".repeat(11));
    let long = format!("{{\"action\":\"final\",\"message\":\"{}\"}}", "x".repeat(2_000));
    check(&[
        ("", "INVALID_JSON", "", "json"),
        ("  \n", "INVALID_JSON", "", "json"),
        ("I think the answer is 4.", "INVALID_JSON", "", "json"),
        ("```json\n{\"action\":\"final\"}\n```", "INVALID_JSON", "", "json"),
        ("{\"action\":\"final\"}{\"action\":\"final\"}", "INVALID_JSON", "", "json"),
        ("{\"action\":\"final\"} done", "INVALID_JSON", "", "json"),
        ("Sure: {\"action\":\"final\"}", "INVALID_JSON", "", "json"),
        ("{\"action\":\"final\"", "INVALID_JSON", "", "json"),
        ("{'action':'final'}", "INVALID_JSON", "", "json"),
        ("{\"action\":\"final\",}", "INVALID_JSON", "", "json"),
        ("{\"action\":\"final\",\"confidence\":1e999}", "INVALID_JSON", "", "json"),
        ("[{\"action\":\"final\"}]", "INVALID_JSON", "", "type"),
        ("\"final\"", "INVALID_JSON", "", "type"),
        ("null", "INVALID_JSON", "", "type"),
        ("7", "INVALID_JSON", "", "type"),
        ("{\"action\":\"final\",\"action\":\"final\"}", "INVALID_JSON", "/action", "duplicateKey"),
        (
            "{\"action\":\"tool\",\"tool\":\"anything\",\"input\":{\"a\":[{\"b\":1,\"b\":1}]},\"confidence\":1}",
            "INVALID_JSON",
            "/input/a/0/b",
            "duplicateKey",
        ),
        (&deep, "INVALID_JSON", "", "maxDepth"),
        (&long, "INVALID_JSON", "", "maxBytes"),
    ]);
}

// SECURITY: strict-answer
#[test]
fn an_action_has_five_keys_of_known_types() {
    check(&[
        ("{}", "INVALID_ACTION", "/action", "required"),
        (r#"{"action":null}"#, "INVALID_ACTION", "/action", "required"),
        (r#"{"action":1}"#, "INVALID_ACTION", "/action", "type"),
        (r#"{"action":"Final"}"#, "INVALID_ACTION", "/action", "enum"),
        (r#"{"action":"final","thought":"hm"}"#, "INVALID_ACTION", "/thought", "additionalProperties"),
        (r#"{"action":"final","a/b~":null}"#, "INVALID_ACTION", "/a~1b~0", "additionalProperties"),
        (r#"{"action":"final","message":7}"#, "INVALID_ACTION", "/message", "type"),
        (&tool(|a| a["message"] = json!([])), "INVALID_ACTION", "/message", "type"),
        (&tool(|a| a["tool"] = json!(null)), "INVALID_ACTION", "/tool", "required"),
        (&tool(|a| a["tool"] = json!(5)), "INVALID_ACTION", "/tool", "type"),
        (&tool(|a| a["input"] = json!(null)), "INVALID_ACTION", "/input", "required"),
        (&tool(|a| a["input"] = json!("1+1")), "INVALID_ACTION", "/input", "type"),
        (&tool(|a| a["input"] = json!([])), "INVALID_ACTION", "/input", "type"),
        (&tool(|a| drop(a.as_object_mut().unwrap().remove("tool"))), "INVALID_ACTION", "/tool", "required"),
        (&tool(|a| drop(a.as_object_mut().unwrap().remove("input"))), "INVALID_ACTION", "/input", "required"),
    ]);
}

// SECURITY: strict-answer, allowed-tools
#[test]
fn checks_the_tool_and_its_input() {
    check(&[
        (&tool(|a| a["tool"] = json!("shell")), "TOOL_NOT_ALLOWED", "/tool", "enum"),
        (&tool(|a| a["tool"] = json!("")), "TOOL_NOT_ALLOWED", "/tool", "enum"),
        (&tool(|a| a["tool"] = json!("Calculator")), "TOOL_NOT_ALLOWED", "/tool", "enum"),
        (&tool(|a| a["input"] = json!({})), "TOOL_INPUT_INVALID", "/input/expression", "required"),
        (&tool(|a| a["input"]["expression"] = json!(5)), "TOOL_INPUT_INVALID", "/input/expression", "type"),
        (
            &tool(|a| a["input"]["expression"] = json!(null)),
            "TOOL_INPUT_INVALID",
            "/input/expression",
            "type",
        ),
        (
            &tool(|a| a["input"]["x~y"] = json!(5)),
            "TOOL_INPUT_INVALID",
            "/input/x~0y",
            "additionalProperties",
        ),
    ]);
}

// SECURITY: strict-answer
#[test]
fn confidence_is_a_number_from_0_to_1() {
    check(&[
        (&tool(|a| a["confidence"] = json!(null)), "INVALID_CONFIDENCE", "/confidence", "required"),
        (
            &tool(|a| drop(a.as_object_mut().unwrap().remove("confidence"))),
            "INVALID_CONFIDENCE",
            "/confidence",
            "required",
        ),
        (&tool(|a| a["confidence"] = json!("0.9")), "INVALID_CONFIDENCE", "/confidence", "type"),
        (&tool(|a| a["confidence"] = json!(true)), "INVALID_CONFIDENCE", "/confidence", "type"),
        (&tool(|a| a["confidence"] = json!(1.0001)), "INVALID_CONFIDENCE", "/confidence", "maximum"),
        (&tool(|a| a["confidence"] = json!(-0.1)), "INVALID_CONFIDENCE", "/confidence", "minimum"),
        (r#"{"action":"final","confidence":2}"#, "INVALID_CONFIDENCE", "/confidence", "maximum"),
        (r#"{"action":"final","confidence":"high"}"#, "INVALID_CONFIDENCE", "/confidence", "type"),
    ]);
    for fine in [json!(0), json!(1), json!(0.0), json!(1.0), json!(-0.0), json!(0.5)] {
        assert!(validate(&tool(|a| a["confidence"] = fine.clone())).is_ok(), "{fine}");
    }
}

/// Each answer breaks its own rule and every rule after it.
// SECURITY: strict-answer
#[test]
fn the_first_broken_rule_is_reported() {
    let bad = r#""confidence":9"#;
    let cases = [
        (
            format!(r#"{{"x":1,"x":1,"action":"no","message":1,"tool":1,"input":1,{bad}}}"#),
            "INVALID_JSON",
            "/x",
        ),
        (
            format!(r#"{{{bad},"input":1,"tool":1,"message":1,"action":"no","x":1,"y":1}}"#),
            "INVALID_ACTION",
            "/x",
        ),
        (format!(r#"{{{bad},"input":1,"tool":1,"message":1,"action":"no"}}"#), "INVALID_ACTION", "/action"),
        (
            format!(r#"{{{bad},"input":1,"tool":1,"message":1,"action":"tool"}}"#),
            "INVALID_ACTION",
            "/message",
        ),
        (format!(r#"{{{bad},"input":1,"tool":1,"action":"tool"}}"#), "INVALID_ACTION", "/tool"),
        (format!(r#"{{{bad},"input":1,"tool":"shell","action":"tool"}}"#), "INVALID_ACTION", "/input"),
        (format!(r#"{{{bad},"input":{{}},"tool":"shell","action":"tool"}}"#), "TOOL_NOT_ALLOWED", "/tool"),
        (
            format!(r#"{{{bad},"input":{{}},"tool":"calculator","action":"tool"}}"#),
            "TOOL_INPUT_INVALID",
            "/input/expression",
        ),
        (
            format!(r#"{{{bad},"input":{{}},"tool":"anything","action":"tool"}}"#),
            "INVALID_CONFIDENCE",
            "/confidence",
        ),
    ];
    for (text, code, pointer) in cases {
        let (found, at, _) = broken(&text);
        assert_eq!((found.as_str(), at.as_str()), (code, pointer), "{text}");
    }
}

// SECURITY: strict-answer
#[test]
fn checks_refusal_and_truncation_first() {
    for (finish, code) in
        [(ModelFinish::Refused, "MODEL_REFUSED"), (ModelFinish::Truncated, "MODEL_TRUNCATED")]
    {
        for text in ["", "not json", r#"{"action":"final"}"#] {
            let answer = ModelAnswer { text: text.to_owned(), finish, ..ModelAnswer::default() };
            let error = validate_answer(agent().action_rules(), &answer, 1).unwrap_err();
            assert_eq!((error.code.as_str(), error.pointer, error.rule), (code, None, None));
        }
    }
}

// SECURITY: strict-answer
#[test]
fn accepts_valid_answers() {
    let text = tool(|a| a["message"] = json!("adding"));
    let raw: Value = serde_json::from_str(&text).unwrap();
    let input = json!({"expression": "1+1"}).as_object().unwrap().clone();
    let action = ModelAction::Tool {
        tool: "calculator".to_owned(),
        input,
        confidence: 0.9,
        message: Some("adding".to_owned()),
    };
    assert_eq!(validate(&text), Ok(ValidAnswer { action, raw }));

    let cases = [
        (r#"{"action":"final"}"#, None, None),
        (r#" {"action":"final","message":null,"confidence":null,"tool":null,"input":null} "#, None, None),
        (r#"{"action":"final","tool":5,"input":"x","message":"4","confidence":1}"#, Some(1.0), Some("4")),
        (r#"{"action":"final","tool":"shell","input":{},"message":""}"#, None, Some("")),
    ];
    for (text, confidence, message) in cases {
        let valid = validate(text).unwrap();
        let message = message.map(str::to_owned);
        assert_eq!(valid.action, ModelAction::Final { confidence, message }, "{text}");
        assert_eq!(valid.raw, serde_json::from_str::<Value>(text).unwrap());
    }
    assert!(validate(&tool(|a| a["message"] = json!(null))).is_ok());
    assert!(validate(&tool(|a| a["tool"] = json!("anything"))).is_ok(), "no schema takes any object");
}

// SECURITY: strict-answer
#[test]
fn error_texts_never_repeat_the_answer() {
    let secret = "sk-very-secret";
    let texts = [
        format!("{secret} {{}}"),
        format!(r#"{{"action":"final","message":["{secret}"]}}"#),
        tool(|a| a["input"]["expression"] = json!([secret])),
        tool(|a| a["confidence"] = json!(secret)),
    ];
    for text in texts {
        let error = validate(&text).unwrap_err();
        assert!(!serde_json::to_string(&error).unwrap().contains(secret), "{error:?}");
    }
    let error =
        validate(&tool(|a| a["tool"] = json!(format!("x\n\u{1b}[2J{}", "y".repeat(100))))).unwrap_err();
    assert_eq!(
        error.message,
        format!(r"The tool `x\u{{a}}\u{{1b}}[2J{}…` is not one of the allowed tools.", "y".repeat(58))
    );
    let long = format!(r#"{{"action":"final","{}":1}}"#, "k".repeat(1_500));
    assert!(validate(&long).unwrap_err().pointer.unwrap().chars().count() <= 257);
}

// SECURITY: strict-answer
#[test]
fn reports_the_first_violation_by_pointer_and_rule() {
    let schema = json!({
        "properties": {"b": {"type": "string", "enum": ["x"]}, "a": {"minimum": 5, "type": "string"}},
        "required": ["z", "b"],
    });
    let agent = CompiledAgent::compile(spec(&[("t", "", Some(schema))])).unwrap();
    let first = |input: Value| {
        let text = json!({"action": "tool", "tool": "t", "input": input, "confidence": 1}).to_string();
        let error = validate_answer(agent.action_rules(), &ModelAnswer { text, ..ModelAnswer::default() }, 1)
            .unwrap_err();
        (error.pointer.unwrap(), error.rule.unwrap())
    };
    let pair = |pointer: &str, rule: &str| (pointer.to_owned(), rule.to_owned());
    assert_eq!(first(json!({"b": 1, "a": 1})), pair("/input/a", "minimum"));
    assert_eq!(first(json!({"b": 1})), pair("/input/b", "enum"));
    assert_eq!(first(json!({})), pair("/input/b", "required"));
    // Beyond the bound only the validator's own first is looked at; it is one of those.
    let (pointer, _) =
        first(json!({"b": 1, "a": 1, "pad": "x".repeat(redflow_machine::violation::SORTED_BYTES)}));
    assert!(["/input/a", "/input/b", "/input/z"].contains(&pointer.as_str()), "{pointer}");
}

// SECURITY: strict-answer
#[test]
fn every_rule_has_a_text() {
    let cases = [
        (json!({"prefixItems": [true], "items": false}), json!([1, 2]), "falseSchema"),
        (json!({"const": 1}), json!(2), "const"),
        (json!({"contains": {"type": "null"}}), json!([1]), "contains"),
        (json!({"anyOf": [{"type": "null"}]}), json!(1), "anyOf"),
        (json!({"oneOf": [true, true]}), json!(1), "oneOf"),
        (json!({"not": {}}), json!(1), "not"),
        (json!({"maximum": 1}), json!(2), "maximum"),
        (json!({"exclusiveMaximum": 1}), json!(1), "exclusiveMaximum"),
        (json!({"exclusiveMinimum": 1}), json!(1), "exclusiveMinimum"),
        (json!({"maxLength": 1}), json!("ab"), "maxLength"),
        (json!({"minLength": 3}), json!("ab"), "minLength"),
        (json!({"maxItems": 0}), json!([1]), "maxItems"),
        (json!({"minItems": 1}), json!([]), "minItems"),
        (json!({"uniqueItems": true}), json!([1, 1]), "uniqueItems"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "maxProperties"),
        (json!({"minProperties": 1}), json!({}), "minProperties"),
        (json!({"multipleOf": 2}), json!(3), "multipleOf"),
        (json!({"pattern": "^a$"}), json!("b"), "pattern"),
        (json!({"propertyNames": {"maxLength": 1}}), json!({"ab": 1}), "propertyNames"),
        (json!({"unevaluatedProperties": false}), json!({"ab": 1}), "unevaluatedProperties"),
    ];
    for (schema, value, rule) in cases {
        let schema = json!({"properties": {"v": schema}});
        let agent = CompiledAgent::compile(spec(&[("t", "", Some(schema))])).unwrap();
        let text = json!({"action": "tool", "tool": "t", "input": {"v": value}, "confidence": 1}).to_string();
        let answer = ModelAnswer { text, ..ModelAnswer::default() };
        let error = validate_answer(agent.action_rules(), &answer, 1).unwrap_err();
        assert_eq!(error.rule.as_deref(), Some(rule));
        let words = redflow_machine::violation::RULES.iter().find(|(known, _)| *known == rule).unwrap().1;
        assert!(error.message.contains(words), "{rule}");
    }
}

// SECURITY: strict-answer
#[test]
fn bounds_the_work_of_checking_an_input_since_version_2() {
    let schema = json!({"properties": {"text": {"pattern": "[ab]*a[ab]{400}c"}}});
    let input = json!({"text": "ab".repeat(5_000)});
    let text = json!({"action": "tool", "tool": "t", "input": input, "confidence": 1}).to_string();
    let answer = ModelAnswer { text, ..ModelAnswer::default() };
    let check = |version| {
        let agent =
            CompiledAgent::compile_version(spec(&[("t", "", Some(schema.clone()))]), version).unwrap();
        let error = validate_answer(agent.action_rules(), &answer, 1).unwrap_err();
        (error.code, error.pointer.unwrap(), error.rule.unwrap())
    };
    let code = redflow_contract::code::RunErrorCode::ToolInputInvalid;
    assert_eq!(check(1), (code, "/input/text".to_owned(), "pattern".to_owned()));
    assert_eq!(check(2), (code, "/input".to_owned(), "work".to_owned()));
}

// SECURITY: strict-answer
#[test]
fn refuses_an_integer_that_would_change_since_version_2() {
    let schema = json!({"properties": {"a": {"type": "integer"}}});
    let text = r#"{"action":"tool","tool":"t","input":{"a":123456789012345678901},"confidence":1}"#;
    let answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
    let check = |version| {
        let agent =
            CompiledAgent::compile_version(spec(&[("t", "", Some(schema.clone()))]), version).unwrap();
        validate_answer(agent.action_rules(), &answer, 1)
    };
    assert!(check(1).is_ok());
    let error = check(2).unwrap_err();
    assert_eq!((error.code.as_str(), error.rule.as_deref()), ("INVALID_JSON", Some("integer")));
    assert!(error.message.contains("line 1, column 42"), "{}", error.message);
}
