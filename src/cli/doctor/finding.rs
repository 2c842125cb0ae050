//! What a check finds, and how it is told.

use crate::cli::Exit;
use crate::cli::cells::seen;
use crate::wire::write::Object;

/// How bad something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// As it should be.
    Fine,
    /// It works, and costs something.
    Note,
    /// It does not work, or is not safe.
    Broken,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Area {
    Home,
    Configuration,
    Credentials,
    Programs,
    Hosts,
    Record,
    Calls,
    Kernel,
    Binary,
    Isolation,
}

/// One thing that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    pub(super) area: Area,
    pub(super) level: Level,
    pub(super) what: String,
    /// What to do about it.
    pub(super) remedy: Option<String>,
}

/// Everything that was found, in the order of the checks.
#[derive(Default, Debug)]
pub(super) struct Findings {
    all: Vec<Finding>,
    /// How many of them were told.
    told: usize,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Broken => "broken",
        }
    }
}

impl Area {
    fn as_str(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Configuration => "configuration",
            Self::Credentials => "credentials",
            Self::Programs => "programs",
            Self::Hosts => "hosts",
            Self::Record => "record",
            Self::Calls => "calls",
            Self::Kernel => "kernel",
            Self::Binary => "binary",
            Self::Isolation => "isolation",
        }
    }
}

impl Findings {
    pub(super) fn fine(&mut self, area: Area, what: impl Into<String>) {
        self.all.push(Finding { area, level: Level::Fine, what: what.into(), remedy: None });
    }

    pub(super) fn note(&mut self, area: Area, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(area, Level::Note, what.into(), remedy.into());
    }

    pub(super) fn broken(
        &mut self,
        area: Area,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(area, Level::Broken, what.into(), remedy.into());
    }

    pub(super) fn add(&mut self, area: Area, level: Level, what: String, remedy: String) {
        self.all.push(Finding { area, level, what, remedy: Some(remedy) });
    }

    /// Whether something of this area is broken.
    pub(super) fn has_broken(&self, area: Area) -> bool {
        self.all.iter().any(|it| it.area == area && it.level == Level::Broken)
    }

    fn count(&self, level: Level) -> u64 {
        self.all.iter().filter(|finding| finding.level == level).count() as u64
    }

    /// A home or configuration that cannot be used outranks what else is broken.
    pub(super) fn exit(&self) -> Exit {
        if self.has_broken(Area::Home) || self.has_broken(Area::Configuration) {
            Exit::Usage
        } else if self.count(Level::Broken) > 0 {
            Exit::Failed
        } else {
            Exit::Done
        }
    }

    /// A line for each that was not told yet, in columns or as an object.
    pub(super) fn news(&mut self, as_json: bool) -> String {
        let news = &self.all[self.told..];
        let line = |finding| if as_json { json(finding) } else { words(finding) } + "\n";
        let text = news.iter().map(line).collect();
        self.told = self.all.len();
        text
    }

    /// What sums up, in a line.
    pub(super) fn summary(&self, is_isolated: bool, as_json: bool) -> String {
        let [fine, notes, broken] =
            [Level::Fine, Level::Note, Level::Broken].map(|it| self.count(it));
        let isolated = isolation(is_isolated);
        if !as_json {
            return format!(
                "\n{fine} ok, {notes} to note, {broken} broken; isolation: {isolated}\n"
            );
        }
        let summary = Object::new()
            .text("check", "summary")
            .number("ok", fine)
            .number("notes", notes)
            .number("broken", broken)
            .text("isolation", isolated);
        summary.end() + "\n"
    }
}

fn words(Finding { area, level, what, remedy }: &Finding) -> String {
    let (level, area) = (level.as_str(), area.as_str());
    let remedy = remedy.as_ref().map(|it| format!("; try: {it}")).unwrap_or_default();
    seen(&format!("{level:<6}  {area:<13}  {what}{remedy}"))
}

fn json(Finding { area, level, what, remedy }: &Finding) -> String {
    let object = Object::new().text("check", area.as_str()).text("level", level.as_str());
    object.text("what", what).text_if("remedy", remedy.as_deref()).end()
}

fn isolation(is_isolated: bool) -> &'static str {
    if is_isolated { "isolated" } else { "not shown" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told() {
        let mut findings = Findings::default();
        findings.fine(Area::Home, "/h");
        assert_eq!(findings.exit(), Exit::Done);
        findings.note(Area::Kernel, "old", "a newer one");
        assert_eq!(findings.exit(), Exit::Done);
        findings.broken(Area::Record, "gone\n\x1b[2J", "keyward init");
        assert_eq!(findings.exit(), Exit::Failed);
        assert_eq!(
            findings.news(false) + &findings.summary(false, false),
            "ok      home           /h\n\
             note    kernel         old; try: a newer one\n\
             broken  record         gone\\u{a}\\u{1b}[2J; try: keyward init\n\n\
             1 ok, 1 to note, 1 broken; isolation: not shown\n"
        );
        assert_eq!(findings.news(true), "");
        assert_eq!(
            findings.summary(true, true),
            "{\"check\":\"summary\",\"ok\":1,\"notes\":1,\"broken\":1,\"isolation\":\"isolated\"}\n"
        );
        findings.broken(Area::Configuration, "x", "y");
        assert_eq!(
            findings.news(true),
            "{\"check\":\"configuration\",\"level\":\"broken\",\"what\":\"x\",\"remedy\":\"y\"}\n"
        );
        assert_eq!(findings.exit(), Exit::Usage);
    }
}
