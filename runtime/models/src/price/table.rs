//! The built-in prices, in US dollars for a million tokens, as the providers state them on the day of this release.
//!
//! Owns which names of models a row means. A model that no row means has no known price: a newer one may cost anything.
//! The prices hold at the providers' own hosts only, because a gateway has prices of its own.

use super::Price;
use redflow_contract::azure::is_azure_host;
use redflow_contract::day::Day;

/// What a token costs that a provider keeps for an hour, in prices of input.
pub(super) const HOUR_WRITE: f64 = 2.0;

/// What a token costs that a provider keeps for minutes, in prices of input.
const MINUTES_WRITE: f64 = 1.25;

/// The most characters of a name that is looked up.
const MAX_NAME_CHARS: usize = 200;

/// A provider with prices of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Openai,
    Anthropic,
    Google,
    Deepseek,
    Mistral,
    Xai,
    Groq,
    Moonshot,
}

/// The hosts of the providers. Azure has OpenAI's models at OpenAI's prices, see [`vendor_at`].
const HOSTS: [(&str, Vendor); 8] = [
    ("api.openai.com", Vendor::Openai),
    ("api.anthropic.com", Vendor::Anthropic),
    ("generativelanguage.googleapis.com", Vendor::Google),
    ("api.deepseek.com", Vendor::Deepseek),
    ("api.mistral.ai", Vendor::Mistral),
    ("api.x.ai", Vendor::Xai),
    ("api.groq.com", Vendor::Groq),
    ("api.moonshot.ai", Vendor::Moonshot),
];

/// The prices of a model.
#[derive(Debug, Clone, Copy)]
struct Row {
    vendor: Vendor,
    family: &'static str,
    /// The two numbers of the version; zeros if the name has none.
    version: (u32, u32),
    /// The words after the version.
    tier: &'static str,
    /// The last day with these prices, such as `2026-12-31`. The row after it has the next ones.
    until: Option<&'static str>,
    price: Price,
    /// The prices of larger requests.
    larger: Option<Price>,
}

impl Row {
    /// A row with the prices of input, cached input and output.
    const fn new(
        vendor: Vendor,
        family: &'static str,
        version: (u32, u32),
        tier: &'static str,
        [input, cached, output]: [f64; 3],
    ) -> Self {
        let price = Price { above: 0, input, output, cached: Some(cached), cache_write: None };
        Self { vendor, family, version, tier, until: None, price, larger: None }
    }

    const fn until(self, day: &'static str) -> Self {
        Self { until: Some(day), ..self }
    }

    /// Other prices for requests with more input tokens.
    const fn above(self, above: u64, [input, cached, output]: [f64; 3]) -> Self {
        let larger = Price { above, input, output, cached: Some(cached), cache_write: None };
        Self { larger: Some(larger), ..self }
    }

    /// The provider takes more for tokens that its cache stores.
    const fn with_writes(self) -> Self {
        const fn priced(price: Price) -> Price {
            Price { cache_write: Some(price.input * MINUTES_WRITE), ..price }
        }
        let larger = match self.larger {
            Some(price) => Some(priced(price)),
            None => None,
        };
        Self { price: priced(self.price), larger, ..self }
    }

    /// Whether the row means this model on this day.
    fn is_for(&self, vendor: Vendor, name: &Name<'_>, day: Day) -> bool {
        self.vendor == vendor
            && self.version == name.version
            && name.family.iter().copied().eq(self.family.split('-'))
            && name.tier.iter().copied().eq(self.tier.split('-').filter(|word| !word.is_empty()))
            // Days sort as texts.
            && self.until.is_none_or(|until| day.to_string().as_str() <= until)
    }
}

/// OpenAI takes twice the price of input and 1.5 times that of output for the whole of a request with more input.
const fn openai(version: (u32, u32), tier: &'static str, [input, cached, output]: [f64; 3]) -> Row {
    Row::new(Vendor::Openai, "gpt", version, tier, [input, cached, output])
        .above(272_000, [input * 2.0, cached * 2.0, output * 1.5])
}

const fn claude(family: &'static str, version: (u32, u32), prices: [f64; 3]) -> Row {
    Row::new(Vendor::Anthropic, family, version, "", prices)
}

const fn gemini(version: (u32, u32), tier: &'static str, prices: [f64; 3]) -> Row {
    Row::new(Vendor::Google, "gemini", version, tier, prices)
}

/// The rows. Of several rows for a model, the first one that holds on the day counts.
const ROWS: &[Row] = &[
    openai((6, 1), "terra", [1.0, 0.05, 5.0]).with_writes(),
    openai((6, 1), "sol", [2.0, 0.10, 10.0]).with_writes(),
    openai((6, 0), "luna", [0.10, 0.01, 0.50]).with_writes(),
    openai((6, 0), "sol", [2.0, 0.20, 10.0]).with_writes(),
    openai((6, 0), "astra", [10.0, 1.0, 50.0]).with_writes(),
    // A promotion. The price after it is not known.
    openai((5, 6), "sol", [4.0, 0.40, 20.0]).with_writes().until("2026-11-21"),
    openai((5, 6), "terra", [2.0, 0.20, 12.0]).with_writes(),
    openai((5, 6), "luna", [0.20, 0.02, 1.20]).with_writes(),
    openai((5, 5), "", [5.0, 0.50, 30.0]),
    openai((5, 4), "mini", [0.75, 0.075, 4.50]),
    claude("claude-fable", (5, 2), [8.0, 0.20, 40.0]).with_writes(),
    claude("claude-fable", (5, 1), [10.0, 0.25, 50.0]).with_writes(),
    claude("claude-opus", (5, 5), [4.0, 0.20, 20.0]).with_writes(),
    claude("claude-sonnet", (5, 5), [2.0, 0.10, 10.0]).with_writes(),
    claude("claude-haiku", (5, 5), [0.10, 0.01, 0.50]).above(100_000, [0.50, 0.05, 2.50]).with_writes(),
    claude("claude-haiku", (4, 5), [1.0, 0.10, 5.0]).with_writes(),
    gemini((4, 0), "argon", [2.0, 0.10, 10.0]).until("2026-11-30"),
    gemini((4, 0), "argon", [4.0, 0.20, 20.0]),
    gemini((3, 8), "flash", [0.75, 0.075, 3.75]).until("2026-12-31"),
    gemini((3, 8), "flash", [1.50, 0.15, 7.50]),
    gemini((3, 6), "flash", [0.75, 0.075, 3.75]).until("2026-12-31"),
    gemini((3, 6), "flash", [1.50, 0.15, 7.50]),
    // Twice as much at the busiest hours, which this table does not know.
    Row::new(Vendor::Deepseek, "deepseek-flash", (0, 0), "", [0.15, 0.003, 0.60]),
    Row::new(Vendor::Mistral, "mistral-medium-latest", (0, 0), "", [1.50, 0.15, 7.50]),
    Row::new(Vendor::Mistral, "mistral-medium", (3, 5), "", [1.50, 0.15, 7.50]),
    Row::new(Vendor::Mistral, "mistral-large", (4, 0), "", [0.68, 0.07, 2.09]),
    Row::new(Vendor::Xai, "grok", (4, 7), "", [2.0, 0.50, 6.0]).above(199_999, [4.0, 1.0, 12.0]),
    Row::new(Vendor::Xai, "grok", (4, 3), "", [1.25, 0.20, 2.50]),
    Row::new(Vendor::Groq, "gpt-oss-120b", (0, 0), "", [0.15, 0.075, 0.60]),
    Row::new(Vendor::Moonshot, "kimi-k3", (0, 0), "", [3.0, 0.30, 15.0]),
];

/// The prices of a model at a host on a day: one for every request, then those for larger requests. None if they are not
/// known.
#[must_use]
pub fn built_in(host: &str, model: &str, day: Day) -> Option<Vec<Price>> {
    let vendor = vendor_at(host)?;
    let model = model.to_ascii_lowercase();
    let name = Name::parse(&model)?;
    let row = ROWS.iter().find(|row| row.is_for(vendor, &name, day))?;
    Some(std::iter::once(row.price).chain(row.larger).collect())
}

/// The provider at a host. At Azure, the deployment is named as the model or has no known price.
fn vendor_at(host: &str) -> Option<Vendor> {
    if is_azure_host(host) {
        return Some(Vendor::Openai);
    }
    HOSTS.iter().find(|(known, _)| *known == host).map(|(_, vendor)| *vendor)
}

/// The parts of a model's name.
struct Name<'a> {
    family: Vec<&'a str>,
    version: (u32, u32),
    tier: Vec<&'a str>,
}

impl<'a> Name<'a> {
    /// Parses a name such as `openai/gpt-6.1-terra-2026-10-26`. None if it is too long or has too many numbers.
    fn parse(model: &'a str) -> Option<Self> {
        if model.len() > MAX_NAME_CHARS {
            return None;
        }
        let (_, name) = model.rsplit_once('/').unwrap_or(("", model));
        let mut words: Vec<&str> = name.split('-').collect();
        remove_date(&mut words);
        let version_of =
            |word: &str| word.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>();
        let begin = words.iter().position(|word| version_of(word).is_some()).unwrap_or(words.len());
        let (family, rest) = words.split_at(begin);
        let numbers: Vec<u32> = rest.iter().map_while(|word| version_of(word)).flatten().collect();
        let tier = rest.iter().skip_while(|word| version_of(word).is_some()).copied().collect();
        let version = match numbers[..] {
            [] => (0, 0),
            [major] => (major, 0),
            [major, minor] => (major, minor),
            _ => return None,
        };
        Some(Self { family: family.to_vec(), version, tier })
    }
}

/// Removes a date at the end: `20261026` or `2026-10-26`.
fn remove_date(words: &mut Vec<&str>) {
    let lengths: Vec<usize> = words
        .iter()
        .rev()
        .map_while(|word| word.bytes().all(|byte| byte.is_ascii_digit()).then_some(word.len()))
        .take(3)
        .collect();
    let date = match lengths[..] {
        [8, ..] => 1,
        [2, 2, 4] => 3,
        _ => 0,
    };
    words.truncate(words.len() - date);
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
