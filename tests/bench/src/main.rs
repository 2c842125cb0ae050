//! Measures keyward beside its peers, in one run, and prints one table.
//!
//! Status 0 when everything was measured, whether or not a bar is met; 1 when
//! something could not be measured; 2 for wrong usage.

mod append;
mod client;
mod dialogue;
mod fault;
mod figures;
mod helper;
mod home;
mod measure;
mod memory;
mod peers;
mod processes;
mod service;
mod sshd;
mod table;
mod watch;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use client::Program;
use dialogue::Tool;
use fault::Fault;
use home::Folder;
use measure::Field;
use service::Service;
use sshd::Sshd;

const USAGE: &str = "usage: keyward-bench [--json] [--only NAME].. KEYWARD RECORD
  KEYWARD      the program to measure
  RECORD       the product's example of this name, which measures the record alone
  --json       one JSON object a line on stdout; the table goes to stderr
  --only NAME  this measurement alone, may be repeated:
               spawn, sequential, pipelined, request, frame, size,
               drain, floods, cancel, start, orphans, record, verify,
               ssh, stdout, hosts
";

/// What the command line asks for.
struct Wanted {
    keyward: PathBuf,
    record: PathBuf,
    json: bool,
    only: Vec<String>,
}

fn main() -> ExitCode {
    let said = io::stderr();
    let Some(wanted) = parse(std::env::args_os().skip(1)) else {
        return say(&mut said.lock(), USAGE, 2);
    };
    match run(&wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            say(&mut said.lock(), &format!("\nkeyward-bench: could not measure: {fault}\n"), 1)
        }
    }
}

fn parse(arguments: impl Iterator<Item = OsString>) -> Option<Wanted> {
    let (mut programs, mut json, mut only) = (Vec::new(), false, Vec::new());
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--json") => json = true,
            Some("--only") => {
                let name = arguments.next()?.into_string().ok()?;
                only.push(measure::ALL.iter().find(|(known, _)| *known == name)?.0.to_owned());
            }
            Some(flag) if flag.starts_with('-') => return None,
            _ => programs.push(PathBuf::from(argument)),
        }
    }
    let [keyward, record] = <[PathBuf; 2]>::try_from(programs).ok()?;
    Some(Wanted { keyward, record, json, only })
}

fn run(wanted: &Wanted) -> Result<(), Fault> {
    let folder = Folder::make()?;
    let field = field(wanted, &folder)?;
    let mut said = io::stderr();
    let load_before = load();
    let mut rows = Vec::new();
    for (name, measurement) in measure::ALL {
        if wanted.only.is_empty() || wanted.only.iter().any(|only| only == name) {
            say(&mut said, &format!("measuring {name}\n"), 0);
            rows.extend(measurement(&field)?);
        }
    }
    let heading = heading(&field, &load_before);
    let printed = if wanted.json {
        writeln!(said, "{heading}")
            .and_then(|()| table::print(&mut said, &rows))
            .and_then(|()| table::print_json(&mut io::stdout(), &rows))
    } else {
        let mut out = io::stdout();
        writeln!(out, "{heading}").and_then(|()| table::print(&mut out, &rows))
    };
    printed.map_err(Fault::setup("printing"))
}

fn field(wanted: &Wanted, folder: &Folder) -> Result<Field, Fault> {
    let find = |path: &PathBuf| {
        fs::canonicalize(path).map_err(Fault::setup(format!("finding {}", path.display())))
    };
    let (keyward, record) = (find(&wanted.keyward)?, find(&wanted.record)?);
    let peers = peers::find()?;
    let service = Service::start()?;
    let origin = service.origin();
    let (home, helper_home) = (folder.home(&origin)?, folder.helper_home(&origin)?);
    let sshd = Sshd::start(folder.file("sshd"))?;
    let ssh_home = folder.ssh_home(&origin, &sshd)?;
    let peer = |name, path| Program {
        name,
        path,
        arguments: Vec::new(),
        tool: Tool::Echo { origin: origin.clone() },
        stderr: folder.file(&format!("{name}.stderr")),
    };
    let gateway = |home: PathBuf| Program {
        name: "keyward",
        path: keyward.clone(),
        arguments: vec!["mcp".into(), "--home".into(), home.into()],
        tool: Tool::HttpRequest { origin: origin.clone() },
        stderr: folder.file("keyward.stderr"),
    };
    Ok(Field {
        keyward: gateway(home),
        helpers: gateway(helper_home),
        hosts: gateway(ssh_home),
        sshd,
        programs: folder.programs(),
        append: folder.file("append"),
        record,
        scratch: folder.file("record"),
        rmcp: peer("rmcp", peers.rmcp),
        bare: peer("bare", peers.bare),
        pipeline: peer("pipeline", peers.pipeline),
        service,
    })
}

/// What a reader needs in order to weigh the figures.
fn heading(field: &Field, load_before: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let programs = [&field.keyward, &field.rmcp, &field.bare, &field.pipeline];
    let linkage =
        programs.map(|program| format!("{} {}", program.name, peers::linkage(&program.path)));
    format!(
        "{cores} cores, load {load_before} before and {} after; linked: {}\n\
         figures are medians; a ratio is the median of the rounds' ratios, keyward over peer\n",
        load(),
        linkage.join(", ")
    )
}

/// Runnable processes, averaged over the last minute.
fn load() -> String {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split(' ').next().unwrap_or_default().to_owned()
}

fn say(out: &mut impl Write, text: &str, status: u8) -> ExitCode {
    // Nobody is left to tell when stderr is gone.
    drop(out.write_all(text.as_bytes()));
    ExitCode::from(status)
}
