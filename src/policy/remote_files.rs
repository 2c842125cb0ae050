//! Patterns over the paths of files on a host.
//!
//! Invariant: as for the paths of URLs, what permits matches to the letter, what restricts also without case.

use super::argv::{glob, is_glob_of};
use super::path::{Segment, align};
use crate::action::remote_path::part_fault;
use crate::action::ssh::RemotePath;

/// A pattern over an absolute path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePattern {
    /// As the configuration spells it.
    text: String,
    /// An asterisk in a literal is a part of that segment.
    segments: Vec<Segment>,
}

impl FilePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, the end of a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(fault) = part_fault(text) {
            return Err(fault);
        }
        if text.chars().any(char::is_control) {
            return Err("has a control character");
        }
        let segment = |part: &str| match part {
            "*" => Ok(Segment::One),
            "**" => Ok(Segment::Many),
            _ if part.contains("**") => Err("has ** beside other characters of a part"),
            _ => Ok(Segment::Literal(part.into())),
        };
        let segments = text.split('/').skip(1).map(segment).collect::<Result<_, _>>()?;
        Ok(Self { text: text.into(), segments })
    }

    /// As the configuration spells it.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it holds a `**`.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.segments.contains(&Segment::Many)
    }

    /// Whether it is one path.
    pub(crate) fn is_literal(&self) -> bool {
        !self.text.contains('*')
    }

    /// Whether a path fits to the letter: what a rule that permits asks.
    pub(crate) fn fits(&self, path: &RemotePath) -> bool {
        self.align(path, |pattern, part| glob(pattern.as_bytes(), part.as_bytes()))
    }

    /// Whether a path fits without case: what a rule that restricts asks.
    pub(crate) fn fits_loosely(&self, path: &RemotePath) -> bool {
        self.align(path, is_glob_of)
    }

    fn align(&self, path: &RemotePath, is_alike: impl Fn(&str, &str) -> bool) -> bool {
        let parts: Vec<&str> = path.parts().collect();
        align(&self.segments, &parts, |segment, part| match segment {
            Segment::Literal(pattern) => is_alike(pattern, part),
            Segment::One => true,
            Segment::Many => false,
        })
    }

    /// Whether every path that fits `other` fits this one loosely. It may say no where the answer is yes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        align(&self.segments, &other.segments, |segment, token| match (segment, token) {
            (Segment::One, Segment::Literal(_) | Segment::One) => true,
            (Segment::Literal(here), Segment::Literal(there)) => {
                here.eq_ignore_ascii_case(there)
                    || (!there.contains('*') && is_glob_of(here, there))
            }
            (Segment::Literal(_), Segment::One) => false,
            (Segment::Literal(_) | Segment::One, Segment::Many) | (Segment::Many, _) => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, path, fits, loosely) in [
            ("/var/log/app/**", "/var/log/app/a/b", true, true),
            ("/var/log/app/**", "/var/log/app/a", true, true),
            ("/var/log/app/**", "/var/log/app2/a", false, false),
            ("/var/log/*", "/var/log/a", true, true),
            ("/var/log/*", "/var/log/a/b", false, false),
            ("/var/log/*.log", "/var/log/a.log", true, true),
            ("/var/log/*.log", "/var/log/A.LOG", false, true),
            ("/var/log/*.log", "/var/log/a.txt", false, false),
            ("/etc/x", "/ETC/x", false, true),
            ("/**/x", "/a/b/x", true, true),
            ("/**", "/a", true, true),
        ] {
            let (pattern, path) =
                (FilePattern::parse(pattern).unwrap(), RemotePath::parse(path).unwrap());
            assert_eq!(
                (pattern.fits(&path), pattern.fits_loosely(&path)),
                (fits, loosely),
                "{pattern:?} {path:?}"
            );
        }
        for bad in ["", "a/*", "~/x", "/", "/a/", "/a/../b", "/a/./b", "/a//b", "/a**", "/a\n"] {
            assert!(FilePattern::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn patterns_cover_others() {
        for (pattern, other, covers) in [
            ("/a/**", "/a/b/*", true),
            ("/a/*", "/A/b*", true),
            ("/a/b*", "/a/bc", true),
            ("/a/b*", "/a/*", false),
            ("/a/*", "/a/**", false),
        ] {
            let [pattern, other] = [pattern, other].map(|text| FilePattern::parse(text).unwrap());
            assert_eq!(pattern.covers(&other), covers, "{pattern:?} {other:?}");
        }
    }
}
