use super::Metrics;
use crate::metric::{Metric, MetricKind, has_values_from_flows};
use crate::series::{MAX_SETS, MAX_VALUE_CHARS, SPARE_SETS};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, SearchMode};
use redflow_contract::code::{ArchiveCode, RunErrorCode, ToolCode};
use redflow_contract::effect::Ending;
use redflow_contract::fact::Usage;
use redflow_contract::memory::Consolidated;
use redflow_ports::{Measurement, MemoryAction, MemoryStore, Meter as _};
use std::collections::BTreeSet;
use std::time::Duration;

const TOOK: Duration = Duration::from_millis(1500);

fn all_measurements() -> Metrics {
    let metrics = Metrics::default();
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cached_tokens: Some(4),
        cache_write_tokens: Some(3),
        reasoning_tokens: Some(2),
        cost: Some(0.25),
        estimated: false,
    };
    let consolidated = Consolidated { added: 3, superseded: 1, dropped: 2, ..Consolidated::default() };
    let ending = Ending::Failed { code: RunErrorCode::Timeout };
    for measurement in [
        Measurement::RunStarted,
        Measurement::RunStarted,
        Measurement::RunReleased,
        Measurement::RunEnded { agent: "a", ending: Ending::Completed, iterations: 2, took: TOOK },
        Measurement::RunEnded { agent: "a", ending: Ending::Stopped, iterations: 2, took: TOOK },
        Measurement::RunEnded { agent: "a", ending, iterations: 4, took: TOOK },
        Measurement::ModelCall {
            provider: "openai",
            model: "m",
            usage: Some(usage),
            failed: None,
            took: TOOK,
        },
        Measurement::ModelCall {
            provider: "openai",
            model: "m",
            usage: None,
            failed: Some(RunErrorCode::RateLimit),
            took: TOOK,
        },
        Measurement::ModelCall { provider: "ollama", model: "own", usage: None, failed: None, took: TOOK },
        Measurement::ModelRetry { provider: "openai", failed: RunErrorCode::RateLimit },
        Measurement::ToolRefused { tool: "calculator", code: ToolCode::ToolDenied },
        Measurement::ToolCall { tool: "calculator", success: true, took: TOOK },
        Measurement::ToolCall { tool: "calculator", success: false, took: TOOK },
        Measurement::EgressRequest { verdict: "answered" },
        Measurement::EgressRequest { verdict: "address" },
        Measurement::McpCall { server: "files", code: "" },
        Measurement::McpCall { server: "files", code: "MCP_UNAVAILABLE" },
        Measurement::McpUp { server: "files", up: false },
        Measurement::McpUp { server: "files", up: true },
        Measurement::MemoryCall {
            action: MemoryAction::Recall,
            size: Some((3, 900)),
            success: true,
            took: TOOK,
        },
        Measurement::MemoryCall { action: MemoryAction::Clear, size: None, success: false, took: TOOK },
        Measurement::KnowledgeSearch { mode: SearchMode::Hybrid, found: true, took: TOOK },
        Measurement::KnowledgeSearch { mode: SearchMode::Hybrid, found: false, took: TOOK },
        Measurement::MemoryLookup { store: MemoryStore::Short, found: true },
        Measurement::MemoryLookup { store: MemoryStore::Long, found: true },
        Measurement::MemoryLookup { store: MemoryStore::Long, found: true },
        Measurement::MemoryLookup { store: MemoryStore::Long, found: false },
        Measurement::Consolidation { consolidated },
        Measurement::Consolidation { consolidated },
        Measurement::CachedVectors { hits: 3, misses: 2 },
        Measurement::EmbeddingCall { embedder: "openai/small", tokens: 9, cost: Some(0.5), failed: None },
        Measurement::EmbeddingCall {
            embedder: "hash",
            tokens: 0,
            cost: None,
            failed: Some(ArchiveCode::EmbeddingsFailed),
        },
        Measurement::ArchiveEntries { kind: EntryKind::Chunk, entries: 40 },
        Measurement::ArchiveEntries { kind: EntryKind::Chunk, entries: 41 },
        Measurement::Quarantined { entries: 6 },
        Measurement::Quarantined { entries: 5 },
        Measurement::RequestAnswered { route: "/api/runs", status: 200, took: TOOK },
        Measurement::SocketOpened,
        Measurement::SocketOpened,
        Measurement::SocketClosed { code: "STOPPING" },
        Measurement::EventsSent { events: 7 },
        Measurement::LoopDelay { worst: Duration::from_millis(1_500) },
    ] {
        metrics.record(measurement);
    }
    metrics
}

/// Parses OpenMetrics text as a collector does. Returns its families and its sample lines.
fn parse(text: &str) -> (Vec<(String, String)>, Vec<String>) {
    let body = text.strip_suffix("# EOF\n").expect("the text ends with EOF");
    let (mut families, mut samples): (Vec<(String, String)>, _) = (Vec::new(), Vec::new());
    let mut helped = String::new();
    for line in body.lines() {
        assert!(!line.chars().any(char::is_control), "{line:?}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(help.ends_with('.') && !help.ends_with(".."), "{line}");
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, helped, "TYPE follows the HELP of the same metric");
            families.push((name.to_owned(), kind.to_owned()));
        } else {
            let (family, kind) = families.last().expect("a sample follows its TYPE");
            let end = line.find(['{', ' ']).unwrap();
            let suffix = line[..end].strip_prefix(family.as_str()).expect("a sample is of its family");
            let allowed: &[&str] = match kind.as_str() {
                "counter" => &["_total"],
                "gauge" => &[""],
                _ => &["_sum", "_count", "_bucket"],
            };
            assert!(allowed.contains(&suffix), "{line}");
            if line.as_bytes()[end] == b'{' {
                assert_labels(&line[end + 1..line.rfind('}').unwrap()]);
            }
            line.rsplit(' ').next().unwrap().parse::<f64>().expect("a value");
            samples.push(line.to_owned());
        }
    }
    (families, samples)
}

/// Checks `name="value",…` with escaped quotes, backslashes and line breaks.
fn assert_labels(mut text: &str) {
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("a label has a value");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        let mut escaped = false;
        let end = rest
            .find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })
            .expect("a value ends");
        text = rest[end + 1..].trim_start_matches(',');
    }
}

#[test]
fn every_measurement_is_rendered() {
    let text = all_measurements().render();
    let (_, samples) = parse(&text);
    for expected in [
        "redflow_runs_active 1",
        "redflow_loop_delay_seconds 1.5",
        "redflow_memory_lookups_total{store=\"kb\",result=\"hit\"} 1",
        "redflow_memory_lookups_total{store=\"kb\",result=\"miss\"} 1",
        "redflow_memory_lookups_total{store=\"cache\",result=\"hit\"} 3",
        "redflow_memory_lookups_total{store=\"cache\",result=\"miss\"} 2",
        "redflow_archive_search_seconds_count{mode=\"hybrid\"} 2",
        "redflow_archive_entries{kind=\"chunk\"} 41.0",
        r#"redflow_memory_lookups_total{store="stm",result="hit"} 1"#,
        r#"redflow_memory_lookups_total{store="ltm",result="hit"} 2"#,
        r#"redflow_memory_lookups_total{store="ltm",result="miss"} 1"#,
        r#"redflow_consolidations_total{decision="added"} 6"#,
        r#"redflow_consolidations_total{decision="superseded"} 2"#,
        r#"redflow_consolidations_total{decision="dropped"} 4"#,
        "redflow_quarantined 5.0",
        "redflow_embedding_calls_total{provider=\"openai\",model=\"small\",code=\"\"} 1",
        "redflow_embedding_calls_total{provider=\"hash\",model=\"hash\",code=\"EMBEDDINGS_FAILED\"} 1",
        "redflow_tokens_total{provider=\"openai\",model=\"small\",kind=\"input\"} 9",
        "redflow_cost_total{provider=\"openai\",model=\"small\"} 0.5",
        r#"redflow_runs_total{agent="a",outcome="completed",code=""} 1"#,
        r#"redflow_runs_total{agent="a",outcome="stopped",code=""} 1"#,
        r#"redflow_runs_total{agent="a",outcome="failed",code="TIMEOUT"} 1"#,
        r#"redflow_run_duration_seconds_sum{agent="a",outcome="failed"} 1.5"#,
        r#"redflow_run_duration_seconds_bucket{le="1.0",agent="a",outcome="failed"} 0"#,
        r#"redflow_run_duration_seconds_bucket{le="2.5",agent="a",outcome="failed"} 1"#,
        "redflow_run_iterations_sum 8.0",
        "redflow_run_iterations_count 3",
        r#"redflow_model_calls_total{provider="openai",model="m",code=""} 1"#,
        r#"redflow_model_calls_total{provider="openai",model="m",code="RATE_LIMIT"} 1"#,
        r#"redflow_model_call_duration_seconds_count{provider="openai",model="m"} 2"#,
        r#"redflow_model_retries_total{provider="openai",code="RATE_LIMIT"} 1"#,
        r#"redflow_tokens_total{provider="openai",model="m",kind="input"} 10"#,
        r#"redflow_tokens_total{provider="openai",model="m",kind="output"} 5"#,
        r#"redflow_tokens_total{provider="openai",model="m",kind="cached"} 4"#,
        r#"redflow_tokens_total{provider="openai",model="m",kind="cache_write"} 3"#,
        r#"redflow_tokens_total{provider="openai",model="m",kind="reasoning"} 2"#,
        r#"redflow_cost_total{provider="openai",model="m"} 0.25"#,
        r#"redflow_unpriced_calls_total{provider="ollama",model="own"} 1"#,
        r#"redflow_tool_calls_total{tool="calculator",success="true"} 1"#,
        r#"redflow_tool_calls_total{tool="calculator",success="false"} 1"#,
        r#"redflow_tool_call_duration_seconds_count{tool="calculator"} 2"#,
        r#"redflow_memory_calls_total{action="recall",success="true"} 1"#,
        r#"redflow_memory_calls_total{action="clear",success="false"} 1"#,
        r#"redflow_memory_call_duration_seconds_count{action="clear"} 1"#,
        r#"redflow_memory_messages_sum{action="recall"} 3.0"#,
        r#"redflow_memory_bytes_sum{action="recall"} 900.0"#,
        r#"redflow_errors_total{code="TIMEOUT"} 1"#,
        r#"redflow_http_requests_total{route="/api/runs",status="200"} 1"#,
        r#"redflow_http_request_duration_seconds_count{route="/api/runs"} 1"#,
        "redflow_sockets_active 1",
        r#"redflow_sockets_closed_total{code="STOPPING"} 1"#,
        "redflow_events_sent_total 7",
    ] {
        assert!(samples.iter().any(|line| line == expected), "{expected}\n{text}");
    }
    assert!(!text.contains("confirmed"), "a decision that was never made has no sample");
}

#[test]
fn all_metrics_and_no_others_are_described() {
    for metrics in [Metrics::default(), all_measurements()] {
        let (families, _) = parse(&metrics.render());
        let expected: Vec<(String, String)> = Metric::ALL
            .iter()
            .map(|metric| {
                let kind = match metric.kind() {
                    MetricKind::Gauge | MetricKind::Last => "gauge",
                    MetricKind::Counter | MetricKind::Sum => "counter",
                    MetricKind::Histogram(_) => "histogram",
                };
                (metric.family().to_owned(), kind.to_owned())
            })
            .collect();
        assert_eq!(families, expected);
    }
    // Some measurement counts each metric: no metric is unused.
    let (_, samples) = parse(&all_measurements().render());
    for metric in Metric::ALL {
        assert!(samples.iter().any(|line| line.starts_with(metric.family())), "{metric:?}");
    }
}

#[test]
fn metrics_are_their_own_index_and_have_unique_names() {
    for (index, metric) in Metric::ALL.iter().enumerate() {
        assert_eq!(*metric as usize, index);
        assert_eq!(
            metric.name().ends_with("_total"),
            matches!(metric.kind(), MetricKind::Counter | MetricKind::Sum)
        );
    }
    let names: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    assert_eq!(names.len(), Metric::ALL.len());
    assert!(!has_values_from_flows("code"));
}

#[test]
fn hostile_label_values_are_shortened_and_cleaned() {
    let metrics = Metrics::default();
    let long = format!("a\"\\\n\u{1b}[31m\u{9b}é{}", "x".repeat(500));
    for tool in [long.as_str(), "", "other"] {
        metrics.record(Measurement::ToolCall { tool, success: true, took: TOOK });
    }
    let (_, samples) = parse(&metrics.render());
    let cleaned = format!("a\\\"\\\\\u{fffd}\u{fffd}[31m\u{fffd}é{}", "x".repeat(MAX_VALUE_CHARS - 11));
    let expected = format!("redflow_tool_calls_total{{tool=\"{cleaned}\",success=\"true\"}} 1");
    assert!(samples.contains(&expected), "{samples:#?}");
}

#[test]
fn label_sets_are_limited() {
    let metrics = Metrics::default();
    let call = |tool: &str, success| metrics.record(Measurement::ToolCall { tool, success, took: TOOK });
    for number in 0..3 * MAX_SETS {
        call(&format!("tool-{number}"), true);
    }
    call("tool-new", false);
    call("tool-0", true);
    let (_, samples) = parse(&metrics.render());
    let calls: Vec<&String> =
        samples.iter().filter(|line| line.starts_with("redflow_tool_calls_total")).collect();
    let separate = MAX_SETS - SPARE_SETS;
    assert_eq!(calls.len(), separate + 2);
    assert!(calls.len() <= MAX_SETS);
    for expected in [
        format!(r#"redflow_tool_calls_total{{tool="other",success="true"}} {}"#, 3 * MAX_SETS - separate),
        r#"redflow_tool_calls_total{tool="other",success="false"} 1"#.to_owned(),
        // Label sets from before the limit are still counted separately.
        r#"redflow_tool_calls_total{tool="tool-0",success="true"} 2"#.to_owned(),
    ] {
        assert!(calls.contains(&&expected), "{expected}");
    }
}

#[test]
fn every_code_fits_into_the_reserved_label_sets() {
    // Completed and stopped runs have no code.
    assert!(RunErrorCode::ALL.len() + 2 <= SPARE_SETS);
}

#[test]
fn an_invalid_cost_is_not_added() {
    let metrics = Metrics::default();
    for cost in [f64::NAN, f64::INFINITY, -1.0, 0.5] {
        let usage = Some(Usage { cost: Some(cost), ..Usage::default() });
        metrics.record(Measurement::ModelCall { provider: "p", model: "m", usage, failed: None, took: TOOK });
    }
    let expected = r#"redflow_cost_total{provider="p",model="m"} 0.5"#;
    assert!(metrics.render().contains(expected));
}

#[test]
fn answers_whose_price_is_not_known_are_counted() {
    let metrics = Metrics::default();
    let usage = |cost| Some(Usage { cost, ..Usage::default() });
    let timeout = Some(RunErrorCode::Timeout);
    let calls = [(usage(Some(0.0)), None), (usage(None), None), (None, None), (None, timeout)];
    for (usage, failed) in calls {
        metrics.record(Measurement::ModelCall { provider: "p", model: "m", usage, failed, took: TOOK });
    }
    let expected = r#"redflow_unpriced_calls_total{provider="p",model="m"} 2"#;
    assert!(metrics.render().contains(expected), "{}", metrics.render());
}

#[test]
fn concurrent_counts_are_not_lost() {
    let metrics = Metrics::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..500 {
                    let tool = ["a", "b", "c"][number % 3];
                    metrics.record(Measurement::ToolCall { tool, success: true, took: TOOK });
                }
            });
        }
    });
    let (_, samples) = parse(&metrics.render());
    let total: f64 = samples
        .iter()
        .filter(|line| line.starts_with("redflow_tool_calls_total"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(total as u64, 2000);
}
