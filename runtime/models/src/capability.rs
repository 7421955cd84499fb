//! What models can do, by their names and by their servers. A node's `capabilities` override it.
//!
//! One table ([`ROWS`]) has a row for each generation of each family. A name that no row knows is that of a newer
//! model, and gets the newest row of its family. What a request must not have then is learnt from the provider.

mod name;
mod rows;

pub use name::{Family, ModelName, Version};
pub use rows::{ROWS, Row};

use crate::address::is_within;
use redflow_contract::node::{CapabilityConfig, ReasoningEffort as Effort};
use rows::{MODERN, find_row, newest_row};

/// What a model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Native tool calls.
    pub tools: bool,
    /// Images as input.
    pub vision: bool,
    /// Streamed answers.
    pub streaming: bool,
    /// Answers by a JSON Schema.
    pub json_schema: bool,
    /// Every JSON Schema, also with optional properties and a union at the root.
    pub whole_schema: bool,
    /// The range of a number in a schema of the strict subset.
    pub number_range: bool,
    /// A JSON mode without a schema.
    pub json_object: bool,
    /// Sampling settings such as temperature.
    pub sampling: Sampling,
    /// Reasoning before the answer.
    pub thinking: Thinking,
    /// The efforts of reasoning, from the least to the most; empty if they are not known.
    pub efforts: &'static [Effort],
    /// How Anthropic's models are told to think.
    pub budget: ThinkingBudget,
    /// Whether the model can be forced to call a tool.
    pub forced_tools: bool,
    /// Whether calls with tools need OpenAI's Responses interface.
    pub needs_responses: bool,
    /// Whether Chat Completions limits the answer by `max_completion_tokens`.
    pub completion_limit: bool,
    /// Whether the Responses interface returns its reasoning only if it is asked to.
    pub asks_encrypted: bool,
    /// Whether thoughts are valid only after an unchanged system prompt, list of tools and conversation.
    pub binds_thoughts: bool,
    /// Whether no row knows the name, so that this is the newest row of the family.
    pub is_assumed: bool,
    /// The most input and output tokens. None if unknown.
    pub context_window: Option<u32>,
    /// The most output tokens. None if unknown.
    pub max_output: Option<u32>,
}

/// Whether a model takes settings of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Always.
    Free,
    /// Only while it does not think.
    WithoutThinking,
    /// Never.
    Refused,
}

/// Whether a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It cannot.
    Never,
    /// Only if the request asks for it.
    Off,
    /// Unless the request forbids it.
    On,
    /// It always does.
    Always,
}

/// How Anthropic's models are told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingBudget {
    /// The model has no such setting.
    Refused,
    /// By a fixed number of tokens.
    Fixed,
    /// By a fixed number, or as much as the model finds right.
    FixedOrAdaptive,
    /// As much as the model finds right.
    Adaptive,
}

/// A model of OpenAI. An unknown one is newer than this table.
#[must_use]
pub fn openai(model: &str) -> Capabilities {
    let families = [Family::Gpt, Family::OpenaiO];
    // Fine-tuned models take no ranges.
    let number_range = !model.starts_with("ft:");
    Capabilities { number_range, ..of_families(model, &families, Family::Gpt) }
}

/// A deployment at Azure. Its name may be that of its model. Any other name is that of a new model.
#[must_use]
pub fn azure(deployment: &str) -> Capabilities {
    let known = of_families(deployment, &[Family::Gpt, Family::OpenaiO], Family::Gpt);
    // Azure returns the reasoning only to those who ask for it.
    Capabilities { asks_encrypted: known.may_think(), ..known }
}

/// A Claude model. Other names belong to gateways, which know the newest models.
#[must_use]
pub fn anthropic(model: &str) -> Capabilities {
    of_families(model, &[Family::Claude], Family::Claude)
}

/// A model of Google. An unknown one is newer than this table.
#[must_use]
pub fn google(model: &str) -> Capabilities {
    of_families(model, &[Family::Gemini, Family::Gemma], Family::Gemini)
}

/// Services with OpenAI's API that have JSON mode for all of their models, but schemas for none or some.
const JSON_MODE_ONLY: [&str; 3] = ["groq.com", "deepseek.com", "openrouter.ai"];
/// Services that know `max_tokens` for all of their models.
const OPENROUTER: &str = "openrouter.ai";

/// A model of another server with OpenAI's API. Self-hosted servers (vLLM, LM Studio, llama.cpp) accept
/// schemas, and some of them have no JSON mode. A name of a known family, also behind the prefix of a gateway, has the
/// rules of its family; every other name gets plain Chat Completions.
#[must_use]
pub fn openai_compatible(host: &str, model: &str) -> Capabilities {
    let json_mode = is_within(host, &JSON_MODE_ONLY);
    let plain = Capabilities {
        json_schema: !json_mode,
        whole_schema: !json_mode && !redflow_contract::azure::is_azure_host(host),
        json_object: json_mode,
        vision: false,
        ..MODERN
    };
    let Some((row, is_assumed)) = ModelName::parse(model).and_then(|name| find_row(&name)) else {
        return plain;
    };
    let known = row.can;
    Capabilities {
        // Google gives no tools to Gemma 3. Others do, by its template.
        tools: known.tools || row.family == Family::Gemma,
        vision: known.vision,
        sampling: known.sampling,
        thinking: known.thinking,
        efforts: known.efforts,
        forced_tools: known.forced_tools,
        completion_limit: known.completion_limit && known.may_think() && !is_within(host, &[OPENROUTER]),
        binds_thoughts: known.binds_thoughts,
        context_window: known.context_window,
        max_output: known.max_output,
        is_assumed,
        ..plain
    }
}

/// Whether a model of Google is older than Gemini 3. Those have no levels of thinking and no required signatures.
#[must_use]
pub fn is_before_gemini_3(model: &str) -> bool {
    ModelName::parse(model).is_some_and(|name| match name.family {
        Family::Gemini => name.version.is_some_and(|version| version < (3, 0)),
        family => family == Family::Gemma,
    })
}

/// Any model of Ollama, which does not report what it supports.
#[must_use]
pub fn ollama() -> Capabilities {
    Capabilities { vision: false, whole_schema: true, forced_tools: false, ..MODERN }
}

/// The row of a name among these families, or the newest row of one of them.
fn of_families(model: &str, families: &[Family], newest: Family) -> Capabilities {
    let name = ModelName::parse(model).filter(|name| families.contains(&name.family));
    let found = name.as_ref().and_then(find_row).or_else(|| Some((newest_row(newest)?, true)));
    found.map_or(MODERN, |(row, is_assumed)| Capabilities { is_assumed, ..row.can })
}

impl Capabilities {
    /// Whether the model thinks before some answers, so that thoughts count as output.
    #[must_use]
    pub fn may_think(&self) -> bool {
        self.thinking != Thinking::Never
    }

    /// Whether the model thinks with this effort; none if the request does not set it.
    #[must_use]
    pub fn thinks_with(&self, effort: Option<Effort>) -> bool {
        match (self.thinking, effort) {
            (Thinking::Never, _) => false,
            (Thinking::Always, _) => true,
            (Thinking::On, effort) => effort != Some(Effort::None),
            (Thinking::Off, effort) => effort.is_some_and(|effort| effort != Effort::None),
        }
    }

    /// Whether a request with this effort may have settings of sampling. Settings for a model that no row knows are
    /// sent until it refuses them.
    #[must_use]
    pub fn takes_sampling(&self, effort: Option<Effort>) -> bool {
        match self.sampling {
            _ if self.is_assumed => true,
            Sampling::Free => true,
            Sampling::WithoutThinking => !self.thinks_with(effort),
            Sampling::Refused => false,
        }
    }

    /// Applies the overrides of a node.
    #[must_use]
    pub fn with_overrides(self, own: Option<&CapabilityConfig>) -> Self {
        let Some(own) = own else { return self };
        let sampling = match own.sampling {
            None => self.sampling,
            Some(true) => Sampling::Free,
            Some(false) => Sampling::Refused,
        };
        let thinking = match own.reasoning {
            Some(true) if !self.may_think() => Thinking::On,
            Some(false) => Thinking::Never,
            _ => self.thinking,
        };
        Self {
            tools: own.tools.unwrap_or(self.tools),
            vision: own.vision.unwrap_or(self.vision),
            streaming: own.streaming.unwrap_or(self.streaming),
            json_schema: own.json_schema.unwrap_or(self.json_schema),
            json_object: own.json_object.unwrap_or(self.json_object),
            sampling,
            thinking,
            forced_tools: own.forced_tools.unwrap_or(self.forced_tools),
            // What a person says about sampling is known.
            is_assumed: self.is_assumed && own.sampling.is_none(),
            context_window: own.context_window.or(self.context_window),
            max_output: own.max_output.or(self.max_output),
            ..self
        }
    }
}

#[cfg(test)]
#[path = "capability_tests.rs"]
mod tests;
