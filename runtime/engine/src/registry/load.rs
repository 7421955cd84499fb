//! Reads the definitions of tools from a manifest store.

use super::{Definitions, Registry};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::ManifestTool;
use redflow_contract::policy::{Policy, PolicyProblem};
use redflow_flow::{check_manifest, check_tool};
use redflow_ports::{ManifestStore, ManifestToolBuilder, RegisteredTool};

impl Registry {
    /// Reads the manifest and the registered tools, and replaces what they define. Gives the problems of registered
    /// tools, which are left out.
    ///
    /// # Errors
    /// Every problem of the manifest. Then nothing changes, so that no call escapes a policy.
    pub fn load(
        &self,
        store: &dyn ManifestStore,
        build: Option<&ManifestToolBuilder>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let named = |problem: Diagnostic| Diagnostic {
            file: problem.file.or_else(|| Some("the manifest".to_owned())),
            ..problem
        };
        let manifest = store.read().and_then(|value| check_manifest(&value));
        let manifest = manifest.map_err(|problems| problems.into_iter().map(named).collect::<Vec<_>>())?;
        let policy = Policy::new(&manifest.policy, &manifest.roles)
            .map_err(|problems| problems.into_iter().map(policy_problem).collect::<Vec<_>>())?;
        let (mut registered, mut problems): (Vec<ManifestTool>, Vec<Diagnostic>) = Default::default();
        for RegisteredTool { id, tool } in store.registered() {
            match tool.and_then(|value| check_tool(&value)) {
                Ok(definition) => registered.push(definition),
                Err(found) => problems.extend(found.into_iter().map(|problem| Diagnostic {
                    file: problem.file.or_else(|| Some(format!("tools.d/{id}.json"))),
                    ..problem
                })),
            }
        }
        self.define(Definitions { manifest: &manifest, registered: &registered, policy, build, env });
        Ok(problems)
    }
}

/// Does not happen, because the check of the manifest compiles the policy too.
fn policy_problem(PolicyProblem { pointer, expected, found }: PolicyProblem) -> Diagnostic {
    let message = format!("the policy has {found} at {pointer}");
    let help = format!("Write {expected}.");
    Diagnostic { pointer: Some(pointer), ..Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help) }
}
