//! `mcp`: serves one client.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Exit, audit as record, init, print};
use crate::audit::Audit;
use crate::clock::Deadline;
use crate::execute::Execute;
use crate::execute::http::Poster;
use crate::execute::live::Live;
use crate::execute::rate::Rate;
use crate::execute::record::Recorder;
use crate::gateway::start::{self, StartFault};
use crate::gateway::{self, Ending, Parts, descriptors, log, signals};
use crate::home::{self, Config, ConfigFault, Home, HomeFault};
use crate::witness::{Means, Witnessing};

/// Serves until the client is gone, and leaves the process without waiting for anything else.
pub(super) fn run(home: Option<PathBuf>, record: Option<PathBuf>) -> Exit {
    let (home, mut config) = match load(home) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let record = record.and_then(|path| std::path::absolute(path).ok());
    // The way to the own binary is looked up before the folder changes.
    let live = Live::new(home.as_ref());
    if let Err(fault) = start::harden() {
        return refuse(&fault);
    }
    let means = home.as_ref().map(|home| Means {
        home: home.as_path().into(),
        children: live.children(),
        poster: Poster::default(),
    });
    let executor = match executor(live, record.as_deref()) {
        Ok(executor) => executor,
        Err(exit) => return exit,
    };
    let audit = match (&home, &record) {
        (Some(home), None) => audit(home, &mut config),
        // A dry run does nothing, so there is nothing to put on record.
        _ => None,
    };
    let witness = witness(audit.as_ref(), means, &mut config);
    match serve(home.as_ref(), config, executor, (audit, witness)) {
        Ok((exit, logging)) => {
            logging.flush(Deadline::after(Duration::from_millis(50)));
            signal_hook::low_level::exit(exit.code().into())
        }
        Err(fault) => print::trouble(
            &format!("mcp: cannot start: {fault}"),
            "start it from an MCP client, with stdin, stdout and stderr open",
            Exit::Failed,
        ),
    }
}

fn serve(
    home: Option<&Home>,
    config: Config,
    executor: Arc<dyn Execute>,
    (audit, witness): (Option<Audit>, Option<Witnessing>),
) -> std::io::Result<(Exit, log::Logging)> {
    let (stdin, stdout) = descriptors::take_stdio()?;
    let signals = signals::start()?;
    let logging = log::install()?;
    let rate = home.map(|home| Rate::new(home.run_folder()));
    let parts = Parts { stdin, stdout, config, executor, rate, audit, witness, signals };
    let ending = gateway::serve(parts)?;
    let exit = match ending {
        Ending::EndOfInput | Ending::ClientGone | Ending::Signal => Exit::Done,
        Ending::BrokenContract => Exit::BrokenContract,
    };
    Ok((exit, logging))
}

/// The home's record. It is made where there never was one, and that is said once; where it is gone or cannot be
/// made nothing acts, and denials are denials still.
fn audit(home: &Home, config: &mut Config) -> Option<Audit> {
    // Where it cannot be made, what needs it says so.
    DirBuilder::new().mode(0o700).create(home.run_folder()).ok();
    match init::record_if_none(home) {
        Ok(None) => {}
        Ok(Some(made)) => print::aside(&format!("keyward: record: {made}")),
        Err(fault) => print::aside(&format!(
            "keyward: record: {fault}: nothing will act\n  try: {}",
            fault.remedy()
        )),
    }
    Some(record::of(home, config))
}

/// Who is given the record's head, where there is a record.
fn witness(audit: Option<&Audit>, means: Option<Means>, config: &mut Config) -> Option<Witnessing> {
    let witness = config.current().ok().and_then(|policy| policy.witness().cloned());
    Some(Witnessing::new(audit?.clone(), means?, witness))
}

fn executor(live: Live, record: Option<&Path>) -> Result<Arc<dyn Execute>, Exit> {
    match record {
        None => Ok(Arc::new(live)),
        Some(path) => match Recorder::create(path) {
            Ok(recorder) => Ok(Arc::new(recorder)),
            Err(fault) => Err(print::trouble(
                &format!("mcp: --record {}: {fault}", path.display()),
                "name a file that does not exist, in a folder that you may write to",
                Exit::Usage,
            )),
        },
    }
}

/// The home and its configuration. Without either the gateway starts with an empty catalogue and says so.
fn load(flag: Option<PathBuf>) -> Result<(Option<Home>, Config), Exit> {
    let home = match Home::open(home::path(flag)) {
        Ok(home) => home,
        Err(fault @ (HomeFault::Nowhere | HomeFault::Missing(_))) => {
            print::aside(&format!("keyward: {fault}: no tools are offered\n  try: keyward init"));
            return Ok((None, Config::none()));
        }
        Err(fault @ (HomeFault::Untrusted(_) | HomeFault::Version { .. })) => {
            return Err(print::trouble(&format!("home: {fault}"), fault.remedy(), Exit::Usage));
        }
    };
    let mut config = Config::load(&home);
    match config.current() {
        Ok(_) => {}
        Err(fault @ ConfigFault::Missing) => {
            let path = home.config_path();
            print::aside(&format!(
                "keyward: {}: {fault}: no tools are offered\n  try: keyward init",
                path.display()
            ));
            return Ok((Some(home), Config::none()));
        }
        Err(fault) => {
            print::aside(&fault.report(&home.config_path()));
            return Err(Exit::Usage);
        }
    }
    Ok((Some(home), config))
}

fn refuse(fault: &StartFault) -> Exit {
    let (what, remedy) = match fault {
        StartFault::FileSizeLimit => (
            "mcp: a limit on the size of files is set".to_owned(),
            "start it without one: ulimit -f unlimited",
        ),
        StartFault::Orphaned => {
            ("mcp: the process that started it is gone".to_owned(), "start it again")
        }
        StartFault::System(fault) => (
            format!("mcp: the system refused a step: {fault}"),
            "keyward needs Linux 5.13 or later",
        ),
    };
    print::trouble(&what, remedy, Exit::Usage)
}
