//! `audit`: checks the record, prints its head, removes what a head covers.

use std::path::{Path, PathBuf};

use super::{Exit, print};
use crate::audit::row::{ChainId, Hash};
use crate::audit::verify::{Anchors, Report, verify as check};
use crate::audit::{Audit, Chain, Parts, Settings, SignedHead, folder_of, prune as remove, random};
use crate::home::{self, Config, Home, HomeFault};
use crate::name::SessionId;
use crate::wire::write::Object;

/// Checks the record of a home, or a folder that was copied from one.
pub(super) fn verify(
    home: Option<PathBuf>,
    head: Option<PathBuf>,
    chain: Option<String>,
    as_json: bool,
) -> Exit {
    let head = match head.map(|path| read_head(&path)).transpose() {
        Ok(head) => head,
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
    let is_asked = head.is_some() || chain.is_some();
    match check(&folder_of(&home), &Anchors { head, chain }) {
        Ok(report) => tell(&report, is_asked, as_json),
        Err(fault) => {
            let what = format!("audit verify: {}: {fault}", folder_of(&home).display());
            print::trouble(&what, "keyward init, or --home with another home", Exit::Failed)
        }
    }
}

fn tell(report: &Report, is_asked: bool, as_json: bool) -> Exit {
    let text = if as_json { json(report) } else { words(report, is_asked) };
    match (print::line(&text), &report.damage) {
        (Exit::Done, Some(_)) => Exit::Damaged,
        (exit, _) => exit,
    }
}

fn words(report: &Report, is_asked: bool) -> String {
    let mut text = String::new();
    if let Some(chain) = report.chain {
        text += &format!("chain {chain}\n");
    }
    if let Some(old) = report.follows {
        text += &format!("follows chain {old}, whose signing key was lost\n");
    }
    if let Some(first) = report.pruned_before {
        text += &format!("rows before {first} were pruned\n");
    }
    text += &format!(
        "{} rows in {} segments, {} bytes; the last is row {} {}\n",
        report.rows, report.segments, report.bytes, report.last_seq, report.last_hash
    );
    for tear in &report.tears {
        let (segment, bytes) = (tear.segment, tear.bytes);
        text += &format!("torn: segment {segment}, {bytes} bytes, {}\n", tear.state.as_str());
    }
    text += &match &report.damage {
        Some(damage) => {
            format!("DAMAGED at row {} in segment {}: {}", damage.row, damage.segment, damage.what)
        }
        None if report.is_anchored => "consistent, and it is the one asked for".to_owned(),
        None if is_asked => {
            "consistent, not anchored: the row that was asked for is not here".into()
        }
        None => {
            "consistent, not anchored: only a head kept elsewhere shows that nothing is missing"
                .into()
        }
    };
    text
}

fn json(report: &Report) -> String {
    let tears = report.tears.iter().map(|tear| {
        let tear_object = Object::new().number("segment", tear.segment).number("bytes", tear.bytes);
        tear_object.text("state", tear.state.as_str()).end()
    });
    let tears = tears.collect::<Vec<_>>().join(",");
    let chain = report.chain.map(|chain| chain.to_string());
    let mut object = Object::new()
        .text_if("chain", chain.as_deref())
        .text_if("follows", report.follows.map(|chain| chain.to_string()).as_deref())
        .number("rows", report.rows)
        .number("segments", report.segments)
        .number("bytes", report.bytes)
        .number("last_row", report.last_seq)
        .text("last_hash", &report.last_hash);
    if let Some(first) = report.pruned_before {
        object = object.number("pruned_before", first);
    }
    object = object.raw("torn", &format!("[{tears}]")).boolean("anchored", report.is_anchored);
    if let Some(damage) = &report.damage {
        let damage = Object::new()
            .number("segment", damage.segment)
            .number("row", damage.row)
            .text("what", &damage.what);
        object = object.raw("damage", &damage.end());
    }
    object.end()
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
    let head = match read_head(before) {
        Ok(head) => head,
        Err(exit) => return exit,
    };
    let home = match open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    match remove(&folder_of(home.as_path()), &head) {
        Ok(pruned) => print::line(&format!(
            "{} segments removed; the first row left is {}",
            pruned.segments, pruned.first_row
        )),
        Err(fault) => {
            print::trouble(&format!("audit prune: {fault}"), fault.remedy(), Exit::Failed)
        }
    }
}

fn read_head(path: &Path) -> Result<SignedHead, Exit> {
    let head = std::fs::read_to_string(path).map_err(|fault| fault.to_string());
    head.and_then(|text| SignedHead::parse(&text).ok_or_else(|| "it holds no signed head".into()))
        .map_err(|fault| {
            let what = format!("{}: {fault}", path.display());
            print::trouble(&what, "keyward audit head > FILE", Exit::Usage)
        })
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
    Home::open(home::path(home))
        .map_err(|fault| print::trouble(&format!("home: {fault}"), fault.remedy(), Exit::Usage))
}

fn no_home() -> Exit {
    let what = "neither --home nor KEYWARD_HOME nor HOME is set";
    print::trouble(what, "keyward --home DIR", Exit::Usage)
}
