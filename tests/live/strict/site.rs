//! The providers that are mocked, and their addresses.

use super::response::{ErrorForm, Response};
use redflow_testkit::HttpRequest;

/// A place where models answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    Openai,
    Azure,
    Openrouter,
    Anthropic,
    /// A gateway that speaks Anthropic's older version and wants `x-api-key`.
    AnthropicGateway,
    Gemini,
    Deepseek,
    Mistral,
    Xai,
    Groq,
    Kimi,
    Ollama,
    Vllm,
    Llamacpp,
    LmStudio,
}

/// The interface that a path belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interface {
    Chat,
    /// Chat Completions at a path that names the deployment.
    ChatAt(String),
    Responses,
    Messages,
    /// With the model, and whether it streams.
    Generate(String, bool),
    OllamaChat,
    Models,
}

const SITES: [(Site, &str, &str); 15] = [
    (Site::Openai, "api.openai.com", "openai"),
    (Site::Azure, "unit.openai.azure.com", "azure"),
    (Site::Openrouter, "openrouter.ai", "openrouter"),
    (Site::Anthropic, "api.anthropic.com", "anthropic"),
    (Site::AnthropicGateway, "gateway.example", "gateway"),
    (Site::Gemini, "generativelanguage.googleapis.com", "gemini"),
    (Site::Deepseek, "api.deepseek.com", "deepseek"),
    (Site::Mistral, "api.mistral.ai", "mistral"),
    (Site::Xai, "api.x.ai", "xai"),
    (Site::Groq, "api.groq.com", "groq"),
    (Site::Kimi, "api.moonshot.ai", "kimi"),
    (Site::Ollama, "127.0.0.1:11434", "ollama"),
    (Site::Vllm, "127.0.0.1:8000", "vllm"),
    (Site::Llamacpp, "127.0.0.1:8080", "llamacpp"),
    (Site::LmStudio, "127.0.0.1:1234", "lmstudio"),
];

impl Site {
    /// The site of a host with its port.
    pub(super) fn of_host(host: &str) -> Option<Self> {
        SITES.iter().find(|(_, known, _)| *known == host).map(|(site, ..)| *site)
    }

    /// The site that the first step of a path names, and the rest of the path. So one server has them all.
    pub(super) fn of_path(path: &str) -> Option<(Self, &str)> {
        let (first, _) = path.strip_prefix('/')?.split_once('/')?;
        let (site, ..) = SITES.iter().find(|(.., name)| *name == first)?;
        Some((*site, &path[first.len() + 1..]))
    }

    pub(crate) fn name(self) -> &'static str {
        SITES.iter().find(|(site, ..)| *site == self).map(|(.., name)| *name).unwrap()
    }

    /// The address without a path.
    pub(crate) fn origin(self) -> String {
        let (_, host, _) = SITES.iter().find(|(site, ..)| *site == self).unwrap();
        if host.starts_with("127.") { format!("http://{host}") } else { format!("https://{host}") }
    }

    /// The path before `/chat/completions`.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Self::Openrouter => "/api/v1",
            Self::Groq => "/openai/v1",
            Self::Azure => "/openai/v1",
            Self::Gemini => "/v1beta/openai",
            Self::Deepseek | Self::AnthropicGateway => "",
            _ => "/v1",
        }
    }

    pub(super) fn errors(self) -> ErrorForm {
        match self {
            Self::Openai | Self::Deepseek | Self::Kimi | Self::Groq => ErrorForm::Openai,
            Self::Azure => ErrorForm::Azure,
            Self::Openrouter => ErrorForm::Openrouter,
            Self::Anthropic | Self::AnthropicGateway => ErrorForm::Anthropic,
            Self::Gemini => ErrorForm::Google,
            Self::Mistral => ErrorForm::Mistral,
            Self::Xai => ErrorForm::Xai,
            Self::Vllm => ErrorForm::Vllm,
            Self::Llamacpp => ErrorForm::Llamacpp,
            Self::Ollama | Self::LmStudio => ErrorForm::Text,
        }
    }

    /// The interface at a path, or the answer to a path that does not exist.
    pub(super) fn interface(self, path: &str, query: &str) -> Result<Interface, Response> {
        let unknown = || Response::not_found(self.errors(), path);
        let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let rest = path.strip_prefix(self.base()).unwrap_or(path);
        // DeepSeek has both paths.
        let rest = if self == Self::Deepseek { rest.strip_prefix("/v1").unwrap_or(rest) } else { rest };
        let interface = match (self, steps.as_slice(), rest) {
            (Self::Azure, ["openai", "deployments", name, "chat", "completions"], _)
                if query.starts_with("api-version=20") =>
            {
                Interface::ChatAt((*name).to_owned())
            }
            (Self::Azure, ["openai", "responses"], _) if query.starts_with("api-version=20") => {
                Interface::Responses
            }
            (Self::Anthropic | Self::AnthropicGateway, ["v1", "messages"], _) => Interface::Messages,
            (Self::Anthropic | Self::AnthropicGateway, ["v1", "models"], _) => Interface::Models,
            (Self::Gemini, ["v1beta", "models", method], _) => match method.split_once(':') {
                Some((model, "generateContent")) => Interface::Generate(model.to_owned(), false),
                Some((model, "streamGenerateContent")) if query == "alt=sse" => {
                    Interface::Generate(model.to_owned(), true)
                }
                _ => return Err(unknown()),
            },
            (Self::Ollama, ["api", "chat"], _) => Interface::OllamaChat,
            (Self::Ollama, ["api", "tags" | "ps"], _) => Interface::Models,
            (Self::Openai | Self::Azure | Self::Xai, _, "/responses") if query.is_empty() => {
                Interface::Responses
            }
            (Self::Anthropic | Self::AnthropicGateway, ..) => return Err(unknown()),
            (_, _, "/chat/completions") if query.is_empty() => Interface::Chat,
            (_, _, "/models") => Interface::Models,
            _ => return Err(unknown()),
        };
        Ok(interface)
    }

    /// Refuses a request without the key where the provider expects it.
    pub(super) fn check_key(self, request: &HttpRequest, interface: &Interface) -> Result<(), Response> {
        let bearer = request.header("authorization").is_some_and(|value| value.starts_with("Bearer "));
        let has = |name: &str| request.header(name).is_some_and(|value| !value.is_empty());
        let native = matches!(interface, Interface::Generate(..));
        let (accepted, message) = match self {
            Self::Azure => (
                has("api-key") || bearer,
                "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key \
                 for an active subscription and use a correct regional API endpoint for your resource.",
            ),
            Self::Anthropic => (has("x-api-key") || bearer, "x-api-key header is required"),
            Self::AnthropicGateway => (has("x-api-key"), "x-api-key header is required"),
            Self::Gemini if native => (
                has("x-goog-api-key"),
                "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or \
                 other form of API consumer identity to call this API.",
            ),
            Self::Ollama | Self::Vllm | Self::Llamacpp | Self::LmStudio => (true, ""),
            _ => (
                bearer,
                "You didn't provide an API key. You need to provide your API key in an Authorization header \
                           using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            ),
        };
        if accepted {
            Ok(())
        } else {
            Err(Response::error(self.errors(), 401, message, None, Some("invalid_api_key")))
        }
    }
}
