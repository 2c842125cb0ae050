//! The corpus of malformed and ambiguous frames in `fixtures/frames/`.
//!
//! Owns the format of these files: header lines `key: value`, an empty line, then the bytes of the
//! frame up to the end of the file. A line feed is sent behind them unless the header says `lf: no`.
//!
//! | key | value |
//! |---|---|
//! | `defect` | what is wrong, in a sentence; one defect a file |
//! | `code` | of the error, or `result` (a result with `isError`), or `none` (no answer) |
//! | `then` | `closes` or `open`: what becomes of the session |
//! | `id` | of the answer, as JSON; `null` is "`null` or no id, as the revision wants it"; `none` if there is no answer |
//! | `session` | what comes first: `handshake` (where this line is missing) or `none` |
//! | `lf` | `no`: the input ends behind the frame |
//! | `generate` | instead of a body: `KIND N`, see [`generated`] |

use std::path::{Path, PathBuf};

/// One frame and what is to become of it.
pub(crate) struct FrameCase {
    /// The name of the file without its ending; [`FrameCase::action`] has it too.
    pub(crate) name: String,
    /// What is wrong, in a sentence.
    pub(crate) defect: String,
    /// What comes back.
    pub(crate) answer: Answer,
    /// Whether the session closes.
    pub(crate) closes: bool,
    /// Whether a handshake comes first.
    pub(crate) handshake: bool,
    /// All that is written, with the line feed if there is one.
    pub(crate) input: Vec<u8>,
}

/// What comes back; ids are JSON, `null` also standing for an answer without an id.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    None,
    Error { code: i32, id: String },
    ToolError { id: String },
}

impl FrameCase {
    /// What stands in the URL of this frame's own action and nowhere else, if it has an action.
    pub(crate) fn action(&self) -> String {
        format!("/repos/frame-{}/", self.name)
    }

    /// Whether its line ends: if not, the input ends with it.
    pub(crate) fn is_terminated(&self) -> bool {
        self.input.ends_with(b"\n")
    }
}

/// All frames, by name.
pub(crate) fn corpus() -> Vec<FrameCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/frames");
    let files = folder.read_dir().expect("fixtures/frames can be listed");
    let paths = files.map(|file| file.expect("fixtures/frames can be listed").path());
    let mut frames: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "frame")).collect();
    frames.sort();
    frames.iter().map(|path| load(path)).collect()
}

fn load(path: &Path) -> FrameCase {
    let name = path.file_stem().and_then(|stem| stem.to_str()).expect("its name is UTF-8");
    let file = std::fs::read(path).expect("a fixture can be read");
    let end = file.windows(2).position(|pair| pair == b"\n\n");
    let (header, body) = file.split_at(end.unwrap_or_else(|| panic!("{name}: no empty line")));
    let header = std::str::from_utf8(header).expect("the header is UTF-8");
    parse(name, header, &body[2..])
}

fn parse(name: &str, header: &str, body: &[u8]) -> FrameCase {
    let (mut defect, mut code, mut then, mut id) = (None, None, None, None);
    let (mut session, mut lf, mut generate) = ("handshake", "yes", None);
    for line in header.lines() {
        match line.split_once(": ") {
            Some(("defect", value)) => defect = Some(value),
            Some(("code", value)) => code = Some(value),
            Some(("then", value)) => then = Some(value),
            Some(("id", value)) => id = Some(value),
            Some(("session", value)) => session = value,
            Some(("lf", value)) => lf = value,
            Some(("generate", value)) => generate = Some(value),
            _ => panic!("{name}: {line:?} is no header line"),
        }
    }
    let wanted = |key, value: Option<&str>| {
        value.unwrap_or_else(|| panic!("{name}: the header has no {key}")).to_owned()
    };
    let mut input = match generate {
        Some(how) if body.is_empty() => generated(name, how),
        Some(_) => panic!("{name}: a generated frame has no body"),
        None => body.to_vec(),
    };
    input.extend(one_of(name, lf, &[("yes", Some(b'\n')), ("no", None)]));
    FrameCase {
        name: name.to_owned(),
        defect: wanted("defect", defect),
        answer: answer(name, &wanted("code", code), wanted("id", id)),
        closes: one_of(name, &wanted("then", then), &[("closes", true), ("open", false)]),
        handshake: one_of(name, session, &[("handshake", true), ("none", false)]),
        input,
    }
}

fn one_of<T: Copy>(name: &str, value: &str, meanings: &[(&str, T)]) -> T {
    let meaning = meanings.iter().find(|(word, _)| *word == value);
    meaning.unwrap_or_else(|| panic!("{name}: {value:?} is no value")).1
}

fn answer(name: &str, code: &str, id: String) -> Answer {
    match code {
        "none" => {
            assert_eq!(id, "none", "{name}: the id of no answer");
            Answer::None
        }
        "result" => Answer::ToolError { id },
        code => Answer::Error { code: code.parse().expect("a code is a number"), id },
    }
}

/// A frame that is too large to keep. `padded N`: the frame's own call, then blanks up to N bytes.
/// `nested N`: the frame's own call with a value that makes it N levels deep. `unclosed N`: N
/// opening brackets.
fn generated(name: &str, how: &str) -> Vec<u8> {
    let (kind, count) = how.split_once(' ').expect("KIND N");
    let count: usize = count.parse().expect("N is a number");
    match kind {
        "padded" => {
            let mut frame = call(name, "null").into_bytes();
            frame.resize(count, b' ');
            frame
        }
        // Message, params and arguments are the first three levels.
        "nested" => call(name, &("[".repeat(count - 3) + &"]".repeat(count - 3))).into_bytes(),
        "unclosed" => vec![b'['; count],
        _ => panic!("{name}: {kind:?} is no kind of frame"),
    }
}

fn call(name: &str, json: &str) -> String {
    let url = format!("http://127.0.0.1:1/repos/frame-{name}/x");
    let arguments = format!(r#"{{"method":"POST","url":"{url}","json":{json}}}"#);
    let params = format!(r#"{{"name":"http_request","arguments":{arguments}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{params}}}"#)
}
