//! The mock: it finds the provider of a request, lets it answer, and keeps what was asked and sent.

use super::response::Response;
use super::site::{Interface, Site};
use super::state::{Exchange, State};
use super::{anthropic, chat, gemini, models, ollama, responses};
use redflow_testkit::HttpRequest;
use std::sync::{Mutex, MutexGuard};

/// All providers at once.
#[derive(Debug, Default)]
pub(crate) struct Mock(Mutex<State>);

impl Mock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Forgets everything. Gives the requests with their responses, and what came back changed.
    pub(crate) fn take(&self) -> (Vec<Exchange>, Vec<String>) {
        let State { exchanges, changed, .. } = std::mem::take(&mut *self.state());
        (exchanges, changed)
    }

    /// Answers a request to a site.
    pub(crate) fn respond(&self, site: Site, path: &str, request: &HttpRequest) -> Response {
        let mut state = self.state();
        let response = answer(&mut state, site, path, request).unwrap_or_else(|refusal| refusal);
        let exchange = Exchange { path: path.to_owned(), response: response.clone() };
        state.exchanges.push(exchange);
        response
    }
}

fn answer(state: &mut State, site: Site, path: &str, request: &HttpRequest) -> Result<Response, Response> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let interface = site.interface(path, query)?;
    site.check_key(request, &interface)?;
    if interface == Interface::Models && request.method == "GET" {
        return Ok(Response::json(200, &models::list(site)));
    }
    let errors = site.errors();
    if request.method != "POST" || interface == Interface::Models {
        let message = format!("Not allowed to {} on {path}", request.method);
        return Err(Response::error(errors, 405, &message, None, None));
    }
    if request.header("content-type") != Some("application/json") {
        return Err(Response::refusal(errors, "Unsupported content type. Use application/json."));
    }
    let not_json = |_| {
        let message = "We could not parse the JSON body of your request.";
        Response::refusal(errors, message)
    };
    let body = request.json().map_err(not_json)?;
    match interface {
        Interface::Chat => chat::respond(state, site, None, &body),
        Interface::ChatAt(deployment) => chat::respond(state, site, Some(&deployment), &body),
        Interface::Responses => responses::respond(state, site, &body),
        Interface::Messages => anthropic::respond(state, site, request, &body),
        Interface::Generate(model, stream) => gemini::respond(state, &model, stream, &body),
        Interface::OllamaChat => ollama::respond(state, &body),
        Interface::Models => Err(Response::not_found(errors, path)),
    }
}
