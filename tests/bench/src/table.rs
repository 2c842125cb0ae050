//! Rows, and how they are judged and printed.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

/// One measured thing.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) figure: f64,
    pub(crate) peer: Option<Peer>,
    pub(crate) bar: Option<Bar>,
    /// What else is worth knowing, such as the spread.
    pub(crate) note: String,
}

/// What it is compared with.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) figure: f64,
    /// Ours divided by the peer's.
    pub(crate) ratio: f64,
}

/// What a figure counts.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Milliseconds,
    Microseconds,
    PerSecond,
    Mebibytes,
    GibibytesPerSecond,
    Count,
}

/// What is to be reached.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    FigureAtMost(f64),
    FigureAtLeast(f64),
    RatioAtMost(f64),
    RatioAtLeast(f64),
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::PerSecond => "/s",
            Self::Mebibytes => "MiB",
            Self::GibibytesPerSecond => "GiB/s",
            Self::Count => "",
        }
    }

    fn show(self, figure: f64) -> String {
        match self {
            Self::PerSecond => format!("{figure:.0}/s"),
            Self::Count => format!("{figure:.0}"),
            Self::Microseconds => format!("{figure:.1} us"),
            Self::Milliseconds | Self::Mebibytes | Self::GibibytesPerSecond => {
                format!("{figure:.2} {}", self.name())
            }
        }
    }
}

impl Row {
    /// A row for orientation: no peer, no bar.
    pub(crate) fn new(what: impl Into<String>, unit: Unit, figure: f64) -> Self {
        Self { what: what.into(), unit, figure, peer: None, bar: None, note: String::new() }
    }

    pub(crate) fn against(mut self, name: &'static str, figure: f64, ratio: f64) -> Self {
        self.peer = Some(Peer { name, figure, ratio });
        self
    }

    pub(crate) fn bar(mut self, bar: Bar) -> Self {
        self.bar = Some(bar);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn ratio(&self) -> f64 {
        self.peer.as_ref().map_or(f64::NAN, |peer| peer.ratio)
    }

    /// By how much the bar is missed, in its own measure; nothing where it is met.
    fn missed_by(&self) -> Option<f64> {
        let over = match self.bar? {
            Bar::FigureAtMost(most) => self.figure - most,
            Bar::FigureAtLeast(least) => least - self.figure,
            Bar::RatioAtMost(most) => self.ratio() - most,
            Bar::RatioAtLeast(least) => least - self.ratio(),
        };
        // Written so that a figure that is no number misses.
        if over <= 0.0 { None } else { Some(over) }
    }

    fn show_bar(&self) -> String {
        match self.bar {
            None => "-".into(),
            Some(Bar::FigureAtMost(most)) => format!("<= {}", self.unit.show(most)),
            Some(Bar::FigureAtLeast(least)) => format!(">= {}", self.unit.show(least)),
            Some(Bar::RatioAtMost(most)) => format!("<= {most:.2}x"),
            Some(Bar::RatioAtLeast(least)) => format!(">= {least:.2}x"),
        }
    }

    fn verdict(&self) -> String {
        match (self.bar, self.missed_by()) {
            (None, _) => "-".into(),
            (Some(_), None) => "met".into(),
            (Some(Bar::FigureAtMost(_) | Bar::FigureAtLeast(_)), Some(over)) => {
                format!("missed by {}", self.unit.show(over))
            }
            (Some(Bar::RatioAtMost(_) | Bar::RatioAtLeast(_)), Some(over)) => {
                format!("missed by {over:.2}x")
            }
        }
    }

    fn cells(&self) -> [String; 7] {
        let (peer, ratio) = match &self.peer {
            Some(peer) => (
                format!("{} {}", peer.name, self.unit.show(peer.figure)),
                format!("{:.2}x", peer.ratio),
            ),
            None => ("-".into(), "-".into()),
        };
        [
            self.what.clone(),
            self.unit.show(self.figure),
            peer,
            ratio,
            self.show_bar(),
            self.verdict(),
            self.note.clone(),
        ]
    }

    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("what".into(), json!(self.what));
        object.insert("unit".into(), json!(self.unit.name()));
        object.insert("figure".into(), json!(self.figure));
        if let Some(peer) = &self.peer {
            object.insert("peer".into(), json!({"name": peer.name, "figure": peer.figure}));
            object.insert("ratio".into(), json!(peer.ratio));
        }
        if self.bar.is_some() {
            object.insert("bar".into(), json!(self.show_bar()));
            object.insert("met".into(), json!(self.missed_by().is_none()));
        }
        if let Some(over) = self.missed_by() {
            object.insert("missed_by".into(), json!(over));
        }
        if !self.note.is_empty() {
            object.insert("note".into(), json!(self.note));
        }
        Value::Object(object)
    }
}

/// Prints the rows for people.
pub(crate) fn print(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let titles = ["what", "keyward", "peer", "ratio", "bar", "verdict", "note"].map(String::from);
    let lines: Vec<[String; 7]> =
        std::iter::once(titles).chain(rows.iter().map(Row::cells)).collect();
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Prints the rows for programs, one object a line.
pub(crate) fn print_json(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    rows.iter().try_for_each(|row| writeln!(out, "{}", row.json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_or_missed_by_a_stated_amount() {
        let row = |ratio, bar| {
            Row::new("x", Unit::Milliseconds, 3.0).against("peer", 2.0, ratio).bar(bar)
        };
        let cases = [
            (row(1.5, Bar::RatioAtMost(1.0)), "missed by 0.50x"),
            (row(1.0, Bar::RatioAtMost(1.0)), "met"),
            (row(4.0, Bar::RatioAtLeast(5.0)), "missed by 1.00x"),
            (row(5.0, Bar::RatioAtLeast(5.0)), "met"),
            (row(1.5, Bar::FigureAtMost(2.5)), "missed by 0.50 ms"),
            (row(1.5, Bar::FigureAtLeast(3.25)), "missed by 0.25 ms"),
            (row(1.5, Bar::FigureAtLeast(3.0)), "met"),
            (row(f64::NAN, Bar::RatioAtLeast(5.0)), "missed by NaNx"),
            (Row::new("x", Unit::Milliseconds, 3.0), "-"),
        ];
        for (row, verdict) in cases {
            assert_eq!(row.verdict(), verdict);
        }
    }
}
