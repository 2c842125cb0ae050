//! What the audience sees: scenes, who said what, and whether it is as it should be.

use std::io::IsTerminal as _;

/// Prints scenes and counts what is not as it should be.
pub(crate) struct Stage {
    in_colour: bool,
    scenes: usize,
    expected: usize,
    failed: usize,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const RED: &str = "1;31";

impl Stage {
    pub(crate) fn new() -> Self {
        let in_colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { in_colour, scenes: 0, expected: 0, failed: 0 }
    }

    /// Begins a numbered scene.
    pub(crate) fn scene(&mut self, title: &str) {
        self.scenes += 1;
        println!("\n{}", self.paint(BOLD, &format!("{}  {title}", self.scenes)));
    }

    /// Shows what somebody said, got or saw.
    pub(crate) fn show(&self, who: &str, what: &str) {
        println!("     {} {what}", self.paint(DIM, &format!("{who:<9}")));
    }

    /// Says whether something is as it should be.
    pub(crate) fn expect(&mut self, holds: bool, what: &str) {
        self.expected += 1;
        self.failed += usize::from(!holds);
        let mark = if holds { self.paint(GREEN, "✓") } else { self.paint(RED, "✗ NOT SO:") };
        println!("   {mark} {what}");
    }

    /// Says how many things are as they should be, and whether all are.
    pub(crate) fn end(&self) -> bool {
        let Self { expected, failed, .. } = self;
        let held = format!("{} of {expected} expectations hold.", expected - failed);
        println!("\n{}", self.paint(if *failed == 0 { GREEN } else { RED }, &held));
        *failed == 0
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.in_colour { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
