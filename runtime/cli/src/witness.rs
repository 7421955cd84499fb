//! `tool.witness`: a tool that reports every call to the test at `REDFLOW_WITNESS`. Only with the feature
//! `faults`.
//!
//! The test gives the outcome of each call, so that it knows exactly which calls happened.

use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::EffectClass;
use redflow_ports::{Adapters, BoxFuture, BuildError, NodeConfig, Tool, ToolOutcome};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

pub(crate) fn register(adapters: &mut Adapters) {
    adapters.tools.insert("tool.witness", Arc::new(build));
}

fn build(config: NodeConfig<'_>) -> Result<Arc<dyn Tool>, BuildError> {
    let address = std::env::var("REDFLOW_WITNESS").ok();
    let class = config.props.get("effect").cloned().unwrap_or(Value::Null);
    Ok(Arc::new(Witness { address, class }))
}

struct Witness {
    address: Option<String>,
    /// The effect class in the properties of the node.
    class: Value,
}

impl Tool for Witness {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let Some(address) = &self.address else {
                return failed("REDFLOW_WITNESS is not set".to_owned());
            };
            // A call that was never sent has not happened.
            let stream = match TcpStream::connect(address.as_str()).await {
                Ok(stream) => stream,
                Err(error) => return failed(format!("the witness cannot be reached: {error}")),
            };
            match self.report_call(stream, call).await {
                Ok(line) => parse_answer(&line),
                Err(error) => ToolOutcome::Unknown { reason: format!("the witness is gone: {error}") },
            }
        })
    }
}

impl Witness {
    async fn report_call(&self, stream: TcpStream, call: &ToolCall) -> io::Result<String> {
        let line = json!({
            "run": call.run_id, "call": call.call_id, "tool": call.tool, "key": call.idempotency_key,
            "iteration": call.iteration, "class": self.class,
        });
        let mut stream = BufReader::new(stream);
        stream.write_all(format!("{line}\n").as_bytes()).await?;
        stream.flush().await?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await?;
        Ok(answer)
    }
}

fn parse_answer(line: &str) -> ToolOutcome {
    let Some(line) = line.strip_suffix('\n') else {
        return ToolOutcome::Unknown { reason: "the witness did not answer".to_owned() };
    };
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "ok" => {
            let n: Value = serde_json::from_str(rest).unwrap_or_default();
            ToolOutcome::Returned(ToolResult::ok(json!({"n": n})))
        }
        "fail" => failed("the test reported a failure".to_owned()),
        _ => ToolOutcome::Unknown { reason: "the witness cannot be understood".to_owned() },
    }
}

fn failed(why: String) -> ToolOutcome {
    ToolOutcome::Returned(ToolResult::failed(why))
}

#[cfg(test)]
mod tests {
    use super::parse_answer;
    use redflow_contract::fact::ToolResult;
    use redflow_ports::ToolOutcome;
    use serde_json::json;

    #[test]
    fn the_answer_of_the_test_is_the_outcome() {
        let ok = |value| ToolOutcome::Returned(ToolResult::ok(value));
        assert_eq!(parse_answer("ok 7\n"), ok(json!({"n": 7})));
        assert_eq!(parse_answer("ok\n"), ok(json!({"n": null})));
        assert!(matches!(parse_answer("fail\n"), ToolOutcome::Returned(result) if !result.success));
        for nothing in ["", "ok 7", "what\n"] {
            assert!(matches!(parse_answer(nothing), ToolOutcome::Unknown { .. }), "{nothing:?}");
        }
    }
}
