//! The cost of model calls. There is no built-in price table, because an outdated one would be wrong.

use redflow_contract::fact::Usage;
use std::collections::BTreeMap;

/// Prices of one model for a million tokens, in the currency of the table.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For input tokens.
    pub input: f64,
    /// For output tokens.
    pub output: f64,
    /// For input tokens from the provider's cache. By default as `input`.
    pub cached: Option<f64>,
    /// For input tokens that the provider's cache stores. By default as `input`.
    pub cache_write: Option<f64>,
}

impl Price {
    /// Whether every price is a finite number from 0 to 10⁹.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let prices = [Some(self.input), Some(self.output), self.cached, self.cache_write];
        prices.into_iter().flatten().all(|price| price.is_finite() && (0.0..=1e9).contains(&price))
    }
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
}

#[cfg(test)]
mod tests {
    use super::{Price, Prices, find_price};
    use redflow_contract::fact::Usage;

    fn price(input: f64) -> Price {
        Price { input, output: 10.0, cached: Some(0.5), cache_write: None }
    }

    #[test]
    fn the_longest_matching_name_wins() {
        let rows = [("gpt-5*", 1.0), ("gpt-5-mini*", 2.0), ("gpt-5-mini-2025", 3.0), ("exact", 4.0)];
        let prices: Prices = rows.into_iter().map(|(name, input)| (name.to_owned(), price(input))).collect();
        for (model, expected) in [
            ("gpt-5", Some(1.0)),
            ("gpt-5-mini", Some(2.0)),
            ("gpt-5-mini-2025", Some(3.0)),
            ("gpt-5-mini-2025-08", Some(2.0)),
            ("exact", Some(4.0)),
            ("exactly", None),
        ] {
            assert_eq!(find_price(&prices, model).map(|price| price.input), expected, "{model}");
        }
    }

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let usage = Usage {
            input_tokens: 1_000,
            output_tokens: 100,
            cached_tokens: Some(600),
            cache_write_tokens: Some(100),
            ..Usage::default()
        };
        let cost = price(2.0).cost(&usage);
        assert!((cost - (300.0 * 2.0 + 600.0 * 0.5 + 100.0 * 2.0 + 100.0 * 10.0) / 1e6).abs() < 1e-12);
        let odd = Usage { input_tokens: 1, cached_tokens: Some(5), ..Usage::default() };
        assert!(price(2.0).cost(&odd) > 0.0);
    }
}
