//! What a run has used, by model and by tool. The sums of days are made of this.

use crate::fact::Usage;

/// The most models that a run counts by name. The calls of others are counted together.
pub const MAX_NAMED_MODELS: usize = 16;

/// The most tools that a run counts by name. The calls of others are counted together.
pub const MAX_NAMED_TOOLS: usize = 64;

/// The most characters of a name. Providers choose the names of models.
pub const MAX_NAME_CHARS: usize = 200;

/// What a run has used, by model and by tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunUsage {
    /// The model of the last answer; empty if no model answered, or its name is not recorded.
    pub last_model: String,
    /// What was used of each model.
    pub models: Vec<ModelUsage>,
    /// What was used of each tool.
    pub tools: Vec<ToolUsage>,
}

/// What was used of one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelUsage {
    /// The model, as its provider names it. Empty for calls whose model is not recorded, and for models beyond
    /// [`MAX_NAMED_MODELS`].
    pub model: String,
    /// The calls.
    pub calls: u64,
    /// Tokens that it read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub cached_tokens: u64,
    /// The cost; none if its price is not known.
    pub cost: Option<f64>,
    /// The answered calls whose price is not known.
    pub unpriced_calls: u64,
    /// The time until its answers were known, in milliseconds.
    pub ms: u64,
}

/// What was used of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUsage {
    /// The id of the tool in the registry, or its name if it is a node of its own. Empty for tools beyond
    /// [`MAX_NAMED_TOOLS`].
    pub tool: String,
    /// The calls.
    pub calls: u64,
    /// The calls that failed.
    pub failed: u64,
    /// The time until the results were known, in milliseconds.
    pub ms: u64,
}

impl RunUsage {
    /// The entry of a model. A new one is added.
    pub fn model(&mut self, name: &str) -> &mut ModelUsage {
        let name = entry_name(name, self.models.iter().map(|entry| entry.model.as_str()), MAX_NAMED_MODELS);
        let index = self.models.iter().position(|entry| entry.model == name).unwrap_or_else(|| {
            self.models.push(ModelUsage { model: name, ..ModelUsage::default() });
            self.models.len() - 1
        });
        &mut self.models[index]
    }

    /// The entry of a tool. A new one is added.
    pub fn tool(&mut self, name: &str) -> &mut ToolUsage {
        let name = entry_name(name, self.tools.iter().map(|entry| entry.tool.as_str()), MAX_NAMED_TOOLS);
        let index = self.tools.iter().position(|entry| entry.tool == name).unwrap_or_else(|| {
            self.tools.push(ToolUsage { tool: name, ..ToolUsage::default() });
            self.tools.len() - 1
        });
        &mut self.tools[index]
    }

    /// Counts the answer of a model.
    pub fn add_answer(&mut self, name: &str, usage: &Usage, ms: u64) {
        let entry = self.model(name);
        entry.calls = entry.calls.saturating_add(1);
        entry.input_tokens = entry.input_tokens.saturating_add(usage.input_tokens);
        entry.output_tokens = entry.output_tokens.saturating_add(usage.output_tokens);
        entry.cached_tokens = entry.cached_tokens.saturating_add(usage.cached_tokens.unwrap_or(0));
        entry.ms = entry.ms.saturating_add(ms);
        match usage.cost {
            Some(cost) => entry.cost = Some(entry.cost.unwrap_or(0.0) + cost),
            None => entry.unpriced_calls = entry.unpriced_calls.saturating_add(1),
        }
        let model = entry.model.clone();
        self.last_model = model;
    }
}

/// The name under which something is counted: empty once there are too many names.
fn entry_name<'a>(name: &str, known: impl Iterator<Item = &'a str>, most: usize) -> String {
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    let known: Vec<&str> = known.filter(|known| !known.is_empty()).collect();
    if known.len() < most || known.contains(&name.as_str()) { name } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME_CHARS, MAX_NAMED_MODELS, MAX_NAMED_TOOLS, RunUsage};
    use crate::fact::Usage;

    #[test]
    fn names_beyond_the_limits_are_counted_together() {
        let mut used = RunUsage::default();
        for index in 0..MAX_NAMED_MODELS + 3 {
            let usage = Usage { input_tokens: 1, cost: Some(0.5), ..Usage::default() };
            used.add_answer(&format!("model-{index}"), &usage, 2);
        }
        for index in 0..MAX_NAMED_TOOLS + 2 {
            used.tool(&format!("tool-{index}")).calls += 1;
        }
        assert_eq!((used.models.len(), used.tools.len()), (MAX_NAMED_MODELS + 1, MAX_NAMED_TOOLS + 1));
        let other = used.model("another").clone();
        assert_eq!((other.model.as_str(), other.calls, other.cost, other.ms), ("", 3, Some(1.5), 6));
        assert_eq!(used.last_model, "");
        // A known name is still counted by its name.
        used.add_answer("model-0", &Usage::default(), 0);
        assert_eq!((used.model("model-0").calls, used.last_model.as_str()), (2, "model-0"));
        let known = used.model("model-0");
        assert_eq!((known.cost, known.unpriced_calls), (Some(0.5), 1), "an unknown cost is not 0");
        assert_eq!(used.tool("tool-99").calls, 2);
    }

    #[test]
    fn a_long_name_is_cut() {
        let mut used = RunUsage::default();
        used.model(&"ü".repeat(MAX_NAME_CHARS + 5)).calls += 1;
        used.model(&"ü".repeat(MAX_NAME_CHARS)).calls += 1;
        assert_eq!((used.models.len(), used.models[0].calls), (1, 2));
    }
}
