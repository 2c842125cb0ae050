//! `doctor`: looks at everything that Keyward stands on, and says what is not as it should be.
//!
//! Invariant: it changes nothing but that it closes the calls of sessions that are over, as the next
//! gateway would; and it prints no stored value.

mod accounts;
mod binary;
mod configuration;
mod finding;
mod isolation;
mod kernel;
mod place;
mod record;

use std::path::PathBuf;

use super::{Exit, print};
use crate::home::{self, Config, Home};
use finding::Findings;

/// Checks everything.
pub(super) fn run(home: Option<PathBuf>, as_json: bool) -> Exit {
    let Some(path) = home::path(home) else {
        let what = "doctor: neither --home nor KEYWARD_HOME nor HOME is set";
        return print::trouble(what, "keyward --home DIR", Exit::Usage);
    };
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
    if let Some(home) = &home {
        let mut config = Config::load(home);
        takes_confinement = configuration::check(home, &mut config, &mut findings);
        record::check(home, &mut config, &mut findings);
    }
    kernel::check(home.as_ref().map(Home::as_path), takes_confinement, &mut findings);
    binary::check(&mut findings);
    let is_isolated = isolation::check(&facts, home.is_some(), &mut findings);
    let text = if as_json { findings.json(is_isolated) } else { findings.words(is_isolated) };
    match print::raw(&text) {
        Exit::Done => findings.exit(),
        exit => exit,
    }
}
