//! A home for the run: ten HTTP targets, one of which is the service here.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::fault::Fault;

/// The credential's value, which the service looks for.
pub(crate) const TOKEN: &str = "bench-token-0123456789abcdef";

const TARGETS: usize = 10;

/// A folder of this run's own, removed at the end.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder, readable by nobody else.
    pub(crate) fn make() -> Result<Self, Fault> {
        let path = std::env::temp_dir().join(format!("keyward-bench-{}", std::process::id()));
        make_folder(&path).map_err(Fault::setup(format!("making {}", path.display())))?;
        Ok(Self { path })
    }

    /// A path inside.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A home inside, with a configuration whose first target is at this origin.
    pub(crate) fn home(&self, origin: &str) -> Result<PathBuf, Fault> {
        let home = self.file("home");
        let token = home.join("tok");
        let config = config(origin, &token).to_string();
        make_folder(&home)
            .and_then(|()| write_private(&token, TOKEN))
            .and_then(|()| write_private(&home.join("config.json"), &config))
            .map_err(Fault::setup(format!("making {}", home.display())))?;
        Ok(home)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

fn config(origin: &str, token: &Path) -> Value {
    let rules = json!([{"decision": "allow", "methods": ["GET"], "path": "/repos/**"}]);
    let mut targets = Map::new();
    for number in 0..TARGETS {
        let target = match number {
            0 => json!({
                "base_url": format!("{origin}/"), "credential": "tok", "plain_loopback": true,
                "private": true, "rules": rules,
            }),
            _ => json!({
                "base_url": format!("https://t{number}.example.test/"), "credential": "tok",
                "rules": rules,
            }),
        };
        targets.insert(format!("t{number}"), target);
    }
    json!({
        "version": 1,
        "http": targets,
        "credentials": {"tok": {"type": "bearer", "source": {"file": token}}},
    })
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(text.as_bytes())
}
