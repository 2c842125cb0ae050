//! One call of a tool: checked, judged, and answered here or given to a worker.

use std::sync::Arc;

use super::Dispatch;
use crate::authorize::{Authorized, Verdict, judge};
use crate::clock::Deadline;
use crate::execute::cut::Cut;
use crate::execute::{Bounds, Job};
use crate::gateway::inflight::{Progress, Running};
use crate::gateway::show::{self, Room};
use crate::gateway::tools;
use crate::gateway::workers::Task;
use crate::limits::Limits;
use crate::mcp::answer::{self, Code, Line, ToolResult};
use crate::mcp::call::ToolCall;
use crate::mcp::catalog::Arguments;
use crate::mcp::revision::Revision;
use crate::name::CallId;
use crate::policy::Policy;
use crate::state::{Reason, State};
use crate::wire::rpc::Id;

/// The request that a call answers.
struct Asking<'a> {
    id: &'a Id,
    revision: Revision,
    call: CallId,
    progress_token: Option<Id>,
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
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            self.counters.rejected += 1;
            let message = "There is no tool of this name; tools/list names those there are.";
            return Some(answer::error(Some(id), false, Code::InvalidParams, message));
        };
        let name = tool.name.clone();
        let asking = Asking { id, revision, call: self.names.next(), progress_token };
        let ended = match tool.input.check(arguments) {
            Err(faults) => Some((show::wrong_arguments(asking.call, &faults), State::Rejected)),
            Ok(arguments) if name == tools::RESULT_READ => {
                Some(self.read_kept(&asking, &arguments))
            }
            Ok(arguments) => self.act(&asking, &arguments).err().map(|refusal| {
                let Refusal { state, reason, message } = refusal;
                (show::refusal(asking.call, state, reason, &message), state)
            }),
        };
        let (result, state) = ended?;
        self.count(state);
        log::debug!("{} {name}: {}", asking.call, state.as_str());
        Some(answer::tool_result(id, revision, &result))
    }

    fn count(&mut self, state: State) {
        match state {
            State::Rejected => self.counters.rejected += 1,
            State::Denied => self.counters.denied += 1,
            _ => {}
        }
    }

    /// Judges an action and gives it to a worker.
    fn act(&mut self, asking: &Asking<'_>, arguments: &Arguments<'_>) -> Result<(), Refusal> {
        let action = tools::action(arguments)
            .map_err(|refused| Refusal::new(State::Rejected, refused.reason, refused.message))?;
        let policy = match self.config.current() {
            Ok(policy) => Arc::clone(policy),
            Err(_) => {
                let message =
                    "The operator's configuration is faulty; nothing acts until it is mended.";
                return Err(Refusal::failed(Reason::ConfigFaulty, message));
            }
        };
        match judge(&policy, action) {
            Verdict::Denied(denied) => {
                Err(Refusal::new(State::Denied, denied.reason, denied.message))
            }
            Verdict::Ask(_) => {
                let message = "A rule asks for a person's approval, and nobody can be asked here.";
                Err(Refusal::new(State::Denied, Reason::NoApprover, message.into()))
            }
            Verdict::Allowed(authorized) => self.dispatch(asking, authorized, &policy),
        }
    }

    fn dispatch(
        &mut self,
        asking: &Asking<'_>,
        authorized: Authorized,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        let busy = || Refusal::failed(Reason::Busy, "Too many calls run already; try again later.");
        let limits: &Limits = policy.limits();
        if self.calls.len() >= limits.calls_in_flight() {
            return Err(busy());
        }
        let Asking { id, revision, call, progress_token } = asking;
        let may_take = authorized.permitted().timeout().unwrap_or(limits.timeout());
        let room = Room::new(limits, authorized.permitted().max_bytes());
        let cut = Cut::new().map_err(|_| busy())?;
        let task = Task {
            job: Job {
                call: *call,
                action: authorized,
                deadline: Deadline::after(may_take),
                bounds: Bounds::of(policy),
            },
            cut: cut.clone(),
            id: (*id).clone(),
            revision: *revision,
            room,
            calls_per_minute: limits.calls_per_minute(),
        };
        self.workers.run(task, limits.workers()).map_err(|_| busy())?;
        let progress =
            progress_token.clone().map(|token| Progress::new(token, *revision, may_take));
        let running = Running { call: *call, cut, withdrawn: false, progress };
        self.calls.insert((*id).clone(), running);
        self.counters.actions += 1;
        Ok(())
    }

    fn read_kept(&mut self, asking: &Asking<'_>, arguments: &Arguments<'_>) -> (ToolResult, State) {
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
                (show::refusal(asking.call, state, Reason::UnknownCall, message), state)
            }
        }
    }
}

/// Why a call ends without a worker.
struct Refusal {
    state: State,
    reason: Reason,
    message: String,
}

impl Refusal {
    fn new(state: State, reason: Reason, message: String) -> Self {
        Self { state, reason, message }
    }

    fn failed(reason: Reason, message: &str) -> Self {
        Self::new(State::FailedBeforeDispatch, reason, message.into())
    }
}
