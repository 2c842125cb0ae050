//! What an agent asks of a host: a command, or one file there or back.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use super::command::{Command, CommandLine, RemoteShell};
pub use super::remote_path::{FileMode, RemotePath};

use super::Refused;
use super::http::{parse_max_bytes, parse_timeout};
use crate::mcp::catalog::Arguments;
use crate::state::Reason;

/// An action at a host. Its command is a [`CommandLine`] until it is known how the host's shell reads it, and a
/// [`Command`] from then on.
#[derive(Debug)]
pub enum SshAction<C = Command> {
    /// Runs a command.
    Exec(Exec<C>),
    /// Writes a file.
    Upload(Upload),
    /// Reads a file.
    Download(Download),
}

/// A command to run.
#[derive(Debug)]
pub struct Exec<C = Command> {
    /// The name of the host's entry.
    pub host: String,
    /// The command.
    pub command: C,
    /// What it reads; `None`: the end of file at once. Never empty.
    pub stdin: Option<Vec<u8>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_bytes: Option<usize>,
}

/// A file to write.
#[derive(Debug)]
pub struct Upload {
    /// The name of the host's entry.
    pub host: String,
    /// The file.
    pub path: RemotePath,
    /// What it is to hold.
    pub content: Vec<u8>,
    /// Its permissions.
    pub mode: FileMode,
    pub(crate) timeout: Option<Duration>,
}

/// A file to read.
#[derive(Debug)]
pub struct Download {
    /// The name of the host's entry.
    pub host: String,
    /// The file.
    pub path: RemotePath,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_bytes: Option<usize>,
}

/// What is done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileAccess {
    /// It is read.
    Read,
    /// It is written, or made.
    Write,
}

impl FileAccess {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl SshAction<CommandLine> {
    /// Reads the arguments of `ssh_exec`.
    ///
    /// # Errors
    /// [`Refused`]: the call ends `rejected`.
    pub fn parse_exec(arguments: &Arguments<'_>) -> Result<Self, Refused> {
        let stdin = arguments.text("stdin").filter(|text| !text.is_empty());
        Ok(Self::Exec(Exec {
            host: host(arguments),
            command: CommandLine::parse(&arguments.text("command").unwrap_or_default())?,
            stdin: stdin.map(|text| text.into_owned().into_bytes()),
            timeout: parse_timeout(arguments.integer("timeout_seconds"))?,
            max_bytes: parse_max_bytes(arguments.integer("max_bytes"))?,
        }))
    }

    /// Reads the arguments of `ssh_upload`.
    ///
    /// # Errors
    /// [`Refused`]: the call ends `rejected`.
    pub fn parse_upload(arguments: &Arguments<'_>) -> Result<Self, Refused> {
        let mode = arguments.text("mode").map(|text| FileMode::parse(&text)).transpose()?;
        Ok(Self::Upload(Upload {
            host: host(arguments),
            path: path(arguments)?,
            content: content(arguments)?,
            mode: mode.unwrap_or(FileMode::DEFAULT),
            timeout: parse_timeout(arguments.integer("timeout_seconds"))?,
        }))
    }

    /// Reads the arguments of `ssh_download`.
    ///
    /// # Errors
    /// [`Refused`]: the call ends `rejected`.
    pub fn parse_download(arguments: &Arguments<'_>) -> Result<Self, Refused> {
        Ok(Self::Download(Download {
            host: host(arguments),
            path: path(arguments)?,
            timeout: parse_timeout(arguments.integer("timeout_seconds"))?,
            max_bytes: parse_max_bytes(arguments.integer("max_bytes"))?,
        }))
    }

    /// What it is at a host with this shell.
    #[must_use]
    pub fn at(self, shell: RemoteShell) -> SshAction {
        match self {
            Self::Exec(Exec { host, command, stdin, timeout, max_bytes }) => {
                let command = command.at(shell);
                SshAction::Exec(Exec { host, command, stdin, timeout, max_bytes })
            }
            Self::Upload(upload) => SshAction::Upload(upload),
            Self::Download(download) => SshAction::Download(download),
        }
    }

    /// What it is, in short.
    pub fn about(&self) -> String {
        match self {
            Self::Exec(exec) => exec.command.as_str().into(),
            Self::Upload(upload) => format!("upload {}", upload.path.as_str()),
            Self::Download(download) => format!("download {}", download.path.as_str()),
        }
    }
}

impl<C> SshAction<C> {
    /// The name of the host's entry.
    pub fn host(&self) -> &str {
        match self {
            Self::Exec(exec) => &exec.host,
            Self::Upload(upload) => &upload.host,
            Self::Download(download) => &download.host,
        }
    }

    /// The name of the tool that asks for it.
    pub fn tool(&self) -> &'static str {
        match self {
            Self::Exec(_) => "ssh_exec",
            Self::Upload(_) => "ssh_upload",
            Self::Download(_) => "ssh_download",
        }
    }

    /// How long it may take, where the agent says so.
    pub fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Exec(exec) => exec.timeout,
            Self::Upload(upload) => upload.timeout,
            Self::Download(download) => download.timeout,
        }
    }

    /// How many bytes of the result the agent wants to see, where it says so.
    pub fn max_bytes(&self) -> Option<usize> {
        match self {
            Self::Exec(exec) => exec.max_bytes,
            Self::Upload(_) => None,
            Self::Download(download) => download.max_bytes,
        }
    }
}

impl SshAction {
    /// Hands every part of it to a digest, each under its own label.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let (timeout, max_bytes) = (self.timeout(), self.max_bytes());
        match self {
            Self::Exec(Exec { host, command, stdin, timeout: _, max_bytes: _ }) => {
                part("exec", host.as_bytes());
                command.encode(&mut *part);
                match stdin {
                    Some(bytes) => part("stdin", bytes),
                    None => part("no stdin", b""),
                }
            }
            Self::Upload(Upload { host, path, content, mode, timeout: _ }) => {
                part("upload", host.as_bytes());
                part("path", path.as_str().as_bytes());
                part("content", content);
                part("mode", &mode.bits().to_be_bytes());
            }
            Self::Download(Download { host, path, timeout: _, max_bytes: _ }) => {
                part("download", host.as_bytes());
                part("path", path.as_str().as_bytes());
            }
        }
        if let Some(timeout) = timeout {
            part("timeout", &timeout.as_millis().to_be_bytes());
        }
        if let Some(max_bytes) = max_bytes {
            part("max_bytes", &(max_bytes as u64).to_be_bytes());
        }
    }
}

fn host(arguments: &Arguments<'_>) -> String {
    arguments.text("host").unwrap_or_default().into_owned()
}

fn path(arguments: &Arguments<'_>) -> Result<RemotePath, Refused> {
    RemotePath::parse(&arguments.text("path").unwrap_or_default())
}

fn content(arguments: &Arguments<'_>) -> Result<Vec<u8>, Refused> {
    let refused = |message: &str| Refused { reason: Reason::Arguments, message: message.into() };
    match (arguments.text("content"), arguments.text("content_base64")) {
        (Some(_), Some(_)) => Err(refused("`content` and `content_base64` exclude each other.")),
        (None, None) => Err(refused("`content` or `content_base64` is missing.")),
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(text)) => {
            let decoded = STANDARD.decode(text.as_bytes());
            decoded.map_err(|_| refused("`content_base64` is no base64, with its padding."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::catalog::{ObjectSchema, Property, Schema};
    use crate::wire::json::Json;

    type Parse = fn(&Arguments<'_>) -> Result<SshAction<CommandLine>, Refused>;

    fn parse(parse: Parse, text: &str) -> Result<SshAction, String> {
        let property = |name: &'static str| Property {
            name: name.into(),
            description: String::new(),
            required: false,
            schema: Schema::Anything,
        };
        let names = [
            "host",
            "command",
            "stdin",
            "path",
            "content",
            "content_base64",
            "mode",
            "timeout_seconds",
            "max_bytes",
        ];
        let schema = ObjectSchema { properties: names.map(property).into() };
        let arguments = schema.check(Some(Json::check(text).unwrap().value)).unwrap();
        let parsed = parse(&arguments).map(|action| action.at(RemoteShell::Unknown));
        parsed.map_err(|refused| refused.message)
    }

    fn encoding(action: &SshAction) -> Vec<(String, Vec<u8>)> {
        let mut parts = Vec::new();
        action.encode(&mut |label, bytes| parts.push((label.to_owned(), bytes.to_vec())));
        parts
    }

    #[test]
    fn all_that_would_be_done_is_encoded() {
        let (exec, upload, download): (Parse, Parse, Parse) =
            (SshAction::parse_exec, SshAction::parse_upload, SshAction::parse_download);
        let actions = [
            (exec, r#"{"host":"h","command":"a b"}"#),
            (exec, r#"{"host":"i","command":"a b"}"#),
            (exec, r#"{"host":"h","command":"a"}"#),
            (exec, r#"{"host":"h","command":"a 'b '"}"#),
            (exec, r#"{"host":"h","command":"a 'b c'"}"#),
            (exec, r#"{"host":"h","command":"a b c"}"#),
            (exec, r#"{"host":"h","command":"a;b"}"#),
            (exec, r#"{"host":"h","command":"a b","stdin":"x"}"#),
            (exec, r#"{"host":"h","command":"a b","stdin":"x "}"#),
            (exec, r#"{"host":"h","command":"a b","timeout_seconds":1}"#),
            (exec, r#"{"host":"h","command":"a b","max_bytes":1}"#),
            (download, r#"{"host":"h","path":"/a"}"#),
            (download, r#"{"host":"h","path":"/b"}"#),
            (download, r#"{"host":"h","path":"/a","timeout_seconds":1}"#),
            (upload, r#"{"host":"h","path":"/a","content":""}"#),
            (upload, r#"{"host":"h","path":"/b","content":""}"#),
            (upload, r#"{"host":"h","path":"/a","content":"x"}"#),
            (upload, r#"{"host":"h","path":"/a","content":"","mode":"0644"}"#),
        ];
        let encodings = actions.map(|(kind, text)| encoding(&parse(kind, text).unwrap()));
        for (place, encoding) in encodings.iter().enumerate() {
            assert!(!encodings[..place].contains(encoding), "{}", actions[place].1);
        }
        let same = |kind: Parse, one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| encoding(&parse(kind, text).unwrap()));
            assert_eq!(one, other);
        };
        same(exec, r#"{"host":"h","command":"a b","stdin":""}"#, actions[0].1);
        same(exec, r#"{"host":"h","command":" 'a'  \"b\" "}"#, actions[0].1);
        same(
            upload,
            r#"{"host":"h","path":"/a","content_base64":"eA==","mode":"600"}"#,
            actions[16].1,
        );
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        for (kind, text, named) in [
            (SshAction::parse_exec as Parse, r#"{"host":"h","command":""}"#, "`command`"),
            (
                SshAction::parse_exec,
                r#"{"host":"h","command":"a","timeout_seconds":601}"#,
                "`timeout_seconds`",
            ),
            (SshAction::parse_exec, r#"{"host":"h","command":"a","max_bytes":0}"#, "`max_bytes`"),
            (SshAction::parse_upload, r#"{"host":"h","path":"/a"}"#, "`content`"),
            (
                SshAction::parse_upload,
                r#"{"host":"h","path":"/a","content":"","content_base64":""}"#,
                "`content`",
            ),
            (
                SshAction::parse_upload,
                r#"{"host":"h","path":"/a","content_base64":"eA"}"#,
                "`content_base64`",
            ),
            (
                SshAction::parse_upload,
                r#"{"host":"h","path":"/a","content_base64":"e A=="}"#,
                "`content_base64`",
            ),
            (
                SshAction::parse_upload,
                r#"{"host":"h","path":"/a","content":"","mode":"1777"}"#,
                "`1777`",
            ),
            (
                SshAction::parse_upload,
                r#"{"host":"h","path":"/dir/../etc/x","content":""}"#,
                "`/dir/../etc/x`",
            ),
            (SshAction::parse_download, r#"{"host":"h","path":"rel/x"}"#, "`rel/x`"),
        ] {
            let message = parse(kind, text).unwrap_err();
            assert!(message.contains(named), "{text}: {message}");
        }
    }
}
