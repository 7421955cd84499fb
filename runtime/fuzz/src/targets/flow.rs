//! Flow files: reading, resolving, checking and drawing.

use super::{Outcome, Target};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_flow::{CheckOptions, check_bytes, draw_flow};
use redflow_testkit::hostile;
use serde_json::json;
use std::collections::BTreeSet;

/// The most bytes of a drawing.
const MAX_DRAWING: usize = 4 * 1024 * 1024;

pub(super) struct FlowFile;

impl Target for FlowFile {
    fn name(&self) -> &'static str {
        "flow"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let flows = hostile::flows().into_iter().map(|case| case.value.to_string().into_bytes());
        // The large ones take so long that little else would be tried.
        flows.filter(|flow| flow.len() <= 16 * 1024).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let mut drawn = 0;
        let [strict, redflow] = [Profile::Strict, Profile::Redflow].map(|profile| {
            let options = CheckOptions {
                profile,
                limits: Default::default(),
                run_limits: Default::default(),
                run_budget: Default::default(),
                instance: InstanceId::local(),
                provides_tools: &|_| false,
                can_run: &|_| true,
                env: &|name| (name == "HOME").then(|| "home".to_owned()),
            };
            match check_bytes(input, &options) {
                Ok(checked) => {
                    let size = draw_flow(&checked.flow, &checked.report, None)
                        .map_or(0, |graph| json!(graph).to_string().len());
                    drawn = drawn.max(size);
                    (true, codes(&checked.report))
                }
                Err(report) => (false, codes(&report)),
            }
        });
        if drawn > MAX_DRAWING {
            return Err(format!("the drawing of the flow has {drawn} bytes"));
        }
        if !strict.0 && strict.1.is_empty() {
            return Err("the flow is refused without a reason".to_owned());
        }
        Ok(json!([strict, redflow]).to_string())
    }
}

fn codes(report: &CheckReport) -> BTreeSet<String> {
    report.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str().to_owned()).collect()
}
