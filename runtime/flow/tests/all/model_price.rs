//! The price of a model: that of input and that of output come together.

use crate::kit::{check, good, node, with};
use serde_json::json;

#[test]
fn a_price_needs_both_parts() {
    let rows = [
        (json!({}), None),
        (json!({"inputPrice": 0, "outputPrice": 0}), None),
        (json!({"inputPrice": "0.75", "outputPrice": 4.5, "cachedPrice": 0.075}), None),
        (json!({"inputPrice": 1, "options": {"outputPrice": 2}}), None),
        (json!({"inputPrice": "", "outputPrice": "", "cachedPrice": " "}), None),
        (json!({"inputPrice": 1}), Some("/inputPrice")),
        (json!({"inputPrice": 1, "outputPrice": ""}), Some("/inputPrice")),
        (json!({"outputPrice": 2}), Some("/outputPrice")),
        (json!({"cachedPrice": 2}), Some("/cachedPrice")),
        (json!({"options": {"inputPrice": 1}}), Some("/options/inputPrice")),
        (json!({"inputPrice": -1, "outputPrice": 2}), Some("/inputPrice")),
        (json!({"inputPrice": 1, "outputPrice": "many"}), Some("/outputPrice")),
    ];
    for (extra, pointer) in rows {
        let mut flow = good(json!([["m"], ["c"], [], ["d"]]), vec![]);
        flow[2] = with(node("m", "openai-model", json!([[]])), extra);
        let expected: Vec<String> =
            pointer.iter().map(|pointer| format!("CONFIG_INVALID m {pointer}")).collect();
        check(flow, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
