//! The body of an answer: unpacked, redacted, capped, in this order.
//!
//! Invariant: what cannot be looked into for credentials is not shown, and no more is kept than the cap,
//! however much a few bytes unpack to.

use std::cell::Cell;
use std::io::{self, Cursor, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use ureq::http::{HeaderMap, HeaderName, header};

use super::call;
use super::head::Framing;
use crate::credential::redact::{Edge, Redactor};
use crate::execute::BodyEnd;
use crate::limits;

/// A body as far as it was read.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) end: BodyEnd,
    pub(super) redactions: u64,
}

/// How a body is packed; the outermost layer last, as the header lists them.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Coding {
    /// In layers that we unpack; none is plain.
    Known(Vec<Layer>),
    /// In one that we do not, or in too many.
    Unknown,
}

/// One layer of packing. Source: RFC 9110, section 8.4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer {
    Gzip,
    Deflate,
}

impl Coding {
    /// Reads the `Content-Encoding` of an answer.
    pub(super) fn new(headers: &HeaderMap) -> Self {
        let mut layers = Vec::new();
        for value in headers.get_all(header::CONTENT_ENCODING) {
            for name in value.as_bytes().split(|&byte| byte == b',') {
                match name.trim_ascii().to_ascii_lowercase().as_slice() {
                    b"" | b"identity" => {}
                    b"gzip" | b"x-gzip" => layers.push(Layer::Gzip),
                    b"deflate" => layers.push(Layer::Deflate),
                    _ => return Self::Unknown,
                }
            }
        }
        if layers.len() > limits::CODINGS { Self::Unknown } else { Self::Known(layers) }
    }

    /// The headers that are about the packed bytes, where those are not what is shown.
    pub(super) fn untrue_headers(&self, framing: Framing) -> &'static [HeaderName] {
        match (self, framing) {
            (Self::Known(layers), Framing::Proven | Framing::Close) if !layers.is_empty() => {
                &[header::CONTENT_ENCODING, header::CONTENT_LENGTH]
            }
            (Self::Known(_) | Self::Unknown, _) => &[],
        }
    }
}

/// Reads a body to its end, to the cap, or until reading stops.
pub(super) fn read(
    source: &mut dyn Read,
    coding: &Coding,
    framing: Framing,
    cap: usize,
    redactor: &Redactor,
) -> Content {
    let broken = Cell::new(false);
    let mut source = Watched { reader: source, broken: &broken, whose: Fault::Reading };
    let mut first = [0];
    let nothing = |end| Content { bytes: Vec::new(), end, redactions: 0 };
    let layers = match (source.read(&mut first), coding) {
        (Err(_), _) => return nothing(BodyEnd::Broken),
        (Ok(0), _) => return nothing(proof(framing)),
        (Ok(_), Coding::Unknown) => return nothing(BodyEnd::Withheld),
        (Ok(_), Coding::Known(layers)) => layers,
    };
    let packed = Box::new(Cursor::new(first).chain(&mut source));
    let mut unpacked = unpack(packed, layers, &broken);
    let (bytes, stop, redactions) = pour(&mut *unpacked, framing, cap, redactor);
    drop(unpacked);
    let end = match stop {
        Stop::Cap => BodyEnd::CutAtCap,
        // A packing may say its end before the body's end was seen.
        Stop::End => match source.read(&mut first) {
            Ok(0) => proof(framing),
            Ok(_) => BodyEnd::NotProven,
            Err(_) => BodyEnd::Broken,
        },
        Stop::Fault(_) if broken.get() => BodyEnd::Broken,
        Stop::Fault(io::ErrorKind::UnexpectedEof) => BodyEnd::NotProven,
        Stop::Fault(_) => return nothing(BodyEnd::Withheld),
    };
    Content { bytes, end, redactions }
}

/// What the end of the connection proves.
fn proof(framing: Framing) -> BodyEnd {
    match framing {
        Framing::Nothing | Framing::Proven => BodyEnd::Whole,
        Framing::Close => BodyEnd::NotProven,
    }
}

/// Why no more is read of an unpacked body.
enum Stop {
    End,
    Cap,
    Fault(io::ErrorKind),
}

/// Reads up to the cap through the redactor; says how many redactions there were.
///
/// A part of a credential goes at every edge but an end that is proven.
fn pour(
    reader: &mut dyn Read,
    framing: Framing,
    cap: usize,
    redactor: &Redactor,
) -> (Vec<u8>, Stop, u64) {
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    let mut left = cap;
    let mut buffer = [0; 16 * 1024];
    let stop = loop {
        // One byte beyond the cap shows whether there is more.
        let room = buffer.len().min(left.saturating_add(1));
        match reader.read(&mut buffer[..room]) {
            Ok(0) => break Stop::End,
            Ok(count) if count > left => {
                stream.push(&buffer[..left], &mut out);
                break Stop::Cap;
            }
            Ok(count) => {
                stream.push(&buffer[..count], &mut out);
                left -= count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Stop::Fault(error.kind()),
        }
        if out.len() > cap {
            break Stop::Cap;
        }
    };
    let edge = match (&stop, proof(framing)) {
        (Stop::End, BodyEnd::Whole) => Edge::Whole,
        (Stop::End | Stop::Cap | Stop::Fault(_), _) => Edge::Cut,
    };
    let redactions = stream.finish(edge, &mut out);
    // What stands for a credential may be longer than it.
    let stop = if out.len() > cap { Stop::Cap } else { stop };
    out.truncate(cap);
    (out, stop, redactions)
}

fn unpack<'r>(
    mut reader: Box<dyn Read + 'r>,
    layers: &[Layer],
    broken: &'r Cell<bool>,
) -> Box<dyn Read + 'r> {
    for layer in layers.iter().rev() {
        // A layer may take long over bytes that yield nothing, so each looks whether it still should.
        let watched = Watched { reader, broken, whose: Fault::Bytes };
        reader = match layer {
            Layer::Gzip => Box::new(MultiGzDecoder::new(watched)),
            Layer::Deflate => Box::new(ZlibDecoder::new(watched)),
        };
    }
    reader
}

/// Whose fault an error of a reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The connection's, or the call was stopped.
    Reading,
    /// That of the bytes that were read.
    Bytes,
}

/// A reader that notes when the reading fails, not what is read, and stops with the call.
struct Watched<'b, R> {
    reader: R,
    broken: &'b Cell<bool>,
    whose: Fault,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        call::check().inspect_err(|_| self.broken.set(true))?;
        self.reader.read(buffer).inspect_err(|_| {
            if self.whose == Fault::Reading {
                self.broken.set(true);
            }
        })
    }
}
