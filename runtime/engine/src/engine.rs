//! The engine: one task that moves messages and drives runs until it is told to stop.
//!
//! Owns the runs that are at work, and who may ask what of them. A run that waits for a person, or whose
//! process stopped, is not in memory at all: it is brought back from the store when something is to be done.

use crate::build::BuiltFlow;
use crate::drive::{Control, Exit, ModelResponse};
use crate::open::{Beginning, Reins, Return, Wish, begin, bring_back};
use crate::plan_build::PastAgents;
use crate::report::{EngineLimits, Ports, RunEnd, RunReport, Start};
use crate::slots::Slots;
use crate::trail::{Chain, Trail};
use crate::walk::Delivery;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use redflow_contract::code::StoreCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, NodeId, NodeSummary, RunId};
use redflow_contract::run::{RunRequest, RunStatus, RunSummary};
use redflow_ports::{BoxFuture, PendingRequest, StoreError, failpoint};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Messages for port 4 that may wait for the engine before a run waits for it.
const WAITING_RESPONSES: usize = 32;

/// What may be asked of the engine before an asker waits.
const WAITING_COMMANDS: usize = 256;

/// Deliveries in a row before runs get their turn.
const DELIVERIES_IN_A_ROW: usize = 64;

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
        let (responses, responded) = mpsc::channel(WAITING_RESPONSES);
        let engine = Loop {
            ports: Arc::new(ports),
            limits,
            slots: Slots::new(limits),
            flow: flow.map(Arc::new),
            past: Arc::default(),
            queue: VecDeque::new(),
            works: FuturesUnordered::new(),
            live: HashMap::new(),
            responses,
            stopping: None,
        };
        Self { commands, task: tokio::spawn(engine.run(asked, responded)) }
    }

    /// Starts the flow and follows every message until nothing moves any more. The reports come in the order
    /// in which the runs began. After a cancel the runs end and none begins.
    pub async fn run(&self, start: Start, cancel: &CancellationToken) -> Vec<RunReport> {
        let cancel = cancel.clone();
        self.ask(|reply| Command::Start { start, cancel, reply }).await.unwrap_or_default()
    }

    /// Brings these runs back and drives them; follows their results as well.
    pub async fn resume(&self, runs: Vec<RunId>, cancel: &CancellationToken) -> Vec<RunReport> {
        let cancel = cancel.clone();
        let reports = self.ask(|reply| Command::Resume { runs, cancel, reply }).await;
        reports.and_then(Result::ok).unwrap_or_default()
    }

    /// Brings back every run that is not over and nobody drives, and sends every result that has not
    /// arrived. A run whose agent the flow no longer has is cancelled.
    ///
    /// # Errors
    /// When the store cannot say which runs there are.
    pub async fn recover(&self, cancel: &CancellationToken) -> Result<Vec<RunReport>, StoreError> {
        let cancel = cancel.clone();
        self.ask(|reply| Command::Recover { cancel, reply }).await.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Ends a run, wherever it is. Returns once the run knows, not once it is over.
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
}

/// Something that was under way has ended.
enum Done {
    Run {
        run: RunId,
        place: usize,
        agent: Option<NodeSummary>,
        exit: Exit,
    },
    Requests(Vec<PendingRequest>),
    Answered(i64, Result<(), StoreError>),
    /// The runs of the store, for a recovery or a deploy.
    Unfinished(Result<Vec<RunSummary>, StoreError>, Purpose),
    DrainOver,
}

enum Purpose {
    Recover(CancellationToken, Reply<Recovered>),
    CancelRemoved,
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
    responses: mpsc::Sender<ModelResponse>,
    /// Who wants to know when everything has stopped.
    stopping: Option<Reply<()>>,
}

impl Loop {
    async fn run(mut self, mut asked: mpsc::Receiver<Command>, mut responded: mpsc::Receiver<ModelResponse>) {
        self.listen();
        loop {
            for _ in 0..DELIVERIES_IN_A_ROW {
                let Some(delivery) = self.queue.pop_front() else { break };
                self.deliver(delivery);
            }
            if self.live.is_empty() && self.queue.is_empty() && self.stopping.is_some() {
                break;
            }
            let busy = !self.queue.is_empty();
            tokio::select! {
                biased;
                Some(response) = responded.recv() => self.respond(response),
                // A run that has just stopped is no longer live to whoever asks next.
                Some(done) = self.works.next() => {
                    // What a run sent before it ended goes out before its result.
                    while let Ok(response) = responded.try_recv() {
                        self.respond(response);
                    }
                    self.done(done);
                }
                command = asked.recv(), if self.stopping.is_none() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                () = std::future::ready(()), if busy => {}
            }
        }
        if let Some(reply) = self.stopping.take() {
            let _ = reply.send(());
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Start { start, cancel, reply } => {
                let chain = Chain::new(self.limits, cancel, Some(reply));
                self.start(start, &Trail::from_outside(chain));
            }
            Command::Resume { runs, cancel, reply } => {
                let runs = runs.into_iter().map(|run| (run, NodeId::from(""), Wish::GoOn));
                self.bring_back_all(runs.collect(), &cancel, Some(reply));
            }
            Command::Recover { cancel, reply } => self.look_for_unfinished(Purpose::Recover(cancel, reply)),
            Command::Ask { run, request, reply } => self.request(run, request, reply),
            Command::Deploy { flow, reply } => {
                self.deploy(*flow);
                let _ = reply.send(());
            }
            Command::Shutdown { drain, reply } => {
                self.stopping = Some(reply);
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
            Done::Run { run, place, agent, exit } => {
                if let Some(live) = self.live.remove(&run) {
                    self.ended(run, place, agent, exit, live);
                }
            }
            Done::Requests(requests) => {
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
                self.ports.store.answer(id, answer.err().map(|error| error.code));
            }
            Done::Unfinished(found, purpose) => self.found_unfinished(found, purpose),
            Done::DrainOver => self.tell_all(&Control::SuspendNow),
        }
    }

    /// Waits for what other processes ask.
    fn listen(&self) {
        let ports = Arc::clone(&self.ports);
        self.works.push(Box::pin(async move { Done::Requests(ports.store.requests().await) }));
    }

    fn tell_all(&self, control: &Control) {
        for live in self.live.values() {
            live.control.send_replace(control.clone());
        }
    }

    fn request(&mut self, run: RunId, request: RunRequest, reply: Reply<Result<(), StoreError>>) {
        let wish = match (self.live.get(&run), request) {
            (Some(live), RunRequest::Cancel { reason }) => {
                live.control.send_replace(Control::Cancel(reason.into()));
                let _ = reply.send(Ok(()));
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
        let chain = Chain::new(self.limits, CancellationToken::new(), None);
        self.bring_back(run, NodeId::from(""), wish, &chain, Some(reply));
    }

    fn deploy(&mut self, flow: BuiltFlow) {
        // Messages that are under way know the places of the old flow.
        while let Some(delivery) = self.queue.pop_front() {
            self.deliver(delivery);
        }
        self.flow = Some(Arc::new(flow));
        self.past.forget();
        self.look_for_unfinished(Purpose::CancelRemoved);
    }

    fn look_for_unfinished(&self, purpose: Purpose) {
        let ports = Arc::clone(&self.ports);
        self.works.push(Box::pin(async move { Done::Unfinished(ports.store.unfinished().await, purpose) }));
    }

    fn found_unfinished(&mut self, found: Result<Vec<RunSummary>, StoreError>, purpose: Purpose) {
        let (cancel, reply) = match purpose {
            Purpose::Recover(cancel, reply) => (cancel, Some(reply)),
            Purpose::CancelRemoved => (CancellationToken::new(), None),
        };
        let found = match (found, reply) {
            (Ok(found), reply) => (found, reply),
            (Err(error), Some(reply)) => {
                let _ = reply.send(Err(error));
                return;
            }
            // The next recovery cancels them.
            (Err(_), None) => return,
        };
        let (found, reply) = found;
        let mut wishes = Vec::new();
        for RunSummary { run_id, agent, status, .. } in found {
            let removed = self.flow.as_ref().is_some_and(|flow| !flow.has_agent(&agent.node_id));
            let wish = match status {
                _ if removed && !status.is_over() => {
                    Wish::Cancel("its agent was removed from the flow".to_owned())
                }
                // It waits for a person, and needs nobody to drive it.
                RunStatus::Waiting => continue,
                _ if reply.is_some() => Wish::GoOn,
                _ => continue,
            };
            match (self.live.get(&run_id), wish) {
                (Some(live), Wish::Cancel(reason)) => {
                    live.control.send_replace(Control::Cancel(reason.into()));
                }
                (Some(_), _) => {}
                (None, wish) => wishes.push((run_id, agent.node_id, wish)),
            }
        }
        self.bring_back_all(wishes, &cancel, reply);
    }

    /// Brings runs back, each with a start of its own, and reports of all when the last has come to rest.
    fn bring_back_all(
        &mut self,
        runs: Vec<(RunId, NodeId, Wish)>,
        cancel: &CancellationToken,
        reply: Option<Reply<Recovered>>,
    ) {
        let mut answers = Vec::new();
        for (run, agent, wish) in runs {
            let (reports, answer) = oneshot::channel();
            answers.push(answer);
            let chain = Chain::new(self.limits, cancel.clone(), Some(reports));
            self.bring_back(run, agent, wish, &chain, None);
        }
        let Some(reply) = reply else { return };
        tokio::spawn(async move {
            let mut all = Vec::new();
            for answer in answers {
                all.extend(answer.await.unwrap_or_default());
            }
            let _ = reply.send(Ok(all));
        });
    }

    /// Drives a new run.
    pub(crate) fn begin_run(&mut self, run: RunId, place: usize, beginning: Beginning) {
        let (agent, chain) =
            (beginning.agent.compiled.spec().agent.node_id.clone(), Arc::clone(&beginning.trail.chain));
        let reins = self.reins(run.clone(), agent, chain, false);
        self.works.push(Box::pin(async move {
            let exit = begin(reins, beginning).await;
            Done::Run { run, place, agent: None, exit }
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
        let ticket = self.slots.ticket_in_any_case(&agent);
        let (flow, past) = (self.flow.clone(), Arc::clone(&self.past));
        let reins = self.reins(run.clone(), agent, Arc::clone(chain), true);
        self.works.push(Box::pin(async move {
            let (agent, exit) = bring_back(reins, Return { wish, flow, past, ticket, reply }).await;
            Done::Run { run, place, agent, exit }
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
            responses: self.responses.clone(),
        };
        self.live.insert(run, Live { agent, control, chain, again });
        reins
    }

    fn respond(&mut self, response: ModelResponse) {
        let ModelResponse { run, agent, effect, message } = response;
        if let Some(live) = self.live.get(&run) {
            let trail = Trail::from_run(Arc::clone(&live.chain), run, effect, false, live.again);
            self.send_model_response(&agent, message, trail);
        }
    }

    fn ended(&mut self, run: RunId, place: usize, agent: Option<NodeSummary>, exit: Exit, live: Live) {
        let agent = agent.unwrap_or_else(|| self.summary(&live.agent));
        let chain = live.chain;
        let end = match exit {
            Exit::Finished { effect, ending, message, again } => {
                failpoint("output.before_delivery");
                let trail = Trail::from_run(Arc::clone(&chain), run, effect, true, again || live.again);
                self.send_result(&agent, ending, &message, trail);
                RunEnd::Finished { ending, message }
            }
            Exit::Waiting(call) => RunEnd::Waiting(call),
            Exit::Suspended(why) => RunEnd::Suspended { why },
            Exit::NotBegun(error, incoming) => {
                return self.not_begun(run, place, agent, (&error, &incoming), &chain);
            }
            Exit::Repeated => return,
        };
        chain.end(place, agent, end);
    }
}
