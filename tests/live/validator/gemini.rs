//! The rules of Google's Gemini API.

use super::conversation::{self, MessageKind, Order};
use super::fields::Kind::{AnyText, Bool, Is, List, Number, Object, OneOf, Text, Whole};
use super::fields::{Field, Finder, optional, required};
use super::{images, schema};
use serde_json::Value;

const TOP: &[Field] = &[
    optional("systemInstruction", Object),
    required("contents", List),
    optional("tools", List),
    optional("toolConfig", Object),
    optional("generationConfig", Object),
];
const SETTINGS: &[Field] = &[
    optional("temperature", Number(0.0, 2.0)),
    optional("topP", Number(0.0, 1.0)),
    optional("topK", Whole(1)),
    optional("maxOutputTokens", Whole(1)),
    optional("seed", Whole(-2_147_483_648)),
    optional("stopSequences", List),
    optional("responseMimeType", Is("application/json")),
    optional("responseJsonSchema", Object),
    optional("thinkingConfig", Object),
];

pub(super) fn check(finder: &mut Finder, body: &Value) {
    if !finder.fields("", body, TOP) {
        return;
    }
    if let Some(system) = body.get("systemInstruction") {
        finder.fields("/systemInstruction", system, &[required("parts", List)]);
        for (at, part) in finder.items("/systemInstruction/parts", system.get("parts")) {
            finder.fields(&at, part, &[required("text", Text)]);
        }
    }
    if let Some(settings) = body.get("generationConfig") {
        generation(finder, settings);
    }
    tools(finder, body);
    let mut all = Vec::new();
    for (at, turn) in finder.items("/contents", body.get("contents")) {
        if let Some(kind) = turn_of(finder, &at, turn) {
            all.push((at, kind));
        }
    }
    // Calls without ids are known by the names of their tools, and the same tool may be called twice.
    conversation::check(finder, &all, Order { ids: false, turns: true, own_results: true });
}

fn generation(finder: &mut Finder, settings: &Value) {
    let at = "/generationConfig";
    finder.fields(at, settings, SETTINGS);
    let stops = settings.get("stopSequences").and_then(Value::as_array).map_or(0, Vec::len);
    finder.add_if(stops > 5, at, "more than five stop sequences");
    let seed = settings["seed"].as_i64().unwrap_or_default();
    finder.add_if(i32::try_from(seed).is_err(), at, "a seed beyond 32 bits");
    if let Some(thinking) = settings.get("thinkingConfig") {
        let levels = OneOf(&["MINIMAL", "LOW", "MEDIUM", "HIGH"]);
        finder.fields(&format!("{at}/thinkingConfig"), thinking, &[required("thinkingLevel", levels)]);
    }
    if let Some(schema) = settings.get("responseJsonSchema") {
        finder.add_if(settings.get("responseMimeType").is_none(), at, "a schema without its media type");
        schema::check_whole(finder, &format!("{at}/responseJsonSchema"), schema);
    }
}

fn tools(finder: &mut Finder, body: &Value) {
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        finder.fields(&at, tool, &[required("functionDeclarations", List)]);
        let place = format!("{at}/functionDeclarations");
        for (at, function) in finder.items(&place, tool.get("functionDeclarations")) {
            let fields = [
                required("name", Text),
                optional("description", Text),
                optional("parametersJsonSchema", Object),
            ];
            finder.fields(&at, function, &fields);
            let schema = function.get("parametersJsonSchema");
            let is_object = schema.is_none_or(|schema| schema["type"] == "object");
            finder.add_if(!is_object, &at, "an input that is no object");
            names.extend(function["name"].as_str());
        }
    }
    finder.names("/tools", &names);
    if let Some(config) = body.get("toolConfig") {
        finder.fields("/toolConfig", config, &[required("functionCallingConfig", Object)]);
        let modes = OneOf(&["AUTO", "ANY", "NONE"]);
        let calling = &config["functionCallingConfig"];
        finder.fields("/toolConfig/functionCallingConfig", calling, &[required("mode", modes)]);
        finder.add_if(body.get("tools").is_none(), "/toolConfig", "a choice without tools");
    }
}

fn turn_of(finder: &mut Finder, at: &str, turn: &Value) -> Option<MessageKind> {
    finder.fields(at, turn, &[required("role", Text), required("parts", List)]);
    let parts = finder.items(&format!("{at}/parts"), turn.get("parts"));
    match turn["role"].as_str() {
        Some("user") => {
            let (mut results, mut spoke) = (Vec::new(), false);
            for (at, part) in &parts {
                if let Some(result) = part.get("functionResponse") {
                    finder.add_if(spoke, at, "a result behind a text");
                    finder.fields(at, part, &[required("functionResponse", Object)]);
                    let fields = [optional("id", Text), required("name", Text), required("response", Object)];
                    finder.fields(&format!("{at}/functionResponse"), result, &fields);
                    results.push(identity(result));
                } else if let Some(data) = part.get("inlineData") {
                    spoke = true;
                    finder.fields(at, part, &[required("inlineData", Object)]);
                    let fields = [required("mimeType", OneOf(images::TYPES)), required("data", Text)];
                    finder.fields(&format!("{at}/inlineData"), data, &fields);
                    images::check_base64(finder, at, &data["data"]);
                } else {
                    spoke = true;
                    finder.fields(at, part, &[required("text", Text)]);
                }
            }
            finder.add_if(spoke && !results.is_empty(), at, "a text or a picture in the turn of results");
            Some(if results.is_empty() { MessageKind::User } else { MessageKind::Results(results) })
        }
        Some("model") => Some(MessageKind::Assistant(model_parts(finder, &parts))),
        other => {
            finder.add(at, format!("the role {other:?}"));
            None
        }
    }
}

/// Checks the parts of the model and gives the identities of its calls.
fn model_parts(finder: &mut Finder, parts: &[(String, &Value)]) -> Vec<String> {
    let mut calls = Vec::new();
    let signature = optional("thoughtSignature", Text);
    for (at, part) in parts {
        if let Some(call) = part.get("functionCall") {
            finder.fields(at, part, &[required("functionCall", Object), signature]);
            let fields = [optional("id", Text), required("name", Text), optional("args", Object)];
            finder.fields(&format!("{at}/functionCall"), call, &fields);
            calls.push(identity(call));
        } else {
            let is_signed = part.get("thoughtSignature").is_some();
            let text = required("text", if is_signed { AnyText } else { Text });
            finder.fields(at, part, &[text, optional("thought", Bool), signature]);
        }
    }
    finder.add_if(calls.iter().any(String::is_empty), "", "a call without a name");
    calls
}

/// The name of a tool, with the id of the call if it has one: a result must have both, or neither.
fn identity(call: &Value) -> String {
    let name = call["name"].as_str().unwrap_or_default();
    match call.get("id").and_then(Value::as_str) {
        Some(id) => format!("{name} {id}"),
        None => name.to_owned(),
    }
}
