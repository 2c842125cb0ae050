//! The zone in which moments are told: that of whoever looks.
//!
//! `TZ` says which (`Area/City`, `:` and a path, or a rule as POSIX spells it); without it, the machine's own,
//! `/etc/localtime`. Where neither can be read, it is UTC, which is then written as `Z`.

use std::fs::File;
use std::io::Read as _;

use tz::TimeZone;
use tz::timezone::TimeZoneSettings;

/// Longest zone file that is read.
const FILE_BYTES: u64 = 1024 * 1024;

/// A zone, or none: UTC.
#[derive(Debug)]
pub(super) struct Zone(Option<TimeZone>);

impl Zone {
    /// UTC, written as `Z`.
    pub(super) const UTC: Self = Self(None);

    /// That of this process.
    pub(super) fn here() -> Self {
        let named = std::env::var_os("TZ").map(|text| text.into_string().unwrap_or_default());
        Self::named(named.as_deref().unwrap_or("localtime"))
    }

    /// The zone of a `TZ` text; UTC where it names none.
    pub(super) fn named(text: &str) -> Self {
        let directories = TimeZoneSettings::DEFAULT_DIRECTORIES;
        let settings = TimeZoneSettings::new(directories, |path| Ok(read(path)?));
        settings.parse_posix_tz(text).map_or(Self::UTC, |zone| Self(Some(zone)))
    }

    /// Seconds that clocks here are ahead of UTC at a moment; `None` where no zone is known.
    pub(super) fn ahead_seconds(&self, unix_seconds: u64) -> Option<i64> {
        let zone = self.0.as_ref()?;
        let seconds = i64::try_from(unix_seconds).ok()?;
        let kind = match zone.find_local_time_type(seconds) {
            Ok(kind) => *kind,
            // The file tells no rule for what comes after its last change: that one holds on.
            Err(_) => {
                let zone = zone.as_ref();
                let last = zone.transitions().last()?.local_time_type_index();
                *zone.local_time_types().get(last)?
            }
        };
        Some(i64::from(kind.ut_offset()))
    }

    /// The moment at which clocks here show `seconds`, counted as if they showed UTC: the first, where they show it
    /// twice, and what they would have shown, where they skip it.
    pub(super) fn moment_of(&self, seconds: u64) -> Option<u64> {
        const DAY: u64 = 86_400;
        // No zone changes twice in two days: one of these two is in force at the moment.
        let around = [seconds.saturating_sub(DAY), seconds.saturating_add(DAY)];
        let ahead = around.map(|moment| self.ahead_seconds(moment).unwrap_or(0));
        let candidates = ahead.map(|ahead| seconds.checked_add_signed(-ahead));
        let shows = |moment: &u64| {
            moment.checked_add_signed(self.ahead_seconds(*moment).unwrap_or(0)) == Some(seconds)
        };
        let fitting = candidates.into_iter().flatten().filter(shows).min();
        fitting.or(candidates[0])
    }
}

fn read(path: &str) -> std::io::Result<Vec<u8>> {
    // Whoever named a pipe should not be waited for.
    let flags =
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
