//! What a command prints: tables and colour for people on a terminal, plain columns in a pipe, JSON for programs.
//!
//! Results go to stdout, everything said beside them to stderr. Text that came from a source is cleaned of control
//! characters before a terminal sees it. Nothing here decides what is shown; that is each command's.

mod table;
mod tree;

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

pub use table::{Cell, Table};
pub use tree::tree;

/// For whom a result is written: people, or programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Form {
    // No doc comments on these: clap would spread them over every `--help`.
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    // On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// What a piece of text means; a terminal shows it as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    Head,
    Good,
    Warn,
    Bad,
    Faint,
}

impl Tint {
    fn code(self) -> &'static str {
        match self {
            Tint::Head => "1",
            Tint::Good => "32",
            Tint::Warn => "33",
            Tint::Bad => "31",
            Tint::Faint => "2",
        }
    }
}

/// One of the two streams, as it is now.
#[derive(Debug, Clone, Copy)]
struct Stream {
    terminal: bool,
    color: bool,
}

impl Stream {
    fn new(terminal: bool, color: Color) -> Self {
        let wanted = || std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let dumb = || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && wanted() && !dumb(),
        };
        Self { terminal, color }
    }

    fn paint(self, tint: Tint, text: &str) -> String {
        if self.color { format!("\u{1b}[{}m{text}\u{1b}[0m", tint.code()) } else { text.to_owned() }
    }
}

/// Where a command's words go.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub form: Form,
    out: Stream,
    err: Stream,
    width: usize,
}

/// When the terminal does not say how wide it is.
const USUAL_WIDTH: usize = 100;

impl Output {
    pub fn new(form: Form, color: Color) -> Self {
        let width = terminal_size::terminal_size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
        Self {
            form,
            out: Stream::new(io::stdout().is_terminal(), color),
            err: Stream::new(io::stderr().is_terminal(), color),
            width,
        }
    }

    pub fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Whether a person is reading stdout.
    pub fn is_terminal(&self) -> bool {
        self.out.terminal
    }

    pub fn paint(&self, tint: Tint, text: &str) -> String {
        self.out.paint(tint, text)
    }

    /// One line on stdout.
    pub fn line(&self, text: impl Display) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{text}")
    }

    /// Text on stdout that ends in exactly one line break.
    pub fn text(&self, text: &str) -> io::Result<()> {
        let text = if self.out.terminal { clean(text) } else { text.to_owned() };
        self.line(text.trim_end_matches('\n'))
    }

    /// One JSON value on stdout, laid out for reading.
    pub fn json(&self, value: &impl Serialize) -> io::Result<()> {
        self.line(serde_json::to_string_pretty(value)?)
    }

    /// One JSON value on one line.
    pub fn json_line(&self, value: &impl Serialize) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(value)?)?;
        out.flush()
    }

    pub fn table(&self, table: &Table) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for line in table.lines(self) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// The width lines should keep to; none where nobody looks.
    fn limit(&self) -> Option<usize> {
        self.out.terminal.then_some(self.width)
    }

    /// Something said in passing, for a person who is looking. Programs and pipes do not get it.
    pub fn aside(&self, text: impl Display) {
        if self.err.terminal && !self.is_json() {
            eprintln!("{}", self.err.paint(Tint::Faint, &clean(&text.to_string())));
        }
    }

    /// A line on stderr under a word such as `warning`.
    pub fn told(&self, word: &str, tint: Tint, text: impl Display) {
        eprintln!("{} {}", self.err.paint(tint, &format!("{word}:")), clean(&text.to_string()));
    }
}

/// Without control characters, so that a tool's words cannot steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// The first line of a longer text, on one line.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    clean(line).replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_source_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\r\n\tc"), "a\u{fffd}[2Jb\u{fffd}\n\tc");
        assert_eq!(first_line("\n  Finds\tthings \nmore"), "Finds things");
    }

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        assert_eq!(Stream::new(false, Color::Auto).paint(Tint::Bad, "x"), "x");
        assert_eq!(Stream::new(true, Color::Never).paint(Tint::Bad, "x"), "x");
        assert_eq!(Stream::new(false, Color::Always).paint(Tint::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
