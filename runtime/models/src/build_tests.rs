use crate::ModelSettings;
use crate::price::{Price, Prices};
use crate::recording::{Node, Recording, action_by, reply};
use crate::samples;
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelFinish, Usage};
use redflow_ports::{ActionSchemas, AnswerKind, ToolChoice};
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[test]
fn accepts_addresses_in_every_usual_form() {
    let url_for =
        |base: &str| Node::without_env("openai-model", json!({"baseURL": base, "apiKey": "k"})).request().url;
    for (base, url) in [
        ("https://gateway.example", "https://gateway.example/chat/completions"),
        ("https://gateway.example/", "https://gateway.example/chat/completions"),
        ("https://gateway.example/v1", "https://gateway.example/v1/chat/completions"),
        ("https://gateway.example/v1/", "https://gateway.example/v1/chat/completions"),
        ("https://gateway.example/v1///", "https://gateway.example/v1/chat/completions"),
        (" https://GATEWAY.example:8443/a%20b/v1 ", "https://gateway.example:8443/a%20b/v1/chat/completions"),
        ("https://gateway.example/v1?team=a#top", "https://gateway.example/v1/chat/completions?team=a"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
        ("", "https://api.openai.com/v1/responses"),
        ("  ", "https://api.openai.com/v1/responses"),
    ] {
        assert_eq!(url_for(base), url, "{base}");
    }
    let other_spelling =
        Node::without_env("openai-model", json!({"baseUrl": "http://localhost:1/v1"})).request().url;
    assert_eq!(other_spelling, "http://localhost:1/v1/chat/completions");
}

#[test]
fn an_invalid_address_is_refused_and_not_quoted() {
    for (base, problem) in [
        ("gateway.example/v1", "is not an address such as https://host/v1"),
        ("https://", "is not an address such as https://host/v1"),
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
            let error = Node::new(type_name, json!({property: base, "deployment": "d"})).build_error();
            assert!(error.starts_with(&format!("`{property}` {problem}")), "{base}: {error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}

#[test]
fn sources_of_a_key_in_their_order() {
    let full = json!({
        "credentials": {"apiKey": "from-credentials"},
        "apiKey": "from-property",
        "options": {"apiKey": "from-options"},
    });
    let without = |removed: &[&str]| {
        let mut props = full.clone();
        for name in removed {
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
        let request = Node::new("openai-model", props.clone()).request();
        assert_eq!(request.header("authorization"), Some(key), "{props}");
    }
}

// SECURITY: environment-key
#[test]
fn a_key_of_the_environment_goes_only_to_its_provider_and_to_this_machine() {
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
        (
            "google-model",
            "baseURL",
            "x-goog-api-key",
            "gk-of-the-environment",
            [
                ("https://generativelanguage.googleapis.com/v1beta", true),
                ("https://GENERATIVELANGUAGE.googleapis.com/v1", true),
                ("http://generativelanguage.googleapis.com/v1beta", false),
                ("https://storage.googleapis.com", false),
                ("https://generativelanguage.googleapis.com.evil.example", false),
                ("https://evil-generativelanguage.googleapis.com", false),
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
        for (base, is_sent) in rows.into_iter().chain(local) {
            let request = Node::new(type_name, json!({property: base, "deployment": "d"})).request();
            let sent = request.header(header).or_else(|| request.header("x-api-key"));
            let sent = sent.map(|sent| sent.trim_start_matches("Bearer "));
            assert_eq!(sent, is_sent.then_some(key.trim_start_matches("Bearer ")), "{base}");
            // A key of the node goes to every address of the node.
            let props = json!({property: base, "deployment": "d", "apiKey": "own"});
            let own = Node::new(type_name, props).request();
            // Gateways of Anthropic get it in the header of the older version.
            let sent = own.header(header).or_else(|| own.header("x-api-key"));
            assert!(sent.unwrap().ends_with("own"), "{base}");
        }
    }
    let ollama = Node::new("ollama-model", json!({})).request();
    assert_eq!(ollama.header("authorization"), None);
}

#[test]
fn a_missing_key_is_reported_with_its_variable() {
    for (type_name, props, variable) in [
        ("openai-model", json!({}), "OPENAI_API_KEY"),
        ("openai-model", json!({"apiKey": "  "}), "OPENAI_API_KEY"),
        ("anthropic-model", json!({}), "ANTHROPIC_API_KEY"),
        ("google-model", json!({}), "GEMINI_API_KEY"),
        (
            "model.azure.openai",
            json!({"endpoint": "https://a.openai.azure.com", "deployment": "d"}),
            "AZURE_OPENAI_API_KEY",
        ),
    ] {
        assert_eq!(
            Node::without_env(type_name, props).build_error(),
            format!(
                "it has no key; put `apiKey` into the node's credentials or set the environment variable {variable}"
            )
        );
    }
}

#[test]
fn a_key_with_invalid_characters_is_refused_and_not_quoted() {
    for key in ["sk-hidden\nx-evil: 1", "sk-hidden\r\n", "sk-hidden\0x", "Bearer sk-hidden", "sk-hidden-ключ"]
    {
        // White space is allowed only at the ends.
        let is_valid = key.trim() == "sk-hidden";
        for (type_name, more) in [
            ("openai-model", json!({})),
            ("anthropic-model", json!({})),
            ("ollama-model", json!({})),
            ("google-model", json!({})),
            ("model.azure.openai", json!({"endpoint": "http://localhost", "deployment": "d"})),
        ] {
            let mut props = more;
            props["apiKey"] = json!(key);
            let node = Node::without_env(type_name, props);
            if is_valid {
                assert!(node.request().headers.values().any(|value| value.ends_with("sk-hidden")));
            } else {
                assert_eq!(node.build_error(), "its key has characters that no key has");
            }
        }
    }
}

#[test]
fn debug_output_does_not_hold_the_key() {
    let request = Node::without_env("openai-model", json!({"apiKey": "sk-hidden"})).request();
    let printed = format!("{:?}", request.endpoint);
    assert!(printed.contains("Sensitive") && !printed.contains("hidden"), "{printed}");
}

fn schema() -> Box<RawValue> {
    samples::first_request_with_schema().schema.unwrap()
}

/// How a request asks for JSON: by `schema`, by `mode` or not at all.
fn json_kind(body: &Value) -> &'static str {
    let format = [
        "/response_format/type",
        "/text/format/type",
        "/output_config/format/type",
        "/format/type",
        "/format",
    ];
    match format.iter().find_map(|pointer| body.pointer(pointer)).and_then(Value::as_str) {
        Some("json_schema" | "object") => "schema",
        Some("json_object" | "json") => "mode",
        None => "",
        Some(other) => panic!("{other}"),
    }
}

#[test]
fn actions_use_the_strictest_available_json_output() {
    let schema = schema();
    // The expected kind with a schema, and without one.
    for (can_schema, can_mode, configured, with, without) in [
        (true, true, "auto", "schema", "mode"),
        (true, false, "auto", "schema", ""),
        (false, true, "auto", "mode", "mode"),
        (false, false, "auto", "", ""),
        (true, true, "json_schema", "schema", "mode"),
        // The setting of the node overrides the table.
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
            let props = json!({"api": api, "capabilities": capabilities, "structuredOutput": configured});
            let node = Node::new(type_name, props.clone());
            let with_schema = node.request_for(&action_by(&schema)).body;
            let without_schema = node.request_for(&AnswerKind::Action(ActionSchemas::default())).body;
            assert_eq!(
                (json_kind(&with_schema), json_kind(&without_schema)),
                (with, without),
                "{type_name} {props}"
            );
        }
    }
    // Anthropic has no JSON mode, so only the prompt requests JSON.
    for (model, with) in [("claude-sonnet-4-5", "schema"), ("claude-3-5-haiku", "")] {
        let node = Node::new("anthropic-model", json!({"model": model}));
        assert_eq!(json_kind(&node.request_for(&action_by(&schema)).body), with);
        assert_eq!(json_kind(&node.request_for(&AnswerKind::Action(ActionSchemas::default())).body), "");
    }
    // A model without both gets no format.
    let node = Node::new("openai-model", json!({"model": "gpt-4"}));
    assert_eq!(json_kind(&node.request_for(&action_by(&schema)).body), "");
}

#[test]
fn json_mode_applies_to_replies_only() {
    let schema = schema();
    let node = Node::new("openai-model", json!({"model": "gpt-4o", "jsonMode": true}));
    assert_eq!(json_kind(&node.request_for(&reply(ToolChoice::Auto)).body), "mode");
    assert_eq!(json_kind(&node.request_for(&action_by(&schema)).body), "schema");
    let off = Node::new("openai-model", json!({"model": "gpt-4o", "jsonMode": false}));
    assert_eq!(json_kind(&off.request_for(&reply(ToolChoice::Auto)).body), "");
    let unable = Node::new("openai-model", json!({"model": "gpt-4", "jsonMode": true}));
    assert_eq!(json_kind(&unable.request_for(&reply(ToolChoice::Auto)).body), "");
}

#[test]
fn only_requests_for_replies_have_native_tools() {
    use ToolChoice::{Auto, None, Required};
    let azure = json!({"endpoint": "http://localhost", "deployment": "gpt-4o"});
    for (type_name, props, pointer, names) in [
        ("openai-model", json!({}), "/tool_choice", ["auto", "required", "none"]),
        ("openai-model", json!({"api": "responses"}), "/tool_choice", ["auto", "required", "none"]),
        ("model.azure.openai", azure, "/tool_choice", ["auto", "required", "none"]),
        (
            "anthropic-model",
            json!({"model": "claude-haiku-5-5"}),
            "/tool_choice/type",
            ["auto", "any", "none"],
        ),
        // The model refuses to be forced.
        ("anthropic-model", json!({}), "/tool_choice/type", ["auto", "auto", "none"]),
        ("google-model", json!({}), "/toolConfig/functionCallingConfig/mode", ["AUTO", "ANY", "NONE"]),
    ] {
        let mut node = Node::new(type_name, props);
        node.tools = samples::two_tools();
        for (choice, name) in [Auto, Required, None].into_iter().zip(names) {
            let body = node.request_for(&reply(choice)).body;
            let tools = body.pointer("/tools/0/functionDeclarations").unwrap_or(&body["tools"]);
            assert_eq!(tools.as_array().unwrap().len(), 2, "{type_name}");
            assert_eq!(body.pointer(pointer), Some(&json!(name)), "{type_name}");
        }
        // Agent Core describes its tools in the prompt.
        let action = node.request_for(&AnswerKind::Action(ActionSchemas::default())).body;
        for name in ["tools", "tool_choice", "toolConfig"] {
            assert_eq!(action.get(name), Option::None);
        }
    }
    // Ollama has no tool choice.
    let mut node = Node::new("ollama-model", json!({}));
    node.tools = samples::two_tools();
    for (choice, has_tools) in [(Auto, true), (Required, true), (None, false)] {
        assert_eq!(node.request_for(&reply(choice)).body.get("tools").is_some(), has_tools);
    }
}

#[test]
fn a_model_without_streaming_is_refused_with_stream() {
    for (type_name, mut props) in [
        ("openai-model", json!({"model": "m"})),
        ("anthropic-model", json!({"model": "m"})),
        ("ollama-model", json!({"model": "m"})),
        ("google-model", json!({"model": "m"})),
        ("model.azure.openai", json!({"endpoint": "http://localhost", "deployment": "m"})),
    ] {
        props["capabilities"] = json!({"streaming": false});
        assert!(!Node::new(type_name, props.clone()).request().is_stream());
        props["stream"] = json!(true);
        let error = Node::new(type_name, props).build_error();
        assert_eq!(error, "`m` does not support streaming; set `stream` to false");
    }
}

#[test]
fn the_info_of_a_model() {
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
        ("google-model", json!({"model": "models/gemini-x"}), "gcp.gemini", "gemini-x"),
    ] {
        let model = Node::new(type_name, props).build(ModelSettings::default()).unwrap();
        assert_eq!((model.info().provider, model.info().model.as_str()), (provider, name));
    }
}

#[test]
fn a_call_costs_what_the_table_says() {
    let price = |input| Price { input, output: 10.0, cached: Some(0.5), ..Price::default() };
    let prices = || Prices::from([("gpt-*".to_owned(), price(2.0)), ("claude-*".to_owned(), price(4.0))]);
    for (type_name, props, cost) in [
        ("openai-model", json!({"model": "gpt-4o"}), Some((1_000.0 * 2.0 + 100.0 * 10.0) / 1e6)),
        ("openai-model", json!({"model": "gpt-5", "api": "responses"}), Some(0.003)),
        ("openai-model", json!({"model": "unknown"}), None),
        ("anthropic-model", json!({}), Some((600.0 * 4.0 + 400.0 * 0.5 + 100.0 * 10.0) / 1e6)),
        ("ollama-model", json!({"model": "llama3.2"}), None),
        // The default name is not that of the model at this server.
        ("openai-model", json!({"baseURL": "http://127.0.0.1:8080/v1"}), None),
        ("openai-model", json!({"baseURL": "http://127.0.0.1:8080/v1", "model": "gpt-4o"}), Some(0.003)),
    ] {
        let settings = ModelSettings { prices: prices(), ..ModelSettings::default() };
        let want = reply(ToolChoice::None);
        let answer = Node::new(type_name, props).call(&want, &Recording::new([]), settings).unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("hi", ModelFinish::Stop));
        let usage: Usage = answer.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (1_000, 100), "{type_name}");
        let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-12;
        assert!(usage.cost.is_some() == cost.is_some() && usage.cost.zip(cost).is_none_or(near), "{usage:?}");
    }
}

#[test]
fn invalid_http_settings_are_reported_by_the_node() {
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
    let printed = format!("{http:?} {transport:?}");
    assert!(!printed.contains("hidden"), "{printed}");
}

#[test]
fn further_settings_are_checked() {
    let error =
        |extra: serde_json::Value| Node::new("openai-model", json!({"extraBody": extra})).build_error();
    for name in ["model", "messages", "tools", "stream"] {
        let text = format!("`extraBody` must not have `{name}`, which the node sends itself");
        assert_eq!(error(json!({ name: 1 })), text);
    }
    let text = "`extraBody` must not hold a key (`api_key`); put it into the node's credentials";
    for extra in [
        json!({"api_key": "sk-1"}),
        json!({"provider": {"api_key": "sk-1"}}),
        json!({"routes": [1, [{"weight": 1}, {"upstream": {"api_key": "sk-1"}}]]}),
    ] {
        assert_eq!(error(extra.clone()), text, "{extra}");
    }
    let long = "x".repeat(super::MAX_EXTRA_BODY_BYTES);
    assert!(error(json!({ "grammar": long })).ends_with("at most 16384 are allowed"));
    let node = Node::new("openai-model", json!({"extraBody": {"service_tier": "flex"}, "api": "responses"}));
    assert_eq!(node.request().body["service_tier"], "flex");
    assert_eq!(Node::new("openai-model", json!({"extraBody": ""})).request().body.get("service_tier"), None);
}

#[test]
fn a_limit_of_calls_at_once_is_bounded() {
    for type_name in ["openai-model", "anthropic-model", "ollama-model"] {
        for limit in [0, 1_001] {
            let error = Node::new(type_name, json!({"maxConcurrent": limit})).build_error();
            assert_eq!(error, "`maxConcurrent` must be a number from 1 to 1000");
        }
        let _ = Node::new(type_name, json!({"maxConcurrent": 1_000})).request();
    }
}

#[test]
fn the_price_of_the_node_wins_over_the_configuration_which_wins_over_the_built_in_one() {
    use redflow_contract::deployed_model::PriceSource::{BuiltIn, Configuration, Node as AtNode};
    let set = Price { input: 7.0, output: 8.0, ..Price::default() };
    let typed = json!({"inputPrice": 1, "outputPrice": 2, "cachedPrice": 0.5});
    let free = json!({"inputPrice": 0, "outputPrice": 0});
    let built_in = json!({"model": "gpt-6-luna"});
    let own = json!({"baseURL": "http://127.0.0.1:8080/v1", "model": "gpt-6-luna"});
    let unnamed = json!({"baseURL": "http://127.0.0.1:8080/v1"});
    for (props, more, pattern, expected) in [
        (&built_in, &typed, "*", Some((AtNode, 1.0, Some(0.5)))),
        (&built_in, &free, "*", Some((AtNode, 0.0, None))),
        (&built_in, &json!({}), "gpt-*", Some((Configuration, 7.0, None))),
        (&built_in, &json!({}), "other", Some((BuiltIn, 0.1, Some(0.01)))),
        (&own, &json!({}), "other", None),
        // The model of a node that names none is not known, but its price may be.
        (&unnamed, &json!({}), "*", None),
        (&unnamed, &typed, "*", Some((AtNode, 1.0, Some(0.5)))),
    ] {
        let mut all = props.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let prices = Prices::from([(pattern.to_owned(), set)]);
        let settings = ModelSettings { prices, ..ModelSettings::default() };
        let model = Node::new("openai-model", all.clone()).build(settings).unwrap();
        let found = model.info().price.as_ref().map(|price| (price.source, price.input, price.cached));
        assert_eq!((found, model.info().priced), (expected, expected.is_some()), "{all} {pattern}");
    }
}

#[test]
fn every_model_of_a_provider_takes_a_price_and_needs_both_parts_of_it() {
    for type_name in ["openai-model", "anthropic-model", "google-model", "ollama-model", "model.azure.openai"]
    {
        let azure = json!({"endpoint": "https://name.openai.azure.com", "deployment": "d"});
        let mut props = if type_name.starts_with("model.") { azure } else { json!({}) };
        let mut built = |name: &str, price: f64| {
            props[name] = json!(price);
            Node::new(type_name, props.clone()).build(ModelSettings::default())
        };
        for (name, price) in [("cachedPrice", 0.5), ("inputPrice", 1.0)] {
            let error = built(name, price).err().unwrap().to_string();
            assert!(error.contains("set both, or remove the price"), "{type_name} {error}");
        }
        let model = built("outputPrice", 2.0).unwrap();
        let price = model.info().price.clone().unwrap();
        assert_eq!((price.input, price.output, price.cached), (1.0, 2.0, Some(0.5)), "{type_name}");
    }
}
