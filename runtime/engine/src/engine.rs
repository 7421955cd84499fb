//! The engine: one task that moves messages and drives runs until it is told to stop.
//!
//! Owns the runs that are at work, and who may ask what of them. A run that waits for a person, or whose
//! process stopped, is not in memory at all: it is brought back from the store when something is to be done.

mod leaving;
mod starting;
mod timing;
mod unfinished;

use crate::build::BuiltFlow;
use crate::drive::{Control, Exit, Outgoing};
use crate::forget::Forgotten;
use crate::host::Taken;
use crate::open::{Beginning, Earlier, REMOVED, Reins, Return, Wish, begin, bring_back};
use crate::plan_build::PastAgents;
use crate::report::{EngineLimits, Ports, RunReport, Start};
use crate::schedule::Timers;
use crate::slots::Slots;
use crate::start::{StartError, StartOrder, StartOutcome};
use crate::tool_chain::OpenCalls;
use crate::trail::{Beginnings, Chain, Sending, Trail};
use crate::walk::Delivery;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use redflow_contract::code::StoreCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, NodeId, NodeSummary, RunId};
use redflow_contract::run::{RunRequest, RunSummary};
use redflow_ports::{BoxFuture, PendingRequest, StoreError};
use starting::Asked;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use unfinished::Purpose;

/// Messages for ports 1 and 4 that may wait for the engine before a run waits for it.
const WAITING_OUTGOING: usize = 32;

/// What may be asked of the engine before an asker waits.
const WAITING_COMMANDS: usize = 256;

/// Deliveries in a row before runs get their turn.
const DELIVERIES_IN_A_ROW: usize = 64;

/// The time they may take together.
const TIME_IN_A_ROW: Duration = Duration::from_millis(5);

/// Drives the runs of one flow. Whoever drops it drops its runs where they are: they are as their journals
/// have them, and go on when they are brought back.
pub struct Engine {
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

type Reply<T> = oneshot::Sender<T>;

type Recovered = Result<Vec<RunReport>, StoreError>;

enum Command {
    Start { start: Start, cancel: CancellationToken, reply: Reply<Vec<RunReport>> },
    Order(Box<Asked>),
    BeginSchedules { reply: Reply<()> },
    Resume { runs: Vec<RunId>, cancel: CancellationToken, reply: Reply<Recovered> },
    Recover { cancel: CancellationToken, reply: Reply<Recovered> },
    Ask { run: RunId, request: RunRequest, reply: Reply<Result<(), StoreError>> },
    Deploy { flow: Box<BuiltFlow>, reply: Reply<()> },
    Shutdown { drain: Duration, reply: Reply<()> },
}

impl Engine {
    /// An engine for a flow, at work as a task of the current runtime. Without a flow it only brings back
    /// runs; their results then go nowhere but into the reports.
    #[must_use]
    pub fn new(flow: Option<BuiltFlow>, ports: Ports, limits: EngineLimits) -> Self {
        let (commands, asked) = mpsc::channel(WAITING_COMMANDS);
        let (outgoing, left) = mpsc::channel(WAITING_OUTGOING);
        let engine = Loop {
            ports: Arc::new(ports),
            limits,
            slots: Slots::new(limits),
            flow: flow.map(Arc::new),
            past: Arc::default(),
            queue: VecDeque::new(),
            works: FuturesUnordered::new(),
            live: HashMap::new(),
            sending: Arc::default(),
            outgoing,
            calls: OpenCalls::default(),
            timers: Timers::default(),
            owed: 0,
            stopping: None,
        };
        Self { commands, task: tokio::spawn(engine.run(asked, left)) }
    }

    /// Starts the flow and follows every message until nothing moves any more. The reports come in the order
    /// in which the runs began. After a cancel the runs end and none begins.
    pub async fn run(&self, start: Start, cancel: &CancellationToken) -> Vec<RunReport> {
        let cancel = cancel.clone();
        self.ask(|reply| Command::Start { start, cancel, reply }).await.unwrap_or_default()
    }

    /// Starts a node of the flow. Returns when every run that it sets off before any of them has a result is
    /// kept: whoever is told of a run can rely on it. A node that reaches no agent begins none.
    ///
    /// # Errors
    /// When nothing was started, and why.
    pub async fn start(
        &self,
        order: StartOrder,
        cancel: &CancellationToken,
    ) -> Result<StartOutcome, StartError> {
        let (reports, rest) = oneshot::channel();
        let cancel = cancel.clone();
        let begun = self.ask(|reply| Command::Order(Box::new(Asked { order, cancel, reports, reply }))).await;
        let (runs, refused) = begun.unwrap_or(Err(StartError::Stopping))?;
        Ok(StartOutcome { runs, refused, rest })
    }

    /// From now on inject nodes fire by themselves, as their properties say; those of flows that are deployed
    /// later too. What was missed before is not made up.
    pub async fn begin_schedules(&self) {
        self.ask(|reply| Command::BeginSchedules { reply }).await;
    }

    /// Brings these runs back and drives them; follows their results as well.
    pub async fn resume(&self, runs: Vec<RunId>, cancel: &CancellationToken) -> Vec<RunReport> {
        let cancel = cancel.clone();
        let reports = self.ask(|reply| Command::Resume { runs, cancel, reply }).await;
        reports.and_then(Result::ok).unwrap_or_default()
    }

    /// Brings back every run of this flow that is not over and nobody drives, and sends every result that has not
    /// arrived. A run whose agent the flow no longer has is cancelled. Runs of other files are left alone.
    ///
    /// # Errors
    /// When the store cannot say which runs there are.
    pub async fn recover(&self, cancel: &CancellationToken) -> Result<Vec<RunReport>, StoreError> {
        let cancel = cancel.clone();
        self.ask(|reply| Command::Recover { cancel, reply }).await.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Ends a run, wherever it is. Returns once that is kept.
    ///
    /// # Errors
    /// When there is no such run, or it is over, or that cannot be kept.
    pub async fn cancel(&self, run: RunId, reason: String) -> Result<(), StoreError> {
        let request = RunRequest::Cancel { reason };
        self.ask(|reply| Command::Ask { run, request, reply }).await.unwrap_or_else(|| Err(gone()))
    }

    /// Says what came of the call a run waits for; the run goes on.
    ///
    /// # Errors
    /// When there is no such run, or it does not wait for that call, or the result is too large, or that
    /// cannot be kept.
    pub async fn resolve(&self, run: RunId, call_id: CallId, result: ToolResult) -> Result<(), StoreError> {
        let request = RunRequest::Resolve { call_id, result };
        self.ask(|reply| Command::Ask { run, request, reply }).await.unwrap_or_else(|| Err(gone()))
    }

    /// Puts another flow in the place of the one that runs. Runs go on with what they were planned with;
    /// those whose agent is gone are cancelled.
    pub async fn deploy(&self, flow: BuiltFlow) {
        let flow = Box::new(flow);
        self.ask(|reply| Command::Deploy { flow, reply }).await;
    }

    /// Stops: runs finish the effect they are at, and after `drain` not even that. Returns when the last has
    /// stopped; nothing can be asked any more then.
    pub async fn shutdown(&self, drain: Duration) {
        self.ask(|reply| Command::Shutdown { drain, reply }).await;
    }

    /// Asks the task; none if it has stopped.
    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.ok()?;
        answer.await.ok()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn gone() -> StoreError {
    StoreError::new(StoreCode::RunBlocked, "the engine has stopped")
}

/// A run that is being driven, or waits for a place.
struct Live {
    agent: NodeId,
    control: watch::Sender<Control>,
    chain: Arc<Chain>,
    /// Whether it was brought back, so that what it sends may have been sent before.
    again: bool,
    /// Whether its agent is gone, so that there is nowhere to send its result to.
    is_orphan: bool,
    /// Who waits for it to be cancelled.
    cancelling: Vec<Reply<Result<(), StoreError>>>,
}

impl Live {
    fn cancel(&self, reason: &str) {
        self.control.send_replace(Control::Cancel(reason.into()));
    }

    /// Ends it, because its agent is gone.
    fn remove(&mut self) {
        self.is_orphan = true;
        self.cancel(REMOVED);
    }
}

/// Something that was under way has ended.
enum Done {
    Run {
        run: RunId,
        place: usize,
        agent: Option<NodeSummary>,
        exit: Exit,
        /// Who waits for it to be kept, if it has not been.
        started: Option<Arc<Beginnings>>,
    },
    /// Whether the key of a start was used before.
    LookedUp(Box<Asked>, Result<Option<Earlier>, StoreError>),
    Requests(Vec<PendingRequest>),
    Answered(i64, Result<(), StoreError>),
    Forgotten(Box<Forgotten>),
    /// The host has taken a message, or has not.
    Taken(Box<Taken>),
    /// The runs of the store, for a recovery or a deploy.
    Unfinished(Result<Vec<RunSummary>, StoreError>, Purpose),
    DrainOver,
}

/// The state of the task.
pub(crate) struct Loop {
    pub(crate) ports: Arc<Ports>,
    pub(crate) limits: EngineLimits,
    pub(crate) slots: Slots,
    pub(crate) flow: Option<Arc<BuiltFlow>>,
    past: Arc<PastAgents>,
    pub(crate) queue: VecDeque<Delivery>,
    works: FuturesUnordered<BoxFuture<'static, Done>>,
    live: HashMap<RunId, Live>,
    /// Runs whose result is on its way.
    sending: Sending,
    outgoing: mpsc::Sender<Outgoing>,
    /// Calls of tools that are flows.
    pub(crate) calls: OpenCalls,
    /// When inject nodes fire by themselves.
    timers: Timers,
    /// Questions to the store and requests of other processes that somebody still waits for.
    owed: usize,
    /// Who wants to know when everything has stopped.
    stopping: Option<Reply<()>>,
}

impl Loop {
    async fn run(mut self, mut asked: mpsc::Receiver<Command>, mut left: mpsc::Receiver<Outgoing>) {
        self.listen();
        loop {
            let began = std::time::Instant::now();
            for _ in 0..DELIVERIES_IN_A_ROW {
                let Some(delivery) = self.queue.pop_front() else { break };
                self.deliver(delivery);
                if began.elapsed() > TIME_IN_A_ROW {
                    break;
                }
            }
            let is_idle = self.live.is_empty() && self.queue.is_empty() && self.owed == 0;
            if is_idle && self.stopping.is_some() {
                break;
            }
            let busy = !self.queue.is_empty();
            tokio::select! {
                biased;
                Some(out) = left.recv() => self.leave(out),
                // A run that has just stopped is no longer live to whoever asks next.
                Some(done) = self.works.next() => {
                    // What a run sent before it ended goes out before its result.
                    while let Ok(out) = left.try_recv() {
                        self.leave(out);
                    }
                    self.done(done);
                }
                command = asked.recv(), if self.stopping.is_none() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                // Last: what is under way goes before what begins by itself.
                node = self.timers.due(), if self.timers.is_armed() => self.timer_due(&node),
                // Whoever else has something to do gets a turn: there may be one thread for all.
                () = tokio::task::yield_now(), if busy => {}
            }
        }
        if let Some(reply) = self.stopping.take() {
            let _ = reply.send(());
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Start { start, cancel, reply } => {
                let chain = Chain::new(&self.ports, self.limits, cancel, Some(reply));
                self.start(start, &Trail::from_outside(chain));
            }
            Command::Order(asked) => self.take_order(asked),
            Command::BeginSchedules { reply } => {
                self.begin_schedules();
                let _ = reply.send(());
            }
            Command::Resume { runs, cancel, reply } => {
                self.look_for_unfinished(Purpose::Resume(runs, cancel, reply));
            }
            Command::Recover { cancel, reply } => self.look_for_unfinished(Purpose::Recover(cancel, reply)),
            Command::Ask { run, request, reply } => self.request(run, request, reply),
            Command::Deploy { flow, reply } => {
                self.deploy(*flow);
                let _ = reply.send(());
            }
            Command::Shutdown { drain, reply } => {
                self.stopping = Some(reply);
                self.timers = Timers::default();
                self.tell_all(&Control::Suspend);
                self.works.push(Box::pin(async move {
                    tokio::time::sleep(drain).await;
                    Done::DrainOver
                }));
            }
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Run { run, place, agent, exit, started } => {
                if let Some(live) = self.live.remove(&run) {
                    if let (Some(started), Exit::Repeated(Some(earlier))) = (&started, &exit) {
                        started.kept(place, earlier.run.clone(), self.summary(&earlier.agent));
                    }
                    self.ended(run, place, agent, exit, live);
                }
                // Only now everything is known of it that whoever started it wants to know.
                drop(started);
            }
            Done::LookedUp(asked, found) => {
                self.owed -= 1;
                self.looked_up(*asked, found);
            }
            Done::Requests(requests) => {
                self.owed += requests.len();
                for PendingRequest { id, run, request } in requests {
                    let (reply, answer) = oneshot::channel();
                    self.request(run, request, reply);
                    self.works.push(Box::pin(async move {
                        Done::Answered(id, answer.await.unwrap_or_else(|_| Err(gone())))
                    }));
                }
                self.listen();
            }
            Done::Answered(id, answer) => {
                self.owed -= 1;
                self.ports.store.answer(id, answer.err().map(|error| error.code));
            }
            Done::Forgotten(forgotten) => {
                self.owed -= 1;
                self.forgotten(*forgotten);
            }
            Done::Taken(taken) => self.taken(*taken),
            Done::Unfinished(found, purpose) => {
                self.owed -= 1;
                self.found_unfinished(found, purpose);
            }
            Done::DrainOver => self.tell_all(&Control::SuspendNow),
        }
    }

    /// Waits for what other processes ask.
    fn listen(&self) {
        if !self.ports.listens {
            return;
        }
        let ports = Arc::clone(&self.ports);
        self.works.push(Box::pin(async move { Done::Requests(ports.store.requests().await) }));
    }

    fn tell_all(&self, control: &Control) {
        for live in self.live.values() {
            // A run that is to end does not go on later.
            live.control.send_if_modified(|current| {
                let changes = !matches!(current, Control::Cancel(_));
                if changes {
                    current.clone_from(control);
                }
                changes
            });
        }
    }

    fn request(&mut self, run: RunId, request: RunRequest, reply: Reply<Result<(), StoreError>>) {
        let wish = match (self.live.get_mut(&run), request) {
            (Some(live), RunRequest::Cancel { reason }) => {
                live.cancel(&reason);
                live.cancelling.push(reply);
                return;
            }
            (Some(_), RunRequest::Resolve { .. }) => {
                let error =
                    StoreError::new(StoreCode::RunNotWaiting, "the run is at work and waits for nothing");
                let _ = reply.send(Err(error));
                return;
            }
            (None, RunRequest::Cancel { reason }) => Wish::Cancel(reason),
            (None, RunRequest::Resolve { call_id, result }) => Wish::Resolve(call_id, result),
        };
        let chain = Chain::new(&self.ports, self.limits, CancellationToken::new(), None);
        self.bring_back(run, NodeId::from(""), wish, &chain, Some(reply));
    }

    /// Waits for the host, as long as there is something else to do.
    pub(crate) fn wait_for(&mut self, taken: BoxFuture<'static, Taken>) {
        self.works.push(Box::pin(async move { Done::Taken(Box::new(taken.await)) }));
    }

    /// Waits for a memory to forget.
    pub(crate) fn work_on(&mut self, work: BoxFuture<'static, Forgotten>) {
        self.owed += 1;
        self.works.push(Box::pin(async move { Done::Forgotten(Box::new(work.await)) }));
    }

    /// Drives a new run.
    pub(crate) fn begin_run(&mut self, run: RunId, place: usize, beginning: Beginning) {
        let (agent, chain) =
            (beginning.agent.compiled.spec().agent.node_id.clone(), Arc::clone(&beginning.trail.chain));
        let reins = self.reins(run.clone(), agent, chain, false);
        let started = beginning.trail.beginnings();
        self.works.push(Box::pin(async move {
            let (exit, started) = match begin(reins, beginning).await {
                Ok((mut driven, effects, ticket)) => {
                    if let Some(started) = started {
                        started.kept(place, run.clone(), driven.summary());
                    }
                    (driven.go_on(effects, ticket).await, None)
                }
                Err(exit) => (exit, started),
            };
            Done::Run { run, place, agent: None, exit, started }
        }));
    }

    fn bring_back(
        &mut self,
        run: RunId,
        agent: NodeId,
        wish: Wish,
        chain: &Arc<Chain>,
        reply: Option<Reply<Result<(), StoreError>>>,
    ) {
        if self.live.contains_key(&run) {
            return;
        }
        let place = chain.begin(run.clone());
        let (flow, past, slots) = (self.flow.clone(), Arc::clone(&self.past), self.slots.clone());
        let is_orphan = matches!(wish, Wish::Remove);
        let reins = self.reins(run.clone(), agent.clone(), Arc::clone(chain), true);
        if let Some(live) = self.live.get_mut(&run) {
            live.is_orphan = is_orphan;
        }
        self.works.push(Box::pin(async move {
            let (agent, exit) = bring_back(reins, Return { wish, agent, flow, past, slots, reply }).await;
            Done::Run { run, place, agent, exit, started: None }
        }));
    }

    fn reins(&mut self, run: RunId, agent: NodeId, chain: Arc<Chain>, again: bool) -> Reins {
        let first = if self.stopping.is_some() { Control::Suspend } else { Control::Go };
        let (control, told) = watch::channel(first);
        let reins = Reins {
            run: run.clone(),
            ports: Arc::clone(&self.ports),
            control: told,
            cancel: chain.cancel.clone(),
            outgoing: self.outgoing.clone(),
            onlooker: chain.onlooker.clone(),
        };
        let live = Live { agent, control, chain, again, is_orphan: false, cancelling: Vec::new() };
        self.live.insert(run, live);
        reins
    }
}
