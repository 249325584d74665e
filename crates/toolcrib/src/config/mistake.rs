//! What is wrong with a config file, said so that it can be mended: where, the line itself, what was expected.
//!
//! A mistake is data: the same value is printed for people and serialised for `--json`.

use std::fmt;

use serde::Serialize;

/// One thing wrong, at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// The file as it was named, or the environment variable at fault.
    pub file: String,
    /// From 1; 0 when the mistake is not in a line (a missing file, an environment variable).
    pub line: usize,
    /// From 1, in characters; 0 as for `line`.
    pub column: usize,
    /// The offending line, cut to a readable width, with secrets starred out.
    pub excerpt: String,
    /// The caret line under `excerpt`: spaces, then `^` under what is meant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caret: String,
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

impl Mistake {
    /// A mistake that has no line: the file as a whole, or a variable.
    pub(crate) fn outside(
        file: impl Into<String>,
        what: impl Into<String>,
        expected: Option<String>,
    ) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            excerpt: String::new(),
            caret: String::new(),
            what: what.into(),
            expected,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(out, "{}: {}", self.file, self.what)?;
        } else {
            let number = self.line.to_string();
            let gutter = " ".repeat(number.len());
            write!(out, "{}:{}:{}: {}", self.file, self.line, self.column, self.what)?;
            write!(out, "\n  {number} | {}", self.excerpt)?;
            write!(out, "\n  {gutter} | {}", self.caret)?;
        }
        match &self.expected {
            Some(expected) => write!(out, "\n  expected: {expected}"),
            None => Ok(()),
        }
    }
}

/// Everything found wrong in one reading; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistakes {
    pub mistakes: Vec<Mistake>,
    /// How many more were found beyond those listed.
    pub more: usize,
}

/// More than a person mends at once; the rest are counted.
const SHOWN: usize = 50;

impl Mistakes {
    pub(crate) fn new(mut mistakes: Vec<Mistake>) -> Self {
        let more = mistakes.len().saturating_sub(SHOWN);
        mistakes.truncate(SHOWN);
        Self { mistakes, more }
    }

    pub(crate) fn one(mistake: Mistake) -> Self {
        Self { mistakes: vec![mistake], more: 0 }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mistake in &self.mistakes {
            write!(out, "{mistake}\n\n")?;
        }
        match self.mistakes.len() + self.more {
            1 => write!(out, "1 mistake"),
            total if self.more > 0 => {
                write!(out, "{total} mistakes, the first {} shown", self.mistakes.len())
            }
            total => write!(out, "{total} mistakes"),
        }
    }
}

impl std::error::Error for Mistakes {}
