//! Every error code of a model call.

use crate::script::{ScriptStep, run_script, spec};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use serde_json::json;

#[test]
fn every_code_passes_through_to_the_output() {
    for &code in RunErrorCode::ALL {
        let scripted = run_script(spec(), &[ScriptStep::ModelFailure(code)]);
        let error =
            json!({"code": code.as_str(), "message": format!("The provider said {code}."), "iteration": 1});
        let out = scripted.out();
        assert_eq!(out["error"]["code"], code.as_str());
        assert_eq!(out["error"]["source"]["id"], "agent");
        assert_eq!(out["payload"], error);
        assert_eq!(out["agentResult"]["error"], error);
        assert_eq!(scripted.envelope_events(), ["1 error"], "{code}");
        let event = &out["envelope"]["observability"]["events"][0]["error"];
        assert_eq!(*event, json!({"code": code.as_str(), "message": format!("The provider said {code}.")}));
        let Some(Effect::Finish { ending, .. }) = scripted.effects.last() else { panic!() };
        assert_eq!(*ending, Ending::Failed { code });
    }
}
