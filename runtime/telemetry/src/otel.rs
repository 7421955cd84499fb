//! Sends spans to an OpenTelemetry collector, as protobuf over HTTP.
//!
//! Owns the queue of finished spans and the thread that sends them. Never creates a span. Never waits for the
//! collector: spans that it does not accept in time are dropped.

use crate::redact::Redactor;
use opentelemetry::trace::{Status, TracerProvider as _};
use opentelemetry::{Array, KeyValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter as Export,
};
use redflow_contract::secret::REDACTED;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

/// The path of traces, added to that of the endpoint.
const TRACES: &str = "/v1/traces";

/// The limit on spans that wait to be sent; more are dropped.
const MAX_QUEUE: usize = 2_048;

/// The limit on spans of one request.
const MAX_BATCH: usize = 512;

/// How long a span waits for others before it is sent.
const BATCH_DELAY: Duration = Duration::from_secs(5);

/// The time limit of one request, retries included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the exit of the process waits for the last spans.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit on bytes of a text in a span.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// An OpenTelemetry collector and how to reach it.
#[derive(Clone)]
pub struct OtlpCollector {
    /// Its base address, such as `http://localhost:4318`: `/v1/traces` is added.
    pub endpoint: String,
    /// The `service.name` of the spans.
    pub service_name: String,
    /// Headers of every request, such as a key.
    pub headers: Vec<(String, SecretString)>,
}

impl std::fmt::Debug for OtlpCollector {
    /// Without the address, which may hold a password, and the headers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpCollector").field("service_name", &self.service_name).finish_non_exhaustive()
    }
}

/// Sends spans until it is dropped; then it sends the remaining ones within [`SHUTDOWN_TIMEOUT`].
pub(crate) struct ExporterGuard(SdkTracerProvider);

impl std::fmt::Debug for ExporterGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExporterGuard")
    }
}

impl Drop for ExporterGuard {
    fn drop(&mut self) {
        // An unreachable collector was reported before.
        let _ = self.0.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
    }
}

type SpanLayer<S> = Box<dyn Layer<S> + Send + Sync>;

/// The layer that collects our spans, and the guard of their exporter. Both are none without a collector.
pub(crate) fn layer<S>(
    otlp: Option<&OtlpCollector>,
    redactor: &Arc<Redactor>,
) -> Result<(Option<SpanLayer<S>>, Option<ExporterGuard>), String>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let Some(otlp) = otlp else { return Ok((None, None)) };
    let exporter = RedactingExporter {
        inner: exporter(otlp)?,
        redactor: Arc::clone(redactor),
        is_failing: false.into(),
    };
    let batch = BatchConfigBuilder::default()
        .with_max_queue_size(MAX_QUEUE)
        .with_max_export_batch_size(MAX_BATCH)
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    let provider = SdkTracerProvider::builder()
        .with_resource(Resource::builder().with_service_name(otlp.service_name.clone()).build())
        .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batch).build())
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("redflow"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        // Only our own spans. Log messages must not become attributes, and the spans of the HTTP client that
        // sends would be sent in turn.
        .with_filter(filter_fn(|metadata| {
            metadata.is_span()
                && *metadata.level() <= Level::DEBUG
                && metadata.target().starts_with("redflow")
        }));
    Ok((Some(layer.boxed()), Some(ExporterGuard(provider))))
}

fn exporter(otlp: &OtlpCollector) -> Result<SpanExporter, String> {
    let url = traces_url(&otlp.endpoint)?;
    let mut headers = std::collections::HashMap::new();
    for (name, value) in &otlp.headers {
        let value = value.expose_secret();
        if HeaderName::try_from(name.as_str()).is_err() || HeaderValue::try_from(value).is_err() {
            return Err("a header for the trace collector is not a valid HTTP header".to_owned());
        }
        headers.insert(name.clone(), value.to_owned());
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client(&url)?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(url)
        .with_headers(headers)
        .with_timeout(REQUEST_TIMEOUT);
    exporter.build().map_err(|_| "the trace collector's settings cannot be used".to_owned())
}

fn traces_url(endpoint: &str) -> Result<Url, String> {
    let url = Url::parse(endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let mut url = url.ok_or("the trace collector's address is not an http or https URL")?;
    let base = url.path().trim_end_matches('/');
    if !base.ends_with(TRACES) {
        let whole = format!("{base}{TRACES}");
        url.set_path(&whole);
    }
    Ok(url)
}

/// A client that talks only to the collector: it follows no redirect with our headers.
fn client(url: &Url) -> Result<reqwest::blocking::Client, String> {
    const FAILED: &str = "the client for the trace collector could not be created";
    // The client needs a crypto provider. If the process has one already, that one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::blocking::Client::builder()
        .timeout(REQUEST_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never());
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    // Building it blocks, which is not allowed on a thread of an async runtime.
    let thread = std::thread::Builder::new().spawn(move || builder.build()).map_err(|_| FAILED.to_owned())?;
    thread.join().ok().and_then(Result::ok).ok_or_else(|| FAILED.to_owned())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Removes secrets and personal data from spans before they are sent.
struct RedactingExporter<E> {
    inner: E,
    redactor: Arc<Redactor>,
    is_failing: AtomicBool,
}

impl<E> std::fmt::Debug for RedactingExporter<E> {
    /// Without the inner exporter, which would show its headers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedactingExporter").finish_non_exhaustive()
    }
}

impl<E: Export> Export for RedactingExporter<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(|span| self.redact_span(span));
        let sent = self.inner.export(batch).await;
        // Logged once, not for every batch.
        if self.is_failing.swap(sent.is_err(), Ordering::Relaxed) != sent.is_err() {
            if sent.is_err() {
                tracing::warn!("the trace collector does not accept spans: they are dropped until it does");
            } else {
                tracing::info!("the trace collector accepts spans again");
            }
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl<E> RedactingExporter<E> {
    fn redact_span(&self, span: &mut SpanData) {
        self.redact_text(&mut span.name);
        self.redact_attributes(&mut span.attributes);
        for event in &mut span.events.events {
            self.redact_text(&mut event.name);
            self.redact_attributes(&mut event.attributes);
        }
        for link in &mut span.links.links {
            self.redact_attributes(&mut link.attributes);
        }
        if let Status::Error { description } = &mut span.status {
            self.redact_text(description);
        }
    }

    fn redact_attributes(&self, attributes: &mut [KeyValue]) {
        for KeyValue { key, value, .. } in attributes {
            let is_number = matches!(value, Value::I64(_) | Value::F64(_));
            if self.redactor.hides_value_of(key.as_str(), is_number) {
                *value = Value::from(REDACTED);
                continue;
            }
            match value {
                Value::String(text) => *text = self.redacted(text.as_str()).into(),
                Value::Array(Array::String(texts)) => {
                    for text in texts {
                        *text = self.redacted(text.as_str()).into();
                    }
                }
                _ => {}
            }
        }
    }

    fn redact_text(&self, text: &mut Cow<'static, str>) {
        *text = Cow::Owned(self.redacted(text));
    }

    fn redacted(&self, text: &str) -> String {
        let mut redacted = self.redactor.redact(text).into_owned();
        redacted.truncate(redacted.floor_char_boundary(MAX_TEXT_BYTES));
        redacted
    }
}

#[cfg(test)]
#[path = "otel_tests.rs"]
mod tests;
