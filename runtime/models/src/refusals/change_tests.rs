use super::{Change, Interface};

#[test]
fn each_change_edits_its_field() {
    for (change, body, expected, field) in [
        (Change::Omit(["seed".into()].into()), r#"{"a":1,"seed":2}"#, Some(r#"{"a":1}"#), "seed"),
        (
            Change::Omit(["generationConfig".into(), "topK".into()].into()),
            r#"{"generationConfig":{"topK":1}}"#,
            Some(r#"{"generationConfig":{}}"#),
            "generationConfig.topK",
        ),
        // An empty group says nothing, and a server may not know it.
        (
            Change::Omit(["output_config".into(), "effort".into()].into()),
            r#"{"a":1,"output_config":{"effort":"low"}}"#,
            Some(r#"{"a":1}"#),
            "output_config.effort",
        ),
        (
            Change::Omit(["output_config".into(), "effort".into()].into()),
            r#"{"output_config":{"effort":"low","format":{}}}"#,
            Some(r#"{"output_config":{"format":{}}}"#),
            "output_config.effort",
        ),
        (Change::Omit(["seed".into()].into()), "{}", None, "seed"),
        (
            Change::LimitName("max_completion_tokens"),
            r#"{"max_tokens":5}"#,
            Some(r#"{"max_completion_tokens":5}"#),
            "max_tokens",
        ),
        (
            Change::LimitName("max_tokens"),
            r#"{"max_completion_tokens":5}"#,
            Some(r#"{"max_tokens":5}"#),
            "max_completion_tokens",
        ),
        (Change::Limit(9), r#"{"max_output_tokens":5}"#, Some(r#"{"max_output_tokens":9}"#), "max_tokens"),
        (
            Change::Limit(9),
            r#"{"options":{"num_predict":5}}"#,
            Some(r#"{"options":{"num_predict":9}}"#),
            "max_tokens",
        ),
        (
            Change::Effort("high"),
            r#"{"reasoning":{"effort":"low"}}"#,
            Some(r#"{"reasoning":{"effort":"high"}}"#),
            "reasoning_effort",
        ),
        (
            Change::Effort("low"),
            r#"{"generationConfig":{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}}"#,
            Some(r#"{"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}}"#),
            "reasoning_effort",
        ),
        // Without a field, Chat Completions gets one.
        (
            Change::Effort("none"),
            r#"{"model":"m"}"#,
            Some(r#"{"model":"m","reasoning_effort":"none"}"#),
            "reasoning_effort",
        ),
        (
            Change::AdaptiveThinking,
            r#"{"thinking":{"type":"enabled","budget_tokens":2048}}"#,
            Some(r#"{"thinking":{"type":"adaptive"}}"#),
            "thinking",
        ),
        (Change::Interface(Interface::Responses), "{}", None, "chat/completions"),
        (Change::Interface(Interface::Chat), "{}", None, "responses"),
        (Change::FreeChoice, r#"{"tool_choice":"required"}"#, None, "tool_choice"),
        (Change::NoStream, "{}", None, "stream"),
        (Change::WeakerFormat, "{}", None, "response_format"),
        (Change::NoThoughts, "{}", None, "thoughts"),
    ] {
        assert_eq!(change.apply(body).as_deref(), expected, "{change:?}");
        assert_eq!(change.field(), field, "{change:?}");
    }
}
