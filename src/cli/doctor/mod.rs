//! `doctor`: looks at everything that Keyward stands on, and says what is not as it should be.
//!
//! Invariant: it changes nothing but that it closes the calls of sessions that are over, as the next
//! gateway would; it prints no stored value; and it goes to a host only when it is told to, and not before that is
//! on record.

mod accounts;
mod binary;
mod configuration;
mod finding;
mod hosts;
mod isolation;
mod kernel;
mod place;
mod record;

use std::path::PathBuf;

use super::print::Printed;
use super::{Exit, print};
use crate::gateway::descriptors;
use crate::home::{self, Config, Home};
use finding::Findings;

/// Which hosts are gone to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Connect {
    /// All of them.
    All,
    /// The one of this name.
    One(String),
}

/// Checks everything.
pub(super) fn run(home: Option<PathBuf>, connect: Option<&Connect>, as_json: bool) -> Exit {
    let Some(path) = home::path(home) else {
        let what = "doctor: neither --home nor KEYWARD_HOME nor HOME is set";
        return print::trouble(what, "keyward --home DIR", Exit::Usage);
    };
    // A key that is tried must not reach whoever gave us a socket for stdin.
    if let Err(fault) = descriptors::empty_stdin() {
        let what = format!("doctor: stdin cannot be taken away: {fault}");
        return print::trouble(&what, "doctor </dev/null", Exit::Failed);
    }
    let facts = match isolation::facts(&path) {
        Ok(facts) => facts,
        Err(fault) => {
            let what = format!("doctor: cannot become the home's user: {fault}");
            return print::trouble(&what, "run it as that user", Exit::Failed);
        }
    };
    let mut findings = Findings::default();
    let home = match place::check(&path, &mut findings) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    let mut takes_confinement = false;
    let mut config = home.as_ref().map_or_else(Config::none, Config::load);
    if let Some(home) = &home {
        if let Err(exit) = hosts::connect::is_there(&mut config, connect) {
            return exit;
        }
        takes_confinement = configuration::check(home, &mut config, &mut findings);
        record::check(home, &mut config, &mut findings);
    }
    kernel::check(home.as_ref().map(Home::as_path), takes_confinement, &mut findings);
    binary::check(&mut findings);
    let is_isolated = isolation::check(&facts, home.is_some(), &mut findings);
    let mut tell = |findings: &mut Findings| match print::listed_raw(&findings.news(as_json)) {
        Printed::Out => Ok(()),
        Printed::Closed => Err(Exit::Done),
        Printed::Failed => Err(Exit::Failed),
    };
    let told = tell(&mut findings).and_then(|()| match (&home, connect) {
        (Some(home), Some(connect)) => {
            hosts::connect::check(home, &mut config, connect, &mut findings, &mut tell)
        }
        (None, _) | (_, None) => Ok(()),
    });
    match told.map(|()| print::raw(&findings.summary(is_isolated, as_json))) {
        Ok(Exit::Done) => findings.exit(),
        Ok(exit) | Err(exit) => exit,
    }
}
