//! The rows of one segment, judged on all cores and taken in their order.

use std::collections::BTreeMap;
use std::io;
use std::thread::Scope;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::signature::ManyOf;
use super::{Lines, Stop, Walk, misplaced};
use crate::audit::contents::Contents;
use crate::audit::row::{ChainId, Hash, Place, Row, RowFault};

/// Lines that a core takes at a time; and, for long ones, bytes.
const LINES: usize = 128;
const BYTES: usize = 512 * 1024;
/// Pieces on their way for each core.
const AHEAD: usize = 3;

struct Piece {
    number: usize,
    lines: Vec<Vec<u8>>,
}

struct Judged {
    number: usize,
    lines: Vec<Vec<u8>>,
    rows: Vec<Result<(Place, Hash), &'static str>>,
}

/// Goes over what follows a segment's first row.
pub(super) fn rows(walk: &mut Walk<'_>, lines: &mut Lines) -> Result<(), Stop> {
    let (Some(chain), Some(key)) = (walk.report.chain, walk.key) else {
        return Ok(());
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    // Under what is no key nothing is signed, so whatever follows is a fault.
    let key = ManyOf::new(key);
    let (pieces, to_judge) = bounded(cores * AHEAD);
    let (judged, results) = bounded(cores * AHEAD);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            start(scope, chain, key.as_ref(), to_judge.clone(), judged.clone())?;
        }
        drop((to_judge, judged));
        // It owns the sending half, whose end is the end of the cores' work.
        take_in_order(walk, lines, pieces, &results, cores * AHEAD)
    })
}

fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    chain: ChainId,
    key: Option<&'scope ManyOf>,
    pieces: Receiver<Piece>,
    judged: Sender<Judged>,
) -> io::Result<()> {
    let work = move || {
        for Piece { number, lines } in pieces {
            let rows = lines.iter().map(|line| judge(line, chain, key)).collect();
            if judged.send(Judged { number, lines, rows }).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("verify".into()).spawn_scoped(scope, work).map(|_| ())
}

fn judge(line: &[u8], chain: ChainId, key: Option<&ManyOf>) -> Result<(Place, Hash), &'static str> {
    let Some(row) = line.strip_suffix(b"\n").and_then(Row::parse) else {
        return Err(RowFault::Spelling.as_str());
    };
    if !row.has_its_hash(chain) {
        return Err(RowFault::Hash.as_str());
    }
    if !key.is_some_and(|key| key.verify(&row.hash.0, &row.signature)) {
        return Err(RowFault::Signature.as_str());
    }
    match Contents::parse(&row.sealed) {
        Some(Contents::Events { .. }) => Ok((row.place, row.hash)),
        Some(Contents::Start(_)) => Err("a segment begins inside another"),
        None => Err("it holds what no row may"),
    }
}

fn take_in_order(
    walk: &mut Walk<'_>,
    lines: &mut Lines,
    pieces: Sender<Piece>,
    results: &Receiver<Judged>,
    most: usize,
) -> Result<(), Stop> {
    let (mut sent, mut taken, mut at_end) = (0, 0, false);
    let mut early: BTreeMap<usize, Judged> = BTreeMap::new();
    loop {
        while !at_end && sent - taken < most {
            let piece = read(lines)?;
            at_end = piece.is_empty();
            // All cores stop only when this function has.
            if !at_end && pieces.send(Piece { number: sent, lines: piece }).is_ok() {
                sent += 1;
            }
        }
        if sent == taken {
            return Ok(());
        }
        let Ok(judged) = results.recv() else {
            return Err(Stop::System(io::Error::other("a thread that verifies ended")));
        };
        early.insert(judged.number, judged);
        while let Some(judged) = early.remove(&taken) {
            taken += 1;
            let is_last = at_end && sent == taken;
            take(walk, lines, &judged, is_last)?;
        }
    }
}

fn take(
    walk: &mut Walk<'_>,
    lines: &mut Lines,
    judged: &Judged,
    is_last: bool,
) -> Result<(), Stop> {
    for (at, (line, row)) in judged.lines.iter().zip(&judged.rows).enumerate() {
        let expected = Place { seq: walk.seq + 1, prev: walk.hash };
        match row {
            Ok((place, hash)) if *place == expected => {
                walk.end += line.len() as u64;
                walk.pass(place.seq, *hash)?;
                walk.report.rows += 1;
                walk.report.bytes += line.len() as u64;
            }
            Ok((place, _)) => return Err(walk.damage(misplaced(place, expected.seq))),
            Err(what) if is_last && at + 1 == judged.lines.len() => {
                return walk.end_badly(line, lines, what);
            }
            Err(what) => return Err(walk.damage(*what)),
        }
    }
    Ok(())
}

fn read(lines: &mut Lines) -> io::Result<Vec<Vec<u8>>> {
    let (mut piece, mut bytes) = (Vec::with_capacity(LINES), 0);
    while piece.len() < LINES && bytes < BYTES {
        let Some(line) = lines.next_line()? else { break };
        bytes += line.len();
        piece.push(line);
    }
    Ok(piece)
}
