//! The tables of `docs/models.md`: what each interface can do, from the declarations and from the wires.

use redflow_contract::node::NODES;
use redflow_contract::node::declaration::{Kind, Property};
use redflow_models::capability::{Family, ROWS, Sampling, Thinking};
use redflow_models::features::{FEATURES, ImageInput, ModelFeatures, PromptCaching};
use std::collections::BTreeSet;

/// The page. A person writes it, except what is between the marks.
pub(super) const PAGE: &str = "docs/models.md";
const BEGIN: &str = "<!-- Written by `cargo xtask codegen` until the next mark. Do not edit. -->\n";
const END: &str = "<!-- The end of the written part. -->\n";

/// The settings of a model that decide which words it chooses.
const SAMPLING: [&str; 7] =
    ["temperature", "topP", "topK", "frequencyPenalty", "presencePenalty", "seed", "stop"];

/// The page with current tables.
pub(super) fn with_tables(page: &str) -> Result<String, String> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{PAGE} has no marks around its tables"))?;
    Ok(format!("{before}{BEGIN}\n{}\n{}\n{}\n{END}{after}", abilities(), settings(), known_models()))
}

/// The models that the built-in table knows.
fn known_models() -> String {
    let mut rows = vec![
        "| models | think | `reasoningEffort` | sampling | forced tools | OpenAI's tools through | window | most output |"
            .to_owned(),
        format!("|{}", "---|".repeat(8)),
    ];
    rows.extend(ROWS.iter().map(|row| {
        let can = &row.can;
        let thinking = match can.thinking {
            Thinking::Never => "no",
            Thinking::Off => "if `reasoningEffort` or `thinkingBudget` says so",
            Thinking::On => "yes",
            Thinking::Always => "always",
        };
        let sampling = match can.sampling {
            Sampling::Free => "yes",
            Sampling::WithoutThinking => "while it does not think",
            Sampling::Refused => "no",
        };
        let efforts: Vec<&str> = can.efforts.iter().map(|effort| effort.as_str()).collect();
        let is_openai = matches!(row.family, Family::Gpt | Family::OpenaiO);
        let interface = match can.needs_responses {
            _ if !is_openai => "",
            true => "Responses",
            false => "either",
        };
        let tokens = |count: Option<u32>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "| {} | {thinking} | {} | {sampling} | {} | {interface} | {} | {} |",
            row.models,
            efforts.join(", "),
            yes(can.forced_tools),
            tokens(can.context_window),
            tokens(can.max_output)
        )
    }));
    rows.join("\n") + "\n"
}

fn abilities() -> String {
    let mut rows = vec![
        row("", |features| features.interface.to_owned()),
        format!("|---{}|", "|---".repeat(FEATURES.len())),
        row("node", |features| format!("`{}`", features.node)),
    ];
    rows.extend([
        row("tools", |features| yes(features.tools)),
        row("several tool calls at once", |features| yes(features.several_calls)),
        row("can be forced to call a tool", |features| yes(features.required_calls)),
        row("answers by a JSON Schema", |features| schemas(features).to_owned()),
        row("JSON mode", |features| yes(features.json_mode)),
        row("streaming", |features| yes(features.streaming)),
        row("images", |features| match features.images {
            ImageInput::ByTable => "yes".to_owned(),
            ImageInput::IfDeclared => "with `capabilities` `{\"vision\": true}`".to_owned(),
        }),
        row("thinking goes back to the model", |features| yes(features.thinking)),
        row("prompt cache", |features| {
            let cache = match features.prompt_cache {
                PromptCaching::Lifetime => "`promptCache` sets how long",
                PromptCaching::Key => "`promptCache` sends a key",
                PromptCaching::KeyIfSet => "`promptCache` `5m` or `1h` sends a key",
                PromptCaching::Provider => "as the server does",
            };
            cache.to_owned()
        }),
        row("lists its models", |features| yes(features.model_list)),
    ]);
    rows.join("\n") + "\n"
}

fn schemas(features: &ModelFeatures) -> &'static str {
    match (features.whole_schema, features.strict_schema) {
        (true, _) => "every schema",
        (false, true) => "strict subset",
        (false, false) => "no",
    }
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn row(title: &str, cell: impl Fn(&ModelFeatures) -> String) -> String {
    let cells: Vec<String> = FEATURES.iter().map(cell).collect();
    format!("| {title} | {} |", cells.join(" | "))
}

fn settings() -> String {
    let mut rows = vec![
        "| node | default address | variable with the key | settings of sampling |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    let mut seen = BTreeSet::new();
    for node in FEATURES.iter().map(|features| features.node).filter(|node| seen.insert(*node)) {
        let properties = properties(node);
        let address = properties.iter().find_map(|property| match property.kind {
            Kind::Address { example } if property.name == "baseURL" => Some(format!("`{example}`")),
            _ => None,
        });
        let key =
            properties.iter().find(|property| property.name == "apiKey").and_then(|property| match property
                .kind
            {
                Kind::Secret { variable, .. } => Some(format!("`{}`", variable?.name)),
                _ => None,
            });
        let sampling =
            SAMPLING.iter().filter(|name| properties.iter().any(|property| property.name == **name));
        let sampling: Vec<String> = sampling.map(|name| format!("`{name}`")).collect();
        let address = address.unwrap_or_else(|| "none: set `endpoint`".to_owned());
        let key = key.unwrap_or_else(|| "none".to_owned());
        rows.push(format!("| `{node}` | {address} | {key} | {} |", sampling.join(", ")));
    }
    rows.join("\n") + "\n"
}

fn properties(node: &str) -> Vec<&'static Property> {
    let declared = NODES.iter().filter(|declared| declared.node_type.name == node);
    declared.flat_map(|node| node.property_sets).flat_map(|set| set.properties).collect()
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, with_tables};
    use pretty_assertions::assert_eq;

    #[test]
    fn replaces_only_what_is_between_the_marks() {
        let page = with_tables(&format!("before\n{BEGIN}old\n{END}after\n")).unwrap();
        assert!(page.starts_with(&format!("before\n{BEGIN}\n|  | OpenAI, Chat Completions |")), "{page}");
        assert!(page.ends_with(&format!("\n{END}after\n")), "{page}");
        assert!(!page.contains("old"));
        for cell in
            ["| `ollama-model` | `http://127.0.0.1:11434` | none |", "`OPENAI_API_KEY`", "strict subset"]
        {
            assert!(page.contains(cell), "{cell} in {page}");
        }
        assert_eq!(with_tables(&page).as_ref(), Ok(&page), "a current page stays as it is");
        let without = with_tables("no marks");
        assert_eq!(without, Err("docs/models.md has no marks around its tables".to_owned()));
    }
}
