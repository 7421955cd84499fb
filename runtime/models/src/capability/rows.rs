//! The table of what models can do, family by family. The first row that matches a name counts.
//!
//! Rows describe what is known. A name that is newer than every row of its family, or that has no version, gets the
//! newest row, because a new name is rarely that of an old model.

use super::name::{Family, ModelName, Version};
use super::{Capabilities, Effort, Sampling, Thinking, ThinkingBudget};

/// Models that share all their rules.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The models, for the page of the docs.
    pub models: &'static str,
    /// Their family.
    pub family: Family,
    /// Their first version.
    pub since: Version,
    /// Their last version.
    pub until: Version,
    /// The starts of their tiers; empty for all tiers.
    pub tiers: &'static [&'static str],
    /// What they can do.
    pub can: Capabilities,
}

impl Row {
    fn has(&self, name: &ModelName) -> bool {
        let is_tier = || self.tiers.is_empty() || self.tiers.iter().any(|tier| name.tier.starts_with(tier));
        name.family == self.family
            && name.version.is_some_and(|version| self.since <= version && version <= self.until)
            && is_tier()
    }
}

/// The row of a name, and whether it is that of the newest models because no row knows the name.
pub(super) fn find_row(name: &ModelName) -> Option<(&'static Row, bool)> {
    if let Some(known) = ROWS.iter().find(|row| row.has(name)) {
        return Some((known, false));
    }
    // The newest row of a family stands last.
    ROWS.iter().rfind(|row| row.family == name.family).map(|newest| (newest, true))
}

/// The newest row of a family.
pub(super) fn newest_row(family: Family) -> Option<&'static Row> {
    ROWS.iter().rfind(|row| row.family == family)
}

const fn row(
    models: &'static str,
    family: Family,
    versions: (Version, Version),
    tiers: &'static [&'static str],
    can: Capabilities,
) -> Row {
    Row { models, family, since: versions.0, until: versions.1, tiers, can }
}

const fn sized(base: Capabilities, context_window: u32, max_output: u32) -> Capabilities {
    Capabilities { context_window: Some(context_window), max_output: Some(max_output), ..base }
}

/// What a model of a known maker can do, if its row says nothing else.
pub(super) const MODERN: Capabilities = Capabilities {
    tools: true,
    vision: true,
    streaming: true,
    json_schema: true,
    whole_schema: false,
    number_range: false,
    json_object: true,
    sampling: Sampling::Free,
    thinking: Thinking::Never,
    efforts: &[],
    budget: ThinkingBudget::Refused,
    forced_tools: true,
    needs_responses: false,
    completion_limit: false,
    asks_encrypted: false,
    binds_thoughts: false,
    is_assumed: false,
    context_window: None,
    max_output: None,
};

use Effort::{High, Low, Max, Medium, Minimal, None as Off, Xhigh};

const GPT: Capabilities = Capabilities { completion_limit: true, ..MODERN };
const GPT_THINKING: Capabilities = Capabilities {
    thinking: Thinking::On,
    sampling: Sampling::WithoutThinking,
    efforts: &[Off, Low, Medium, High, Xhigh, Max],
    ..GPT
};
const GPT_5_0: Capabilities = Capabilities {
    sampling: Sampling::Refused,
    efforts: &[Minimal, Low, Medium, High],
    ..sized(GPT_THINKING, 400_000, 128_000)
};
const GPT_5_1: Capabilities = Capabilities {
    thinking: Thinking::Off,
    efforts: &[Off, Low, Medium, High, Xhigh],
    ..sized(GPT_THINKING, 400_000, 128_000)
};
const GPT_5_4: Capabilities = Capabilities { needs_responses: true, ..GPT_5_1 };
const GPT_5_5: Capabilities = Capabilities {
    needs_responses: true,
    efforts: &[Off, Low, Medium, High, Xhigh],
    ..sized(GPT_THINKING, 1_050_000, 128_000)
};
const GPT_5_6: Capabilities =
    Capabilities { needs_responses: true, ..sized(GPT_THINKING, 1_050_000, 128_000) };
const GPT_ALWAYS: Capabilities = Capabilities {
    thinking: Thinking::Always,
    sampling: Sampling::Refused,
    efforts: &[Low, Medium, High, Xhigh, Max],
    ..GPT_5_6
};
const OPENAI_O: Capabilities = Capabilities {
    thinking: Thinking::Always,
    sampling: Sampling::Refused,
    efforts: &[Low, Medium, High],
    ..sized(GPT, 200_000, 100_000)
};

const CLAUDE: Capabilities = Capabilities { json_object: false, ..MODERN };
/// Claude models with a fixed number of tokens for thinking.
const CLAUDE_BUDGET: Capabilities =
    Capabilities { thinking: Thinking::Off, budget: ThinkingBudget::Fixed, ..sized(CLAUDE, 200_000, 64_000) };
const CLAUDE_ADAPTIVE: Capabilities = Capabilities {
    thinking: Thinking::Off,
    sampling: Sampling::Refused,
    efforts: &[Low, Medium, High, Xhigh, Max],
    budget: ThinkingBudget::Adaptive,
    ..sized(CLAUDE, 1_000_000, 128_000)
};
const CLAUDE_5: Capabilities = Capabilities { thinking: Thinking::On, ..CLAUDE_ADAPTIVE };
const CLAUDE_NEWEST: Capabilities =
    Capabilities { thinking: Thinking::Always, forced_tools: false, binds_thoughts: true, ..CLAUDE_5 };

const GOOGLE: Capabilities = Capabilities { whole_schema: true, number_range: true, ..MODERN };
const GEMINI: Capabilities = Capabilities { thinking: Thinking::On, ..sized(GOOGLE, 1_048_576, 65_536) };
/// Gemini models that ignore settings of sampling.
const GEMINI_IGNORING: Capabilities = Capabilities { sampling: Sampling::Refused, ..GEMINI };
const LEVELS: &[Effort] = &[Low, Medium, High];
const LEVELS_WITH_MINIMAL: &[Effort] = &[Minimal, Low, Medium, High];

/// A model that others than its maker serve too, by the interface of OpenAI.
const SERVED: Capabilities = Capabilities { vision: false, ..MODERN };

const ANY: (Version, Version) = ((0, 0), (u16::MAX, u16::MAX));

/// The table. Within a family the newest models stand last.
pub const ROWS: &[Row] = &[
    row(
        "gpt-3.5",
        Family::Gpt,
        ((0, 0), (3, 9)),
        &[],
        Capabilities { vision: false, json_schema: false, ..sized(GPT, 16_385, 4_096) },
    ),
    row("gpt-4o", Family::Gpt, ((4, 0), (4, 0)), &["o"], sized(GPT, 128_000, 16_384)),
    row(
        "gpt-4-turbo",
        Family::Gpt,
        ((4, 0), (4, 0)),
        &["turbo"],
        Capabilities { json_schema: false, ..sized(GPT, 128_000, 4_096) },
    ),
    row(
        "gpt-4",
        Family::Gpt,
        ((4, 0), (4, 0)),
        &[],
        Capabilities { vision: false, json_schema: false, json_object: false, ..sized(GPT, 8_192, 8_192) },
    ),
    row("gpt-4.1", Family::Gpt, ((4, 1), (4, 4)), &[], sized(GPT, 1_047_576, 32_768)),
    row("gpt-4.5", Family::Gpt, ((4, 5), (4, 9)), &[], sized(GPT, 128_000, 16_384)),
    row("gpt-5 … 5.3 chat", Family::Gpt, ((5, 0), (5, 3)), &["chat"], sized(GPT, 128_000, 16_384)),
    row("gpt-5", Family::Gpt, ((5, 0), (5, 0)), &[], GPT_5_0),
    row("gpt-5.1 … 5.3", Family::Gpt, ((5, 1), (5, 3)), &[], GPT_5_1),
    row("gpt-5.4", Family::Gpt, ((5, 4), (5, 4)), &[], GPT_5_4),
    row("gpt-5.5", Family::Gpt, ((5, 5), (5, 5)), &[], GPT_5_5),
    row("gpt-5.6", Family::Gpt, ((5, 6), (5, 9)), &[], GPT_5_6),
    row("gpt-6-astra", Family::Gpt, ((6, 0), (6, 1)), &["astra"], GPT_ALWAYS),
    row("gpt-6.1-sol", Family::Gpt, ((6, 1), (6, 1)), &["sol"], GPT_ALWAYS),
    row("gpt-6, gpt-6.1 and newer", Family::Gpt, ((6, 0), (6, 1)), &[], GPT_5_6),
    row(
        "o1-mini",
        Family::OpenaiO,
        ((1, 0), (1, 0)),
        &["mini"],
        Capabilities { tools: false, vision: false, json_schema: false, ..sized(OPENAI_O, 128_000, 65_536) },
    ),
    row("o1, o3, o4, codex-mini", Family::OpenaiO, ((1, 0), (4, 0)), &[], OPENAI_O),
    row(
        "claude-instant, claude-2",
        Family::Claude,
        ((1, 0), (2, 9)),
        &[],
        Capabilities { tools: false, vision: false, json_schema: false, ..sized(CLAUDE, 100_000, 4_096) },
    ),
    row(
        "claude-3",
        Family::Claude,
        ((3, 0), (3, 4)),
        &[],
        Capabilities { json_schema: false, ..sized(CLAUDE, 200_000, 4_096) },
    ),
    row(
        "claude-3.5",
        Family::Claude,
        ((3, 5), (3, 6)),
        &[],
        Capabilities { json_schema: false, ..sized(CLAUDE, 200_000, 8_192) },
    ),
    row(
        "claude-3.7",
        Family::Claude,
        ((3, 7), (3, 9)),
        &[],
        Capabilities { json_schema: false, ..CLAUDE_BUDGET },
    ),
    row(
        "claude-opus-4",
        Family::Claude,
        ((4, 0), (4, 0)),
        &["opus"],
        Capabilities { json_schema: false, max_output: Some(32_000), ..CLAUDE_BUDGET },
    ),
    row(
        "claude-sonnet-4",
        Family::Claude,
        ((4, 0), (4, 0)),
        &[],
        Capabilities { json_schema: false, ..CLAUDE_BUDGET },
    ),
    row(
        "claude-opus-4.1",
        Family::Claude,
        ((4, 1), (4, 4)),
        &[],
        Capabilities { max_output: Some(32_000), ..CLAUDE_BUDGET },
    ),
    row(
        "claude-opus-4.5",
        Family::Claude,
        ((4, 5), (4, 5)),
        &["opus"],
        Capabilities { efforts: &[Low, Medium, High], ..CLAUDE_BUDGET },
    ),
    row("claude-sonnet-4.5, claude-haiku-4.5", Family::Claude, ((4, 5), (4, 5)), &[], CLAUDE_BUDGET),
    row(
        "claude 4.6",
        Family::Claude,
        ((4, 6), (4, 6)),
        &[],
        Capabilities {
            efforts: &[Low, Medium, High, Max],
            budget: ThinkingBudget::FixedOrAdaptive,
            ..CLAUDE_BUDGET
        },
    ),
    row("claude 4.7, 4.8", Family::Claude, ((4, 7), (4, 9)), &[], CLAUDE_ADAPTIVE),
    row(
        "claude-fable-5",
        Family::Claude,
        ((5, 0), (5, 0)),
        &["fable"],
        Capabilities { thinking: Thinking::Always, ..CLAUDE_5 },
    ),
    row("claude-opus-5, claude-sonnet-5", Family::Claude, ((5, 0), (5, 0)), &[], CLAUDE_5),
    row(
        "claude-haiku-5.5",
        Family::Claude,
        ((5, 1), (5, 5)),
        &["haiku"],
        Capabilities { binds_thoughts: true, ..CLAUDE_5 },
    ),
    row(
        "claude-sonnet-5.5",
        Family::Claude,
        ((5, 1), (5, 5)),
        &["sonnet"],
        Capabilities { thinking: Thinking::On, ..CLAUDE_NEWEST },
    ),
    row(
        "claude-opus-5.5, claude-fable-5.1, 5.2 and newer",
        Family::Claude,
        ((5, 1), (5, 5)),
        &[],
        CLAUDE_NEWEST,
    ),
    row("gemini-1, gemini-2.0", Family::Gemini, ((0, 0), (2, 4)), &[], sized(GOOGLE, 1_048_576, 8_192)),
    row("gemini-2.5", Family::Gemini, ((2, 5), (2, 9)), &[], GEMINI),
    row(
        "gemini-3.5-flash-lite",
        Family::Gemini,
        ((3, 5), (3, 5)),
        &["flash-lite"],
        Capabilities { efforts: LEVELS_WITH_MINIMAL, ..GEMINI_IGNORING },
    ),
    row(
        "gemini-3 … 3.5",
        Family::Gemini,
        ((3, 0), (3, 5)),
        &[],
        Capabilities { efforts: LEVELS_WITH_MINIMAL, ..GEMINI },
    ),
    row(
        "gemini-3.6, 3.7",
        Family::Gemini,
        ((3, 6), (3, 7)),
        &[],
        Capabilities { efforts: LEVELS_WITH_MINIMAL, ..GEMINI_IGNORING },
    ),
    row(
        "gemini-3.8, gemini-4 and newer",
        Family::Gemini,
        ((3, 8), (4, 0)),
        &[],
        Capabilities { efforts: LEVELS, ..GEMINI_IGNORING },
    ),
    row(
        "gemma-3",
        Family::Gemma,
        ((0, 0), (3, 9)),
        &[],
        Capabilities {
            tools: false,
            json_schema: false,
            json_object: false,
            ..sized(GOOGLE, 131_072, 8_192)
        },
    ),
    row("gemma-4 and newer", Family::Gemma, ((4, 0), (4, 0)), &[], GOOGLE),
    row(
        "deepseek-v4-pro",
        Family::Deepseek,
        ((4, 0), (4, 0)),
        &["pro"],
        Capabilities { vision: false, ..DEEPSEEK },
    ),
    row("deepseek-flash and newer", Family::Deepseek, ((4, 1), (4, 1)), &[], DEEPSEEK),
    row(
        "mistral-large-4, mistral-medium-3.5 and newer",
        Family::Mistral,
        ((3, 5), (4, 0)),
        &[],
        Capabilities {
            thinking: Thinking::Off,
            efforts: &[Off, High],
            context_window: Some(262_144),
            ..MODERN
        },
    ),
    row(
        "grok-4.3",
        Family::Grok,
        ((4, 0), (4, 5)),
        &[],
        Capabilities { efforts: &[Off, Low, Medium, High], context_window: Some(1_000_000), ..GROK },
    ),
    row("grok-4.6, 4.7 and newer", Family::Grok, ((4, 6), (4, 7)), &[], GROK),
    row(
        "gpt-oss",
        Family::GptOss,
        ANY,
        &[],
        Capabilities { thinking: Thinking::On, efforts: LEVELS, ..sized(SERVED, 131_072, 65_536) },
    ),
    row(
        "kimi-k3 and newer",
        Family::Kimi,
        ((3, 0), (3, 0)),
        &[],
        Capabilities {
            thinking: Thinking::Always,
            sampling: Sampling::Refused,
            efforts: &[Low, High, Max],
            ..sized(MODERN, 1_048_576, 131_072)
        },
    ),
];

const DEEPSEEK: Capabilities = Capabilities {
    json_schema: false,
    thinking: Thinking::On,
    sampling: Sampling::WithoutThinking,
    efforts: &[Off, Low, High, Max],
    forced_tools: false,
    ..sized(MODERN, 1_000_000, 384_000)
};
const GROK: Capabilities = Capabilities {
    thinking: Thinking::Always,
    efforts: &[Low, Medium, High, Xhigh],
    asks_encrypted: true,
    context_window: Some(500_000),
    ..MODERN
};
