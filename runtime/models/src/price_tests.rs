//! Tests of the prices of the configuration, of tiers, and of the cost of a call.

use super::{Price, Prices, Pricing, find_price, price_of};
use redflow_contract::deployed_model::{ModelPrice, PriceSource};
use redflow_contract::fact::Usage;

fn price(input: f64) -> Price {
    Price { input, output: 10.0, cached: Some(0.5), ..Price::default() }
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

#[test]
fn a_larger_request_has_its_own_price_for_all_of_its_tokens() {
    let prices = [price(1.0), Price { above: 100, ..price(2.0) }, Price { above: 1_000, ..price(3.0) }];
    for (input_tokens, expected) in [(0, 1.0), (100, 1.0), (101, 2.0), (1_000, 2.0), (1_001, 3.0)] {
        let usage = Usage { input_tokens, ..Usage::default() };
        assert_eq!(price_of(&prices, &usage).map(|price| price.input), Some(expected), "{input_tokens}");
    }
    assert_eq!(price_of(&[], &Usage::default()), None);
}

#[test]
fn a_set_price_of_0_is_known_and_an_unknown_price_is_not_0() {
    let usage = Usage { input_tokens: 1_000, output_tokens: 1_000, ..Usage::default() };
    let free = Pricing::Fixed(Price::default(), PriceSource::Node);
    assert_eq!((free.cost(&usage), free.describe().is_some()), (Some(0.0), true));
    assert_eq!((Pricing::Unknown.cost(&usage), Pricing::Unknown.describe()), (None, None));
    let endless = Pricing::Fixed(Price { input: f64::MAX, ..Price::default() }, PriceSource::Node);
    assert_eq!(endless.cost(&Usage { input_tokens: u64::MAX, ..Usage::default() }), None);
}

#[test]
fn a_built_in_price_has_its_tiers_and_the_price_of_an_hour_in_the_cache() {
    let (host, model) = ("api.anthropic.com", "claude-haiku-5-5");
    let usage =
        |input_tokens| Usage { input_tokens, cache_write_tokens: Some(input_tokens), ..Usage::default() };
    for (keeps_an_hour, small, large) in [(false, 0.125, 0.625), (true, 0.2, 1.0)] {
        let pricing = Pricing::built_in(host, model, keeps_an_hour);
        let ModelPrice { source, input, cache_write, tiers, .. } = pricing.describe().unwrap();
        assert_eq!((source, input, cache_write), (PriceSource::BuiltIn, 0.1, Some(small)));
        assert_eq!((tiers[0].above, tiers[0].input, tiers[0].cache_write), (100_000, 0.5, Some(large)));
        let cost = |tokens| pricing.cost(&usage(tokens)).unwrap();
        assert!((cost(100_000) - small / 10.0).abs() < 1e-9, "{keeps_an_hour}");
        assert!((cost(1_000_000) - large).abs() < 1e-9, "{keeps_an_hour}");
    }
    assert_eq!(Pricing::built_in(host, "claude-unknown-9", false), Pricing::Unknown);
}
