//! The label sets of one metric: found without an allocation, and limited in number.

use crate::metric::{Metric, MetricKind, has_values_from_flows};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::{PoisonError, RwLock};

/// The limit on label sets of one metric.
pub(crate) const MAX_SETS: usize = 1_000;

/// How many of those are reserved for `other`: one for each combination of the labels with fixed values.
pub(crate) const SPARE_SETS: usize = 50;

/// The limit on characters of a label value.
pub(crate) const MAX_VALUE_CHARS: usize = 100;

/// No metric has more labels.
const MAX_LABELS: usize = 3;

/// Replaces label values from flows once there are too many.
const OTHER: &str = "other";

/// The counter of one label set.
#[derive(Debug)]
pub(crate) enum Value {
    Gauge(Gauge),
    Last(Gauge<f64, AtomicU64>),
    Counter(Counter),
    Sum(Counter<f64, AtomicU64>),
    Histogram(Histogram),
}

impl Value {
    fn new(kind: MetricKind) -> Self {
        match kind {
            MetricKind::Gauge => Self::Gauge(Gauge::default()),
            MetricKind::Last => Self::Last(Gauge::default()),
            MetricKind::Counter => Self::Counter(Counter::default()),
            MetricKind::Sum => Self::Sum(Counter::default()),
            MetricKind::Histogram(buckets) => Self::Histogram(Histogram::new(buckets.iter().copied())),
        }
    }
}

/// One metric with all its label sets.
#[derive(Debug)]
pub(crate) struct Series {
    metric: Metric,
    hasher: RandomState,
    sets: RwLock<LabelSets>,
}

#[derive(Debug, Default)]
struct LabelSets {
    /// By the hash of the label values. Sets with the same hash are told apart by their values.
    by_hash: HashMap<u64, Vec<LabelSet>>,
    count: usize,
}

#[derive(Debug)]
struct LabelSet {
    labels: Vec<Box<str>>,
    value: Value,
}

impl LabelSets {
    fn find(&self, hash: u64, labels: &[Cow<'_, str>]) -> Option<&Value> {
        let same =
            |set: &&LabelSet| set.labels.iter().map(|label| &**label).eq(labels.iter().map(|label| &**label));
        self.by_hash.get(&hash)?.iter().find(same).map(|set| &set.value)
    }
}

impl Series {
    pub(crate) fn new(metric: Metric) -> Self {
        let series = Self { metric, hasher: RandomState::new(), sets: RwLock::default() };
        // Without labels there is exactly one set, so zero shows from the start.
        if metric.labels().is_empty() {
            series.update(&[], |_| ());
        }
        series
    }

    /// Updates the counter of these label values, which are in the order of the metric's labels.
    pub(crate) fn update(&self, labels: &[&str], update: impl Fn(&Value)) {
        let mut clean: [Cow<'_, str>; MAX_LABELS] = Default::default();
        for (value, label) in clean.iter_mut().zip(labels) {
            *value = clean_value(label);
        }
        let clean = &mut clean[..self.metric.labels().len().min(MAX_LABELS)];
        let hash = self.hasher.hash_one(&*clean);
        if let Some(value) = self.sets.read().unwrap_or_else(PoisonError::into_inner).find(hash, clean) {
            update(value);
            return;
        }
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let mut hash = hash;
        if sets.count >= MAX_SETS - SPARE_SETS && sets.find(hash, clean).is_none() {
            for (value, name) in clean.iter_mut().zip(self.metric.labels()) {
                if has_values_from_flows(name) {
                    *value = Cow::Borrowed(OTHER);
                }
            }
            hash = self.hasher.hash_one(&*clean);
        }
        if sets.find(hash, clean).is_none() {
            let labels = clean.iter().map(|label| Box::from(&**label)).collect();
            sets.by_hash
                .entry(hash)
                .or_default()
                .push(LabelSet { labels, value: Value::new(self.metric.kind()) });
            sets.count += 1;
        }
        if let Some(value) = sets.find(hash, clean) {
            update(value);
        }
    }

    /// Writes all label sets, sorted, so that two scrapes differ only in the counts.
    pub(crate) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let kind = match self.metric.kind() {
            MetricKind::Gauge | MetricKind::Last => MetricType::Gauge,
            MetricKind::Counter | MetricKind::Sum => MetricType::Counter,
            MetricKind::Histogram(_) => MetricType::Histogram,
        };
        let (name, help) = (self.metric.family(), self.metric.help());
        let mut family = encoder.encode_descriptor(name, &format!("{help}."), None, kind)?;
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<&LabelSet> = sets.by_hash.values().flatten().collect();
        sorted.sort_unstable_by(|left, right| left.labels.cmp(&right.labels));
        for set in sorted {
            let values = set.labels.iter().map(|value| &**value);
            let labels: Vec<(&str, &str)> = self.metric.labels().iter().copied().zip(values).collect();
            if labels.is_empty() {
                return encode_value(&set.value, family);
            }
            encode_value(&set.value, family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn encode_value(value: &Value, encoder: prometheus_client::encoding::MetricEncoder<'_>) -> std::fmt::Result {
    match value {
        Value::Gauge(gauge) => gauge.encode(encoder),
        Value::Last(gauge) => gauge.encode(encoder),
        Value::Counter(counter) => counter.encode(encoder),
        Value::Sum(counter) => counter.encode(encoder),
        Value::Histogram(histogram) => histogram.encode(encoder),
    }
}

/// Shortens a label value and replaces its control characters.
fn clean_value(value: &str) -> Cow<'_, str> {
    if value.len() <= MAX_VALUE_CHARS && !value.chars().any(char::is_control) {
        return Cow::Borrowed(value);
    }
    value.chars().take(MAX_VALUE_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
