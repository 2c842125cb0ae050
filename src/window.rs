//! The debug window: for a stated time, all gateways of a home retain more of what helpers print.
//!
//! Invariant: a window ends by itself, and one that would be longer than `limits::DEBUG_FOR_MAX` is none:
//! a clock that was set back cannot keep it open.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limits;

/// The window of one home.
#[derive(Debug)]
pub struct Window(PathBuf);

/// Longest text of the file: a number of seconds.
const TEXT_BYTES: u64 = 32;

impl Window {
    /// That of a home's `run` folder. Nothing is read before it is asked for.
    pub fn new(run: &std::path::Path) -> Self {
        Self(run.join("debug"))
    }

    /// How long it is still open; `None` where it is not.
    pub fn left(&self) -> Option<Duration> {
        let mut text = String::new();
        fs::File::open(&self.0).ok()?.take(TEXT_BYTES).read_to_string(&mut text).ok()?;
        let ends = UNIX_EPOCH.checked_add(Duration::from_secs(text.trim().parse().ok()?))?;
        let left = ends.duration_since(SystemTime::now()).ok()?;
        (!left.is_zero() && left <= limits::DEBUG_FOR_MAX).then_some(left)
    }

    /// Opens it from now on, or changes when it ends; no time at all closes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open_for(&self, time: Duration) -> io::Result<()> {
        if time.is_zero() {
            return match fs::remove_file(&self.0) {
                Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
                _ => Ok(()),
            };
        }
        let time = time.min(limits::DEBUG_FOR_MAX);
        let ends = (SystemTime::now() + time).duration_since(UNIX_EPOCH).unwrap_or_default();
        // Written beside and moved, so that no gateway reads half of it.
        let beside = self.0.with_extension(std::process::id().to_string());
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        writeln!(file, "{}", ends.as_secs())?;
        fs::rename(&beside, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn with(text: &str) -> bool {
        let folder = std::env::temp_dir().join(format!("keyward-window-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let window = Window::new(&folder);
        fs::write(&window.0, text).unwrap();
        let open = window.left().is_some();
        fs::remove_dir_all(&folder).unwrap();
        open
    }

    #[test]
    fn it_is_open_until_its_time_and_never_for_longer_than_the_longest() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let longest = limits::DEBUG_FOR_MAX.as_secs();
        for (text, open) in [
            (format!("{}", now + 30), true),
            (format!("{}\n", now + longest - 5), true),
            (format!("{}", now + longest + 60), false),
            (format!("{}", now - 1), false),
            (String::new(), false),
            ("soon".into(), false),
            ("-1".into(), false),
            (format!("{}", u64::MAX), false),
        ] {
            assert_eq!(with(&text), open, "{text:?}");
        }
        assert_eq!(Window::new(Path::new("/nowhere")).left(), None);
    }

    #[test]
    fn opened_closed_and_closed_again() {
        let folder = std::env::temp_dir().join(format!("keyward-window2-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let window = Window::new(&folder);
        window.open_for(Duration::from_secs(90)).unwrap();
        assert!(window.left().is_some_and(|left| left > Duration::from_secs(85)));
        window.open_for(Duration::ZERO).unwrap();
        window.open_for(Duration::ZERO).unwrap();
        assert_eq!(window.left(), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
