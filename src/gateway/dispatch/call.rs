//! One call of a tool: checked, judged, and answered here or given to a worker.

use std::sync::Arc;
use std::time::Instant;

use super::Dispatch;
use super::resolve::Waiting;
use crate::action::{Action, Refused};
use crate::audit::event::Configuration;
use crate::authorize::{Authorized, Verdict, judge};
use crate::clock;
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::execute::{Bounds, Job};
use crate::gateway::inflight::{Progress, Running};
use crate::gateway::journal::Came;
use crate::gateway::resolve::Resolved;
use crate::gateway::show::{self, Room};
use crate::gateway::tools;
use crate::gateway::workers::{Purpose, Task};
use crate::limits::Limits;
use crate::mcp::answer::{self, Code, Line, ToolResult};
use crate::mcp::call::ToolCall;
use crate::mcp::catalog::Arguments;
use crate::mcp::revision::Revision;
use crate::name::{CallId, Name};
use crate::policy::Policy;
use crate::policy::decide::{Decided, Denied};
use crate::state::{Reason, State};
use crate::wire::rpc::Id;

/// The request that a call answers.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) id: Id,
    pub(super) revision: Revision,
    pub(super) call: CallId,
    pub(super) progress_token: Option<Id>,
    pub(super) since: Instant,
    /// When it came, in milliseconds since 1970.
    pub(super) received_ms: u64,
    /// The tool's name.
    pub(super) tool: String,
    /// The host that it names.
    pub(super) target: Option<Name>,
    /// What it asks for, in short, for the record.
    pub(super) about: Option<String>,
}

impl Asking {
    /// The call as the record tells of it where it is refused.
    fn came<'a>(&'a self, decided: Option<&'a Decided>) -> Came<'a> {
        let Self { call, tool, target, about, received_ms, .. } = self;
        let (call, received_ms) = (*call, *received_ms);
        let (target, about) = (target.as_ref(), about.as_deref());
        Came { call, tool, target, about, received_ms, decided }
    }
}

impl Dispatch {
    /// The answer to a call, or `None` where a worker will give it.
    pub(super) fn call(
        &mut self,
        id: &Id,
        revision: Revision,
        asked: ToolCall<'_>,
    ) -> Option<Line> {
        let ToolCall { name, arguments, progress_token } = asked;
        self.put_session_on_record();
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            self.counters.rejected += 1;
            self.journal.reject("unknown_tool", None);
            let message = "There is no tool of this name; tools/list names those there are.";
            return Some(answer::error(Some(id), false, Code::InvalidParams, message));
        };
        let (id, call, since) = (id.clone(), self.names.next(), Instant::now());
        let (received_ms, tool_name) = (clock::now_ms(), name.to_string());
        let mut asking = Asking {
            id,
            revision,
            call,
            progress_token,
            since,
            received_ms,
            tool: tool_name,
            target: None,
            about: None,
        };
        log::debug!("{call}: asks for {name}");
        let arguments = match tool.input.check(arguments) {
            Ok(arguments) => arguments,
            Err(faults) => {
                let reason = Some(Reason::Arguments);
                self.journal.refuse(&asking.came(None), State::Rejected, reason);
                let result = show::wrong_arguments(call, &faults);
                return Some(self.conclude(&asking, State::Rejected, &result));
            }
        };
        if name == tools::RESULT_READ {
            let (result, state) = self.read_kept(&asking, &arguments);
            if state == State::Rejected {
                self.journal.refuse(&asking.came(None), state, Some(Reason::UnknownCall));
            }
            return Some(self.conclude(&asking, state, &result));
        }
        asking.target = tools::host(&name, &arguments);
        let begun = tools::action(&name, &arguments).map_err(Refusal::from).and_then(|action| {
            asking.about = about(&action);
            self.act(&asking, action, Vec::new())
        });
        begun.err().map(|refusal| self.refuse(&asking, refusal))
    }

    /// The answer to a call that ends without a worker.
    pub(super) fn refuse(&mut self, asking: &Asking, refusal: Refusal) -> Line {
        let Refusal { state, reason, message, decided } = refusal;
        self.journal.refuse(&asking.came(decided.as_ref()), state, reason);
        let result = show::refusal(asking.call, state, reason, message.as_deref());
        self.conclude(asking, state, &result)
    }

    fn conclude(&mut self, asking: &Asking, state: State, result: &ToolResult) -> Line {
        match state {
            State::Rejected => self.counters.rejected += 1,
            State::Denied => self.counters.denied += 1,
            _ => {}
        }
        log::debug!("{}: {}", asking.call, state.as_str());
        answer::tool_result(&asking.id, asking.revision, result)
    }

    /// Acts by the configuration that stands now.
    pub(super) fn act(
        &mut self,
        asking: &Asking,
        action: Action,
        resolved: Vec<Resolved>,
    ) -> Result<(), Refusal> {
        let current = self.config.current().map(Arc::clone);
        let current = current.map_err(|fault| (fault.word(), fault.count() as u64));
        let (fault, faulty) = current.as_ref().err().map_or((None, 0), |it| (Some(it.0), it.1));
        let digest = self.config.digest().map(String::from);
        self.journal.configuration(Configuration { digest, fault, faulty });
        let Ok(policy) = current else {
            let message =
                "The operator's configuration is faulty; nothing acts until it is mended.";
            return Err(Refusal::failed(Reason::ConfigFaulty, message));
        };
        self.journal.keep_as(&policy);
        match action {
            Action::Http(_) | Action::Ssh(_) => self.judge(asking, action, resolved, &policy),
            Action::Helper(action) => self.act_helper(asking, action, resolved, &policy),
        }
    }

    /// Judges an action and gives it to a worker.
    pub(super) fn judge(
        &mut self,
        asking: &Asking,
        action: Action,
        resolved: Vec<Resolved>,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        match judge(policy, action) {
            Verdict::Denied(denied) => Err(denied.into()),
            Verdict::Ask(pending) => {
                Err(Refusal::no_approver().decided(pending.permitted().decided()))
            }
            Verdict::Allowed(authorized) => {
                self.dispatch(asking, asking.call, authorized, For::Answer(resolved), policy)
            }
        }
    }

    /// Gives an action to a worker: for its answer, or for a call that waits for what it yields.
    pub(super) fn dispatch(
        &mut self,
        asking: &Asking,
        call: CallId,
        authorized: Authorized,
        wanted_for: For,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        let decided = authorized.permitted().decided();
        let busy = || {
            let message = "Too many calls run already; try again later.";
            Refusal::failed(Reason::Busy, message).decided(decided.clone())
        };
        let limits: &Limits = policy.limits();
        if self.look_whether_revoked() {
            return Err(Refusal::revoked().decided(decided));
        }
        if self.calls.len() >= limits.calls_in_flight() {
            return Err(busy());
        }
        let room = Room::new(limits, authorized.permitted().max_bytes());
        let (purpose, waiting) = match wanted_for {
            For::Answer(resolved) => {
                (Purpose::Answer { revision: asking.revision, room, resolved }, None)
            }
            For::Call(waiting) => (Purpose::Resolve, Some(waiting)),
        };
        let may_take = authorized.permitted().timeout().unwrap_or(limits.timeout());
        let cut = Cut::new().map_err(|_| busy())?;
        let deadline = Deadline::after(may_take);
        let task = Task {
            job: Job { call, action: authorized, deadline, bounds: Bounds::of(policy) },
            cut: cut.clone(),
            id: asking.id.clone(),
            purpose,
            received_ms: asking.received_ms,
            calls_per_minute: limits.calls_per_minute(),
        };
        self.workers.run(task, limits.workers()).map_err(|_| busy())?;
        let Asking { id, revision, progress_token, since, .. } = asking;
        let progress =
            progress_token.clone().map(|token| Progress::new(token, *revision, *since, may_take));
        let running = Running { cut, withdrawn: false, progress, waiting };
        self.calls.insert(id.clone(), running);
        self.counters.actions += 1;
        Ok(())
    }

    fn read_kept(&mut self, asking: &Asking, arguments: &Arguments<'_>) -> (ToolResult, State) {
        let asked = arguments.text("call_id").and_then(|text| CallId::parse(&text));
        let offset = arguments.integer("offset").unwrap_or(0);
        let length = arguments.integer("length");
        let found = asked.and_then(|call| Some((call, self.kept.read(call)?)));
        match found {
            Some((call, body)) => {
                let length = length.and_then(|length| usize::try_from(length).ok());
                let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                (show::kept_page(call, body, offset, length), State::Completed)
            }
            None => {
                let message = "This call is not known here, or its result is no longer kept.";
                let state = State::Rejected;
                (show::refusal(asking.call, state, Some(Reason::UnknownCall), Some(message)), state)
            }
        }
    }
}

/// What the result of an action is wanted for.
pub(super) enum For {
    /// The agent's call itself, with what was resolved for it.
    Answer(Vec<Resolved>),
    /// A call that waits for it.
    Call(Box<Waiting>),
}

/// What an action is, in short; a helper's name says it already.
fn about(action: &Action) -> Option<String> {
    match action {
        Action::Http(action) => Some(format!("{} {}", action.method.as_str(), action.url.uri)),
        Action::Helper(_) => None,
        Action::Ssh(action) => Some(action.about()),
    }
}

/// Why a call ends without a worker.
pub(super) struct Refusal {
    pub(super) state: State,
    pub(super) reason: Option<Reason>,
    pub(super) message: Option<String>,
    /// The target and the rule that decided, for the record.
    pub(super) decided: Option<Decided>,
}

impl Refusal {
    /// Says where it was decided.
    fn decided(self, decided: Option<Decided>) -> Self {
        Self { decided, ..self }
    }

    /// Withdrawn, or come too late, before anything began.
    pub(super) fn cancelled() -> Self {
        let state = State::CancelledBeforeDispatch;
        Self { state, reason: None, message: None, decided: None }
    }

    pub(super) fn failed(reason: Reason, message: &str) -> Self {
        let state = State::FailedBeforeDispatch;
        Self { state, reason: Some(reason), message: Some(message.into()), decided: None }
    }

    /// Says first what had gone well.
    pub(super) fn after(mut self, what: &str) -> Self {
        self.message = self.message.map(|message| format!("{what}. {message}"));
        self
    }

    /// The operator, a person, said no to all of the session.
    fn revoked() -> Self {
        let message = "The operator revoked this session: nothing is done in it any more.";
        let reason = Some(Reason::Revoked);
        Self { state: State::Denied, reason, message: Some(message.into()), decided: None }
    }

    pub(super) fn no_approver() -> Self {
        let message = "A rule asks for a person's approval, and nobody can be asked here.";
        let reason = Some(Reason::NoApprover);
        Self { state: State::Denied, reason, message: Some(message.into()), decided: None }
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let state = denied.state();
        let Denied { reason, message, decided } = denied;
        Self { state, reason: Some(reason), message: Some(message), decided }
    }
}

impl From<Refused> for Refusal {
    fn from(Refused { reason, message }: Refused) -> Self {
        let state = State::Rejected;
        Self { state, reason: Some(reason), message: Some(message), decided: None }
    }
}
