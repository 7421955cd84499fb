//! Every error code a provider may come back with.

use crate::script::{Next, play, spec};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use serde_json::json;

#[test]
fn every_code_passes_through_to_the_output() {
    for &code in RunErrorCode::ALL {
        let play = play(spec(), &[Next::ModelFails(code)]);
        let error =
            json!({"code": code.as_str(), "message": format!("The provider said {code}."), "iteration": 1});
        let out = play.out();
        assert_eq!(out["error"]["code"], code.as_str());
        assert_eq!(out["error"]["source"]["id"], "agent");
        assert_eq!(out["payload"], error);
        assert_eq!(out["agentResult"]["error"], error);
        assert_eq!(play.envelope_events(), ["1 error"], "{code}");
        let event = &out["envelope"]["observability"]["events"][0]["error"];
        assert_eq!(*event, json!({"code": code.as_str(), "message": format!("The provider said {code}.")}));
        let Some(Effect::Finish { ending, .. }) = play.effects.last() else { panic!() };
        assert_eq!(*ending, Ending::Failed { code });
    }
}
