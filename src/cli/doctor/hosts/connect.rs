//! `doctor --connect`: logs in at hosts, and sees whether hostile words arrive there as they are.
//!
//! It is an action like any other, but that the operator asks for it: nothing is sent whose intent is not on record.
//!
//! Invariant: no host's key is stored by it, and what a shell made of a hostile word is taken away again.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::Told;
use super::remedy::remedy;
use crate::action::command::RemoteShell;
use crate::action::quote::Quote;
use crate::action::ssh::FileAccess;
use crate::audit::event::{Act, Counters, Ended, Event, Intent, SessionStarted};
use crate::audit::{Audit, Unavailable, ancestry, random};
use crate::cli::audit as record;
use crate::cli::doctor::Connect;
use crate::cli::doctor::finding::{Area, Findings};
use crate::cli::{Exit, print};
use crate::clock::Deadline;
use crate::clock::now_ms;
use crate::examination::{Arrival, Asked, Examination, Mark, Question};
use crate::execute::End;
use crate::execute::ssh::{Examined, Examiner, known_hosts_of};
use crate::hex::hex;
use crate::home::{Config, Home};
use crate::limits;
use crate::name::CallId;
use crate::policy::host::SshHost;

/// How it stands in the record; no tool's name has a blank.
const TOOL: &str = "doctor --connect";

/// Whether the host that is asked for is configured.
///
/// # Errors
/// It is not, and that was said.
pub(in crate::cli::doctor) fn is_there(
    config: &mut Config,
    connect: Option<&Connect>,
) -> Result<(), Exit> {
    let Some(Connect::One(name)) = connect else { return Ok(()) };
    let Ok(policy) = config.current() else { return Ok(()) };
    if policy.hosts().iter().any(|host| host.name().as_str() == name) {
        return Ok(());
    }
    let what = format!("doctor: no host of the configuration is called {}", Quote(name));
    Err(print::trouble(&what, "keyward doctor, which names them", Exit::Usage))
}

/// Goes to the hosts, one after the other, and tells of each as soon as it was seen.
///
/// # Errors
/// Nobody reads any more.
pub(in crate::cli::doctor) fn check(
    home: &Home,
    config: &mut Config,
    connect: &Connect,
    findings: &mut Findings,
    tell: &mut dyn FnMut(&mut Findings) -> Result<(), Exit>,
) -> Result<(), Exit> {
    let hosts: Vec<Arc<SshHost>> = match config.current() {
        Err(_) => {
            let what = "not connected to any: the configuration is not in force";
            findings.broken(Area::Hosts, what, "mend it first");
            return tell(findings);
        }
        Ok(policy) => {
            let is_meant = |host: &&Arc<SshHost>| match connect {
                Connect::All => true,
                Connect::One(name) => host.name().as_str() == name,
            };
            policy.hosts().iter().filter(is_meant).cloned().collect()
        }
    };
    let mut visits = match Visits::begin(home, config) {
        Ok(visits) => visits,
        Err(Refused::Record(fault)) => {
            let what = format!("not connected to any: {fault}");
            findings.broken(Area::Hosts, what, fault.remedy());
            return tell(findings);
        }
        Err(Refused::System(fault)) => {
            findings.broken(Area::Hosts, format!("not connected to any: {fault}"), "try again");
            return tell(findings);
        }
    };
    for host in &hosts {
        visits.visit(host, findings);
        tell(findings)?;
    }
    if let Some(fault) = visits.end() {
        let what = format!("how a visit to a host ended is not on record: {fault}");
        findings.broken(Area::Record, what, fault.remedy());
    }
    tell(findings)
}

/// Why nobody is visited.
enum Refused {
    Record(Unavailable),
    System(std::io::Error),
}

impl From<Unavailable> for Refused {
    fn from(fault: Unavailable) -> Self {
        Self::Record(fault)
    }
}

/// The visits of one start of the program: a session on record.
struct Visits {
    examiner: Examiner,
    known_hosts: PathBuf,
    audit: Audit,
    actions: u64,
    unrecorded: Option<Unavailable>,
}

impl Visits {
    fn begin(home: &Home, config: &mut Config) -> Result<Self, Refused> {
        // Where it cannot be made the record says so.
        DirBuilder::new().mode(0o700).create(home.run_folder()).ok();
        let audit = record::of(home, config);
        let key: [u8; 32] = random();
        let started = Event::SessionStarted(SessionStarted {
            client: Some(TOOL.into()),
            client_version: None,
            revision: None,
            ancestry: ancestry::ancestry(),
            fingerprint_key: hex(&key),
            dry_run: false,
        });
        audit.submit(&started)?.wait()?;
        let examiner = Examiner::new(home).map_err(Refused::System)?;
        let known_hosts = known_hosts_of(home);
        Ok(Self { examiner, known_hosts, audit, actions: 0, unrecorded: None })
    }

    /// Ends the session; the first end that could not be recorded.
    fn end(mut self) -> Option<Unavailable> {
        let counters = Counters { actions: self.actions, ..Counters::default() };
        self.audit.note(&Event::SessionEnded { counters, why: "done" });
        self.audit.end(limits::AUDIT_END_FOR);
        self.unrecorded.take()
    }

    fn visit(&mut self, host: &Arc<SshHost>, findings: &mut Findings) {
        let about = host.name().to_string();
        let told = &mut Told { about, findings };
        let visit = Visit {
            host,
            mark: Mark::new(random()),
            deadline: Deadline::after(limits::DOCTOR_HOST_FOR),
        };
        if let Err(fault) = self.whole(&visit, told) {
            told.broken(&format!("not connected: {fault}"), fault.remedy());
        }
    }

    /// The whole visit: what its rules have a use for.
    fn whole(&mut self, visit: &Visit<'_>, told: &mut Told<'_>) -> Result<(), Unavailable> {
        let host = visit.host;
        let has_files = FileAccess::ALL.into_iter().any(|access| host.has_files(access));
        if has_files && !host.has_commands() {
            return self.files(visit, told);
        }
        let is_reached = self.words(visit, told)?;
        if has_files && is_reached { self.files(visit, told) } else { Ok(()) }
    }

    /// Whether files are moved there.
    fn files(&mut self, visit: &Visit<'_>, told: &mut Told<'_>) -> Result<(), Unavailable> {
        let seen = self.ask(visit, Question::Files)?;
        if matches!(seen.end, End::Completed(_)) {
            told.fine(&format!("{}; moves files (SFTP), as its rules want", reached(visit, &seen)));
        } else {
            self.came_to_nothing(visit, &seen, told);
        }
        Ok(())
    }

    /// Whether words arrive. Whether the host was reached.
    fn words(&mut self, visit: &Visit<'_>, told: &mut Told<'_>) -> Result<bool, Unavailable> {
        let seen = self.ask(visit, Question::Words)?;
        if !matches!(seen.end, End::Completed(_)) {
            self.came_to_nothing(visit, &seen, told);
            return Ok(false);
        }
        let arrival = visit.mark.arrival(&seen.stdout);
        let reached = reached(visit, &seen);
        let is_whole = matches!(arrival, Arrival::Whole { .. });
        let asked = if is_whole { None } else { Some(self.ask(visit, Question::Shell)?) };
        if let Some(asked) = asked.as_ref().filter(|it| !matches!(it.end, End::Completed(_))) {
            self.came_to_nothing(visit, asked, told);
            return Ok(false);
        }
        let shell = asked.map(|asked| visit.mark.shell(&asked.stdout));
        if let Some(None) = shell {
            let came = String::from_utf8_lossy(&seen.stdout);
            let came = Quote(came.trim());
            let what = format!("{reached}, and no command is run as it is sent: {came}");
            told.broken(
                &what,
                "take the command= off its line in authorized_keys there, or the ForceCommand off the server's \
                 configuration; else give the user a login shell that runs commands",
            );
            return Ok(true);
        }
        let ran = match self.marker(visit, told)? {
            Marker::Absent if is_whole => {
                let shell = match visit.host.remote_shell() {
                    RemoteShell::Posix => "as its remote_shell says",
                    RemoteShell::Unknown => "so \"remote_shell\": \"posix\" would hold",
                };
                told.fine(&format!("{reached}; {arrival}, {shell}"));
                None
            }
            Marker::Unknown if is_whole => {
                let what = format!(
                    "{reached}; {arrival}, and whether a part of one was run too could not be seen"
                );
                told.broken(&what, format!("ls {}, there", visit.mark.path()));
                None
            }
            Marker::Absent => Some(""),
            Marker::Present => Some(", and a part of one was run as a command"),
            Marker::Unknown => Some(", and whether a part of one was run could not be seen"),
        };
        if let Some(ran) = ran {
            let name = shell.flatten();
            let name = name.map(|name| format!(" {}", Quote(&name))).unwrap_or_default();
            let reads = format!("the login shell{name} reads otherwise: {arrival}{ran}");
            match visit.host.remote_shell() {
                RemoteShell::Posix => {
                    let what = format!("{reached}; its remote_shell says posix, and {reads}");
                    told.broken(&what, "remove \"remote_shell\" from its entry");
                }
                RemoteShell::Unknown => told.fine(&format!(
                    "{reached}; \"remote_shell\": \"posix\" would not hold, {reads}"
                )),
            }
        }
        if let Arrival::Whole { beside_bytes: bytes @ 1.. } = arrival {
            told.note(
                &format!("its login shell prints {bytes} bytes by itself, which stand in what every command returns"),
                "have its start files print in interactive shells only",
            );
        }
        Ok(true)
    }

    /// Tells of a command whose end was not seen, or that was not sent.
    fn came_to_nothing(&self, visit: &Visit<'_>, seen: &Examined, told: &mut Told<'_>) {
        let message = seen.message.as_deref().unwrap_or("it came to nothing");
        let message = message.strip_suffix("; nothing was begun.").unwrap_or(message);
        let what = format!("{}: {}", visit.host.destination(), message.trim_end_matches('.'));
        told.broken(&what, remedy(seen, visit.host, &self.known_hosts));
    }

    /// Whether a shell ran a part of a word; what it left is taken away.
    fn marker(&mut self, visit: &Visit<'_>, told: &mut Told<'_>) -> Result<Marker, Unavailable> {
        match self.ask(visit, Question::Marker)?.status {
            Some(1) => return Ok(Marker::Absent),
            Some(0) => {}
            Some(_) | None => return Ok(Marker::Unknown),
        }
        if self.ask(visit, Question::Removal)?.status != Some(0) {
            let path = visit.mark.path();
            told.note(
                &format!("{path} was made there and could not be removed"),
                format!("rm {path}, there"),
            );
        }
        Ok(Marker::Present)
    }

    /// Sends one command, which stands on record before and after.
    fn ask(&mut self, visit: &Visit<'_>, question: Question) -> Result<Examined, Unavailable> {
        let Visit { host, mark, deadline } = visit;
        let examination = Examination::new(Arc::clone(host), *mark, question);
        let call = CallId::new(random());
        let received_ms = now_ms();
        self.audit.intent(Intent {
            call,
            tool: TOOL.into(),
            target: Some(host.name().clone()),
            rule: None,
            credentials: host.credential().map(|entry| entry.name().clone()).into_iter().collect(),
            approval: None,
            received_ms,
            authorized_ms: received_ms,
            act: act(host, examination.asked()),
        })?;
        let dispatched_ms = now_ms();
        let seen = self.examiner.ask(&examination, *deadline);
        self.actions += 1;
        let (outcome, was_sent) = match seen.end {
            End::Completed(outcome) => (Some(outcome), true),
            End::NotDispatched(_) | End::CancelledBefore => (None, false),
            End::CancelledAfter | End::Unknown(_) => (None, true),
        };
        let ended = Ended {
            outcome,
            reason: seen.end.reason(),
            dispatched_ms: was_sent.then_some(dispatched_ms),
            received_bytes: was_sent.then_some(seen.stdout.len() as u64),
            ..Ended::new(call, seen.end.state())
        };
        if let Err(fault) = self.audit.outcome(ended) {
            self.unrecorded.get_or_insert(fault);
        }
        Ok(seen)
    }
}

/// What is to be done, as it stands on record.
fn act(host: &SshHost, asked: &Asked) -> Act {
    match asked {
        Asked::Command(command) => Act::Command {
            host: Some(host.destination()),
            is_shell: false,
            words: command.words().to_vec(),
            stdin: None,
        },
        Asked::Path(path) => Act::File {
            host: host.destination(),
            access: FileAccess::Read,
            path: path.as_str().into(),
            mode: None,
            content: None,
        },
    }
}

/// Where a visit got to.
fn reached(visit: &Visit<'_>, seen: &Examined) -> String {
    let key = match &seen.new_host_key {
        Some(key) => format!("its key is new, {key}, and was not stored: a call does that"),
        None => "its key is the known one".into(),
    };
    format!("{}: {key}; logged in", visit.host.destination())
}

/// One host, once.
struct Visit<'a> {
    host: &'a Arc<SshHost>,
    mark: Mark,
    deadline: Deadline,
}

/// What is known of the file that a misread word makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marker {
    Absent,
    Present,
    Unknown,
}
