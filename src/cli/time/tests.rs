use std::process::Command;

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
        assert_eq!(shown(ms, &Zone::UTC), text);
        assert_eq!(since(text, 0, &Zone::UTC), Some(ms));
        assert_eq!(since(text, 0, &Zone::named("America/New_York")), Some(ms), "it names its zone");
    }
    assert_eq!(since("2h", 10_000_000, &Zone::UTC), Some(2_800_000));
    assert_eq!(since("3d", 0, &Zone::UTC), Some(0));
}

#[test]
fn what_can_be_said_of_a_moment() {
    let day = concat!("2026-11", "-30");
    let begins_ms = 1_795_996_800_000;
    for (rest, later_minutes) in [
        ("", 0),
        ("Z", 0),
        ("T10:20", 620),
        (" 10:20:00", 620),
        ("T10:20:00Z", 620),
        (" 10:20:00 +01:00", 560),
        ("T10:20-05:30", 950),
    ] {
        let text = format!("{day}{rest}");
        let expected = begins_ms + later_minutes * 60_000;
        assert_eq!(since(&text, 0, &Zone::UTC), Some(expected), "{text}");
    }
    let beyond_its_month = concat!("2026-02", "-29");
    for bad in
        ["", "h", "x", "1969-1-1", "2026-1", "-1d", "+1h", "1.5h", "é1-01-01", beyond_its_month]
    {
        assert_eq!(since(bad, 0, &Zone::UTC), None, "{bad}");
    }
    for bad in
        ["T", "T25:00", "T1:00", "T10:60", "T10:20:60", "10:20", "T10:20+1", "T10:20+01:00Z", "ZZ"]
    {
        assert_eq!(since(&format!("{day}{bad}"), 0, &Zone::UTC), None, "{bad}");
    }
}

#[test]
fn spans_are_told_in_two_units() {
    for (seconds, text) in
        [(0, "0s"), (59, "59s"), (60, "1m00s"), (7_384, "2h03m"), (183_600, "2d03h")]
    {
        assert_eq!(span(seconds * 1000), text);
    }
}

const ZONES: [&str; 20] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Asia/Gaza",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    ":Europe/Paris",
    ":/usr/share/zoneinfo/America/Los_Angeles",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "<+0330>-3:30",
];

/// The system's own `date` tells the same, in and out of summer time, and around where it changes.
#[test]
fn local_times_are_those_of_the_system() {
    let mut moments: Vec<u64> = (0..60).map(|number| number * 86_400 * 199 + 98_765).collect();
    // Every half hour around the changes of Europe and America in one year.
    for change in [1_774_746_000, 1_792_890_000, 1_772_953_200, 1_793_512_800] {
        moments.extend((0..12).map(|half| change - 3 * HOUR + half * 1800 + 1799));
    }
    for named in ZONES {
        let list: String = moments.iter().map(|moment| format!("@{moment}\n")).collect();
        let told = dates(named, &list);
        let zone = Zone::named(named);
        for (moment, expected) in moments.iter().zip(told.lines()) {
            assert_eq!(shown(moment * 1000, &zone), expected, "{named} {moment}");
            let back = since(expected, 0, &zone);
            assert_eq!(back, Some(moment * 1000), "{named}: {expected}");
            let (bare, _) = expected.rsplit_once(' ').unwrap();
            let again = since(bare, 0, &zone).unwrap();
            assert!(again <= moment * 1000, "{named}: the first of two");
            assert_eq!(shown(again, &zone).rsplit_once(' ').unwrap().0, bare, "{named}");
        }
    }
}

fn dates(zone: &str, list: &str) -> String {
    use std::io::Write as _;
    let mut date = Command::new("date")
        .args(["-f", "-", "+%F %T %:z"])
        .env("TZ", zone)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("date, and its zones: apt-get install coreutils tzdata");
    date.stdin.take().unwrap().write_all(list.as_bytes()).unwrap();
    String::from_utf8(date.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn without_a_zone_it_is_utc() {
    for none in ["", "Nowhere/Land", ":/nonexistent", ":/dev/zero", ":/etc/hostname"] {
        assert_eq!(shown(1000, &Zone::named(none)), concat!("1970-01", "-01 00:00:01Z"), "{none}");
    }
    let skipped = concat!("2026-03", "-29 02:30");
    let zone = Zone::named("Europe/Berlin");
    let moment = since(skipped, 0, &zone).unwrap();
    assert_eq!(shown(moment, &zone), concat!("2026-03", "-29 03:30:00 +02:00"));
}
