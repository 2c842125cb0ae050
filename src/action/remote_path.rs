//! The path of a file on a host.

use super::Refused;
use super::quote::Quote;
use crate::limits;
use crate::state::Reason;

/// A path that names one file of a host, whatever folder a session begins in; links aside.
///
/// Shape: absolute, UTF-8; no part is empty, `.` or `..`; no control character. Bound:
/// `limits::REMOTE_PATH_BYTES`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemotePath(String);

impl RemotePath {
    /// Reads a path.
    ///
    /// # Errors
    /// [`Refused`]: the call ends `rejected`, and nothing was connected.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let fault = if text.len() > limits::REMOTE_PATH_BYTES {
            Some("is too long")
        } else if text.chars().any(char::is_control) {
            Some("has a control character")
        } else {
            part_fault(text)
        };
        match fault {
            None => Ok(Self(text.into())),
            Some(fault) => {
                let message = format!("The path {} {fault}.", Quote(text));
                Err(Refused { reason: Reason::Arguments, message })
            }
        }
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its parts, the folders first.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').skip(1)
    }
}

/// What is wrong with the parts of a path or of a pattern of paths.
pub(crate) fn part_fault(text: &str) -> Option<&'static str> {
    let Some(parts) = text.strip_prefix('/') else { return Some("is not absolute") };
    parts.split('/').find_map(|part| match part {
        "" => Some("has an empty part, or ends with a slash"),
        "." | ".." => Some("has a part that is `.` or `..`"),
        _ => None,
    })
}

/// The permissions of a file that is made: at most 0777.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileMode(u16);

impl FileMode {
    /// What holds where an upload says nothing: the owner alone.
    pub const DEFAULT: Self = Self(0o600);

    /// Reads three octal digits, or four of which the first is 0.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        let is_octal = digits.len() == 3 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = u16::from_str_radix(digits, 8).ok().filter(|_| is_octal);
        bits.map(Self).ok_or_else(|| Refused {
            reason: Reason::Arguments,
            message: format!(
                "The mode {} is none from 000 to 777, as three octal digits.",
                Quote(text)
            ),
        })
    }

    /// The bits.
    pub fn bits(self) -> u16 {
        self.0
    }
}

impl std::fmt::Display for FileMode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for good in ["/a", "/a/b.c", "/a b/é", "/..a/b..", "/~/$x", "/-x", "/..."] {
            assert_eq!(RemotePath::parse(good).unwrap().as_str(), good);
        }
        let long = format!("/{}", "x".repeat(limits::REMOTE_PATH_BYTES));
        for bad in [
            "",
            "/",
            "a",
            "rel/x",
            "~/x",
            "./x",
            "/a/",
            "//a",
            "/a//b",
            "/.",
            "/a/..",
            "/dir/../etc/x",
            "/a/./b",
            "/a\0",
            "/a\nb",
            "/a\u{7f}",
            &long,
        ] {
            let refused = RemotePath::parse(bad).unwrap_err();
            assert_eq!(refused.reason, Reason::Arguments, "{bad:?}");
        }
        assert!(
            RemotePath::parse(&long[1..]).is_err()
                && RemotePath::parse(&long[..long.len() - 1]).is_ok()
        );
        let path = RemotePath::parse("/a/b").unwrap();
        assert_eq!(path.parts().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn modes() {
        for (text, bits) in
            [("644", 0o644), ("0644", 0o644), ("000", 0), ("0777", 0o777), ("077", 0o77)]
        {
            assert_eq!(FileMode::parse(text).unwrap().bits(), bits, "{text}");
        }
        for bad in
            ["", "0", "64", "1777", "4755", "00644", "0o644", "888", "+77", "-77", " 644", "rw-"]
        {
            assert!(FileMode::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(FileMode::DEFAULT.to_string(), "0600");
    }
}
