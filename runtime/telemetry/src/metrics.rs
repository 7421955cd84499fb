//! Counts measurements, and renders them for a collector.
//!
//! Owns the counters. Never waits for anything but another count, and never fails.

use crate::metric::Metric;
use crate::series::{Series, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;
use redflow_contract::code::{ArchiveCode, RunErrorCode};
use redflow_contract::effect::Ending;
use redflow_contract::fact::Usage;
use redflow_contract::memory::Consolidated;
use redflow_ports::{Measurement, Meter};
use std::sync::Arc;
use std::time::Duration;

/// All metrics, counted since this value was created.
#[derive(Debug)]
pub struct Metrics {
    /// In the order of [`Metric::ALL`].
    series: Arc<AllSeries>,
    registry: Registry,
}

#[derive(Debug)]
struct AllSeries(Vec<Series>);

impl Collector for AllSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|series| series.encode(&mut encoder))
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let series = Metric::ALL.iter().map(|metric| Series::new(*metric)).collect();
        let series = Arc::new(AllSeries(series));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(&series)));
        Self { series, registry }
    }
}

impl Metrics {
    /// The content type of [`Metrics::render`].
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// All metrics as OpenMetrics text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing into a string cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }

    fn update(&self, metric: Metric, labels: &[&str], update: impl Fn(&Value)) {
        if let Some(series) = self.series.0.get(metric as usize) {
            series.update(labels, update);
        }
    }

    fn change_gauge(&self, metric: Metric, by: i64) {
        self.update(metric, &[], |value| {
            if let Value::Gauge(gauge) = value {
                gauge.inc_by(by);
            }
        });
    }

    fn set(&self, metric: Metric, labels: &[&str], to: f64) {
        self.update(metric, labels, |value| {
            if let Value::Last(gauge) = value {
                gauge.set(to);
            }
        });
    }

    fn count(&self, metric: Metric, labels: &[&str], by: u64) {
        self.update(metric, labels, |value| {
            if let Value::Counter(counter) = value {
                counter.inc_by(by);
            }
        });
    }

    fn add(&self, metric: Metric, labels: &[&str], by: f64) {
        // A counter never goes down, whatever a price table says.
        if by.is_finite() && by >= 0.0 {
            self.update(metric, labels, |value| {
                if let Value::Sum(counter) = value {
                    counter.inc_by(by);
                }
            });
        }
    }

    fn observe(&self, metric: Metric, labels: &[&str], observed: f64) {
        self.update(metric, labels, |value| {
            if let Value::Histogram(histogram) = value {
                histogram.observe(observed);
            }
        });
    }

    fn count_run(&self, agent: &str, ending: Ending, iterations: u32, took: Duration) {
        let (outcome, code) = match ending {
            Ending::Completed => ("completed", None),
            Ending::Stopped => ("stopped", None),
            Ending::Failed { code } => ("failed", Some(code)),
        };
        self.count(Metric::Runs, &[agent, outcome, code_label(code)], 1);
        self.observe(Metric::RunDuration, &[agent, outcome], took.as_secs_f64());
        self.observe(Metric::RunIterations, &[], f64::from(iterations));
        if let Some(code) = code {
            self.count(Metric::Errors, &[code.as_str()], 1);
        }
    }

    fn count_vectors(&self, embedder: &str, tokens: u64, cost: Option<f64>, failed: Option<ArchiveCode>) {
        let (provider, model) = embedder.split_once('/').unwrap_or((embedder, embedder));
        let code = failed.map_or("", ArchiveCode::as_str);
        self.count(Metric::EmbeddingCalls, &[provider, model, code], 1);
        if tokens > 0 {
            self.count(Metric::Tokens, &[provider, model, "input"], tokens);
        }
        if let Some(cost) = cost {
            self.add(Metric::Cost, &[provider, model], cost);
        }
    }

    fn count_consolidation(&self, consolidated: Consolidated) {
        for (decision, entries) in [
            ("added", consolidated.added),
            ("confirmed", consolidated.confirmed),
            ("superseded", consolidated.superseded),
            ("dropped", consolidated.dropped),
        ] {
            if entries > 0 {
                self.count(Metric::Consolidations, &[decision], u64::from(entries));
            }
        }
    }

    fn count_usage(&self, provider: &str, model: &str, usage: Usage) {
        for (kind, tokens) in [
            ("input", Some(usage.input_tokens)),
            ("output", Some(usage.output_tokens)),
            ("cached", usage.cached_tokens),
            ("cache_write", usage.cache_write_tokens),
            ("reasoning", usage.reasoning_tokens),
        ] {
            if let Some(tokens) = tokens {
                self.count(Metric::Tokens, &[provider, model, kind], tokens);
            }
        }
        if let Some(cost) = usage.cost {
            self.add(Metric::Cost, &[provider, model], cost);
        }
    }
}

impl Meter for Metrics {
    fn record(&self, measurement: Measurement<'_>) {
        match measurement {
            Measurement::RunStarted => self.change_gauge(Metric::RunsActive, 1),
            Measurement::RunReleased => self.change_gauge(Metric::RunsActive, -1),
            Measurement::RunEnded { agent, ending, iterations, took } => {
                self.count_run(agent, ending, iterations, took);
            }
            Measurement::ModelCall { provider, model, usage, failed, took } => {
                self.count(Metric::ModelCalls, &[provider, model, code_label(failed)], 1);
                self.observe(Metric::ModelCallDuration, &[provider, model], took.as_secs_f64());
                if let Some(usage) = usage {
                    self.count_usage(provider, model, usage);
                }
                if failed.is_none() && usage.is_none_or(|usage| usage.cost.is_none()) {
                    self.count(Metric::UnpricedCalls, &[provider, model], 1);
                }
            }
            Measurement::ModelRetry { provider, failed } => {
                self.count(Metric::ModelRetries, &[provider, failed.as_str()], 1);
            }
            Measurement::ToolCall { tool, success, took } => {
                self.count(Metric::ToolCalls, &[tool, bool_label(success)], 1);
                self.observe(Metric::ToolCallDuration, &[tool], took.as_secs_f64());
            }
            Measurement::ToolRefused { tool, code } => {
                self.count(Metric::ToolsRefused, &[tool, code.as_str()], 1);
            }
            Measurement::EgressRequest { verdict } => self.count(Metric::EgressRequests, &[verdict], 1),
            Measurement::McpCall { server, code } => self.count(Metric::McpCalls, &[server, code], 1),
            Measurement::McpUp { server, up } => self.set(Metric::McpUp, &[server], f64::from(u8::from(up))),
            Measurement::MemoryCall { action, size, success, took } => {
                let action = action.as_str();
                self.count(Metric::MemoryCalls, &[action, bool_label(success)], 1);
                self.observe(Metric::MemoryCallDuration, &[action], took.as_secs_f64());
                if let Some((messages, bytes)) = size {
                    self.observe(Metric::MemoryMessages, &[action], messages as f64);
                    self.observe(Metric::MemoryBytes, &[action], bytes as f64);
                }
            }
            Measurement::KnowledgeSearch { mode, found, took } => {
                self.count(Metric::MemoryLookups, &["kb", hit_label(found)], 1);
                self.observe(Metric::ArchiveSearchDuration, &[mode.as_str()], took.as_secs_f64());
            }
            Measurement::MemoryLookup { store, found } => {
                self.count(Metric::MemoryLookups, &[store.as_str(), hit_label(found)], 1);
            }
            Measurement::Consolidation { consolidated } => self.count_consolidation(consolidated),
            Measurement::CachedVectors { hits, misses } => {
                self.count(Metric::MemoryLookups, &["cache", hit_label(true)], hits);
                self.count(Metric::MemoryLookups, &["cache", hit_label(false)], misses);
            }
            Measurement::EmbeddingCall { embedder, tokens, cost, failed } => {
                self.count_vectors(embedder, tokens, cost, failed);
            }
            Measurement::ArchiveEntries { kind, entries } => {
                self.set(Metric::ArchiveEntries, &[kind.as_str()], entries as f64);
            }
            Measurement::Quarantined { entries } => self.set(Metric::Quarantined, &[], entries as f64),
            Measurement::RequestAnswered { route, status, took } => {
                self.count(Metric::HttpRequests, &[route, &status.to_string()], 1);
                self.observe(Metric::HttpDuration, &[route], took.as_secs_f64());
            }
            Measurement::SocketOpened => self.change_gauge(Metric::Sockets, 1),
            Measurement::SocketClosed { code } => {
                self.change_gauge(Metric::Sockets, -1);
                self.count(Metric::SocketsClosed, &[code], 1);
            }
            Measurement::LoopDelay { worst } => self.set(Metric::LoopDelay, &[], worst.as_secs_f64()),
            Measurement::EventsSent { events } => self.count(Metric::EventsSent, &[], events),
        }
    }
}

fn code_label(code: Option<RunErrorCode>) -> &'static str {
    code.map_or("", RunErrorCode::as_str)
}

fn hit_label(found: bool) -> &'static str {
    if found { "hit" } else { "miss" }
}

fn bool_label(success: bool) -> &'static str {
    if success { "true" } else { "false" }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
