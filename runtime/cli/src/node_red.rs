//! The client for the Node-RED that the settings name.

use crate::config::Settings;
use crate::exit::Exit;
use crate::terminal::{fail, print_warning};
use crate::text::printable_line;
use redflow_models::transport::{HttpSettings, ReqwestTransport, is_local};
use redflow_node_red::{NodeRed, TOKEN_VARIABLE};

/// Gives the client with its access token. None if the settings name no Node-RED.
pub(crate) fn find_node_red(settings: &Settings) -> Result<Option<NodeRed>, Exit> {
    let Some(url) = settings.server.node_red.value.clone() else { return Ok(None) };
    let token = settings.node_red_token.clone();
    if token.is_some() && url.scheme() == "http" && !is_local(&url) {
        let address = printable_line(url.as_str(), 200);
        print_warning(&format!(
            "the token in {TOKEN_VARIABLE} goes to {address} as plain text; use https://"
        ));
    }
    let http = HttpSettings { http1_only: true, ..settings.http.clone() };
    let client = ReqwestTransport::new(&http).and_then(|transport| {
        let client = transport.client(&url).clone();
        NodeRed::new(url, client, token)
    });
    client.map(Some).map_err(|text| fail(&text))
}
