//! Homes for the run: ten HTTP targets, one of which is the service here; in one home helpers, in another hosts.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::helper;
use crate::sshd::Sshd;

/// The credential's value, which the service looks for.
pub(crate) const TOKEN: &str = "bench-token-0123456789abcdef";

const TARGETS: usize = 10;
/// What stands beside the home of the helpers, and beside the folder that it is in.
const NEIGHBOURS: usize = 300;

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

    /// A home inside, with a configuration whose first target is at this origin, and a helper that is absent.
    pub(crate) fn home(&self, origin: &str) -> Result<PathBuf, Fault> {
        make_home(self.file("home"), origin, helper::absent())
    }

    /// A home inside whose configuration has helpers too, below two folders with many entries.
    pub(crate) fn helper_home(&self, origin: &str) -> Result<PathBuf, Fault> {
        let (programs, outer) = (self.programs(), self.file("outer"));
        let inner = outer.join("inner");
        make_folder(&programs)
            .and_then(|()| helper::write(&programs))
            .and_then(|()| crowd(&outer))
            .and_then(|()| crowd(&inner))
            .map_err(Fault::setup(format!("making {}", inner.display())))?;
        make_home(inner.join("home"), origin, helper::config(&programs))
    }

    /// A home inside whose configuration has hosts too, whose key is known, and a helper that is absent.
    pub(crate) fn ssh_home(&self, origin: &str, sshd: &Sshd) -> Result<PathBuf, Fault> {
        let home = self.file("ssh-home");
        let (key, known) = (home.join("key"), sshd.known_line()?);
        let fault = || Fault::setup(format!("making {}", home.display()));
        let mut more = sshd.config(&key).map_err(fault())?;
        more.extend(helper::absent());
        let made = make_home(home.clone(), origin, more)?;
        let private = fs::read_to_string(sshd.key()).map_err(fault())?;
        write_private(&key, &private)
            .and_then(|()| write_private(&home.join("known_hosts"), &known))
            .map_err(fault())?;
        Ok(made)
    }

    /// Where the programs of the helpers are.
    pub(crate) fn programs(&self) -> PathBuf {
        self.file("programs")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

fn make_home(home: PathBuf, origin: &str, more: Map<String, Value>) -> Result<PathBuf, Fault> {
    let token = home.join("tok");
    let mut config = config(origin, &token);
    for (key, value) in more {
        match (config.get_mut(&key), value) {
            (Some(Value::Object(there)), Value::Object(value)) => there.extend(value),
            (_, value) => drop(config.insert(key, value)),
        }
    }
    make_folder(&home)
        .and_then(|()| write_private(&token, TOKEN))
        .and_then(|()| write_private(&home.join("config.json"), &Value::Object(config).to_string()))
        .map_err(Fault::setup(format!("making {}", home.display())))?;
    Ok(home)
}

/// A folder with many empty files.
fn crowd(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    (0..NEIGHBOURS).try_for_each(|number| write_private(&path.join(format!("n{number}")), ""))
}

fn config(origin: &str, token: &Path) -> Map<String, Value> {
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
    let credentials = json!({"tok": {"type": "bearer", "source": {"file": token}}});
    Map::from_iter([
        ("version".into(), json!(1)),
        ("http".into(), targets.into()),
        ("credentials".into(), credentials),
    ])
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
