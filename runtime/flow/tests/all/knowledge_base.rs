//! `knowledge-base-tool`: it must name its knowledge base.

use crate::kit::{check, good, node, with};
use serde_json::json;

#[test]
fn a_tool_without_its_knowledge_base_is_refused() {
    let missing: &[&str] = &["CONFIG_INVALID k /collection"];
    let rows = [
        (json!({"collection": "manuals"}), &[][..]),
        (json!({"options": {"collection": "manuals"}}), &[]),
        (json!({"collection": "", "options": {"collection": "manuals"}}), &[]),
        (json!({}), missing),
        (json!({"collection": " "}), missing),
        (json!({"collection": null, "options": {"topK": 3}}), missing),
        // One problem, not two.
        (json!({"collection": 5}), missing),
    ];
    for (extra, expected) in rows {
        let mut flow = good(json!([["m"], ["k"], [], ["d"]]), vec![]);
        flow[1] = with(flow[1].clone(), json!({"allowedTools": ["knowledge_base_search"]}));
        flow[3] = with(node("k", "knowledge-base-tool", json!([[]])), extra);
        check(flow, expected);
    }
}
