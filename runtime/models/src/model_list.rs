//! Asks a server which models it has, and recognises the server by its answers.
//!
//! Owns the routes and the field names of each server. A server that does not tell something is no error.

use crate::address::{join, strip_path_suffix};
use crate::call_error::CallError;
use crate::driver::{Driver, Target};
use crate::retry_advice::RetryAdvice;
use crate::transport::{Endpoint, read_body};
use http::{HeaderMap, header};
use redflow_contract::code::RunErrorCode;
use redflow_contract::model_test::{ListedModel, MAX_LISTED_MODELS, ModelList, ModelServer};
use redflow_contract::run_error::Failure;
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// How long all requests for a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer, in bytes.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;
/// The longest name of a model. A longer one is no name.
const MAX_NAME_CHARS: usize = 200;

/// The most models on a page of Google's list, and the most pages.
const GOOGLE_PAGE: &str = "1000";
const MAX_GOOGLE_PAGES: usize = 5;

/// The fields of a listed model that hold its context window. The one that applies now is before the largest possible.
const WINDOW_FIELDS: [&str; 9] = [
    "/meta/n_ctx",
    "/max_model_len",
    "/loaded_context_length",
    "/context_length",
    "/context_window",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/max_context_length",
    "/meta/n_ctx_train",
];

/// Where a server lists its models.
#[derive(Debug, Clone)]
pub(crate) enum ListSource {
    /// OpenAI's API at this base address, at OpenAI itself.
    Openai(Url),
    /// OpenAI's API at this base address of another server.
    Compatible(Url),
    /// Anthropic's API at this base address.
    Anthropic(Url),
    /// Google's API at this base address.
    Google(Url),
    /// Ollama's own API at this base address.
    Ollama(Url),
    /// Azure, which does not list its deployments.
    Azure,
}

/// Asks the server of a model which models it has.
///
/// # Errors
/// Why the server did not tell.
pub(crate) async fn list_models(
    driver: &Driver,
    target: &Target,
    source: &ListSource,
) -> Result<ModelList, Failure> {
    let query = ListQuery { driver, target };
    let list = async {
        match source {
            ListSource::Openai(base) => {
                let list = query.openai(base).await?;
                Ok(ModelList { server: Some(ModelServer::Openai), default_model: None, ..list })
            }
            ListSource::Compatible(base) => query.compatible(base).await,
            ListSource::Anthropic(base) => {
                let (body, _) = query.get(&join(base, &["v1", "models"])).await?;
                Ok(read_list(&body["data"], "/id", Some(ModelServer::Anthropic)))
            }
            ListSource::Google(base) => query.google(base).await,
            ListSource::Ollama(base) => query.ollama(base).await,
            ListSource::Azure => {
                Err(CallError::Malformed("Azure lists no deployments here; the Azure portal has their names"))
            }
        }
    };
    let list = tokio::time::timeout(LIST_TIMEOUT, list).await;
    list.unwrap_or(Err(CallError::TimedOut(LIST_TIMEOUT))).map_err(|error| query.failure(error))
}

struct ListQuery<'a> {
    driver: &'a Driver,
    target: &'a Target,
}

impl ListQuery<'_> {
    async fn openai(&self, base: &Url) -> Result<ModelList, CallError> {
        let (body, headers) = self.get(&join(base, &["models"])).await?;
        let server = recognise(&body, &headers);
        Ok(read_list(&body["data"], "/id", server))
    }

    /// A server with OpenAI's API. Those that are known have a second list that tells more.
    async fn compatible(&self, base: &Url) -> Result<ModelList, CallError> {
        let mut list = self.openai(base).await?;
        let root = strip_path_suffix(base, &["/v1"]);
        match list.server {
            Some(ModelServer::LlamaCpp) => {
                if let Ok((props, _)) = self.get(&join(&root, &["props"])).await
                    && let Some(window) = number_at(&props, "/default_generation_settings/n_ctx")
                    && let [model] = &mut *list.models
                {
                    model.context_window = Some(window);
                }
            }
            Some(ModelServer::LmStudio) => {
                if let Ok((body, _)) = self.get(&join(&root, &["api", "v0", "models"])).await {
                    let known = read_list(&body["data"], "/id", list.server);
                    for model in &mut list.models {
                        model.context_window = known.find(&model.id).and_then(|known| known.context_window);
                    }
                    list.default_model = loaded_model(&body["data"]).or(list.default_model);
                }
            }
            Some(ModelServer::Ollama) => self.add_loaded(&root, &mut list).await,
            _ => {}
        }
        Ok(list)
    }

    /// The models that can chat. The list has pages, and names with the prefix `models/`.
    async fn google(&self, base: &Url) -> Result<ModelList, CallError> {
        let (mut models, mut next) = (Vec::new(), String::new());
        for _ in 0..MAX_GOOGLE_PAGES {
            let mut url = join(base, &["models"]);
            url.query_pairs_mut().append_pair("pageSize", GOOGLE_PAGE);
            if !next.is_empty() {
                url.query_pairs_mut().append_pair("pageToken", &next);
            }
            let (mut body, _) = self.get(&url).await?;
            let page = body.get_mut("models").and_then(Value::as_array_mut).map(std::mem::take);
            models.extend(page.unwrap_or_default().into_iter().filter_map(chat_model));
            next = body["nextPageToken"].as_str().unwrap_or_default().to_owned();
            if next.is_empty() || models.len() >= MAX_LISTED_MODELS {
                break;
            }
        }
        Ok(read_list(&Value::Array(models), "/name", Some(ModelServer::Google)))
    }

    async fn ollama(&self, base: &Url) -> Result<ModelList, CallError> {
        let (body, _) = self.get(&join(base, &["api", "tags"])).await?;
        let mut list = read_list(&body["models"], "/name", Some(ModelServer::Ollama));
        self.add_loaded(base, &mut list).await;
        Ok(list)
    }

    /// Adds which model Ollama has loaded, and the context window of those that are.
    async fn add_loaded(&self, root: &Url, list: &mut ModelList) {
        let Ok((body, _)) = self.get(&join(root, &["api", "ps"])).await else { return };
        let loaded = read_list(&body["models"], "/name", list.server);
        for model in &mut list.models {
            model.context_window = loaded.find(&model.id).and_then(|loaded| loaded.context_window);
        }
        if let Some(first) = loaded.models.into_iter().next() {
            list.default_model = Some(first.id);
        }
    }

    /// Gets JSON of the server, with the headers of every request of the model.
    async fn get(&self, url: &Url) -> Result<(Value, HeaderMap), CallError> {
        let mut endpoint = Endpoint { url: url.clone(), headers: self.target.endpoint.headers.clone() };
        endpoint.headers.remove(header::CONTENT_TYPE);
        let response = self.driver.transport.get(&endpoint).await?;
        let (body, is_complete) = read_body(response.body, MAX_LIST_BYTES).await?;
        if !(200..300).contains(&response.status) {
            let error = self.target.wire.parse_error(response.status, &body);
            return Err(CallError::Provider(error, RetryAdvice::default()));
        }
        if !is_complete {
            return Err(CallError::TooLarge(MAX_LIST_BYTES));
        }
        let malformed = |_| CallError::Malformed("the list of its models is not JSON; check the address");
        Ok((serde_json::from_slice(&body).map_err(malformed)?, response.headers))
    }

    fn failure(&self, mut error: CallError) -> Failure {
        let Target { provider_text, model, secrets, .. } = self.target;
        // Here the address of the list was not found, not the model.
        if let CallError::Provider(found, _) = &error
            && matches!(found.status, 404 | 405)
        {
            let message = format!("{provider_text} lists no models at this address; check the address");
            return Failure { code: RunErrorCode::ModelError, message };
        }
        error.scrub(secrets);
        Failure { code: error.code(), message: error.message(provider_text, model, 1) }
    }
}

/// A model of Google's list without its prefix. None for models that cannot chat, such as those of embeddings.
fn chat_model(mut model: Value) -> Option<Value> {
    let methods = model["supportedGenerationMethods"].as_array()?;
    methods.iter().find(|method| *method == "generateContent")?;
    let name = model["name"].as_str()?;
    let name = name.strip_prefix("models/").unwrap_or(name).to_owned();
    model["name"] = Value::String(name);
    Some(model)
}

/// Recognises a server with OpenAI's API by its list and its headers.
fn recognise(body: &Value, headers: &HeaderMap) -> Option<ModelServer> {
    if headers.get(header::SERVER).is_some_and(|name| name == "llama.cpp") {
        return Some(ModelServer::LlamaCpp);
    }
    let owners = body["data"].as_array()?.iter().filter_map(|model| model["owned_by"].as_str());
    owners.take(MAX_LISTED_MODELS).find_map(|owner| match owner {
        "llamacpp" => Some(ModelServer::LlamaCpp),
        "vllm" => Some(ModelServer::Vllm),
        "library" => Some(ModelServer::Ollama),
        "organization_owner" => Some(ModelServer::LmStudio),
        _ => None,
    })
}

/// Reads a list of models. The only model is the default one. llama.cpp and vLLM list their own model first.
fn read_list(models: &Value, name: &str, server: Option<ModelServer>) -> ModelList {
    let models = models.as_array().into_iter().flatten();
    let models: Vec<ListedModel> = models
        .filter_map(|model| {
            let id = model.pointer(name)?.as_str().filter(|id| is_name(id))?.to_owned();
            let context_window = WINDOW_FIELDS.iter().find_map(|field| number_at(model, field));
            Some(ListedModel { id, context_window })
        })
        .take(MAX_LISTED_MODELS)
        .collect();
    let has_own = matches!(server, Some(ModelServer::LlamaCpp | ModelServer::Vllm));
    let default_model = models.first().filter(|_| has_own || models.len() == 1).map(|model| model.id.clone());
    ModelList { models, server, default_model }
}

fn is_name(id: &str) -> bool {
    !id.is_empty() && id.chars().nth(MAX_NAME_CHARS).is_none() && !id.contains(char::is_control)
}

/// The first model that LM Studio has loaded, other than models of embeddings.
fn loaded_model(models: &Value) -> Option<String> {
    let mut models = models.as_array()?.iter();
    let loaded = models.find(|model| model["state"] == "loaded" && model["type"] != "embeddings")?;
    loaded["id"].as_str().filter(|id| is_name(id)).map(str::to_owned)
}

fn number_at(value: &Value, pointer: &str) -> Option<u32> {
    u32::try_from(value.pointer(pointer)?.as_u64()?).ok().filter(|number| *number > 0)
}

#[cfg(test)]
#[path = "model_list_tests.rs"]
mod tests;
