//! The small shell script under which a command runs that can be stopped by signals.
//!
//! Before the command it reports its own process, which leads the command's process group, and after it the
//! command's status; both on stderr, where they are taken out again ([`Marks`]).
//!
//! The script and the command have to pass the login shell, whichever that is: what stands between single quotes
//! there is made of bytes that all of them leave alone, and the rest is written as octal numbers. The command itself
//! is again given to the login shell, as it would be without all this.
//!
//! Invariant: the command's text, its stdin and its stdout are what they would be without the script. Only a status
//! above 128 no longer tells whether it was a signal.

use std::fmt::Write as _;

use super::seen::Exit;
use crate::hex::hex;

/// What sets a report of this script apart from whatever else is printed: fresh for each command.
#[derive(Clone, Copy)]
pub(super) struct Token([u8; 16]);

/// First byte of a report: the record separator.
const SEPARATOR: u8 = 0x1e;
/// Longest number and token in a report, and the bytes around them.
const REPORT_BYTES: usize = 48;

impl Token {
    pub(super) fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    fn hex(self) -> String {
        hex(&self.0)
    }
}

/// The line that runs a command under the script.
pub(super) fn wrap(command: &str, token: Token) -> String {
    // The trap lets the script outlive a signal to its group, until the command has ended; what it runs is not
    // trapped. What the shell itself has to say of a signal would be taken for the command's words. There are no
    // variables: one of the same name may be in the environment. The letter keeps line ends at the end.
    //
    // Everybody there can read this line, so its token marks the first report only, which is made before the command
    // is there; the other has a token that the script has from the system there, where that has one.
    let script = format!(
        "trap : HUP INT QUIT TERM;exec 3>&2 2>/dev/null;\
         set -- \"$(printf %bx \"$1\")\" \"$(od -An -N16 -tx1 /dev/urandom|tr -dc a-f0-9)\";\
         printf \"\\036{token} p %s %s\\n\" $$ \"$2\" >&3;\
         (exec \"${{SHELL:-/bin/sh}}\" -c \"${{1%x}}\" 2>&3 3>&-);\
         set -- $? \"$2\";printf \"\\036%s s %s\\n\" \"${{2:-{token}}}\" $1 >&3;exit $1",
        token = token.hex(),
    );
    format!("exec /bin/sh -c '{script}' keyward '{}'", encode(command))
}

/// The line that signals a process group and prints what became of it.
pub(super) fn signal(name: &str, group: u32) -> String {
    format!(
        "exec /bin/sh -c 'LC_ALL=C;export LC_ALL;kill -s {name} -- -{group} 2>&1 && echo signalled'"
    )
}

/// Whether that says that there is no such group.
pub(super) fn says_gone(said: &[u8]) -> bool {
    contains(said, b"No such process")
}

/// Whether that says that there was one.
pub(super) fn says_signalled(said: &[u8]) -> bool {
    contains(said, b"signalled")
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

/// Writes a command in bytes that every shell leaves alone between single quotes.
fn encode(command: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./:=,@%+-".contains(&byte);
    command.bytes().fold(String::new(), |mut text, byte| {
        if is_plain(byte) {
            text.push(byte.into());
        } else {
            write!(text, "\\0{byte:03o}").expect("writing to a string cannot fail");
        }
        text
    })
}

/// Takes the script's reports out of stderr.
pub(super) struct Marks {
    prefix: Vec<u8>,
    /// What may be the beginning of a report.
    held: Vec<u8>,
    /// The process group of the command.
    pub(super) group: Option<u32>,
    /// What the command ended with.
    pub(super) status: Option<u32>,
}

/// What stands at the beginning of some bytes.
enum Found {
    /// A report of so many bytes.
    Report(usize),
    /// Perhaps a report; more is needed to say.
    Perhaps,
    Nothing,
}

impl Marks {
    pub(super) fn new(token: Token) -> Self {
        let prefix = prefix(&token.hex());
        Self { prefix, held: Vec::new(), group: None, status: None }
    }

    /// What is known of the end.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.status.map(Exit::Status)
    }

    /// Takes the next bytes, and passes on what is not the script's.
    pub(super) fn push(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            joined = [std::mem::take(&mut self.held).as_slice(), bytes].concat();
            &joined
        };
        while let Some(at) = memchr::memchr(SEPARATOR, rest) {
            if at > 0 {
                pass(&rest[..at]);
                rest = &rest[at..];
            }
            match self.find(rest) {
                Found::Report(length) => rest = &rest[length..],
                Found::Perhaps => {
                    self.held = rest.to_vec();
                    return;
                }
                Found::Nothing => {
                    pass(&rest[..1]);
                    rest = &rest[1..];
                }
            }
        }
        if !rest.is_empty() {
            pass(rest);
        }
    }

    /// What is held back at the end is nothing of the script's.
    pub(super) fn finish(&mut self, pass: impl FnOnce(&[u8])) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            pass(&held);
        }
    }

    fn find(&mut self, bytes: &[u8]) -> Found {
        let Some(report) = bytes.strip_prefix(self.prefix.as_slice()) else {
            return if self.prefix.starts_with(bytes) { Found::Perhaps } else { Found::Nothing };
        };
        let report = &report[..report.len().min(REPORT_BYTES)];
        let Some(end) = memchr::memchr(b'\n', report) else {
            return if report.len() < REPORT_BYTES { Found::Perhaps } else { Found::Nothing };
        };
        let length = self.prefix.len() + end + 1;
        match self.take(&report[..end]) {
            Some(()) => Found::Report(length),
            None => Found::Nothing,
        }
    }

    /// The first report of a group counts, and the first of a status after it: no later one is the script's.
    fn take(&mut self, report: &[u8]) -> Option<()> {
        let (kind, rest) = std::str::from_utf8(report).ok()?.split_once(' ')?;
        match (kind, self.group, self.status) {
            ("p", None, None) => {
                let (number, token) = rest.split_once(' ')?;
                // A group of 0 would be the signaller's own, and 1 everybody.
                self.group = Some(number.parse().ok().filter(|group| *group > 1)?);
                if is_token(token) {
                    self.prefix = prefix(token);
                }
            }
            ("s", Some(_), None) => self.status = Some(rest.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

/// What stands before a report that has this token.
fn prefix(token: &str) -> Vec<u8> {
    [&[SEPARATOR], token.as_bytes(), b" "].concat()
}

/// Whether a host gave as many bytes as a token has.
fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token([0xab; 16]);

    fn report(text: &str) -> String {
        format!("\u{1e}{} {text}\n", "ab".repeat(16))
    }

    #[test]
    fn reports_are_taken_out_wherever_they_are_split() {
        let stream =
            format!("before{}mid\u{1e}dle\u{1e}abab \n{}after", report("p 4711 "), report("s 143"));
        for piece in 1..stream.len() {
            let (mut marks, mut passed) = (Marks::new(TOKEN), Vec::new());
            for bytes in stream.as_bytes().chunks(piece) {
                marks.push(bytes, |bytes| passed.extend_from_slice(bytes));
            }
            marks.finish(|bytes| passed.extend_from_slice(bytes));
            let passed = String::from_utf8(passed).unwrap();
            assert_eq!(passed, "beforemid\u{1e}dle\u{1e}abab \nafter", "{piece}");
            assert_eq!((marks.group, marks.status), (Some(4711), Some(143)), "{piece}");
        }
    }

    #[test]
    fn what_only_looks_like_a_report_is_passed_on() {
        for text in [
            report("p 0 "),
            report("p 1 "),
            report("p -5 "),
            report("p 5"),
            report("x 5"),
            report("s 0"),
            report("p"),
            report(""),
            report("p 111111111111111111111 "),
            "\u{1e}".into(),
            format!("\u{1e}{} p 12", "ab".repeat(16)),
            format!("\u{1e}{} p 12\n", "aa".repeat(16)),
        ] {
            let (mut marks, mut passed) = (Marks::new(TOKEN), Vec::new());
            marks.push(text.as_bytes(), |bytes| passed.extend_from_slice(bytes));
            marks.finish(|bytes| passed.extend_from_slice(bytes));
            assert_eq!(passed, text.as_bytes());
            assert_eq!((marks.group, marks.status), (None, None), "{text:?}");
        }
    }

    #[test]
    fn whoever_has_read_the_line_reports_nothing() {
        let own = "cd".repeat(16);
        let (group, status) = (format!("p 4711 {own}"), format!("\u{1e}{own} s 9\n"));
        let forged = [report("p 4712 "), report(&group), report("s 0")].concat();
        let (mut marks, mut passed) = (Marks::new(TOKEN), Vec::new());
        let stream = [report(&group), forged.clone(), status.clone(), status.clone()].concat();
        marks.push(stream.as_bytes(), |bytes| passed.extend_from_slice(bytes));
        marks.finish(|bytes| passed.extend_from_slice(bytes));
        assert_eq!((marks.group, marks.status), (Some(4711), Some(9)));
        assert_eq!(String::from_utf8(passed).unwrap(), forged + &status);
    }

    #[test]
    fn a_line_has_only_bytes_that_shells_leave_alone() {
        let line = wrap("it's $(a) \\ ! \n \u{e9}\t`b`", TOKEN);
        let quoted = line.strip_prefix("exec /bin/sh -c '").unwrap().strip_suffix('\'').unwrap();
        let (script, command) = quoted.split_once("' keyward '").unwrap();
        assert!(!script.contains(['\'', '!', '\n']) && script.is_ascii());
        let expected = r"it\0047s \0044\0050a\0051 \0134 \0041 \0012 \0303\0251\0011\0140b\0140";
        assert_eq!(command, expected);
    }

    #[test]
    fn every_login_shell_hands_the_command_over_as_it_is() {
        use std::io::Write as _;
        use std::process::{Command, Stdio};

        let hostile = r#"it's "a\b" $(id) `id` !x !! ~ * {a,b} [a] #x ; & | < > ^ % é \n \'"#;
        let lines = "one\ntwo\r\n\tthree\n\n";
        for shell in ["dash", "bash", "zsh", "fish", "tcsh"] {
            for text in [hostile, lines] {
                let command = format!("cat; printf %s '{}'; exit 3", text.replace('\'', r"'\''"));
                let mut child = Command::new(shell)
                    .args(["-c", &wrap(&command, TOKEN)])
                    .env("SHELL", "/bin/sh")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap_or_else(|_| panic!("{shell}: apt-get install {shell}"));
                let id = child.id();
                child.stdin.take().unwrap().write_all(b"in\0put\n").unwrap();
                let output = child.wait_with_output().unwrap();
                let expected = [b"in\0put\n", text.as_bytes()].concat();
                assert_eq!(output.stdout, expected, "{shell}");
                assert_eq!(output.status.code(), Some(3), "{shell}");
                let (mut marks, mut passed) = (Marks::new(TOKEN), Vec::new());
                marks.push(&output.stderr, |bytes| passed.extend_from_slice(bytes));
                assert_eq!(passed, b"", "{shell}");
                assert_eq!((marks.group, marks.status), (Some(id), Some(3)), "{shell}");
            }
        }
    }
}
