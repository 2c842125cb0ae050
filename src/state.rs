//! How a call ends, and why: the words that results and the record share.

/// The one terminal state of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The frame, the envelope, the method or the arguments were wrong.
    Rejected,
    /// The policy, or the person, said no.
    Denied,
    /// Nobody answered before the deadline.
    Expired,
    /// Withdrawn, or the client went away, before anything began.
    CancelledBeforeDispatch,
    /// Nothing was sent.
    FailedBeforeDispatch,
    /// The end was observed.
    Completed,
    /// Withdrawn after it began; what happened elsewhere is not known.
    CancelledAfterDispatch,
    /// It began, and its end was not observed.
    OutcomeUnknown,
}

impl State {
    /// Every state, in the order of a call's life.
    pub const ALL: [Self; 8] = [
        Self::Rejected,
        Self::Denied,
        Self::Expired,
        Self::CancelledBeforeDispatch,
        Self::FailedBeforeDispatch,
        Self::Completed,
        Self::CancelledAfterDispatch,
        Self::OutcomeUnknown,
    ];

    /// The state's word in results and in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::CancelledBeforeDispatch => "cancelled_before_dispatch",
            Self::FailedBeforeDispatch => "failed_before_dispatch",
            Self::Completed => "completed",
            Self::CancelledAfterDispatch => "cancelled_after_dispatch",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}

/// What a completed call observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The far side reported success.
    Success,
    /// The far side reported a failure: an HTTP status of 400 or more, a command's exit status other than 0 or signal.
    RemoteFailure,
    /// A helper reported a failure: an exit status other than 0, a signal, or a result that is not what it should be.
    LocalFailure,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Success, Self::RemoteFailure, Self::LocalFailure];

    /// The outcome's word in results and in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RemoteFailure => "remote_failure",
            Self::LocalFailure => "local_failure",
        }
    }
}

/// Why a call did not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No rule allows it, or a rule denies it.
    Policy,
    /// A person said no.
    Person,
    /// A rule asks for a person, and none can be asked.
    NoApprover,
    /// Every worker is taken.
    Busy,
    /// More calls in a minute than `limits.calls_per_minute`.
    Rate,
    /// What is about to happen could not be written down, so it does not happen.
    RecordUnavailable,
    /// The question was withdrawn, or the answer belongs to another one.
    CardVoid,
    /// The configuration has faults; nothing acts while it does.
    ConfigFaulty,
    /// The URL lies below no target.
    NoTarget,
    /// The URL can be read in more than one way.
    AmbiguousUrl,
    /// The command is one for a shell, which could mean anything, and no rule allows those.
    AmbiguousCommand,
    /// A header that may not be sent.
    Header,
    /// The arguments do not fit the tool's schema.
    Arguments,
    /// The credential could not be read, or may not be used like this.
    Credential,
    /// The host's key is not known, another than the known one, or revoked.
    HostKey,
    /// No address, no connection, or a connection lost.
    Network,
    /// The deadline passed.
    Deadline,
    /// The operator revoked the session.
    Revoked,
    /// `--record`: the action was written down and not run.
    DryRun,
    /// The call that is asked about is not known, or its result is no longer kept.
    UnknownCall,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 20] = [
        Self::Policy,
        Self::Person,
        Self::NoApprover,
        Self::Busy,
        Self::Rate,
        Self::RecordUnavailable,
        Self::CardVoid,
        Self::ConfigFaulty,
        Self::NoTarget,
        Self::AmbiguousUrl,
        Self::AmbiguousCommand,
        Self::Header,
        Self::Arguments,
        Self::Credential,
        Self::HostKey,
        Self::Network,
        Self::Deadline,
        Self::Revoked,
        Self::DryRun,
        Self::UnknownCall,
    ];

    /// The reason's code in results and in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Person => "person",
            Self::NoApprover => "no_approver",
            Self::Busy => "busy",
            Self::Rate => "rate",
            Self::RecordUnavailable => "record_unavailable",
            Self::CardVoid => "card_void",
            Self::ConfigFaulty => "config_faulty",
            Self::NoTarget => "no_target",
            Self::AmbiguousUrl => "ambiguous_url",
            Self::AmbiguousCommand => "ambiguous_command",
            Self::Header => "header",
            Self::Arguments => "arguments",
            Self::Credential => "credential",
            Self::HostKey => "host_key",
            Self::Network => "network",
            Self::Deadline => "deadline",
            Self::Revoked => "revoked",
            Self::DryRun => "dry_run",
            Self::UnknownCall => "unknown_call",
        }
    }
}

/// How the streams of a child came to their end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEnd {
    /// By themselves.
    EndOfFile,
    /// A descendant held one open after the exit, and was ended.
    ClosedByGrace,
    /// The child was killed.
    Killed,
    /// By themselves, after the call was cut.
    ReaderCompletedAfterCancel,
    /// By themselves, after the deadline.
    ReaderCompletedAfterDeadline,
    /// It could not be shown that everything ended.
    NotShownEnded,
    /// There was no child.
    NotStarted,
}

impl StreamEnd {
    /// Every way.
    pub const ALL: [Self; 7] = [
        Self::EndOfFile,
        Self::ClosedByGrace,
        Self::Killed,
        Self::ReaderCompletedAfterCancel,
        Self::ReaderCompletedAfterDeadline,
        Self::NotShownEnded,
        Self::NotStarted,
    ];

    /// The word in results and in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndOfFile => "end_of_file",
            Self::ClosedByGrace => "closed_by_grace",
            Self::Killed => "killed",
            Self::ReaderCompletedAfterCancel => "reader_completed_after_cancel",
            Self::ReaderCompletedAfterDeadline => "reader_completed_after_deadline",
            Self::NotShownEnded => "not_shown_ended",
            Self::NotStarted => "not_started",
        }
    }
}

/// What became of a command at a host that was to be stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteStop {
    /// It was seen to have ended.
    Ended,
    /// It was signalled, and not seen to have ended.
    NotShown,
    /// It was not signalled: it may still run.
    MayRun,
}

impl RemoteStop {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Ended, Self::NotShown, Self::MayRun];

    /// The word in results and in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::NotShown => "not_shown_ended",
            Self::MayRun => "may_still_run",
        }
    }
}

/// What is kept of a child's stderr.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Everything.
    All,
    /// The end.
    Tail,
    /// The beginning.
    Head,
    /// The beginning and the end.
    HeadAndTail,
}

impl Kept {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::All, Self::Tail, Self::Head, Self::HeadAndTail];

    /// The word in results and in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Tail => "tail",
            Self::Head => "head",
            Self::HeadAndTail => "head_and_tail",
        }
    }
}
