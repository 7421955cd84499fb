//! `change`: sets, replaces, moves and deletes properties of a message.
//!
//! It supports the kinds of values that need only the message, the clock and the environment. A rule with
//! another kind answers every message with `NEEDS_NODE_RED`.

use crate::inject::evaluate;
use crate::property::PropertyPath;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::json::{nests_within, size_of};
use redflow_contract::node::{ChangeConfig, ChangeRule};
use redflow_contract::run_error::Failure;
use redflow_ports::{BuildError, FlowNode, NodeConfig, NodeContext, NodeOutput};
use serde_json::Value;
use std::sync::Arc;

/// Rules that one node may have.
const MAX_RULES: usize = 1000;

/// Approximate bytes that all rules together may make of one message, because they can copy it into itself.
const MAX_MADE_BYTES: usize = 8 * 1024 * 1024;

/// Levels that a property may nest.
const MAX_LEVELS: usize = 100;

/// Approximate bytes of an empty value.
const EMPTY_VALUE_BYTES: usize = 32;

struct Change(Vec<Rule>);

enum Rule {
    Set {
        path: PropertyPath,
        to: Operand,
    },
    Replace {
        path: PropertyPath,
        from: Operand,
        to: Operand,
    },
    Delete {
        path: PropertyPath,
    },
    Move {
        path: PropertyPath,
        to: PropertyPath,
    },
    /// Only Node-RED can apply the rule, for this reason.
    NeedsNodeRed(String),
}

enum Operand {
    /// Another property of the message.
    Property(PropertyPath),
    /// A value and its kind.
    Value(Value, String),
}

impl Operand {
    fn value(
        &self,
        message: &Message,
        context: &NodeContext<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Value>, RuleError> {
        match self {
            Self::Property(path) => {
                let Some(value) = path.get(message) else { return Ok(None) };
                // Counted before the copy is made.
                budget.take(size_of(value))?;
                Ok(Some(value.clone()))
            }
            Self::Value(value, kind) => {
                budget.take(size_of(value))?;
                evaluate(value, kind, context).map(Some).map_err(RuleError::NeedsNodeRed)
            }
        }
    }
}

/// Why a rule was not applied.
enum RuleError {
    /// Only Node-RED can apply the rule, for this reason.
    NeedsNodeRed(String),
    TooLarge,
}

/// The bytes that may still be made of a message.
struct Budget(usize);

impl Budget {
    fn take(&mut self, bytes: usize) -> Result<(), RuleError> {
        self.0 = self.0.checked_sub(bytes).ok_or(RuleError::TooLarge)?;
        Ok(())
    }

    /// Puts a value into a message, if the budget allows it.
    fn set(&mut self, path: &PropertyPath, message: &mut Message, value: Value) -> Result<(), RuleError> {
        if !nests_within(&value, MAX_LEVELS.saturating_sub(path.steps())) {
            return Err(RuleError::TooLarge);
        }
        self.take(size_of(&value))?;
        self.take(path.set(message, value).saturating_mul(EMPTY_VALUE_BYTES))
    }
}

impl FlowNode for Change {
    fn receive(&self, message: Arc<FlowMessage>, context: &NodeContext<'_>) -> NodeOutput {
        if self.0.is_empty() {
            return NodeOutput::send(message);
        }
        let mut message = Arc::unwrap_or_clone(message).into_message();
        let mut budget = Budget(MAX_MADE_BYTES);
        for rule in &self.0 {
            let (code, message) = match rule.apply(&mut message, context, &mut budget) {
                Ok(()) => continue,
                Err(RuleError::NeedsNodeRed(why)) => (RunErrorCode::NeedsNodeRed, why),
                Err(RuleError::TooLarge) => (
                    RunErrorCode::ConfigInvalid,
                    format!(
                        "it would make more than {MAX_MADE_BYTES} bytes or {MAX_LEVELS} levels of this message"
                    ),
                ),
            };
            let work = MAX_MADE_BYTES.saturating_sub(budget.0);
            return NodeOutput { work, ..NodeOutput::failed(Failure { code, message }) };
        }
        NodeOutput {
            work: MAX_MADE_BYTES.saturating_sub(budget.0),
            ..NodeOutput::send(Arc::new(message.into()))
        }
    }
}

impl Rule {
    fn apply(
        &self,
        message: &mut Message,
        context: &NodeContext<'_>,
        budget: &mut Budget,
    ) -> Result<(), RuleError> {
        match self {
            Self::Set { path, to } => match to.value(message, context, budget)? {
                Some(value) => budget.set(path, message, value)?,
                // As in Node-RED, a property that is set to nothing is deleted.
                None => path.delete(message),
            },
            Self::Replace { path, from, to } => {
                let from = from.value(message, context, budget)?;
                let to = to.value(message, context, budget)?;
                let (Some(current), Some(from), Some(to)) = (path.get(message), from, to) else {
                    return Ok(());
                };
                // The search costs time, so it counts too.
                budget.take(size_of(current))?;
                if let Some(value) = replace(current, &from, to, budget)? {
                    budget.set(path, message, value)?;
                }
            }
            Self::Delete { path } => path.delete(message),
            Self::Move { path, to } => {
                if let Some(value) = path.get(message) {
                    // Counted before the copy is made.
                    budget.take(size_of(value))?;
                    let value = value.clone();
                    path.delete(message);
                    budget.set(to, message, value)?;
                }
            }
            Self::NeedsNodeRed(why) => return Err(RuleError::NeedsNodeRed(why.clone())),
        }
        Ok(())
    }
}

/// Replaces what was searched in a value; none if it was not found. A text that equals the search becomes the
/// new value, whatever its kind.
fn replace(
    current: &Value,
    from: &Value,
    to: Value,
    budget: &mut Budget,
) -> Result<Option<Value>, RuleError> {
    Ok(match (current, from) {
        (Value::String(text), Value::String(from)) if text != from => {
            let to = to.as_str().map_or_else(|| to.to_string(), str::to_owned);
            let found = if from.is_empty() { 0 } else { text.matches(from.as_str()).count() };
            budget.take(found.saturating_mul(to.len()))?;
            (found > 0).then(|| Value::from(text.replace(from.as_str(), &to)))
        }
        (current, from) if current == from => Some(to),
        _ => None,
    })
}

pub(crate) fn build(config: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    let ChangeConfig { rules } = config.typed()?;
    let Some(rules) = rules else {
        let why =
            "an old editor wrote this change node: open it in Node-RED, press Done, and deploy".to_owned();
        return Ok(Box::new(Change(vec![Rule::NeedsNodeRed(why)])));
    };
    if rules.len() > MAX_RULES {
        return Err(config.error(format!("it has more than {MAX_RULES} rules")));
    }
    let rules = rules.into_iter().map(|rule| parse_rule(&config, rule)).collect::<Result<_, _>>()?;
    Ok(Box::new(Change(rules)))
}

fn parse_rule(config: &NodeConfig<'_>, rule: ChangeRule) -> Result<Rule, BuildError> {
    let ChangeRule { t, p, pt, to, tot, from, fromt } = rule;
    let in_message = |kind: &Option<String>| kind.as_deref().is_none_or(|kind| kind == "msg");
    if !in_message(&pt) {
        return Ok(Rule::NeedsNodeRed(needs_node_red("a property", &pt)));
    }
    let path = |text: &str| {
        let quoted: String = text.chars().take(80).collect();
        PropertyPath::parse(text)
            .ok_or_else(|| config.error(format!("`{quoted}` is not a property of a message")))
    };
    let operand =
        |value: Option<Value>, kind: Option<String>| -> Result<Result<Operand, String>, BuildError> {
            let value = value.unwrap_or_else(|| Value::from(""));
            Ok(match kind.as_deref().unwrap_or("str") {
                "msg" => Ok(Operand::Property(path(value.as_str().unwrap_or_default())?)),
                "str" | "num" | "bool" | "json" | "date" | "env" => {
                    Ok(Operand::Value(value, kind.unwrap_or_else(|| "str".to_owned())))
                }
                _ => Err(needs_node_red("a value", &kind)),
            })
        };
    let own = path(&p)?;
    Ok(match t.as_str() {
        "set" => match operand(to, tot)? {
            Ok(to) => Rule::Set { path: own, to },
            Err(why) => Rule::NeedsNodeRed(why),
        },
        "change" => match (operand(from, fromt)?, operand(to, tot)?) {
            (Ok(from), Ok(to)) => Rule::Replace { path: own, from, to },
            (Err(why), _) | (_, Err(why)) => Rule::NeedsNodeRed(why),
        },
        "delete" => Rule::Delete { path: own },
        "move" if in_message(&tot) => {
            Rule::Move { path: own, to: path(to.as_ref().and_then(Value::as_str).unwrap_or_default())? }
        }
        "move" => Rule::NeedsNodeRed(needs_node_red("a property", &tot)),
        other => Rule::NeedsNodeRed(format!(
            "this change node has a rule `{}`, which needs Node-RED",
            other.chars().take(80).collect::<String>()
        )),
    })
}

fn needs_node_red(what: &str, kind: &Option<String>) -> String {
    let kind: String = kind.as_deref().unwrap_or_default().chars().take(80).collect();
    format!("this change node uses {what} of the type `{kind}`, which needs Node-RED")
}

#[cfg(test)]
mod tests {
    use redflow_contract::id::NodeSummary;
    use redflow_ports::{NodeConfig, NodeContext, NodeOutput};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn change(rules: &Value) -> Result<NodeOutput, String> {
        let node = NodeSummary { id: "c".into(), type_name: "change".to_owned(), name: String::new() };
        let props = json!({"rules": rules});
        let props = props.as_object().unwrap();
        let config = NodeConfig::new(&node, props, &|_| None, &|_| ());
        let built = super::build(config).map_err(|error| error.to_string())?;
        let env = |name: &str| (name == "TOWN").then(|| json!("Graz"));
        let context = NodeContext { now: 7, env: &env, payload: None };
        let message = json!({"payload": {"n": 1, "text": "a-b-a"}, "topic": "t"});
        Ok(built.receive(Arc::new(message.as_object().unwrap().clone().into()), &context))
    }

    #[test]
    fn rules_change_a_message() {
        let rows = [
            (json!([]), json!({"payload": {"n": 1, "text": "a-b-a"}, "topic": "t"})),
            (
                json!([{"t": "set", "p": "payload", "pt": "msg", "to": "x", "tot": "str"}]),
                json!({"payload": "x", "topic": "t"}),
            ),
            (
                json!([{"t": "set", "p": "payload", "to": "{\"celsius\": 21.5}", "tot": "json"}]),
                json!({"payload": {"celsius": 21.5}, "topic": "t"}),
            ),
            (
                json!([{"t": "set", "p": "payload", "to": "payload.n", "tot": "msg"}]),
                json!({"payload": 1, "topic": "t"}),
            ),
            (
                json!([{"t": "set", "p": "topic", "to": "gone", "tot": "msg"}, {"t": "delete", "p": "payload.text"}]),
                json!({"payload": {"n": 1}}),
            ),
            (
                json!([{"t": "set", "p": "payload", "to": "TOWN", "tot": "env"}, {"t": "set", "p": "topic", "tot": "date"}]),
                json!({"payload": "Graz", "topic": 7}),
            ),
            (
                json!([{"t": "change", "p": "payload.text", "from": "a", "to": "c"}]),
                json!({"payload": {"n": 1, "text": "c-b-c"}, "topic": "t"}),
            ),
            (
                json!([{"t": "change", "p": "payload.text", "from": "a-b-a", "to": "5", "tot": "num"}]),
                json!({"payload": {"n": 1, "text": 5}, "topic": "t"}),
            ),
            (
                json!([{"t": "change", "p": "payload.n", "from": "1", "fromt": "num", "to": "true", "tot": "bool"}]),
                json!({"payload": {"n": true, "text": "a-b-a"}, "topic": "t"}),
            ),
            (
                json!([{"t": "change", "p": "payload.n", "from": "2", "fromt": "num", "to": "x"}]),
                json!({"payload": {"n": 1, "text": "a-b-a"}, "topic": "t"}),
            ),
            (
                json!([{"t": "change", "p": "payload.text", "from": "", "to": "x"}]),
                json!({"payload": {"n": 1, "text": "a-b-a"}, "topic": "t"}),
            ),
            (
                json!([{"t": "move", "p": "payload.n", "to": "count"}, {"t": "move", "p": "gone", "to": "topic"}]),
                json!({"payload": {"text": "a-b-a"}, "topic": "t", "count": 1}),
            ),
            (
                json!([{"t": "move", "p": "payload", "to": "payload.old"}]),
                json!({"topic": "t", "payload": {"old": {"n": 1, "text": "a-b-a"}}}),
            ),
        ];
        for (rules, expected) in rows {
            let output = change(&rules).unwrap();
            assert_eq!(Value::Object((**output.messages[0].1).clone()), expected, "{rules}");
        }
    }

    #[test]
    fn unsupported_rules_need_node_red_and_wrong_paths_are_not_built() {
        for rule in [
            json!({"t": "set", "p": "x", "pt": "flow", "to": "1"}),
            json!({"t": "set", "p": "x", "to": "$sum(a)", "tot": "jsonata"}),
            json!({"t": "change", "p": "x", "from": "a", "fromt": "re", "to": ""}),
            json!({"t": "move", "p": "x", "to": "y", "tot": "global"}),
            json!({"t": "swirl", "p": "x"}),
            json!({"t": "set", "p": "x", "to": "no number", "tot": "num"}),
        ] {
            let output = change(&json!([rule])).unwrap();
            let error = output.error.unwrap();
            assert_eq!((error.code.as_str(), output.messages.len()), ("NEEDS_NODE_RED", 0), "{rule}");
        }
        for rule in [
            json!({"t": "set", "p": "", "to": "1"}),
            json!({"t": "move", "p": "x", "to": "a..b"}),
            json!({"t": "set", "p": "a[0", "to": 1}),
        ] {
            assert!(change(&json!([rule])).unwrap_err().contains("is not a property of a message"), "{rule}");
        }
    }

    #[test]
    fn limits_the_growth_of_a_message() {
        let doubles = json!({"t": "set", "p": "payload.again", "to": "payload", "tot": "msg"});
        let wraps = json!({"t": "move", "p": "payload", "to": "payload.inner"});
        for rule in [doubles, wraps] {
            let rules: Vec<_> = std::iter::repeat_n(rule.clone(), 300).collect();
            let output = change(&Value::from(rules)).unwrap();
            assert_eq!(output.error.unwrap().code.as_str(), "CONFIG_INVALID", "{rule}");
        }
        let many: Vec<_> = std::iter::repeat_n(json!({"t": "delete", "p": "x"}), 1001).collect();
        assert!(change(&Value::from(many)).unwrap_err().contains("more than 1000 rules"));
        // A node of an old editor has no rules, but must not pass messages on unchanged.
        let node = NodeSummary { id: "c".into(), type_name: "change".to_owned(), name: String::new() };
        let props = json!({"action": "replace", "property": "payload", "to": "x"});
        let props = props.as_object().unwrap();
        let old = super::build(NodeConfig::new(&node, props, &|_| None, &|_| ())).unwrap();
        let context = NodeContext { now: 7, env: &|_| None, payload: None };
        assert_eq!(old.receive(Arc::default(), &context).error.unwrap().code.as_str(), "NEEDS_NODE_RED");
    }

    #[test]
    fn counts_values_that_a_later_rule_deletes() {
        let big = json!(vec!["x"; 10_000]).to_string();
        let rules = json!([{"t": "set", "p": "big", "to": big, "tot": "json"}, {"t": "delete", "p": "big"}]);
        let output = change(&rules).unwrap();
        assert!(output.error.is_none() && output.work > 300_000, "{}", output.work);
        assert_eq!(change(&json!([])).unwrap().work, 0);
        // To compare large properties again and again is work too.
        let mut rules = vec![json!({"t": "set", "p": "payload", "to": big, "tot": "json"})];
        let same = json!({"t": "change", "p": "topic", "from": "payload", "fromt": "msg", "to": "payload", "tot": "msg"});
        rules.extend(std::iter::repeat_n(same, 500));
        assert_eq!(change(&Value::from(rules)).unwrap().error.unwrap().code.as_str(), "CONFIG_INVALID");
    }

    #[test]
    fn limits_replacements_and_list_items() {
        let long = "a".repeat(5000);
        let replaces = json!([{"t": "set", "p": "payload", "to": long}, {"t": "change", "p": "payload", "from": "a", "to": long}]);
        let deep = "[999]".repeat(19);
        let places: Vec<_> = (0..100)
            .map(|n| json!({"t": "set", "p": format!("a{n}{deep}"), "to": 1, "tot": "num"}))
            .collect();
        for rules in [replaces, Value::from(places)] {
            let output = change(&rules).unwrap();
            assert_eq!(output.error.unwrap().code.as_str(), "CONFIG_INVALID");
        }
    }
}
