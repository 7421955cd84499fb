//! The label sets of one metric: found without allocating, and only so many of them.

use crate::metric::{Kind, Metric, is_open};
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

/// Label sets of one metric at most.
pub(crate) const MAX_SETS: usize = 1_000;

/// Of those, how many are kept for `other`: one for each combination of the labels with fixed values.
pub(crate) const SPARE_SETS: usize = 50;

/// Characters of a label value at most.
pub(crate) const MAX_VALUE: usize = 100;

/// No metric has more labels.
const MAX_LABELS: usize = 3;

/// What a label from a flow says once there are too many.
const OTHER: &str = "other";

/// What is counted for one label set.
#[derive(Debug)]
pub(crate) enum Value {
    Gauge(Gauge),
    Counter(Counter),
    Sum(Counter<f64, AtomicU64>),
    Histogram(Histogram),
}

impl Value {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Gauge => Self::Gauge(Gauge::default()),
            Kind::Counter => Self::Counter(Counter::default()),
            Kind::Sum => Self::Sum(Counter::default()),
            Kind::Histogram(buckets) => Self::Histogram(Histogram::new(buckets.iter().copied())),
        }
    }
}

/// One metric with all its label sets.
#[derive(Debug)]
pub(crate) struct Series {
    metric: Metric,
    hasher: RandomState,
    sets: RwLock<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    /// By the hash of the label values. The values themselves are compared too.
    by_hash: HashMap<u64, Vec<Set>>,
    count: usize,
}

#[derive(Debug)]
struct Set {
    labels: Vec<Box<str>>,
    value: Value,
}

impl Sets {
    fn find(&self, hash: u64, labels: &[Cow<'_, str>]) -> Option<&Value> {
        let same =
            |set: &&Set| set.labels.iter().map(|label| &**label).eq(labels.iter().map(|label| &**label));
        self.by_hash.get(&hash)?.iter().find(same).map(|set| &set.value)
    }
}

impl Series {
    pub(crate) fn new(metric: Metric) -> Self {
        let series = Self { metric, hasher: RandomState::new(), sets: RwLock::default() };
        // There is exactly one set, so zero can be shown from the start.
        if metric.labels().is_empty() {
            series.with(&[], |_| ());
        }
        series
    }

    /// Counts for these label values, in the order the metric names its labels.
    pub(crate) fn with(&self, labels: &[&str], count: impl Fn(&Value)) {
        let mut clean: [Cow<'_, str>; MAX_LABELS] = Default::default();
        for (place, label) in clean.iter_mut().zip(labels) {
            *place = cleaned(label);
        }
        let clean = &mut clean[..self.metric.labels().len().min(MAX_LABELS)];
        let hash = self.hasher.hash_one(&*clean);
        if let Some(value) = self.sets.read().unwrap_or_else(PoisonError::into_inner).find(hash, clean) {
            count(value);
            return;
        }
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let mut hash = hash;
        if sets.count >= MAX_SETS - SPARE_SETS && sets.find(hash, clean).is_none() {
            for (place, name) in clean.iter_mut().zip(self.metric.labels()) {
                if is_open(name) {
                    *place = Cow::Borrowed(OTHER);
                }
            }
            hash = self.hasher.hash_one(&*clean);
        }
        if sets.find(hash, clean).is_none() {
            let labels = clean.iter().map(|label| Box::from(&**label)).collect();
            sets.by_hash.entry(hash).or_default().push(Set { labels, value: Value::new(self.metric.kind()) });
            sets.count += 1;
        }
        if let Some(value) = sets.find(hash, clean) {
            count(value);
        }
    }

    /// Writes all label sets, sorted, so that two scrapes differ only by what was counted.
    pub(crate) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let kind = match self.metric.kind() {
            Kind::Gauge => MetricType::Gauge,
            Kind::Counter | Kind::Sum => MetricType::Counter,
            Kind::Histogram(_) => MetricType::Histogram,
        };
        let (name, help) = (self.metric.family(), self.metric.help());
        let mut family = encoder.encode_descriptor(name, &format!("{help}."), None, kind)?;
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<&Set> = sets.by_hash.values().flatten().collect();
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
        Value::Counter(counter) => counter.encode(encoder),
        Value::Sum(counter) => counter.encode(encoder),
        Value::Histogram(histogram) => histogram.encode(encoder),
    }
}

/// A label value that is short and has no control characters.
fn cleaned(value: &str) -> Cow<'_, str> {
    if value.len() <= MAX_VALUE && !value.chars().any(char::is_control) {
        return Cow::Borrowed(value);
    }
    value.chars().take(MAX_VALUE).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
