//! Parents, filters and sums of runs: behaviour of both stores.

use crate::kit::{first_batch, id, last_batch, new_run, start_run, synced_batch, waiting_batch};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::console::{Stats, StatsBy, StatsRow};
use redflow_contract::day::Day;
use redflow_contract::effect::Ending;
use redflow_contract::fact::Usage;
use redflow_contract::id::{NodeRef, RunId};
use redflow_contract::run::{RunState, RunStatus};
use redflow_contract::usage::RunUsage;
use redflow_ports::{Batch, NewRun, RunFilter, RunReader, RunStore, StatsQuery, TreeQuery};

/// The ports that these tests use.
trait CountingStore: RunStore + RunReader {}
impl<T: RunStore + RunReader> CountingStore for T {}

/// Each function becomes a test of the store on disk and one of the store in memory.
macro_rules! both {
    ($($name:ident)+) => {
        $(mod $name {
            #[tokio::test]
            async fn on_disk() {
                let dir = tempfile::tempdir().unwrap();
                super::$name(&redflow_store::Store::open(dir.path()).unwrap()).await;
            }

            #[tokio::test]
            async fn in_memory() {
                super::$name(&redflow_store::MemoryStore::default()).await;
            }
        })+
    };
}

both! {
    a_run_has_its_parent_and_counts_its_children
    runs_are_found_by_period_code_id_and_parent
    a_tree_lists_each_run_after_its_parent
    a_tree_ends_after_16_levels
    a_run_adds_to_the_sums_of_its_day
    an_interrupted_run_is_counted_once
    sums_name_the_largest_keys
    failures_are_counted_by_code
}

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A run that another one has started, if `parent` is given.
fn started_by(run: &str, parent: Option<&str>) -> NewRun {
    NewRun { cause: parent.map(|parent| format!("{parent}:1:{run}:0")), ..new_run(run) }
}

async fn add(store: &dyn CountingStore, run: NewRun, last: Batch) {
    let mut journal = store.create(run.clone());
    journal.append(first_batch(&run)).await.unwrap();
    journal.append(last).await.unwrap();
}

fn ended(at: u64, ending: Ending, usage: RunUsage) -> Batch {
    Batch { state: RunState::Finished { at, ending, usage: Box::new(usage) }, ..last_batch(at) }
}

fn failed(at: u64, code: RunErrorCode) -> Batch {
    ended(at, Ending::Failed { code }, RunUsage::default())
}

async fn list(store: &dyn CountingStore, filter: RunFilter) -> Vec<String> {
    let page = store.list(filter).await.unwrap();
    assert_eq!(page.searched_to, None);
    page.runs.iter().map(|run| run.run_id.to_string()).collect()
}

async fn stats(store: &dyn CountingStore, by: StatsBy) -> Stats {
    store.stats(StatsQuery { from: Day(1), to: Day(3), by }).await.unwrap()
}

async fn a_run_has_its_parent_and_counts_its_children(store: &dyn CountingStore) {
    for run in [
        started_by("top", None),
        started_by("one", Some("top")),
        started_by("two", Some("top")),
        started_by("deep", Some("two")),
        // The cause of a start by a caller looks like that of a run.
        NewRun { cause: Some("api:top".into()), ..new_run("called") },
        started_by("orphan", Some("gone")),
    ] {
        add(store, run, last_batch(5)).await;
    }
    let expected =
        [("top", None, 2), ("one", Some("top"), 0), ("two", Some("top"), 1), ("deep", Some("two"), 0)];
    let listed = store.list(RunFilter::default()).await.unwrap().runs;
    for (run, parent, children) in expected.into_iter().chain([("called", None, 0), ("orphan", None, 0)]) {
        let loaded = store.load(&id(run)).await.unwrap().unwrap().summary;
        assert_eq!((loaded.parent.clone(), loaded.children), (parent.map(RunId::from), children), "{run}");
        assert_eq!(listed.iter().find(|listed| listed.run_id == id(run)), Some(&loaded));
        assert_eq!(store.summary(&id(run)).await.unwrap(), Some(loaded));
    }
}

async fn runs_are_found_by_period_code_id_and_parent(store: &dyn CountingStore) {
    let timeout = RunErrorCode::Timeout;
    let runs = [
        ("a1", 10, None, last_batch(50)),
        ("a2", 20, Some("a1"), failed(50, timeout)),
        ("a3", 30, None, failed(50, RunErrorCode::Cancelled)),
        ("b4", 40, Some("a1"), failed(50, timeout)),
        ("b5", 50, None, waiting_batch()),
        // The order of the ids is not that of the starts.
        ("a0", 60, None, last_batch(70)),
    ];
    for (run, started_at, parent, last) in runs {
        add(store, NewRun { started_at, ..started_by(run, parent) }, last).await;
    }
    let any = RunFilter::default;
    let code = Some(timeout);
    let prefix = |prefix: &str| Some(prefix.to_owned());
    let rows: [(RunFilter, &[&str]); 14] = [
        (RunFilter { since: Some(20), ..any() }, &["a0", "b5", "b4", "a3", "a2"]),
        (RunFilter { since: Some(20), until: Some(40), ..any() }, &["a3", "a2"]),
        (RunFilter { until: Some(10), ..any() }, &[]),
        (RunFilter { until: Some(u64::MAX), before: Some(id("a3")), ..any() }, &["a2", "a1"]),
        (RunFilter { code, ..any() }, &["b4", "a2"]),
        (RunFilter { code, until: Some(40), ..any() }, &["a2"]),
        (RunFilter { code, statuses: Some(vec![RunStatus::Completed]), ..any() }, &[]),
        (RunFilter { prefix: prefix("a"), ..any() }, &["a3", "a2", "a1", "a0"]),
        (RunFilter { prefix: prefix("a"), before: Some(id("a3")), limit: 1, ..any() }, &["a2"]),
        (RunFilter { prefix: prefix("A"), ..any() }, &[]),
        (RunFilter { prefix: prefix("b"), since: Some(41), ..any() }, &["b5"]),
        (RunFilter { roots: true, ..any() }, &["a0", "b5", "a3", "a1"]),
        (RunFilter { roots: true, agent: Some("agent".into()), until: Some(50), ..any() }, &["a3", "a1"]),
        (RunFilter { since: Some(50), statuses: Some(vec![RunStatus::Waiting]), ..any() }, &["b5"]),
    ];
    for (filter, expected) in rows {
        let case = format!("{filter:?}");
        assert_eq!(list(store, filter).await, expected, "{case}");
    }
    // A page names the run that the next one goes on with, only if there is one.
    let page = async |limit, before: Option<&str>| {
        let filter = RunFilter { code, limit, before: before.map(id), ..any() };
        let page = store.list(filter).await.unwrap();
        (page.runs.len(), page.next.map(|run| run.to_string()))
    };
    assert_eq!(page(1, None).await, (1, Some("b4".to_owned())));
    assert_eq!(page(1, Some("b4")).await, (1, None));
    assert_eq!(page(2, None).await, (2, None));
}

async fn tree(store: &dyn CountingStore, run: &str, after: Option<&str>, limit: usize) -> Option<String> {
    let query = TreeQuery { run: id(run), after: after.map(id), limit };
    let tree = store.tree(query).await.unwrap()?;
    let runs = tree.runs.iter().map(|run| format!("{}{}", run.run.run_id, run.depth));
    let next = tree.next.map(|next| format!("after {next}"));
    Some(runs.chain(next).collect::<Vec<_>>().join(" "))
}

async fn a_tree_lists_each_run_after_its_parent(store: &dyn CountingStore) {
    for (run, parent) in [
        ("top", None),
        ("a", Some("top")),
        ("other", None),
        ("b", Some("top")),
        ("aa", Some("a")),
        ("ba", Some("b")),
        ("ab", Some("a")),
        ("aaa", Some("aa")),
        ("x", Some("other")),
    ] {
        add(store, started_by(run, parent), last_batch(5)).await;
    }
    let whole = "a1 aa2 aaa3 ab2 b1 ba2";
    assert_eq!(tree(store, "top", None, 9).await.unwrap(), whole);
    assert_eq!(tree(store, "top", None, 6).await.unwrap(), whole);
    assert_eq!(tree(store, "top", None, 3).await.unwrap(), "a1 aa2 aaa3 after aaa");
    assert_eq!(tree(store, "top", Some("aaa"), 2).await.unwrap(), "ab2 b1 after b");
    assert_eq!(tree(store, "top", Some("b"), 2).await.unwrap(), "ba2");
    assert_eq!(tree(store, "top", Some("ba"), 2).await.unwrap(), "");
    assert_eq!(tree(store, "a", None, 9).await.unwrap(), "aa1 aaa2 ab1");
    assert_eq!(tree(store, "aaa", None, 9).await.unwrap(), "");
    // A run that is not below the first one, and an unknown run.
    assert_eq!(tree(store, "top", Some("x"), 9).await.unwrap(), "");
    assert_eq!(tree(store, "a", Some("b"), 9).await.unwrap(), "");
    assert_eq!(tree(store, "top", Some("gone"), 9).await.unwrap(), "");
    assert_eq!(tree(store, "gone", None, 9).await, None);
}

async fn a_tree_ends_after_16_levels(store: &dyn CountingStore) {
    add(store, started_by("0", None), last_batch(5)).await;
    for level in 1..20_u32 {
        let parent = (level - 1).to_string();
        add(store, started_by(&level.to_string(), Some(&parent)), last_batch(5)).await;
    }
    let found = store.tree(TreeQuery { run: id("0"), after: None, limit: 99 }).await.unwrap().unwrap();
    let last = found.runs.last().unwrap();
    assert_eq!((found.runs.len(), last.depth, last.run.children), (16, 16, 1), "the cut shows");
    assert_eq!(tree(store, "0", Some("15"), 99).await.unwrap(), "1616");
    assert_eq!(tree(store, "0", Some("17"), 99).await.unwrap(), "");
    assert_eq!(tree(store, "16", None, 99).await.unwrap(), "171 182 193");
}

/// An answer of a model, and a failed call of a tool.
fn used(model: &str, input_tokens: u64, cost: Option<f64>) -> RunUsage {
    let mut usage = RunUsage::default();
    let tokens = Usage { input_tokens, output_tokens: 2, cached_tokens: Some(1), cost, ..Usage::default() };
    usage.add_answer(model, &tokens, 30);
    let mail = usage.tool("mail");
    (mail.calls, mail.failed, mail.ms) = (2, 1, 40);
    usage
}

fn of_agent(run: &str, instance: &str, agent: &str) -> NewRun {
    let agent = NodeRef { instance: instance.into(), node_id: agent.into() };
    NewRun { name: format!("The {}", agent.node_id), agent, ..new_run(run) }
}

fn row(day: &str, key: u32) -> StatsRow {
    StatsRow { day: day.to_owned(), key, ..StatsRow::default() }
}

async fn a_run_adds_to_the_sums_of_its_day(store: &dyn CountingStore) {
    let code = RunErrorCode::Timeout;
    let completed = |at, usage| ended(at, Ending::Completed, usage);
    add(store, of_agent("1", "x", "desk"), completed(DAY, used("large", 100, Some(0.5)))).await;
    add(store, of_agent("2", "x", "desk"), completed(2 * DAY - 1, used("large", 10, Some(0.25)))).await;
    add(store, of_agent("3", "x", "desk"), completed(2 * DAY, used("small", 1, None))).await;
    let failure = ended(2 * DAY, Ending::Failed { code }, used("large", 7, Some(0.25)));
    add(store, of_agent("4", "y", "desk"), failure).await;
    // Outside the period, and not over.
    add(store, of_agent("5", "x", "desk"), completed(4 * DAY, used("large", 1, None))).await;
    add(store, of_agent("6", "x", "desk"), waiting_batch()).await;

    let agents = stats(store, StatsBy::Agent).await;
    assert_eq!((agents.from.as_str(), agents.to.as_str()), ("1970-01-02", "1970-01-04"));
    let keys: Vec<_> = agents.keys.iter().map(|key| (key.instance.clone().unwrap(), &*key.key)).collect();
    assert_eq!(keys, [("x".into(), "desk"), ("y".into(), "desk")]);
    assert!(agents.keys.iter().all(|key| key.name.as_deref() == Some("The desk")));
    let sums = |runs, failed, calls, tokens: [u64; 3], cost| StatsRow {
        runs,
        failed,
        calls,
        input_tokens: tokens[0],
        output_tokens: tokens[1],
        cached_tokens: tokens[2],
        cost,
        ms: 30 * calls,
        ..StatsRow::default()
    };
    let expected = [
        StatsRow { key: 0, day: "1970-01-02".into(), ..sums(2, 0, 2, [110, 4, 2], Some(0.75)) },
        // Two calls of 1970-01-02 have a price, this one has none: that is not a cost of 0.
        StatsRow { key: 0, day: "1970-01-03".into(), unpriced_calls: 1, ..sums(1, 0, 1, [1, 2, 1], None) },
        StatsRow { key: 1, day: "1970-01-03".into(), ..sums(1, 1, 1, [7, 2, 1], Some(0.25)) },
    ];
    assert_eq!(agents.rows, expected);

    let models = stats(store, StatsBy::Model).await;
    assert_eq!(models.keys.iter().map(|key| &*key.key).collect::<Vec<_>>(), ["large", "small"]);
    assert_eq!(
        models.rows.iter().map(|row| (row.key, row.runs)).collect::<Vec<_>>(),
        [(0, 2), (0, 1), (1, 1)]
    );

    let tools = stats(store, StatsBy::Tool).await;
    let call = |day: &str, calls| StatsRow { calls, failed: calls / 2, ms: 20 * calls, ..row(day, 0) };
    assert_eq!(tools.rows, [call("1970-01-02", 4), call("1970-01-03", 4)]);
    assert_eq!((tools.keys.len(), tools.keys[0].key.as_str()), (1, "mail"));
}

/// The sums are written with the last lines of a run. Until then nothing is counted, however often it stops.
async fn an_interrupted_run_is_counted_once(store: &dyn CountingStore) {
    let mut journal = start_run(store, "run").await;
    journal.append(waiting_batch()).await.unwrap();
    drop(journal);
    for line in ["first", "second"] {
        let mut journal = store.reopen(&store.load(&id("run")).await.unwrap().unwrap());
        journal.append(synced_batch(&[line])).await.unwrap();
        // The last batch is not stored, as if the process had ended before.
        drop(journal.append(ended(DAY, Ending::Completed, used("m", 9, None))));
        assert_eq!(stats(store, StatsBy::Agent).await.rows, []);
    }
    let mut journal = store.reopen(&store.load(&id("run")).await.unwrap().unwrap());
    let last = || ended(DAY, Ending::Completed, used("m", 9, None));
    journal.append(last()).await.unwrap();
    journal.append(last()).await.unwrap_err();
    let rows = stats(store, StatsBy::Agent).await.rows;
    assert_eq!(rows.iter().map(|row| (row.runs, row.input_tokens)).collect::<Vec<_>>(), [(1, 9)]);
}

async fn sums_name_the_largest_keys(store: &dyn CountingStore) {
    for index in 0..25_u32 {
        let model = format!("m{index:02}");
        // The order by cost, then by tokens: the first models cost nothing.
        let cost = (index >= 10).then(|| f64::from(index));
        let last = ended(DAY, Ending::Completed, used(&model, 100 - u64::from(index), cost));
        add(store, new_run(&model), last).await;
    }
    let models = stats(store, StatsBy::Model).await;
    let keys: Vec<&str> = models.keys.iter().map(|key| &*key.key).collect();
    let expected: Vec<String> =
        (10..25).rev().chain(0..5).map(|index| format!("m{index:02}")).chain([String::new()]).collect();
    assert_eq!(keys, expected);
    let other = models.rows.last().unwrap();
    assert_eq!((models.rows.len(), other.key, other.runs, other.cost), (21, 20, 5, None));
    assert_eq!(other.input_tokens, (91..=95).sum::<u64>());
}

async fn failures_are_counted_by_code(store: &dyn CountingStore) {
    let (timeout, cancelled) = (RunErrorCode::Timeout, RunErrorCode::Cancelled);
    for (run, at, code) in
        [("a", DAY, timeout), ("b", DAY, timeout), ("c", 3 * DAY, cancelled), ("d", 4 * DAY, timeout)]
    {
        let new = NewRun { started_at: at - 10, ..new_run(run) };
        add(store, new, failed(at, code)).await;
    }
    add(store, new_run("fine"), last_batch(DAY)).await;
    let codes = stats(store, StatsBy::Code).await;
    assert_eq!(codes.keys.iter().map(|key| &*key.key).collect::<Vec<_>>(), ["TIMEOUT", "CANCELLED"]);
    let failures =
        |day: &str, key, failed| StatsRow { runs: failed, failed, ms: 10 * failed, ..row(day, key) };
    assert_eq!(codes.rows, [failures("1970-01-02", 0, 2), failures("1970-01-04", 1, 1)]);
    assert_eq!(codes.searched_to, None);
}
