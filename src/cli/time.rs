//! Moments as people write and read them.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MS: u64 = 86_400_000;

/// Now, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a span before now (`90s`, `15m`, `2h`, `3d`), or a date or moment of UTC.
pub(super) fn since(text: &str, now_ms: u64) -> Option<u64> {
    let units = [("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", DAY_MS)];
    for (unit, unit_ms) in units {
        if let Some(number) = text.strip_suffix(unit) {
            return Some(now_ms.saturating_sub(number.parse::<u64>().ok()?.checked_mul(unit_ms)?));
        }
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "0:0"));
    let mut date = date.split('-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.split(':').map(str::parse::<u64>);
    let (hour, minute) = (time.next()?.ok()?, time.next()?.ok()?);
    let second = time.next().unwrap_or(Ok(0)).ok()?;
    let fits = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (hour < 24 && minute < 60 && second < 61);
    let days = days_before(year, month) + day - 1;
    (fits && date.next().is_none())
        .then(|| days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000)
}

/// A moment of UTC, to the second.
pub(super) fn shown(ms: u64) -> String {
    let (mut year, mut month) = (1970 + ms / DAY_MS / 366, 1);
    let days = ms / DAY_MS;
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    while month < 12 && days_before(year, month + 1) <= days {
        month += 1;
    }
    let day = days - days_before(year, month) + 1;
    let second = ms % DAY_MS / 1000;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}Z", second % 60)
}

/// Days from 1970 to the first of a month; no year before 1970 comes here.
fn days_before(year: u64, month: u64) -> u64 {
    const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let year = year.max(1970);
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let months = usize::try_from(month.clamp(1, 12) - 1).unwrap_or(0);
    let in_year: u64 = LENGTHS[..months].iter().sum();
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
        + in_year
        + u64::from(is_leap && months >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_survive_a_round_trip() {
        for (ms, text) in [
            (0, concat!("1970-01", "-01 00:00:00Z")),
            (951_782_400_000, concat!("2000-02", "-29 00:00:00Z")),
            (1_796_027_624_000, concat!("2026-11", "-30 08:33:44Z")),
            (4_107_542_399_000, concat!("2100-02", "-28 23:59:59Z")),
            (4_107_542_400_000, concat!("2100-03", "-01 00:00:00Z")),
        ] {
            assert_eq!(shown(ms), text);
            assert_eq!(since(text, 0), Some(ms));
        }
        assert_eq!(since("2h", 10_000_000), Some(2_800_000));
        assert_eq!(since("3d", 0), Some(0));
        for bad in ["", "h", "x", "1969-1-1", "2026-13-1", "2026-1", "2026-1-1T25:00", "-1d"] {
            assert_eq!(since(bad, 0), None, "{bad}");
        }
    }
}
