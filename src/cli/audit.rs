//! `audit`: checks the record, prints its head, removes what a head covers.

mod heads;
mod told;

use std::path::{Path, PathBuf};

use super::cells::counted;
use super::{Exit, print};
use crate::audit::folder::segments;
use crate::audit::row::{ChainId, Hash};
use crate::audit::verify::{Anchors, Report, verify as check};
use crate::audit::{Audit, Chain, Parts, Settings, folder_of, prune as remove, random};
use crate::home::{self, Config, Home, HomeFault};
use crate::name::SessionId;

/// Checks the record of a home, or a folder that was copied from one.
pub(super) fn verify(
    home: Option<PathBuf>,
    head: Option<PathBuf>,
    chain: Option<String>,
    as_json: bool,
) -> Exit {
    let heads = match head.map(|path| heads::read(&path)).transpose() {
        Ok(heads) => heads.unwrap_or_default(),
        Err(exit) => return exit,
    };
    let chain = match chain.map(|text| Hash::parse(text.as_bytes()).ok_or(text)).transpose() {
        Ok(chain) => chain.map(ChainId),
        Err(text) => {
            let what = format!("audit verify: no chain's name: {}", text.escape_debug());
            return print::trouble(
                &what,
                "the 64 hex digits that keyward init printed",
                Exit::Usage,
            );
        }
    };
    // No trust in the folder is needed: what counts is what stands in it.
    let Some(home) = home::path(home) else {
        return no_home();
    };
    if let Err(fault @ HomeFault::Version { .. }) = home::version::check(&home) {
        return print::trouble(&format!("home: {fault}"), fault.remedy(), Exit::Usage);
    }
    let asked = heads.len();
    match check(&folder_of(&home), &Anchors { heads, chain }) {
        Ok(report) => tell(&report, asked, as_json),
        Err(_) if is_record(&home) => holds_audit(&home),
        Err(fault) => {
            let what = format!("audit verify: {}: {fault}", folder_of(&home).display());
            print::trouble(&what, "put it back, or --home with another home", Exit::Failed)
        }
    }
}

/// Says what was found; where heads were asked for and none held, that is no success.
fn tell(report: &Report, heads: usize, as_json: bool) -> Exit {
    let text = if as_json { told::json(report) } else { told::words(report, heads) };
    match (print::line(&text), &report.damage) {
        // Also where it could not be written: the status says it still.
        (_, Some(_)) => Exit::Damaged,
        (Exit::Done, None) if heads > 0 && report.held.is_none() => Exit::Failed,
        (exit, _) => exit,
    }
}

/// Prints a signed head.
pub(super) fn head(home: Option<PathBuf>) -> Exit {
    let home = match open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    match Chain::new(folder_of(home.as_path()), Settings::default()).signed_head() {
        Ok(head) => print::line(&head.write()),
        Err(fault) => print::trouble(&format!("audit head: {fault}"), fault.remedy(), Exit::Failed),
    }
}

/// Removes what a head covers.
pub(super) fn prune(home: Option<PathBuf>, before: &Path) -> Exit {
    let head = match heads::read(before) {
        Ok(heads) => heads.last().copied(),
        Err(exit) => return exit,
    };
    let Some(head) = head else { return Exit::Usage };
    let home = match open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    match remove(&folder_of(home.as_path()), &head) {
        Ok(pruned) => print::line(&format!(
            "{} removed; the first row left is {}",
            counted(pruned.segments, "segment"),
            pruned.first_row
        )),
        Err(fault) => {
            print::trouble(&format!("audit prune: {fault}"), fault.remedy(), Exit::Failed)
        }
    }
}

/// The record of a home, for a session of its own, kept as the configuration says; where that is faulty,
/// by the defaults.
pub(super) fn of(home: &Home, config: &mut Config) -> Audit {
    let limits = config.current().map(|policy| policy.limits().clone()).unwrap_or_default();
    let segment_bytes = limits.audit_segment_bytes();
    Audit::new(Parts {
        folder: folder_of(home.as_path()),
        run: home.run_folder(),
        session: SessionId::new(random()),
        settings: Settings { segment_bytes, ..Settings::default() },
    })
}

/// The home, for those who need it to be trusted.
pub(super) fn open(home: Option<PathBuf>) -> Result<Home, Exit> {
    let path = home::path(home);
    if let Some(path) = path.as_deref().filter(|path| is_record(path)) {
        return Err(holds_audit(path));
    }
    Home::open(path)
        .map_err(|fault| print::trouble(&format!("home: {fault}"), fault.remedy(), Exit::Usage))
}

/// Whether what was named as a home is a record itself.
fn is_record(path: &Path) -> bool {
    let has_rows = || segments(path).is_ok_and(|numbers| !numbers.is_empty());
    !folder_of(path).exists() && (path.join("head").is_file() || has_rows())
}

/// Says which folder is to be named in its place.
fn holds_audit(path: &Path) -> Exit {
    let what =
        format!("{} is a record itself: --home is the folder that holds `audit`", path.display());
    let remedy = match path.parent() {
        Some(home) if folder_of(home) == path => format!("--home {}", home.display()),
        _ => "call it audit, in a folder of its own, and --home with that folder".to_owned(),
    };
    print::trouble(&what, &remedy, Exit::Usage)
}

fn no_home() -> Exit {
    let what = "neither --home nor KEYWARD_HOME nor HOME is set";
    print::trouble(what, "keyward --home DIR", Exit::Usage)
}
