use crate::ModelSettings;
use crate::price::{Price, Prices};
use crate::recording::{Node, Recording};
use crate::samples;
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelFinish, Usage};
use redflow_ports::{AnswerKind, ToolChoice};
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[test]
fn an_address_is_taken_in_every_form_people_write() {
    let at = |base: &str| Node::alone("openai-model", json!({"baseURL": base, "apiKey": "k"})).sent().url;
    for (base, url) in [
        ("https://gateway.example", "https://gateway.example/chat/completions"),
        ("https://gateway.example/", "https://gateway.example/chat/completions"),
        ("https://gateway.example/v1", "https://gateway.example/v1/chat/completions"),
        ("https://gateway.example/v1/", "https://gateway.example/v1/chat/completions"),
        ("https://gateway.example/v1///", "https://gateway.example/v1/chat/completions"),
        (" https://GATEWAY.example:8443/a%20b/v1 ", "https://gateway.example:8443/a%20b/v1/chat/completions"),
        ("https://gateway.example/v1?team=a#top", "https://gateway.example/v1/chat/completions?team=a"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
        ("", "https://api.openai.com/v1/chat/completions"),
        ("  ", "https://api.openai.com/v1/chat/completions"),
    ] {
        assert_eq!(at(base), url, "{base}");
    }
    let other_spelling = Node::alone("openai-model", json!({"baseUrl": "http://localhost:1/v1"})).sent().url;
    assert_eq!(other_spelling, "http://localhost:1/v1/chat/completions");
}

#[test]
fn an_address_that_cannot_be_one_is_refused_and_not_quoted() {
    for (base, why) in [
        ("gateway.example/v1", "is no address such as https://host/v1"),
        ("https://", "is no address such as https://host/v1"),
        ("ftp://hidden.example/v1", "must begin with http:// or https:// and name a host"),
        ("file:///etc/hidden", "must begin with http:// or https:// and name a host"),
        ("mailto:hidden@example", "must begin with http:// or https:// and name a host"),
        ("https://hidden@host/v1", "must not hold a user or a password"),
        ("https://user:hidden@host/v1", "must not hold a user or a password"),
        ("https://:hidden@host/v1", "must not hold a user or a password"),
    ] {
        for (type_name, property) in [
            ("openai-model", "baseURL"),
            ("anthropic-model", "baseURL"),
            ("ollama-model", "baseURL"),
            ("model.azure.openai", "endpoint"),
        ] {
            let refusal = Node::new(type_name, json!({property: base, "deployment": "d"})).refusal();
            assert!(refusal.starts_with(&format!("`{property}` {why}")), "{base}: {refusal}");
            assert!(!refusal.contains("hidden"), "{refusal}");
        }
    }
}

#[test]
fn where_a_key_comes_from() {
    let full = json!({
        "credentials": {"apiKey": "from-credentials"},
        "apiKey": "from-property",
        "options": {"apiKey": "from-options"},
    });
    let without = |gone: &[&str]| {
        let mut props = full.clone();
        for name in gone {
            props.as_object_mut().unwrap().remove(*name);
        }
        props
    };
    for (props, key) in [
        (full.clone(), "Bearer from-credentials"),
        (without(&["credentials"]), "Bearer from-property"),
        (without(&["credentials", "apiKey"]), "Bearer from-options"),
        (without(&["credentials", "apiKey", "options"]), "Bearer sk-of-the-environment"),
        (json!({"credentials": {"apiKey": ""}, "apiKey": " padded\n"}), "Bearer padded"),
    ] {
        let sent = Node::new("openai-model", props.clone()).sent();
        assert_eq!(sent.header("authorization"), Some(key), "{props}");
    }
}

#[test]
fn the_key_of_the_environment_goes_to_its_provider_and_to_this_machine() {
    for (type_name, property, header, key, rows) in [
        (
            "openai-model",
            "baseURL",
            "authorization",
            "Bearer sk-of-the-environment",
            [
                ("https://api.openai.com/v1", true),
                ("https://eu.api.openai.com/v1", true),
                ("http://api.openai.com/v1", false),
                ("https://api.openai.com.evil.example/v1", false),
                ("https://notapi.openai.com/v1", false),
                ("https://evil-api.openai.com.example/v1", false),
            ],
        ),
        (
            "anthropic-model",
            "baseURL",
            "authorization",
            "Bearer ak-of-the-environment",
            [
                ("https://api.anthropic.com", true),
                ("https://API.ANTHROPIC.COM/", true),
                ("http://api.anthropic.com", false),
                ("https://gateway.example", false),
                ("https://xapi.anthropic.com", false),
                ("https://10.0.0.1", false),
            ],
        ),
        (
            "model.azure.openai",
            "endpoint",
            "api-key",
            "az-of-the-environment",
            [
                ("https://mine.openai.azure.com", true),
                ("https://mine.cognitiveservices.azure.com", true),
                ("https://mine.services.ai.azure.com", true),
                ("https://mine.openai.azure.us", true),
                ("http://mine.openai.azure.com", false),
                ("https://evil.westeurope.cloudapp.azure.com", false),
            ],
        ),
    ] {
        let local = [
            ("http://localhost:4000", true),
            ("http://127.0.0.1:4000", true),
            ("http://127.8.9.10", true),
            ("http://[::1]:4000", true),
            ("http://localhost.evil.example", false),
            ("http://0.0.0.0:4000", false),
        ];
        for (base, given) in rows.into_iter().chain(local) {
            let sent = Node::new(type_name, json!({property: base, "deployment": "d"})).sent();
            assert_eq!(sent.header(header), given.then_some(key), "{base}");
            // The node's own key goes wherever the node says.
            let props = json!({property: base, "deployment": "d", "apiKey": "own"});
            let own = Node::new(type_name, props).sent();
            assert!(own.header(header).unwrap().ends_with("own"), "{base}");
        }
    }
    let ollama = Node::new("ollama-model", json!({})).sent();
    assert_eq!(ollama.header("authorization"), None);
}

#[test]
fn a_key_that_is_missing_is_asked_for_by_name() {
    for (type_name, props, variable) in [
        ("openai-model", json!({}), "OPENAI_API_KEY"),
        ("openai-model", json!({"apiKey": "  "}), "OPENAI_API_KEY"),
        ("anthropic-model", json!({}), "ANTHROPIC_API_KEY"),
        (
            "model.azure.openai",
            json!({"endpoint": "https://a.openai.azure.com", "deployment": "d"}),
            "AZURE_OPENAI_API_KEY",
        ),
    ] {
        assert_eq!(
            Node::alone(type_name, props).refusal(),
            format!(
                "it has no key; put `apiKey` into the node's credentials or set the environment variable {variable}"
            )
        );
    }
}

#[test]
fn a_key_no_header_can_hold_is_refused_and_not_quoted() {
    for key in ["sk-hidden\nx-evil: 1", "sk-hidden\r\n", "sk-hidden\0x", "Bearer sk-hidden", "sk-hidden-ключ"]
    {
        // Only at its ends does white space mean nothing.
        let is_fine = key.trim() == "sk-hidden";
        for (type_name, more) in [
            ("openai-model", json!({})),
            ("anthropic-model", json!({})),
            ("ollama-model", json!({})),
            ("model.azure.openai", json!({"endpoint": "http://localhost", "deployment": "d"})),
        ] {
            let mut props = more;
            props["apiKey"] = json!(key);
            let node = Node::alone(type_name, props);
            if is_fine {
                assert!(node.sent().headers.values().any(|value| value.ends_with("sk-hidden")));
            } else {
                assert_eq!(node.refusal(), "its key holds characters no key has");
            }
        }
    }
}

#[test]
fn nothing_that_can_be_printed_holds_the_key() {
    let sent = Node::alone("openai-model", json!({"apiKey": "sk-hidden"})).sent();
    let shown = format!("{:?}", sent.endpoint);
    assert!(shown.contains("Sensitive") && !shown.contains("hidden"), "{shown}");
}

fn schema() -> Box<RawValue> {
    samples::first_by_schema().schema.unwrap()
}

/// How a request asks for JSON: by `schema`, by `mode` or not at all.
fn asked_for(body: &Value) -> &'static str {
    let format = [
        "/response_format/type",
        "/text/format/type",
        "/output_config/format/type",
        "/format/type",
        "/format",
    ];
    match format.iter().find_map(|at| body.pointer(at)).and_then(Value::as_str) {
        Some("json_schema" | "object") => "schema",
        Some("json_object" | "json") => "mode",
        None => "",
        Some(other) => panic!("{other}"),
    }
}

#[test]
fn an_action_is_asked_for_in_the_strictest_way_there_is() {
    let schema = schema();
    // Which way a model is asked when a schema is there, and when there is none.
    for (can_schema, can_mode, wanted, with, without) in [
        (true, true, "auto", "schema", "mode"),
        (true, false, "auto", "schema", ""),
        (false, true, "auto", "mode", "mode"),
        (false, false, "auto", "", ""),
        (true, true, "json_schema", "schema", "mode"),
        // Who says it outright knows better than the table.
        (false, false, "json_schema", "schema", ""),
        (true, true, "json_object", "mode", "mode"),
        (false, false, "json_object", "mode", "mode"),
        (true, true, "none", "", ""),
        (false, false, "none", "", ""),
    ] {
        let capabilities = json!({"jsonSchema": can_schema, "jsonObject": can_mode});
        for (type_name, api) in
            [("openai-model", "chat"), ("openai-model", "responses"), ("ollama-model", "chat")]
        {
            let props = json!({"api": api, "capabilities": capabilities, "structuredOutput": wanted});
            let node = Node::new(type_name, props.clone());
            let by_schema = node.wanting(AnswerKind::Action { schema: Some(&schema) }).body;
            let by_hand = node.wanting(AnswerKind::Action { schema: None }).body;
            assert_eq!((asked_for(&by_schema), asked_for(&by_hand)), (with, without), "{type_name} {props}");
        }
    }
    // Anthropic has no JSON mode: the prompt has to do.
    for (model, with) in [("claude-sonnet-4-5", "schema"), ("claude-3-5-haiku", "")] {
        let node = Node::new("anthropic-model", json!({"model": model}));
        assert_eq!(asked_for(&node.wanting(AnswerKind::Action { schema: Some(&schema) }).body), with);
        assert_eq!(asked_for(&node.wanting(AnswerKind::Action { schema: None }).body), "");
    }
    // A model without either is not asked.
    let node = Node::new("openai-model", json!({"model": "gpt-4"}));
    assert_eq!(asked_for(&node.wanting(AnswerKind::Action { schema: Some(&schema) }).body), "");
}

#[test]
fn json_mode_counts_where_no_action_is_wanted() {
    let schema = schema();
    let node = Node::new("openai-model", json!({"model": "gpt-4o", "jsonMode": true}));
    assert_eq!(asked_for(&node.wanting(AnswerKind::Reply(ToolChoice::Auto)).body), "mode");
    assert_eq!(asked_for(&node.wanting(AnswerKind::Action { schema: Some(&schema) }).body), "schema");
    let off = Node::new("openai-model", json!({"model": "gpt-4o", "jsonMode": false}));
    assert_eq!(asked_for(&off.wanting(AnswerKind::Reply(ToolChoice::Auto)).body), "");
    let unable = Node::new("openai-model", json!({"model": "gpt-4", "jsonMode": true}));
    assert_eq!(asked_for(&unable.wanting(AnswerKind::Reply(ToolChoice::Auto)).body), "");
}

#[test]
fn tools_are_sent_natively_where_a_reply_is_wanted() {
    use ToolChoice::{Auto, None, Required};
    let azure = json!({"endpoint": "http://localhost", "deployment": "gpt-4o"});
    for (type_name, props, at, names) in [
        ("openai-model", json!({}), "/tool_choice", ["auto", "required", "none"]),
        ("openai-model", json!({"api": "responses"}), "/tool_choice", ["auto", "required", "none"]),
        ("model.azure.openai", azure, "/tool_choice", ["auto", "required", "none"]),
        ("anthropic-model", json!({}), "/tool_choice/type", ["auto", "any", "none"]),
    ] {
        let mut node = Node::new(type_name, props);
        node.tools = samples::tools();
        for (choice, name) in [Auto, Required, None].into_iter().zip(names) {
            let body = node.wanting(AnswerKind::Reply(choice)).body;
            assert_eq!(body["tools"].as_array().unwrap().len(), 2, "{type_name}");
            assert_eq!(body.pointer(at), Some(&json!(name)), "{type_name}");
        }
        // Agent Core tells of its tools in the prompt.
        let action = node.wanting(AnswerKind::Action { schema: Option::None }).body;
        assert_eq!((action.get("tools"), action.get("tool_choice")), (Option::None, Option::None));
    }
    // Ollama has no choice of tools.
    let mut node = Node::new("ollama-model", json!({}));
    node.tools = samples::tools();
    for (choice, offered) in [(Auto, true), (Required, true), (None, false)] {
        assert_eq!(node.wanting(AnswerKind::Reply(choice)).body.get("tools").is_some(), offered);
    }
    // Nobody is offered what it cannot take.
    let mut node = Node::new("openai-model", json!({"capabilities": {"tools": false}}));
    node.tools = samples::tools();
    let body = node.wanting(AnswerKind::Reply(Required)).body;
    assert_eq!((body.get("tools"), body.get("tool_choice")), (Option::None, Option::None));
}

#[test]
fn a_model_that_cannot_stream_is_not_built_for_it() {
    for (type_name, mut props) in [
        ("openai-model", json!({"model": "m"})),
        ("anthropic-model", json!({"model": "m"})),
        ("ollama-model", json!({"model": "m"})),
        ("model.azure.openai", json!({"endpoint": "http://localhost", "deployment": "m"})),
    ] {
        props["capabilities"] = json!({"streaming": false});
        assert_ne!(Node::new(type_name, props.clone()).sent().body["stream"], json!(true));
        props["stream"] = json!(true);
        let refusal = Node::new(type_name, props).refusal();
        assert_eq!(refusal, "`m` cannot answer in pieces; set `stream` to false");
    }
}

#[test]
fn what_a_model_tells_of_itself() {
    let own = json!({"model": "gpt-4", "capabilities": {"vision": true, "maxOutput": 7}});
    let model = Node::new("openai-model", own).build(ModelSettings::default()).unwrap();
    let info = model.info();
    assert_eq!((info.provider, info.model.as_str()), ("openai", "gpt-4"));
    assert_eq!((info.tools, info.vision, info.streaming), (true, true, true));
    assert_eq!((info.context_window, info.max_output), (Some(8_192), Some(7)));
    let azure = json!({"endpoint": "http://localhost", "deployment": "prod"});
    for (type_name, props, provider, name) in [
        ("anthropic-model", json!({"model": "claude-3-5-haiku"}), "anthropic", "claude-3-5-haiku"),
        ("model.azure.openai", azure, "azure.ai.openai", "prod"),
        ("ollama-model", json!({"model": "qwen3"}), "ollama", "qwen3"),
    ] {
        let model = Node::new(type_name, props).build(ModelSettings::default()).unwrap();
        assert_eq!((model.info().provider, model.info().model.as_str()), (provider, name));
    }
}

#[test]
fn a_call_costs_what_the_table_says() {
    let price = |input| Price { input, output: 10.0, cached: Some(0.5), cache_write: None };
    let prices = || Prices::from([("gpt-*".to_owned(), price(2.0)), ("claude-*".to_owned(), price(4.0))]);
    for (type_name, props, cost) in [
        ("openai-model", json!({"model": "gpt-4o"}), Some((1_000.0 * 2.0 + 100.0 * 10.0) / 1e6)),
        ("openai-model", json!({"model": "gpt-5", "api": "responses"}), Some(0.003)),
        ("openai-model", json!({"model": "unknown"}), None),
        ("anthropic-model", json!({}), Some((600.0 * 4.0 + 400.0 * 0.5 + 100.0 * 10.0) / 1e6)),
        ("ollama-model", json!({"model": "llama3.2"}), None),
    ] {
        let settings = ModelSettings { prices: prices(), ..ModelSettings::default() };
        let want = AnswerKind::Reply(ToolChoice::None);
        let answer = Node::new(type_name, props).ask(want, &Recording::with([]), settings).unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("hi", ModelFinish::Stop));
        let usage: Usage = answer.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (1_000, 100), "{type_name}");
        let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-12;
        assert!(usage.cost.is_some() == cost.is_some() && usage.cost.zip(cost).is_none_or(near), "{usage:?}");
    }
}

#[test]
fn settings_the_client_cannot_use_are_told_of_by_the_node() {
    let settings = |change: fn(&mut ModelSettings)| {
        let mut settings = ModelSettings::default();
        change(&mut settings);
        Node::new("openai-model", json!({})).build(settings).err().map(|error| error.reason)
    };
    assert_eq!(settings(|_| ()), None);
    assert_eq!(
        settings(|all| all.http.extra_ca = b"no certificate".to_vec()).as_deref(),
        Some("the file of extra certificates holds no certificate in PEM form")
    );
    assert_eq!(
        settings(|all| all.http.proxy = Some("socks5://user:hidden@proxy".parse().unwrap())).as_deref(),
        Some("the proxy's address must begin with http:// or https://")
    );
    let mut http = ModelSettings::default().http;
    http.proxy = Some("http://user:hidden@proxy:3128".parse().unwrap());
    let transport = crate::transport::ReqwestTransport::new(&http).unwrap();
    let shown = format!("{http:?} {transport:?}");
    assert!(!shown.contains("hidden"), "{shown}");
}
