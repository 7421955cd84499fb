//! Flow files: reading, resolving and checking.

use super::{Outcome, Target};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_flow::{CheckOptions, check_bytes};
use redflow_testkit::hostile;
use serde_json::json;
use std::collections::BTreeSet;

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
                Ok(checked) => (true, codes(&checked.report)),
                Err(report) => (false, codes(&report)),
            }
        });
        if !strict.0 && strict.1.is_empty() {
            return Err("the flow is refused without a reason".to_owned());
        }
        Ok(json!([strict, redflow]).to_string())
    }
}

fn codes(report: &CheckReport) -> BTreeSet<String> {
    report.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str().to_owned()).collect()
}
