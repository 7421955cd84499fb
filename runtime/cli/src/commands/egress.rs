//! `redflow egress test`: says whether tools may reach an address. Connects to nothing.

use crate::args::{EgressCommand, EgressOptions};
use crate::context::AppContext;
use crate::exit::{CommandResult, Exit};
use crate::session::new_runtime;
use crate::terminal::{print_json, print_text};
use crate::text::printable_line;
use redflow_egress::{Egress, JudgedUrl, Refusal};
use serde_json::json;

/// The longest printed sentence about a refusal.
const MAX_SENTENCE: usize = 2000;

pub(crate) fn egress(options: &EgressOptions, context: &AppContext) -> CommandResult {
    let EgressCommand::Test(options) = &options.command;
    let egress = Egress::new(context.settings.egress.clone());
    let outcome = new_runtime()?.block_on(egress.test(&options.url));
    let exit = if outcome.is_ok() { Exit::Success } else { Exit::Failure };
    let printed = match &outcome {
        Ok(judged) if options.json => print_json(&json!({
            "allowed": true,
            "scheme": judged.scheme,
            "host": judged.host,
            "port": judged.port,
            "private": judged.is_private,
            "addresses": judged.addresses,
        })),
        Ok(judged) => print_text(&format!("{}\n", allowed(judged))),
        Err(Refusal { rule, reason, allow, .. }) if options.json => {
            print_json(&json!({"allowed": false, "rule": rule.as_str(), "reason": reason, "allow": allow}))
        }
        Err(refusal) => print_text(&format!("{}\n", printable_line(&refusal.to_string(), MAX_SENTENCE))),
    };
    Ok(printed.max(exit))
}

fn allowed(judged: &JudgedUrl) -> String {
    let private = if judged.is_private { " as a private host" } else { "" };
    let addresses: Vec<String> = judged.addresses.iter().map(ToString::to_string).collect();
    let addresses = if addresses.is_empty() {
        "; the proxy looks up its addresses".to_owned()
    } else {
        format!("; its addresses: {}", addresses.join(", "))
    };
    format!("{} at port {} is allowed{private}{addresses}", judged.host, judged.port)
}
