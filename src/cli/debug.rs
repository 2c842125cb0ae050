//! `debug`: a window in which all gateways of a home retain more of what helpers print.

use std::path::PathBuf;
use std::time::Duration;

use super::{Exit, audit, print};
use crate::audit::event::Event;
use crate::audit::{Unavailable, folder_of};
use crate::home::{self, Config, Home};
use crate::limits;
use crate::window::Window;

/// Opens, changes or closes the window, or says how long it is still open.
pub(super) fn run(home: Option<PathBuf>, time: Option<&str>) -> Exit {
    let home = match Home::open(home::path(home)) {
        Ok(home) => home,
        Err(fault) => {
            return print::trouble(&format!("home: {fault}"), fault.remedy(), Exit::Usage);
        }
    };
    let window = Window::new(&home.run_folder());
    if let Some(text) = time {
        let Some(time) = parse(text).filter(|time| *time <= limits::DEBUG_FOR_MAX) else {
            let what = format!(
                "debug: --for {}: no number with s, m or h behind it, or more than 24h",
                text.escape_debug()
            );
            return print::trouble(&what, "keyward debug --for 15m (0s closes it)", Exit::Usage);
        };
        if let Err(fault) = note(&home, time) {
            let what = format!("debug: {}: {fault}", folder_of(home.as_path()).display());
            return print::trouble(&what, fault.remedy(), Exit::Failed);
        }
        if let Err(fault) = window.open_for(time) {
            let what = format!("debug: {}: {fault}", home.run_folder().display());
            return print::trouble(&what, "keyward init", Exit::Failed);
        }
    }
    print::line(&state(&window))
}

/// Puts on record until when the window is to be open; no later than it could be.
fn note(home: &Home, time: Duration) -> Result<(), Unavailable> {
    let for_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let until_ms = crate::clock::now_ms().saturating_add(for_ms);
    audit::of(home, &mut Config::load(home))
        .submit(&Event::DebugWindow { until_ms })?
        .wait()
        .map(drop)
}

fn state(window: &Window) -> String {
    match window.left() {
        None => "debug window: closed".into(),
        Some(left) => {
            let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            format!(
                "debug window: open for {minutes} min {seconds} s; up to {} KiB of a helper's stderr \
                 are retained, {} KiB over all of a gateway",
                limits::DEBUG_RETAINED_PER_CALL_BYTES / 1024,
                limits::DEBUG_RETAINED_PROCESS_BYTES / 1024,
            )
        }
    }
}

/// A whole number and its unit: `s`, `m` or `h`.
fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return None,
    };
    let digits = text.strip_suffix(unit)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let seconds = |text: &str| parse(text).map(|time| time.as_secs());
        for (text, expected) in [("15m", 900), ("90s", 90), ("24h", 86_400), ("0s", 0)] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in
            ["", "m", "15", "15d", "-1m", "+1m", "1.5h", " 1m", "99999999999999999999s", "1é"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
