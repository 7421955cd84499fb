//! Tests a model with small calls, for the command line and for `/api/models`.
//!
//! Owns the questions of a test and the conclusions from the answers. Every text of the server is searched for the
//! keys of the node before it is shown.

use redflow_contract::Message;
use redflow_contract::answer_kind::{AnswerKind, Reply, ReplyFormat, SchemaText};
use redflow_contract::code::RunErrorCode;
use redflow_contract::deployed_model::ModelDescription;
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::id::NodeSummary;
use redflow_contract::model_test::{
    MAX_ANSWER_CHARS, ModelList, ModelTest, SchemaUse, SentFormat, SentRequest,
};
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::{Adapters, ChatModel, ModelRequest, NodeConfig};
use redflow_strategies::ActionTest;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;

/// The prompt of the test. The agent has no tools, so the only valid action is `final`.
const QUESTION: &str = "This is a test of the connection. Return a FINAL action with the message \"ok\".";

/// A question whose usual answer is no JSON. Only a server that follows the schema answers with the word of the
/// schema.
const SCHEMA_QUESTION: &str = "Say hello in one short sentence.";
const SCHEMA_WORD: &str = "follows-the-schema";

/// The most models that an error names.
const MAX_NAMED_MODELS: usize = 10;

/// A model to test.
pub struct ModelTester {
    type_name: String,
    model: Arc<dyn ChatModel>,
    secrets: Scrubber,
}

impl ModelTester {
    /// Builds the model of a node. Its properties are resolved and checked.
    ///
    /// # Errors
    /// Why it cannot be built, without the values of properties.
    pub fn new(
        adapters: &Adapters,
        env: &dyn Fn(&str) -> Option<String>,
        node: &NodeSummary,
        props: &Message,
    ) -> Result<Self, String> {
        let secrets = RefCell::new(Scrubber::default());
        secrets.borrow_mut().add_properties(props);
        let on_secret = |secret: &str| secrets.borrow_mut().add(secret);
        let type_name = node.type_name.clone();
        let build = adapters.models.get(type_name.as_str());
        let build = build.ok_or_else(|| format!("this build cannot run the type `{type_name}`"))?;
        let model = build(NodeConfig::new(node, props, env, &on_secret));
        let model = model.map_err(|error| error.to_string())?;
        Ok(Self { type_name, model, secrets: secrets.into_inner() })
    }

    /// The address that calls of the model go to; none for a model without a server.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        Some(self.model.describe_request(ModelRequest::for_text(&Transcript::default()).answer_kind)?.address)
    }

    /// What the model is and can do.
    #[must_use]
    pub fn describe(&self) -> ModelDescription {
        let info = self.model.info();
        let mut name = info.model.clone();
        self.secrets.text(&mut name);
        let origin = |address: String| Some(Url::parse(&address).ok()?.origin().ascii_serialization());
        ModelDescription {
            provider: info.provider.to_owned(),
            name,
            server: self.address().and_then(origin),
            tools: info.tools,
            vision: info.vision,
            streaming: info.streaming,
            context_window: info.context_window,
            max_output: info.max_output,
            price: info.price.clone(),
        }
    }

    /// Asks the server which models it has.
    ///
    /// # Errors
    /// Why the server did not tell.
    pub async fn list(&self) -> Result<ModelList, Failure> {
        let mut list = self.model.list_models().await.map_err(|failure| self.scrubbed(failure))?;
        list.models.iter_mut().for_each(|model| self.secrets.text(&mut model.id));
        if let Some(name) = &mut list.default_model {
            self.secrets.text(name);
        }
        Ok(list)
    }

    /// Calls the model once for a valid action. If the request had a schema, a second call finds out whether the
    /// server follows it. All calls together end within `limit`.
    pub async fn test(&self, limit: Duration) -> ModelTest {
        let test = ActionTest::new(QUESTION);
        let since = Instant::now();
        let time_left = || limit.saturating_sub(since.elapsed());
        let answer = self.call(&test.transcript, &test.answer_kind, time_left()).await;
        let duration = since.elapsed();
        let is_offline = |failure: &Failure| {
            matches!(failure.code, RunErrorCode::ProviderUnavailable | RunErrorCode::Timeout)
        };
        let list = if answer.as_ref().is_err_and(is_offline) {
            None
        } else {
            tokio::time::timeout(time_left(), self.list()).await.ok().and_then(Result::ok)
        };
        let list = list.unwrap_or_default();
        let sent = self.model.describe_request(&test.answer_kind);
        let info = self.model.info();
        let model = sent.as_ref().map_or(&info.model, |sent| &sent.model).clone();
        let context_window = list.find(&model).and_then(|listed| listed.context_window);
        let mut report = ModelTest {
            ok: false,
            type_name: self.type_name.clone(),
            provider: info.provider.to_owned(),
            model,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            usage: None,
            answered_by: None,
            error: None,
            sent,
            answer: None,
            tokens_per_second: None,
            schema: None,
            server: list.server,
            context_window: context_window.or(info.context_window),
            default_model: list.default_model.clone(),
            price: info.price.clone(),
        };
        match answer {
            Err(failure) => {
                report.error = Some(name_models(self.scrubbed(failure), &list));
            }
            Ok(answer) => {
                add_refused(&mut report.sent, &answer);
                report.usage = answer.usage;
                report.tokens_per_second = tokens_per_second(&answer, duration);
                report.answered_by.clone_from(&answer.model);
                match test.check(&answer) {
                    Ok(()) => report.ok = true,
                    Err(error) => {
                        let message = format!("the answer is not a valid action: {}", error.message);
                        report.error = Some(self.scrubbed(Failure { code: error.code, message }));
                    }
                }
                report.answer = self.shown_answer(answer.text);
                report.schema = self.test_schema(&mut report.sent, time_left()).await;
            }
        }
        report
    }

    async fn call(
        &self,
        transcript: &Transcript,
        answer_kind: &AnswerKind,
        time: Duration,
    ) -> Result<ModelAnswer, Failure> {
        let request = ModelRequest { answer_kind, ..ModelRequest::for_text(transcript) };
        tokio::time::timeout(time, self.model.call(request)).await.unwrap_or_else(|_| {
            let message = format!("the model did not answer within {} s", time.as_secs());
            Err(Failure { code: RunErrorCode::Timeout, message })
        })
    }

    /// Whether the server follows a schema that the question does not mention. None if there is no whole answer.
    async fn test_schema(&self, sent: &mut Option<SentRequest>, time: Duration) -> Option<SchemaUse> {
        if sent.as_ref()?.response_format != SentFormat::JsonSchema {
            return Some(SchemaUse::NotSent);
        }
        let code = json!({"type": "string", "enum": [SCHEMA_WORD]});
        let schema = json!({
            "type": "object", "properties": {"code": code}, "required": ["code"], "additionalProperties": false,
        });
        let schema = SchemaText::from(serde_json::value::to_raw_value(&schema).ok()?);
        let format = ReplyFormat::Schema(schema);
        let answer_kind = AnswerKind::Reply(Reply { format, ..Reply::default() });
        let mut transcript = Transcript::default();
        transcript.push(Arc::new(ChatMessage::new(ChatRole::User, SCHEMA_QUESTION)));
        let answer = self.call(&transcript, &answer_kind, time).await.ok()?;
        add_refused(sent, &answer);
        let value: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        if value == json!({"code": SCHEMA_WORD}) {
            return Some(SchemaUse::Honoured);
        }
        (answer.finish == ModelFinish::Stop).then_some(SchemaUse::Ignored)
    }

    fn scrubbed(&self, mut failure: Failure) -> Failure {
        self.secrets.failure(&mut failure);
        failure
    }

    fn shown_answer(&self, mut text: String) -> Option<String> {
        self.secrets.text(&mut text);
        if let Some((end, _)) = text.char_indices().nth(MAX_ANSWER_CHARS) {
            text.truncate(end);
        }
        Some(text).filter(|text| !text.is_empty())
    }
}

/// Adds the fields that the provider refused during a call. Not all of them change later requests of another kind.
fn add_refused(sent: &mut Option<SentRequest>, answer: &ModelAnswer) {
    let Some(sent) = sent else { return };
    for field in &answer.refused {
        if !sent.refused.contains(field) {
            sent.refused.push(field.clone());
        }
    }
}

/// Adds the models of the server to the error of a model that it does not have.
fn name_models(mut failure: Failure, list: &ModelList) -> Failure {
    if failure.code == RunErrorCode::ModelNotFound && !list.models.is_empty() {
        let mut names: Vec<&str> =
            list.models.iter().take(MAX_NAMED_MODELS).map(|model| model.id.as_str()).collect();
        names.extend((list.models.len() > MAX_NAMED_MODELS).then_some("…"));
        failure.message = format!("{}; the server has {}", failure.message, names.join(", "));
    }
    failure
}

/// The tokens written per second, to one decimal place.
fn tokens_per_second(answer: &ModelAnswer, duration: Duration) -> Option<f64> {
    let tokens = answer.usage?.output_tokens;
    let rate = (tokens as f64 / duration.as_secs_f64() * 10.0).round() / 10.0;
    Some(rate).filter(|rate| rate.is_finite() && tokens > 0)
}
