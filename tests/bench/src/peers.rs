//! Where the peers' programs are, and what is known of a program's file.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fault::Fault;

/// The peers' programs.
pub(crate) struct Peers {
    pub(crate) rmcp: PathBuf,
    pub(crate) bare: PathBuf,
    pub(crate) pipeline: PathBuf,
}

/// Builds the peers where cargo started this program, else takes those that stand
/// beside it.
pub(crate) fn find() -> Result<Peers, Fault> {
    let built = match (env::var_os("CARGO"), env::var_os("CARGO_MANIFEST_DIR")) {
        (Some(cargo), Some(folder)) => {
            build(cargo, Path::new(&folder)).map_err(Fault::setup("building the peers"))?
        }
        _ => Vec::new(),
    };
    let beside = env::current_exe().map_err(Fault::setup("finding this program"))?;
    let place = |name: &str| {
        let found = built.iter().find(|path| path.file_name().is_some_and(|file| file == name));
        let path = found.cloned().unwrap_or_else(|| beside.with_file_name(name));
        if path.is_file() { Ok(path) } else { Err(missing(&path)) }
    };
    Ok(Peers {
        rmcp: place("peer-rmcp")?,
        bare: place("peer-bare")?,
        pipeline: place("peer-pipeline")?,
    })
}

fn missing(path: &Path) -> Fault {
    let what = format!("finding {}; try: cargo build --release --workspace", path.display());
    Fault::Setup { what, cause: io::ErrorKind::NotFound.into() }
}

/// The programs that cargo says it made.
fn build(cargo: OsString, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let built = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--workspace",
            "--quiet",
            "--message-format=json",
            "--manifest-path",
        ])
        .arg(folder.join("Cargo.toml"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !built.status.success() {
        return Err(io::Error::other(format!("cargo build: {}", built.status)));
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let programs = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    Ok(programs.collect())
}

/// The size of a program's file in bytes.
pub(crate) fn size(path: &Path) -> Result<u64, Fault> {
    let told = fs::metadata(path).map_err(Fault::setup(format!("reading {}", path.display())))?;
    Ok(told.len())
}

/// Whether a 64-bit ELF program asks for a dynamic linker, which costs it time at start.
pub(crate) fn linkage(path: &Path) -> &'static str {
    const INTERPRETER: u32 = 3;
    let Ok(file) = fs::read(path) else { return "unreadable" };
    let Some(headers) = program_header_types(&file) else { return "not ELF" };
    if headers.contains(&INTERPRETER) { "dynamic" } else { "static" }
}

fn program_header_types(file: &[u8]) -> Option<Vec<u32>> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = usize::try_from(u64::from_le_bytes(file.get(32..40)?.try_into().ok()?)).ok()?;
    let size = usize::from(u16::from_le_bytes(file.get(54..56)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(file.get(56..58)?.try_into().ok()?));
    (0..count)
        .map(|index| {
            let at = table.checked_add(index.checked_mul(size)?)?;
            Some(u32::from_le_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?))
        })
        .collect()
}
