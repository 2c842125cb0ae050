//! The wire layer against the corpus of malformed frames: what is refused there, and that nothing
//! depends on how the bytes arrive. What the layers above refuse must reach them as a sound message.

use keyward::limits::Limits;
use keyward::wire::frame::Splitter;
use keyward::wire::rpc::{self, Fault, Message};

#[expect(dead_code, reason = "the process-level suite uses the rest")]
#[path = "gateway/frames.rs"]
mod frames;

use frames::{Answer, FrameCase, corpus};

/// The first verdict on an input that arrives in pieces ending at `cuts`; `None` for no frame at all.
fn verdict(input: &[u8], cuts: impl IntoIterator<Item = usize>) -> Option<Result<Message, Fault>> {
    let mut splitter = Splitter::new(Limits::default().frame_bytes());
    let mut start = 0;
    for end in cuts.into_iter().chain([input.len()]) {
        let mut chunk = input.get(start..end)?;
        if let Some(frame) = splitter.take(&mut chunk) {
            return Some(frame.map_err(Fault::from).and_then(rpc::parse));
        }
        start = end;
    }
    splitter.finish().err().map(|fault| Err(fault.into()))
}

/// A verdict in a line, the parameters and what becomes of the session included.
fn shown(verdict: &Option<Result<Message, Fault>>) -> String {
    match verdict {
        Some(Ok(Message::Request(it))) => {
            format!("request {} {} {:?}", it.id, it.method, it.params().map(|it| it.as_text()))
        }
        Some(Ok(Message::Notification(it))) => {
            format!("notification {} {:?}", it.method, it.params().map(|it| it.as_text()))
        }
        other => format!("{other:?}"),
    }
}

/// What the fault does, in the words of a frame's header.
fn answer(fault: &Fault) -> Answer {
    let id = fault.id().map_or("null".to_owned(), ToString::to_string);
    if fault.is_answered() { Answer::Error { code: fault.code(), id } } else { Answer::None }
}

#[test]
fn the_corpus_is_sound() {
    let frames = corpus();
    assert!(frames.len() >= 70, "{} frames", frames.len());
    for frame in &frames {
        let FrameCase { name, defect, .. } = frame;
        assert!(defect.ends_with('.'), "{name}: {defect}");
        let text: String =
            frame.input.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
        let actions: Vec<&str> = text.split("/repos/frame-").skip(1).collect();
        let own = |rest: &&str| rest.starts_with(&format!("{name}/"));
        assert!(actions.iter().all(own), "{name}: the action of another frame");
        let acts = text.contains("tools/call") && !name.starts_with("arguments-");
        assert!(!acts || !actions.is_empty(), "{name}: no action of its own");
        let closing = matches!(frame.answer, Answer::Error { code: -32700 | -32600, .. });
        assert_eq!(frame.closes, closing, "{name}: what closes is -32700 or -32600");
        assert!(frame.closes || frame.is_terminated(), "{name}: stays open, so its line must end");
    }
}

#[test]
fn each_frame_gets_the_verdict_of_its_header() {
    for frame in corpus() {
        let name = &frame.name;
        match verdict(&frame.input, []) {
            Some(Err(fault)) => {
                assert_eq!(answer(&fault), frame.answer, "{name}: {fault:?}");
                assert_eq!(fault.closes(), frame.closes, "{name}: {fault:?}");
            }
            // Nothing was asked here, so no response is wanted.
            Some(Ok(Message::Response(_))) => {
                let unasked = Answer::Error { code: -32600, id: "null".to_owned() };
                assert_eq!(frame.answer, unasked, "{name}");
            }
            Some(Ok(Message::Notification(_))) => assert_eq!(frame.answer, Answer::None, "{name}"),
            Some(Ok(Message::Request(request))) => match &frame.answer {
                Answer::Error { id, code } => {
                    assert!(![-32700, -32600].contains(code), "{name}: accepted");
                    assert!(!name.contains("surrogate"), "{name}: accepted");
                    assert_eq!(*id, request.id.to_string(), "{name}");
                }
                Answer::ToolError { id } => assert_eq!(*id, request.id.to_string(), "{name}"),
                Answer::None => panic!("{name}: a request is answered"),
            },
            None => panic!("{name}: no verdict"),
        }
    }
}

#[test]
fn no_verdict_depends_on_how_the_bytes_arrive() {
    for frame in corpus() {
        let len = frame.input.len();
        let whole = shown(&verdict(&frame.input, []));
        // At every byte, but for the few frames of megabytes.
        let step = if len < 65_536 { 1 } else { len / 64 };
        for cut in (0..=len).step_by(step).chain(len.saturating_sub(8)..len) {
            assert_eq!(shown(&verdict(&frame.input, [cut])), whole, "{} cut at {cut}", frame.name);
        }
        assert_eq!(shown(&verdict(&frame.input, 1..len)), whole, "{} byte by byte", frame.name);
    }
}

/// A small deterministic source of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Overwrites, takes out or doubles a few bytes somewhere.
fn damage(random: &mut Random, input: &mut Vec<u8>) {
    const BYTES: &[u8] = b"{}[]:,\"\\u0-.eE \t\r\n\0\x01\x7f\x80\xbf\xc3\xe2\xed\xf0\xff/'d8";
    let start = random.below(input.len() + 1);
    let end = (start + random.below(4)).min(input.len());
    let cut = input[start..end].to_vec();
    let byte = BYTES[random.below(BYTES.len())];
    let middle = match random.below(4) {
        0 => Vec::new(),
        1 => [cut.clone(), cut].concat(),
        2 => vec![byte],
        _ => [cut, vec![byte]].concat(),
    };
    input.splice(start..end, middle);
}

#[test]
fn damaged_frames_never_panic_and_get_one_verdict_only() {
    let mut random = Random(0x5eed);
    let (mut sound, mut refused) = (0, 0);
    for frame in corpus().iter().filter(|frame| frame.input.len() < 65_536) {
        for _ in 0..100 {
            let mut input = frame.input.clone();
            for _ in 0..=random.below(3) {
                damage(&mut random, &mut input);
            }
            let whole = verdict(&input, []);
            let mut cuts: Vec<usize> = (0..5).map(|_| random.below(input.len() + 1)).collect();
            cuts.sort_unstable();
            assert_eq!(shown(&verdict(&input, cuts)), shown(&whole), "{}", frame.name);
            match whole {
                Some(Ok(_)) => sound += 1,
                Some(Err(fault)) => refused += usize::from(fault.message().len() > 10),
                None => assert!(input.is_empty(), "{}", frame.name),
            }
        }
    }
    assert!(sound > 100 && refused > 1000, "{sound} sound, {refused} refused");
}
