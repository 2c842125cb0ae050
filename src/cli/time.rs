//! Moments as people write and read them.

use super::zone::Zone;

const DAY_MS: u64 = 86_400_000;
const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Reads a span before now (`90s`, `15m`, `2h`, `3d`), or a date, with or without a time of day: in the zone that it
/// names (`Z`, `+01:00`), else in that of whoever asks.
pub(super) fn since(text: &str, now_ms: u64, zone: &Zone) -> Option<u64> {
    let units = [("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", DAY_MS)];
    for (unit, unit_ms) in units {
        if let Some(count) = text.strip_suffix(unit) {
            return Some(now_ms.saturating_sub(number(count)?.checked_mul(unit_ms)?));
        }
    }
    let (date, rest) = text.split_at_checked(10)?;
    let days = days_of(date)?;
    let (time, ahead) = zone_of(rest)?;
    let shown = days * (DAY_MS / 1000) + if time.is_empty() { 0 } else { seconds_of(time)? };
    let moment = match ahead {
        Some(ahead) => shown.checked_add_signed(-ahead),
        None => zone.moment_of(shown),
    };
    moment?.checked_mul(1000)
}

/// Takes a zone off the end of a time of day, and says how many seconds it is ahead of UTC.
fn zone_of(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(time) = text.strip_suffix('Z') {
        return Some((time, Some(0)));
    }
    let Some(at) = text.find(['+', '-']) else { return Some((text, None)) };
    let (time, ahead) = text.split_at(at);
    let seconds = i64::try_from(hours_and_minutes(&ahead[1..])?).ok()?;
    let ahead = if ahead.starts_with('-') { -seconds } else { seconds };
    Some((time.trim_end(), Some(ahead)))
}

fn hours_and_minutes(text: &str) -> Option<u64> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (two_digits(hour)?, two_digits(minute)?);
    (hour < 24 && minute < 60).then_some(hour * HOUR + minute * MINUTE)
}

/// A time of day behind a blank or a `T`, to the minute or to the second.
fn seconds_of(text: &str) -> Option<u64> {
    let text = text.strip_prefix(['T', ' '])?;
    match text.split_at_checked(5)? {
        (time, "") => hours_and_minutes(time),
        (time, second) => {
            let second = two_digits(second.strip_prefix(':')?)?;
            (second < 60).then_some(hours_and_minutes(time)? + second)
        }
    }
}

/// Days from 1970 to a date.
fn days_of(date: &str) -> Option<u64> {
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let year = number(year).filter(|_| year.len() == 4)?;
    let (month, day) = (two_digits(month)?, two_digits(day)?);
    let fits = parts.next().is_none() && year >= 1970 && (1..=12).contains(&month) && day > 0;
    let days = days_before(year, month) + day;
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    (fits && days <= days_before(next_year, next_month)).then(|| days - 1)
}

fn two_digits(text: &str) -> Option<u64> {
    number(text).filter(|_| text.len() == 2)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A moment to the second, on the clocks of a zone, and how far they are ahead of UTC.
pub(super) fn shown(ms: u64, zone: &Zone) -> String {
    let seconds = ms / 1000;
    let local = zone
        .ahead_seconds(seconds)
        .and_then(|ahead| Some((seconds.checked_add_signed(ahead)?, ahead)));
    match local {
        None => format!("{}Z", on_clocks(seconds)),
        Some((local, ahead)) => {
            let sign = if ahead < 0 { '-' } else { '+' };
            let ahead = ahead.unsigned_abs();
            let (hours, minutes) = (ahead / HOUR, ahead / MINUTE % 60);
            format!("{} {sign}{hours:02}:{minutes:02}", on_clocks(local))
        }
    }
}

/// The same to the millisecond.
pub(super) fn exact(ms: u64, zone: &Zone) -> String {
    const TO_THE_SECOND: usize = "yyyy-mm-dd hh:mm:ss".len();
    let mut text = shown(ms, zone);
    text.insert_str(TO_THE_SECOND, &format!(".{:03}", ms % 1000));
    text
}

fn on_clocks(seconds: u64) -> String {
    let days = seconds / (DAY_MS / 1000);
    let (mut year, mut month) = (1970 + days / 366, 1);
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    while month < 12 && days_before(year, month + 1) <= days {
        month += 1;
    }
    let day = days - days_before(year, month) + 1;
    let (hour, minute) = (seconds / HOUR % 24, seconds / MINUTE % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}", seconds % 60)
}

/// A span in its two largest units.
pub(super) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / HOUR / 24, seconds / HOUR % 24, seconds / MINUTE % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (0, hours, minutes, _) => format!("{hours}h{minutes:02}m"),
        (days, hours, _, _) => format!("{days}d{hours:02}h"),
    }
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
mod tests;
