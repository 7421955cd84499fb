//! The cost of model calls: where the price of a model comes from, and what a call costs by it.
//!
//! The prices that a node has win over those of the configuration, and those over the built-in table. A model without any
//! of them has no known price, which is not a price of 0.

mod table;

pub use table::built_in;

use redflow_contract::day::Day;
use redflow_contract::deployed_model::{ModelPrice, PriceSource, PriceTier};
use redflow_contract::fact::Usage;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Prices of one model for a million tokens, in the currency of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    /// The input tokens of a request above which these prices hold, for the whole request. 0 for every request.
    pub above: u64,
    /// For input tokens.
    pub input: f64,
    /// For output tokens.
    pub output: f64,
    /// For input tokens from the provider's cache. By default as `input`.
    pub cached: Option<f64>,
    /// For input tokens that the provider's cache stores. By default as `input`.
    pub cache_write: Option<f64>,
}

/// Prices by model. A name that ends in `*` applies to every model with that prefix.
pub type Prices = BTreeMap<String, Price>;

/// The price of a model: the row with its name, else the row with the longest prefix.
#[must_use]
pub fn find_price(prices: &Prices, model: &str) -> Option<Price> {
    let by_prefix = || {
        let rows = prices.iter().filter_map(|(name, price)| Some((name.strip_suffix('*')?, price)));
        rows.filter(|(prefix, _)| model.starts_with(prefix)).max_by_key(|(prefix, _)| prefix.len())
    };
    prices.get(model).or_else(|| by_prefix().map(|(_, price)| price)).copied()
}

impl Price {
    /// The cost of one call.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.cached_tokens.unwrap_or(0);
        let cache_write = usage.cache_write_tokens.unwrap_or(0);
        let uncached = usage.input_tokens.saturating_sub(cached).saturating_sub(cache_write);
        let sum = uncached as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + cache_write as f64 * self.cache_write.unwrap_or(self.input)
            + usage.output_tokens as f64 * self.output;
        sum / 1e6
    }

    fn tier(&self) -> PriceTier {
        let Self { above, input, output, cached, cache_write } = *self;
        PriceTier { above, input, output, cached, cache_write }
    }
}

/// How the price of a model node is found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pricing {
    /// The price is not known.
    Unknown,
    /// The price is set.
    Fixed(Price, PriceSource),
    /// The built-in table has the model. Its prices change from one day to the next, so each call looks them up.
    BuiltIn {
        /// The host of the provider.
        host: String,
        /// The model.
        model: String,
        /// Whether the provider keeps prompts for an hour.
        keeps_an_hour: bool,
    },
}

impl Pricing {
    /// The built-in prices of a model at a host; unknown if the table has none today.
    pub(crate) fn built_in(host: &str, model: &str, keeps_an_hour: bool) -> Self {
        match built_in(host, model, today()) {
            Some(_) => Self::BuiltIn { host: host.to_owned(), model: model.to_owned(), keeps_an_hour },
            None => Self::Unknown,
        }
    }

    /// The prices of a day: one for every request, then those for larger requests. Empty if they are not known.
    fn on(&self, day: Day) -> Vec<Price> {
        match self {
            Self::Unknown => Vec::new(),
            Self::Fixed(price, _) => vec![*price],
            Self::BuiltIn { host, model, keeps_an_hour } => {
                let mut prices = built_in(host, model, day).unwrap_or_default();
                if *keeps_an_hour {
                    for price in &mut prices {
                        price.cache_write = price.cache_write.map(|_| price.input * table::HOUR_WRITE);
                    }
                }
                prices
            }
        }
    }

    /// The cost of a call that ends now; none if it is not known.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<f64> {
        let cost = match self {
            Self::Fixed(price, _) => price.cost(usage),
            _ => price_of(&self.on(today()), usage)?.cost(usage),
        };
        // JSON, and so the journal, cannot hold an infinite number.
        Some(cost).filter(|cost| cost.is_finite())
    }

    /// The prices of today, and where they come from; none if they are not known.
    pub(crate) fn describe(&self) -> Option<ModelPrice> {
        let source = match self {
            Self::Unknown => return None,
            Self::Fixed(_, source) => *source,
            Self::BuiltIn { .. } => PriceSource::BuiltIn,
        };
        let prices = self.on(today());
        let (first, larger) = prices.split_first()?;
        let PriceTier { input, output, cached, cache_write, .. } = first.tier();
        let tiers = larger.iter().map(Price::tier).collect();
        Some(ModelPrice { source, input, output, cached, cache_write, tiers })
    }
}

/// The price of a request: the one with the highest limit that the request exceeds.
fn price_of<'a>(prices: &'a [Price], usage: &Usage) -> Option<&'a Price> {
    let holds = |price: &&Price| price.above == 0 || usage.input_tokens > price.above;
    prices.iter().filter(holds).max_by_key(|price| price.above)
}

fn today() -> Day {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Day::of(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "price_tests.rs"]
mod tests;
