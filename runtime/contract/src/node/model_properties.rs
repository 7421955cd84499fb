//! The properties that several models share.

use super::declaration::{
    Initial, JsonShape, Kind, Property, SecretRule, SecretVariable, Text, WHOLE, between, choice, count,
    from, line, text,
};

pub(super) const MODEL: Property =
    Property::new("model", line(200), "Model", "The name of a model of the provider.").icon("cube");

pub(super) const fn address(example: &'static str, help: &'static str) -> Property {
    Property::new("baseURL", Kind::Address { example }, "Address", help).example(example).icon("globe")
}

pub(super) const API_KEY: Property = Property::new("apiKey", secret(None), "API key", "").icon("key");

pub(super) const fn secret(variable: Option<SecretVariable>) -> Kind {
    Kind::Secret { rule: SecretRule::Key, variable }
}

/// The key of a provider, which the sidecar else takes from this environment variable. `unless` is the property with
/// the address of another server.
macro_rules! api_key {
    ($variable:literal, unless $unless:expr) => {
        $crate::node::model_properties::API_KEY
            .kind($crate::node::model_properties::secret(Some($crate::node::declaration::SecretVariable {
                name: $variable,
                unless: $unless,
            })))
            .help(concat!(
                "Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment \
                 variable `",
                $variable,
                "`."
            ))
    };
}

pub(super) use api_key;

pub(super) const fn temperature(max: f64, help: &'static str) -> Property {
    Property::new("temperature", Kind::Decimal { min: 0.0, max }, "Temperature", help)
        .hint("asModel", "as the model has it")
}

pub(super) const TEMPERATURE: Property =
    temperature(2.0, "0 to 2. Sent only if it is set and the model supports it.");

pub(super) const MAX_TOKENS: Property =
    Property::new("maxTokens", count(1), "Max tokens", "The most tokens of one answer.").example("1000");

pub(super) const TOP_P: Property =
    Property::new("topP", Kind::Decimal { min: 0.0, max: 1.0 }, "Top P", "0 to 1.").more();

pub(super) const TOP_K: Property = Property::new("topK", count(0), "Top K", "0 for off.").more();

pub(super) const fn penalty(name: &'static str, label: &'static str) -> Property {
    let kind = Kind::Decimal { min: -2.0, max: 2.0 };
    Property::new(name, kind, label, "-2 to 2. Not in the Responses API.").more()
}

pub(super) const SEED: Property =
    Property::new("seed", Kind::Whole(WHOLE), "Seed", "A whole number, for repeatable answers.").more();

pub(super) const fn stop(most: u32, help: &'static str) -> Property {
    Property::new("stop", Kind::Texts { most }, "Stop at", help).example(r"END, \n\n").more()
}

pub(super) const STOP_4: Property =
    stop(4, r"Texts at which the model stops, separated by commas, 4 at most. `\n` is a line feed.");

pub(super) const STOP_5: Property =
    stop(5, r"Texts at which the model stops, separated by commas, 5 at most. `\n` is a line feed.");

pub(super) const STOP_64: Property =
    stop(64, r"Texts at which the model stops, separated by commas. `\n` is a line feed.");

pub(super) const REASONING_EFFORT: Property = Property::new(
    "reasoningEffort",
    Kind::Choice {
        choices: &[
            choice("", "As usual for the model"),
            choice("none", "None"),
            choice("minimal", "Minimal"),
            choice("low", "Low"),
            choice("medium", "Medium"),
            choice("high", "High"),
            choice("xhigh", "Very high"),
            choice("max", "As much as it can"),
        ],
    },
    "Reasoning",
    "How much a reasoning model thinks.",
)
.more();

pub(super) const API: Property = Property::new(
    "api",
    Kind::Choice {
        choices: &[
            choice("auto", "The one that the model needs"),
            choice("chat", "Chat Completions"),
            choice("responses", "Responses"),
        ],
    },
    "Interface",
    "The interface of OpenAI to use. With `chat`, calls go to Responses if Chat Completions cannot do what they ask.",
)
.default(Initial::Text("auto"))
.more();

pub(super) const PROMPT_CACHE: Property = Property::new(
    "promptCache",
    Kind::Choice {
        choices: &[
            choice("auto", "5 minutes if the agent has tools"),
            choice("off", "Off"),
            choice("5m", "5 minutes"),
            choice("1h", "1 hour"),
        ],
    },
    "Prompt cache",
    "How long the provider keeps the beginning of a conversation. The next call then reads it faster and for less.",
)
.default(Initial::Text("auto"))
.more();

pub(super) const STRUCTURED_OUTPUT: Property = Property::new(
    "structuredOutput",
    Kind::Choice {
        choices: &[
            choice("auto", "The strictest way that the model supports"),
            choice("json_schema", "By a JSON Schema"),
            choice("json_object", "By JSON mode"),
            choice("none", "By the prompt alone"),
        ],
    },
    "JSON answers",
    "How the sidecar makes the model answer with JSON.",
)
.default(Initial::Text("auto"))
.more();

pub(super) const RESPONSE_FORMAT: Property = Property::new(
    "responseFormat",
    Kind::Choice {
        choices: &[
            choice("auto", "The strictest way that the server accepts"),
            choice("schema", "By a JSON Schema"),
            choice("json", "By JSON mode"),
            choice("none", "By the prompt alone"),
        ],
    },
    "JSON answers",
    "How the sidecar makes the model answer with JSON. `auto` takes a weaker way if the server refuses one.",
)
.default(Initial::Text("auto"))
.more();

pub(super) const EXTRA_BODY: Property = Property::new(
    "extraBody",
    Kind::Json { shape: JsonShape::Object, height: None },
    "Extra body (JSON)",
    "A JSON object with further settings of the server, such as `{\"top_k\": 20}`. It is merged into every request, \
     but never replaces what the node sends.",
)
.more();

pub(super) const fn stream(unset: Text) -> Property {
    let help = "Whether the model streams its answer.";
    Property::new("stream", Kind::OptionalFlag { unset }, "Streaming", help).more()
}

pub(super) const STREAM: Property = stream(text("whenRead", "While somebody reads along"));

pub(super) const CAPABILITIES: Property = Property::new(
    "capabilities",
    Kind::Json { shape: JsonShape::Capabilities, height: None },
    "Capabilities (JSON)",
    "What the model can do, where the built-in table is wrong: `tools`, `vision`, `streaming`, `jsonSchema`, \
     `jsonObject`, `sampling`, `reasoning`, `forcedTools`, `contextWindow`, `maxOutput`.",
)
.more();

/// The highest price that a node may have.
const MAX_PRICE: f64 = 1_000_000.0;

const fn price(name: &'static str, label: &'static str, help: &'static str) -> Property {
    Property::new(name, Kind::Decimal { min: 0.0, max: MAX_PRICE }, label, help).more()
}

pub(super) const INPUT_PRICE: Property = price(
    "inputPrice",
    "Price of input",
    "US dollars for a million tokens that the model reads, such as 0.75; 0 if they cost nothing. Only together with \
     *Price of output*. Empty: the price of the configuration counts, else the built-in one, if there is one.",
)
.hint("asKnown", "as far as known");

pub(super) const OUTPUT_PRICE: Property = price(
    "outputPrice",
    "Price of output",
    "US dollars for a million tokens that the model writes. Only together with *Price of input*.",
)
.hint("asKnown", "as far as known");

pub(super) const CACHED_PRICE: Property = price(
    "cachedPrice",
    "Price of cached input",
    "US dollars for a million tokens that come from the provider's cache. Empty for the *Price of input*.",
)
.hint("asInput", "as input");

pub(super) const TIMEOUT: Property = Property::new(
    "timeout",
    from(1),
    "Timeout (ms)",
    "The longest time of one call with its retries, in milliseconds.",
)
.example("600000")
.more();

pub(super) const MAX_RETRIES: Property = Property::new(
    "maxRetries",
    between(0, 10),
    "Retries",
    "How often a call is repeated after a temporary failure, 0 to 10.",
)
.example("2")
.more();

pub(super) const IDLE_TIMEOUT: Property = Property::new(
    "idleTimeout",
    from(1),
    "Idle timeout (ms)",
    "The longest time between two pieces of a streamed answer, in milliseconds. Empty for no limit.",
)
.example("60000")
.more();

/// The most calls at once that a model may be set to.
pub const MAX_CONCURRENT_CALLS: u32 = 1_000;

pub(super) const MAX_CONCURRENT: Property = Property::new(
    "maxConcurrent",
    between(1, MAX_CONCURRENT_CALLS as i64),
    "Calls at once",
    "How many calls of this node run at once, 1 to 1000. Further calls wait. Empty for no limit.",
)
.example("1")
.more();
