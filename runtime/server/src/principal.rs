//! Who starts a run or calls a tool.

use redflow_access::{AuthMethod, Caller};
use redflow_contract::id::Principal;

/// The principal of a caller: its token, or the Redflow UI without one.
pub(crate) fn principal(caller: &Caller) -> Principal {
    match caller.auth_method {
        AuthMethod::RedflowUi => Principal::from("redflow-ui"),
        _ => Principal::from(format!("token:{}", caller.token_name)),
    }
}
