//! Patterns over paths, and the ways in which a server may read a path.
//!
//! Invariant: a pattern that permits matches to the letter; one that restricts matches every reading
//! of a path that is known of some server. What permits is never wider than what restricts.

use super::alike;
use crate::action::percent;
use crate::action::url::{self, UrlFault};

/// A pattern over the path after a target's base, from its slash.
#[derive(PartialEq, Eq, Debug)]
pub struct PathPattern {
    /// As the configuration spells it.
    pub(crate) text: String,
    pub(crate) segments: Vec<Segment>,
    /// The same with its literals folded and without a final slash: what a rule that restricts compares.
    loose: Vec<Segment>,
}

/// One segment of a path's pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Exactly this segment, percent-encoded as in a URL.
    Literal(String),
    /// `*`: one whole segment.
    One,
    /// `**`: any number of segments, also none.
    Many,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PatternFault {
    /// It does not begin with a slash.
    NoSlash,
    /// An asterisk stands beside other characters of a segment.
    PartOfSegment,
    /// A question mark: a rule has `query` for that.
    Query,
    /// No URL has such a path.
    Path(UrlFault),
}

/// A path after a target's base, taken apart in every way in which a server may read it.
#[derive(Debug)]
pub(crate) struct PathReadings<'a> {
    exact: Vec<&'a str>,
    loose: Vec<Vec<String>>,
}

impl PathPattern {
    /// Reads a pattern. Its literals are brought into the canonical form that URLs have.
    pub(crate) fn parse(text: &str) -> Result<Self, PatternFault> {
        if !text.starts_with('/') {
            return Err(PatternFault::NoSlash);
        }
        if text.contains('?') {
            return Err(PatternFault::Query);
        }
        let canonical = url::parse_path(text).map_err(PatternFault::Path)?;
        let segments: Vec<Segment> =
            canonical.split('/').skip(1).map(Segment::parse).collect::<Result<_, _>>()?;
        let loose = loosened(&segments);
        Ok(Self { text: text.into(), segments, loose })
    }

    /// Whether a path fits to the letter: what a rule that permits asks.
    pub(crate) fn fits(&self, path: &PathReadings<'_>) -> bool {
        align(&self.segments, &path.exact, |segment, text| match segment {
            Segment::Literal(literal) => literal == text,
            Segment::One => !text.is_empty(),
            Segment::Many => false,
        })
    }

    /// Whether a path fits in any reading: what a rule that restricts asks.
    pub(crate) fn fits_loosely(&self, path: &PathReadings<'_>) -> bool {
        let fits = |reading: &Vec<String>| {
            align(&self.loose, reading, |segment, text| match segment {
                Segment::Literal(literal) => alike::are_alike(literal, text),
                Segment::One => true,
                Segment::Many => false,
            })
        };
        self.fits(path) || path.loose.iter().any(fits)
    }

    /// Whether every path that fits `other` fits this one loosely. It may say no where the answer is yes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        align(&self.loose, &other.loose, |segment, token| match (segment, token) {
            (Segment::Literal(here), Segment::Literal(there)) => here == there,
            (Segment::One, Segment::Literal(_) | Segment::One) => true,
            (Segment::Literal(_), Segment::One) => false,
            (Segment::Literal(_) | Segment::One, Segment::Many) | (Segment::Many, _) => false,
        })
    }

    /// Whether it holds a `**`.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.segments.contains(&Segment::Many)
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, PatternFault> {
        match text {
            "*" => Ok(Self::One),
            "**" => Ok(Self::Many),
            _ if text.contains('*') => Err(PatternFault::PartOfSegment),
            _ => Ok(Self::Literal(text.into())),
        }
    }

    fn loosened(&self) -> Self {
        match self {
            Self::Literal(text) => Self::Literal(alike::folded(text)),
            Self::One => Self::One,
            Self::Many => Self::Many,
        }
    }
}

fn loosened(segments: &[Segment]) -> Vec<Segment> {
    let kept = match segments {
        [front @ .., Segment::Literal(last)] if last.is_empty() => front,
        _ => segments,
    };
    kept.iter().map(Segment::loosened).collect()
}

impl<'a> PathReadings<'a> {
    /// Takes a path apart that is empty or begins with a slash.
    pub(crate) fn of(path: &'a str) -> Self {
        let exact: Vec<&str> = path.split('/').skip(1).collect();
        let kept = exact.strip_suffix(&[""]).unwrap_or(&exact);
        let mut loose = vec![folded(kept)];
        if let Some(cut) = cut_at_question_mark(kept) {
            loose.push(cut);
        }
        add_each(&mut loose, without_empty);
        add_each(&mut loose, without_suffix);
        Self { exact, loose }
    }
}

fn folded(segments: &[&str]) -> Vec<String> {
    segments.iter().map(|segment| alike::folded(segment)).collect()
}

/// Adds what `read` makes of each reading.
fn add_each(readings: &mut Vec<Vec<String>>, read: fn(&[String]) -> Option<Vec<String>>) {
    let more: Vec<_> = readings.iter().filter_map(|reading| read(reading)).collect();
    readings.extend(more);
}

/// An encoded `?` or `#` that a proxy decodes ends the path there.
fn cut_at_question_mark(segments: &[&str]) -> Option<Vec<String>> {
    let ends = |segment: &&str| percent::decoded(segment).contains(['?', '#']);
    let last = segments.iter().position(ends)?;
    Some(folded(&segments[..=last]))
}

/// Servers that merge slashes do not see a segment that is only blanks, dots or parameters.
fn without_empty(segments: &[String]) -> Option<Vec<String>> {
    let full = |segment: &&String| !segment.is_empty();
    let kept: Vec<String> = segments.iter().filter(full).cloned().collect();
    (kept.len() < segments.len()).then_some(kept)
}

/// Frameworks that take `/users.json` for `/users`: the format that is asked for is no part of the route.
fn without_suffix(segments: &[String]) -> Option<Vec<String>> {
    let (last, front) = segments.split_last()?;
    let (stem, _) = last.rsplit_once('.')?;
    let stem = stem.trim_end_matches([' ', '.']).to_owned();
    Some(front.iter().cloned().chain([stem]).collect())
}

/// Whether tokens fit a pattern. `Many` takes any number of tokens; `fits` judges the other two.
///
/// Time: at most the product of both lengths, since only the last `Many` is ever taken back.
pub(super) fn align<T>(
    pattern: &[Segment],
    tokens: &[T],
    fits: impl Fn(&Segment, &T) -> bool,
) -> bool {
    let (mut segment, mut token) = (0, 0);
    let mut last_many = None;
    while let Some(next) = tokens.get(token) {
        match pattern.get(segment) {
            Some(Segment::Many) => {
                segment += 1;
                last_many = Some((segment, token));
            }
            Some(expected) if fits(expected, next) => {
                segment += 1;
                token += 1;
            }
            Some(Segment::Literal(_) | Segment::One) | None => match last_many {
                Some((after_many, taken)) => {
                    segment = after_many;
                    token = taken + 1;
                    last_many = Some((after_many, token));
                }
                None => return false,
            },
        }
    }
    pattern[segment..].iter().all(|rest| *rest == Segment::Many)
}
