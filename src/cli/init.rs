//! `init`: makes the home and a configuration to edit, and says how to connect clients.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Exit, print};
use crate::audit::recipient::{Identity, Recipient, no_recipient};
use crate::audit::{self, CreateFault, Unavailable};
use crate::clock;
use crate::clock::Deadline;
use crate::home::{self, Home};
use crate::limits;

/// What is said of a record that comes after one of which nothing is left.
const GONE: &str = "\n  the one that was here is gone, and this one says nothing of it";
/// And where it is sealed to a key that was not here before.
const KEY_IS_NEW: &str = "\n  its key is new: if the one before was sealed to others, move audit and \
                          audit.key away, and call init with each --auditor";

/// Makes what is missing and changes nothing that is there.
pub(super) fn run(flag: Option<PathBuf>, auditors: &[String], new_chain: bool) -> Exit {
    let is_default = flag.is_none();
    let auditors = match auditors.iter().map(|text| Recipient::parse(text).ok_or(text)).collect() {
        Ok(auditors) => auditors,
        Err(text) => {
            let what = format!("init: {}", no_recipient(text));
            return print::trouble(
                &what,
                "the line kwaudit1... that its owner gave you",
                Exit::Usage,
            );
        }
    };
    let Some(path) = home::path(flag) else {
        let what = "init: neither --home nor KEYWARD_HOME nor HOME says where";
        return print::trouble(what, "keyward init --home /path/to/home", Exit::Usage);
    };
    if !path.try_exists().is_ok_and(|is_there| !is_there)
        && let Err(fault) = Home::open(Some(path.clone()))
    {
        return print::trouble(&format!("init: {fault}"), fault.remedy(), Exit::Usage);
    }
    let (had_record, had_key) = (had_record(&path), audit::identity_of(&path).exists());
    let made = match make(&path) {
        Ok(made) => made,
        Err(fault) => {
            let what = format!("init: {}: {fault}", path.display());
            return print::trouble(
                &what,
                "name a folder that you may write to with --home",
                Exit::Failed,
            );
        }
    };
    if let Err(fault) = Home::open(Some(path.clone())) {
        return print::trouble(&format!("init: {fault}"), fault.remedy(), Exit::Usage);
    }
    let record = match take_turn(&path)
        .map_err(CreateFault::from)
        .and_then(|_turn| record(&path, auditors, new_chain))
    {
        Ok(Record { told, is_new }) if is_new && had_record => {
            let is_key_new = !had_key && audit::identity_of(&path).exists();
            [told.as_str(), GONE, if is_key_new { KEY_IS_NEW } else { "" }].join("")
        }
        Ok(Record { told, .. }) => told,
        Err(fault) => {
            let what = format!("init: {}: {fault}", audit::folder_of(&path).display());
            return print::trouble(&what, fault.remedy(), Exit::Failed);
        }
    };
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("keyward"));
    print::raw(&report(&path, &made, &record, &program, is_default))
}

/// What was made now, and what was there.
struct Made {
    config: bool,
}

/// Makes the record of a home that never had one, with the private key kept in it; says so, in a line or two.
///
/// Where there was one, only the operator begins another: nobody else knows to whom it is to be sealed.
///
/// # Errors
/// [`CreateFault`]: without a record nothing acts.
pub(super) fn record_if_none(home: &Home) -> Result<Option<String>, CreateFault> {
    let (home, folder) = (home.as_path(), audit::folder_of(home.as_path()));
    let _turn = match audit::is_made(&folder) {
        true => None,
        false => Some(take_turn(home)?),
    };
    let told = if audit::is_made(&folder) {
        None
    } else if had_record(home) && !audit::is_leaving(&folder) {
        let found = audit::look::look(&folder);
        return Err(CreateFault::Record(found.err().unwrap_or(Unavailable::Missing)));
    } else {
        Some(record(home, Vec::new(), false)?.told)
    };
    if told.is_some() || !had_record(home) {
        // One of an earlier Keyward may have no mark yet; where none can be made, its record tells as much.
        home::version::mark(home).ok();
    }
    Ok(told)
}

/// Whether a home has or had a record: it was made before, or holds the key that opens one.
pub(super) fn had_record(home: &Path) -> bool {
    home::version::is_marked(home) || audit::identity_of(home).exists()
}

/// Lets one process at a time make a record: clients start servers twice at once. It goes with the file.
fn take_turn(home: &Path) -> io::Result<File> {
    let (folder, limit) = (File::open(home)?, Deadline::after(limits::AUDIT_LOCK_FOR));
    while let Err(fault) = folder.try_lock() {
        match fault {
            TryLockError::Error(fault) => return Err(fault),
            TryLockError::WouldBlock if limit.is_over() => {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            // The system has no waiting for a lock that ends by itself.
            TryLockError::WouldBlock => std::thread::park_timeout(Duration::from_millis(2)),
        }
    }
    Ok(folder)
}

/// A record that is there now.
struct Record {
    /// What is said of it, in a line or two.
    told: String,
    /// It says nothing of any before it.
    is_new: bool,
}

/// Makes the record, or a new one where the signing key was lost.
fn record(home: &Path, auditors: Vec<Recipient>, new_chain: bool) -> Result<Record, CreateFault> {
    let (folder, kept) = (audit::folder_of(home), audit::identity_of(home));
    if folder.join("head").exists() || audit::is_leaving(&folder) {
        are_recipients(&folder, &auditors)?;
    }
    if new_chain || audit::is_leaving(&folder) {
        let chain = audit::renew(&folder, clock::now_ms())?;
        let told = format!("{} (a new chain: {chain})", folder.display());
        return Ok(Record { told, is_new: false });
    }
    if folder.join("head").exists() {
        let told = format!("{} (was there, left as it is)", folder.display());
        return Ok(Record { told, is_new: false });
    }
    audit::check_place(&folder)?;
    let (recipients, whose) = if auditors.is_empty() {
        (vec![own_identity(&kept)?], format!("the private key stays here, in {}", kept.display()))
    } else {
        (auditors, "nothing here can open it".to_owned())
    };
    let sealed_to: Vec<String> = recipients.iter().map(Recipient::to_string).collect();
    let made = audit::create(&folder, &recipients, clock::now_ms())?;
    let chain = match made {
        audit::Made::Chain(chain) => format!("chain {chain}"),
        audit::Made::WasThere => "was there, left as it is".to_owned(),
    };
    let told =
        format!("{} ({chain})\n  sealed to {}; {whose}", folder.display(), sealed_to.join(", "));
    Ok(Record { told, is_new: true })
}

/// Whether a record that is there is sealed to all these from its next row on.
fn are_recipients(folder: &Path, auditors: &[Recipient]) -> Result<(), CreateFault> {
    if auditors.is_empty() {
        return Ok(());
    }
    let recipients = audit::folder::recipients(folder).map_err(CreateFault::Record)?;
    let mut others = auditors.to_vec();
    others.retain(|auditor| !recipients.contains(auditor));
    if others.is_empty() { Ok(()) } else { Err(CreateFault::NotSealedTo(others)) }
}

/// The identity in the home, made where there is none.
fn own_identity(path: &Path) -> Result<Recipient, CreateFault> {
    if path.exists() {
        let identity = Identity::load(path).map_err(io::Error::other)?;
        return Ok(identity.recipient());
    }
    let identity = Identity::fresh();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(identity.to_text().expose())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    Ok(identity.recipient())
}

fn make(path: &Path) -> io::Result<Made> {
    for folder in [path, &path.join("run")] {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    home::version::mark(path)?;
    let config = path.join("config.json");
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&config) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(Made { config: false }),
        file => {
            let mut file = file?;
            file.write_all(example(path).as_bytes())?;
            file.sync_all()?;
            Ok(Made { config: true })
        }
    }
}

/// A configuration that loads as it is: it teaches by its examples, and allows reading only.
fn example(home: &Path) -> String {
    let token = serde_json::Value::from(home.join("github-token").display().to_string());
    format!(
        r#"{{
  "version": 1,
  "http": {{
    "github": {{
      "base_url": "https://api.github.com/",
      "credential": "github-token",
      "rules": [
        {{ "decision": "allow", "methods": ["GET", "HEAD"], "path": "/repos/**" }},
        {{ "decision": "ask", "methods": ["POST"], "path": "/repos/*/*/issues" }},
        {{ "decision": "deny", "methods": ["*"], "path": "/repos/*/*/actions/secrets/**" }}
      ]
    }}
  }},
  "credentials": {{
    "github-token": {{ "type": "bearer", "source": {{ "file": {token} }} }}
  }}
}}
"#
    )
}

fn report(path: &Path, made: &Made, record: &str, program: &Path, is_default: bool) -> String {
    let home = path.display();
    let config = if made.config { "made" } else { "was there, left as it is" };
    let arguments = if is_default {
        vec!["mcp".to_owned()]
    } else {
        vec!["mcp".to_owned(), "--home".to_owned(), path.display().to_string()]
    };
    let same_user = connections(&program.display().to_string(), &arguments);
    let installed = "/usr/local/bin/keyward";
    let own_user: Vec<String> = ["-n", "-u", "keyward", installed, "mcp"].map(str::to_owned).into();
    let isolated = connections("sudo", &own_user);
    format!(
        "home: {home}
config: {home}/config.json ({config})
record: {record}

Next:
  1. put a token where the configuration names it, for you alone:
       install -m 600 /dev/stdin {home}/github-token     (paste it, then Enter, then Ctrl-D)
  2. edit {home}/config.json; `keyward schema` describes every key
  3. see what it decides:
       keyward policy explain http_request '{{\"method\":\"GET\",\"url\":\"https://api.github.com/repos/rust-lang/rust\"}}'
  4. have everything looked at: keyward doctor
  5. connect a client:

AS THE SAME USER. Keys stay out of prompts, logs and other programs' configuration; an agent
with a shell of its own can still read this home.
{same_user}
UNDER A USER ID OF ITS OWN. A wall: the agent's user cannot read the home. Once, as root:
    useradd --system --create-home --shell /usr/sbin/nologin keyward
    install -o root -g root -m 755 {program} {installed}
    sudo -u keyward {installed} init
    install -o keyward -g keyward -m 600 /dev/stdin /home/keyward/.keyward/github-token   (paste it, then Enter, then Ctrl-D)
  and this one line in a file of its own that `visudo -f /etc/sudoers.d/keyward` opens (USER is the
  agent's user; no other argument is allowed, and everything else asks for a password as before):
    USER ALL=(keyward) NOPASSWD: {installed} mcp
{isolated}",
        program = program.display(),
    )
}

/// How each client is told to start a command.
fn connections(command: &str, arguments: &[String]) -> String {
    let shell_line = std::iter::once(command)
        .chain(arguments.iter().map(String::as_str))
        .map(quoted)
        .collect::<Vec<_>>()
        .join(" ");
    let json_arguments = serde_json::json!(arguments).to_string();
    let json_command = serde_json::json!(command).to_string();
    let entry = format!("{{\"command\":{json_command},\"args\":{json_arguments}}}");
    let named =
        format!("{{\"name\":\"keyward\",\"command\":{json_command},\"args\":{json_arguments}}}");
    format!(
        "  Claude Code   claude mcp add --scope user keyward -- {shell_line}
  Codex         codex mcp add keyward -- {shell_line}
                or in ~/.codex/config.toml:
                  [mcp_servers.keyward]
                  command = {json_command}
                  args = {json_arguments}
  Cursor        in ~/.cursor/mcp.json:
                  {{\"mcpServers\":{{\"keyward\":{entry}}}}}
  VS Code       code --add-mcp {}
  Gemini        in ~/.gemini/settings.json:
                  {{\"mcpServers\":{{\"keyward\":{entry}}}}}
",
        quoted(&named)
    )
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_loads() {
        let text = example(Path::new("/home/x/.keyward"));
        let policy = crate::policy::config::parse(&text).unwrap();
        assert_eq!(policy.targets().len(), 1);
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("/usr/bin/keyward"), "/usr/bin/keyward");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
