//! Many runs at once on the real store, some of them cancelled: each one ends, and its journal replays.
//!
//! `REDFLOW_CROWD=N` sets the number of runs.

use crate::doubles;
use crate::kit::{
    adapters, agent, calculator, check_flow, final_answer, model, model_double, process_env, tool_call, with,
};
use crate::recorder::EventRecorder;
use pretty_assertions::assert_eq;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::RunLimits;
use redflow_contract::node::Budget;
use redflow_engine::{Engine, EngineLimits, Ports, RunEnd, Start, SystemClock, build_flow};
use redflow_store::{Reader, RunFilter, Store};
use redflow_strategies::replay;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_crowd_on_the_real_store() {
    let crowd: usize = std::env::var("REDFLOW_CROWD").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let flow = json!([
        agent("a", "m", &[]),
        agent("b", "dead", &[]),
        with(
            model("m", json!([tool_call("calculator", json!({"expression": "1+1"})), final_answer("hi")])),
            // Long enough that all runs have begun before the first answer.
            json!({"delayMs": crowd})
        ),
        model_double("dead", json!([final_answer("never")]), json!({"hangs": "model"})),
        calculator(),
    ]);
    let recorder = doubles::set_recorder(EventRecorder::new(0).without_run_events());
    let (adapters, folder) = (Arc::new(adapters()), tempfile::tempdir().unwrap());
    let checked = check_flow(
        &flow,
        RunLimits::default(),
        Budget::default(),
        &adapters,
        &redflow_engine::Registry::default(),
    );
    let node = |id: &str| checked.flow.find(id).unwrap();
    let (alive, dead) = (node("a"), node("b"));
    let store = Arc::new(Store::open(folder.path()).unwrap());
    let ports = Ports {
        strategies: redflow_strategies::strategies().clone(),
        clock: Arc::new(SystemClock),
        events: recorder,
        store: Arc::clone(&store) as _,
        adapters: Arc::clone(&adapters),
        meter: Arc::new(redflow_ports::NoMeter),
        instance: InstanceId::local(),
        source: Some("flow.json".into()),
        host: None,
        takes_requests: true,
        registry: Arc::default(),
        principal: None,
        env: process_env,
    };
    let limits = EngineLimits { max_active: crowd, max_active_per_agent: crowd, ..EngineLimits::default() };
    let built = build_flow(checked, &adapters, redflow_strategies::strategies(), &process_env);
    let engine = Engine::new(Some(built), ports, limits);
    let cancel = CancellationToken::new();
    // Every tenth run calls a model that never answers.
    let starts = (0..crowd).map(|number| {
        let (engine, cancel) = (&engine, &cancel);
        let node = if number % 10 == 0 { dead } else { alive };
        async move { engine.run(Start::Agent { node, payload: json!(number) }, cancel).await }
    });
    let cancels = async {
        let reader = Reader::open(folder.path()).unwrap();
        let all = || reader.list(&RunFilter { limit: crowd, ..RunFilter::default() }).unwrap().runs;
        while all().len() < crowd {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut cancelled = 0;
        for (place, run) in all().into_iter().enumerate() {
            // The runs that never end, and some that may be over already.
            if run.name == "b" || place % 7 == 0 {
                cancelled += usize::from(engine.cancel(run.run_id, "enough".to_owned()).await.is_ok());
            }
        }
        cancelled
    };
    let (reports, cancelled) = tokio::join!(futures::future::join_all(starts), cancels);
    let failed = |end: &RunEnd| format!("{end:?}").contains("Cancelled");
    let ends: Vec<RunEnd> = reports.into_iter().flatten().map(|report| report.end).collect();
    assert_eq!(ends.len(), crowd);
    assert!(ends.iter().all(|end| matches!(end, RunEnd::Finished { .. })));
    let ended_so = ends.iter().filter(|end| failed(end)).count();
    // A cancel may come too late for a run that is ending.
    assert!(ended_so >= crowd / 10 && ended_so <= cancelled, "{ended_so} of {cancelled}");
    drop(engine);
    let flushes = store.stats().flushes;
    while Arc::strong_count(&store) > 1 {
        tokio::task::yield_now().await;
    }
    drop(store);
    let reader = Reader::open(folder.path()).unwrap();
    let ids = reader.run_ids().unwrap();
    assert_eq!(ids.len(), crowd);
    for id in &ids {
        let stored = reader.load(id).unwrap().unwrap();
        assert!(stored.summary.status.is_over() && stored.summary.delivered, "{:?}", stored.summary);
        assert_eq!(replay(&stored.journal).difference, None);
    }
    println!("FAULTS crowd runs={crowd} cancelled={ended_so} flushes={flushes} lost=0 hung=0, all replay");
}
