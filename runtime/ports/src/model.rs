//! Chat models: one call, and what a caller can ask for.

use crate::future::BoxFuture;
use redflow_contract::answer_kind::{AnswerKind, Reply};
use redflow_contract::cache_key::CacheKey;
use redflow_contract::code::RunErrorCode;
use redflow_contract::deployed_model::ModelPrice;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::model_test::{ModelList, SentRequest};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ImageType, Transcript};
use std::sync::LazyLock;
use std::time::Duration;

/// A chat model. Dropping the future of a call cancels the call down to the socket.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::fact::ModelAnswer;
/// use redflow_contract::run_error::Failure;
/// use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
/// use redflow_ports::{BoxFuture, ChatModel, ModelInfo, ModelRequest};
/// use std::sync::Arc;
///
/// /// Repeats the last message in capitals.
/// struct Capitals(ModelInfo);
///
/// impl ChatModel for Capitals {
///     fn info(&self) -> &ModelInfo {
///         &self.0
///     }
///
///     fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
///         let last = request.transcript.segments().last();
///         let text = last.map(|message| message.content.to_uppercase()).unwrap_or_default();
///         Box::pin(async move { Ok(ModelAnswer { text, ..ModelAnswer::default() }) })
///     }
/// }
///
/// let mut transcript = Transcript::default();
/// transcript.push(Arc::new(ChatMessage::new(ChatRole::User, "hello")));
/// let model = Capitals(ModelInfo::default());
/// let answer = model.call(ModelRequest::for_text(&transcript)).now_or_never();
/// assert_eq!(answer.unwrap()?.text, "HELLO");
/// # Ok::<(), Failure>(())
/// ```
pub trait ChatModel: Send + Sync {
    /// Which model this is, and what it can do.
    fn info(&self) -> &ModelInfo;

    /// Makes one call. A failure is final: the adapter has already retried.
    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>>;

    /// What a request for this kind of answer asks the server for; none if there is no server.
    fn describe_request(&self, _: &AnswerKind) -> Option<SentRequest> {
        None
    }

    /// Asks the server which models it has.
    fn list_models(&self) -> BoxFuture<'_, Result<ModelList, Failure>> {
        let message = "the type has no server that lists its models".to_owned();
        Box::pin(async { Err(Failure { code: RunErrorCode::ConfigInvalid, message }) })
    }
}

/// One call to a model.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// The conversation to send.
    pub transcript: &'a Transcript,
    /// The form the answer must have, and the tools that the model may call natively.
    pub answer_kind: &'a AnswerKind,
    /// The model to call first, if there are fallback models: 0 for the agent's own.
    pub first_model: u32,
    /// Whether a call with a passing failure is retried. If not, a fallback model is called instead.
    pub retry: bool,
    /// The time that the run has left; none outside a run. A model with fallback models gets a part of it.
    pub time_left: Option<Duration>,
    /// Receives the answer piece by piece; none if no client has asked for deltas.
    pub delta_observer: Option<&'a dyn DeltaObserver>,
    /// Learns why the model does not work on the call yet.
    pub wait_observer: Option<&'a dyn WaitObserver>,
    /// Equal for calls that begin alike: those of one agent in one session. A provider with a cache gets it.
    pub cache_key: Option<CacheKey<'a>>,
    /// Whether the answer keeps the start of the provider's response as it was sent.
    pub keeps_raw: bool,
}

impl<'a> ModelRequest<'a> {
    /// Asks for text, without tools and outside a run.
    #[must_use]
    pub fn for_text(transcript: &'a Transcript) -> Self {
        static TEXT: LazyLock<AnswerKind> = LazyLock::new(|| AnswerKind::Reply(Reply::default()));
        let (answer_kind, delta_observer, wait_observer) = (&*TEXT, None, None);
        Self {
            iteration: 1,
            transcript,
            answer_kind,
            first_model: 0,
            retry: true,
            time_left: None,
            delta_observer,
            wait_observer,
            cache_key: None,
            keeps_raw: false,
        }
    }
}

/// Receives a model answer piece by piece, before it is validated. Gets text only, never reasoning.
///
/// ```
/// use redflow_contract::transcript::Transcript;
/// use redflow_ports::{DeltaObserver, ModelRequest};
/// use std::sync::Mutex;
///
/// /// Collects the text of the latest attempt.
/// #[derive(Default)]
/// struct Preview(Mutex<(u32, String)>);
///
/// impl DeltaObserver for Preview {
///     fn text(&self, attempt: u32, text: &str) {
///         let mut latest = self.0.lock().unwrap();
///         if latest.0 != attempt {
///             *latest = (attempt, String::new());
///         }
///         latest.1.push_str(text);
///     }
/// }
///
/// let (preview, transcript) = (Preview::default(), Transcript::default());
/// let request = ModelRequest { delta_observer: Some(&preview), ..ModelRequest::for_text(&transcript) };
/// // The model calls the observer while the answer arrives.
/// for (attempt, text) in [(1, "Hel"), (2, "Hello"), (2, ", Ada")] {
///     request.delta_observer.unwrap().text(attempt, text);
/// }
/// assert_eq!(*preview.0.lock().unwrap(), (2, "Hello, Ada".to_owned()));
/// ```
pub trait DeltaObserver: Send + Sync {
    /// Receives the next piece of text of an attempt. Attempts count from 1.
    fn text(&self, attempt: u32, text: &str);
}

/// Learns why a model does not work on a call yet.
pub trait WaitObserver: Send + Sync {
    /// The call waits, or it waits no longer. May come more than once.
    fn waiting(&self, reason: Option<ModelWait>);
}

/// Why a model does not work on a call yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelWait {
    /// Its server still loads it.
    Loading,
    /// As many calls as it may have at once are under way.
    Busy,
}

/// The provider of models at Azure.
pub const AZURE_PROVIDER: &str = "azure.ai.openai";

/// A model, and what it can do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelInfo {
    /// The provider, as OpenTelemetry names it: `openai`, `anthropic`, `azure.ai.openai`, `ollama`.
    pub provider: &'static str,
    /// The model that requests name.
    pub model: String,
    /// Whether it takes tools natively.
    pub tools: bool,
    /// Whether it takes images.
    pub vision: bool,
    /// The formats of images that it does not take, although others do.
    pub refused_images: Vec<ImageType>,
    /// Whether it can stream its answer.
    pub streaming: bool,
    /// The most tokens it reads; none if unknown.
    pub context_window: Option<u32>,
    /// The most tokens it writes; none if unknown.
    pub max_output: Option<u32>,
    /// Whether the cost of its calls is known.
    pub priced: bool,
    /// The price; none if it is not known.
    pub price: Option<ModelPrice>,
}
