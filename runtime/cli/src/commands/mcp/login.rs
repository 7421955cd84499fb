//! `redflow mcp login`: a person signs in once, in a browser.

use super::callback::{CallbackListener, PageText};
use super::source::McpSource;
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::terminal::{fail, print_note, print_text};
use crate::text::{describe_io_error, printable_line};
use redflow_contract::mcp::McpLogin;
use std::time::Duration;
use url::Url;

/// How long a person has for the sign-in.
const LOGIN_TIME: Duration = Duration::from_secs(10 * 60);

pub(super) async fn login(name: &str, source: &McpSource<'_>) -> CommandResult {
    let McpSource::Local(local) = source else {
        let address = source.login(name, "").await.map_err(print_api_error)?;
        print_note("open this address in a browser; the sidecar gets the answer:");
        return Ok(print_address(&address));
    };
    let listener = CallbackListener::bind().await.map_err(|error| {
        fail(&format!("cannot listen for the answer of the browser: {}", describe_io_error(&error)))
    })?;
    let address = source.login(name, listener.redirect()).await.map_err(print_api_error)?;
    print_note("open this address in a browser, and sign in; Ctrl-C stops:");
    let printed = print_address(&address);
    let wait = async {
        let (callback, page) = loop {
            let (callback, page) = listener.next().await;
            // Every page in a browser can open this address. Only the issuer knows the state.
            if state_of(&callback) == state_of(&address.url) {
                break (callback, page);
            }
            page.send(PageText::NotHere).await;
        };
        let finished = local.servers().finish_login(&callback).await;
        page.send(if finished.is_ok() { PageText::SignedIn } else { PageText::Failed }).await;
        finished.map_err(print_api_error)
    };
    let Ok(server) = tokio::time::timeout(LOGIN_TIME, wait).await else {
        return Err(fail("nobody has signed in within ten minutes; run the command again"));
    };
    print_note(&format!("signed in at {}", printable_line(&server?, 60)));
    Ok(printed)
}

/// The parameter that the issuer sends back.
fn state_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    url.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned())
}

fn print_address(login: &McpLogin) -> Exit {
    print_text(&(printable_line(&login.url, 8_000) + "\n"))
}
