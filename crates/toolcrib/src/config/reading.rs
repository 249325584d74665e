//! One reading of one file: its lines, the variables, and every mistake and warning found on the way.
//!
//! Readers report and go on, so a person sees all mistakes at once. Excerpts are cut only at the end, when it is known
//! which values are secret. It decides nothing about keys or values.

use std::cell::{Cell, RefCell};

use super::mistake::{Mistake, Mistakes};
use super::node::{Broken, Node, Place, Span, Value};
use super::secret;
use super::variables::{self, Trouble};

/// Where the value of an environment variable is asked for.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Wider lines are cut around the caret.
const WIDTH: usize = 120;

struct Found {
    span: Span,
    what: String,
    expected: Option<String>,
}

pub(crate) struct Reading<'a> {
    file: String,
    lines: Vec<&'a str>,
    env: Lookup<'a>,
    mistakes: RefCell<Vec<Found>>,
    warnings: RefCell<Vec<Found>>,
    /// Mistakes that are in no line.
    outside: RefCell<Vec<Mistake>>,
    hidden: RefCell<Vec<Span>>,
    /// Inside a disabled server a missing variable is no mistake.
    forgiving: Cell<bool>,
}

impl<'a> Reading<'a> {
    pub fn new(file: String, text: &'a str, env: Lookup<'a>) -> Self {
        Self {
            file,
            lines: text.lines().collect(),
            env,
            mistakes: RefCell::default(),
            warnings: RefCell::default(),
            outside: RefCell::default(),
            hidden: RefCell::default(),
            forgiving: Cell::new(false),
        }
    }

    pub fn mistake(&self, span: Span, what: impl Into<String>, expected: impl Into<Option<String>>) {
        self.mistakes.borrow_mut().push(Found { span, what: what.into(), expected: expected.into() });
    }

    pub fn warning(&self, span: Span, what: impl Into<String>, expected: impl Into<Option<String>>) {
        self.warnings.borrow_mut().push(Found { span, what: what.into(), expected: expected.into() });
    }

    pub fn outside(&self, mistake: Mistake) {
        self.outside.borrow_mut().push(mistake);
    }

    /// Stars out what stands at `span` in every excerpt.
    pub fn hide(&self, span: Span) {
        self.hidden.borrow_mut().push(span);
    }

    pub fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    pub fn forgiving(&self) -> bool {
        self.forgiving.get()
    }

    /// Runs `read` with missing variables forgiven.
    pub fn forgive<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = self.forgiving.replace(true);
        let value = read();
        self.forgiving.set(before);
        value
    }

    /// The text of a single value with its variables written out. `None` when it is not one or when a variable is
    /// missing (both reported), or when there is nothing. With missing variables forgiven, the text as it is written.
    pub fn scalar(&self, node: &Node, label: &str) -> Option<String> {
        match &node.value {
            Value::Nothing => None,
            Value::Scalar(text) => self.expand(node.span, text),
            Value::List(_) | Value::Map(_) => {
                self.mistake(node.span, format!("{label} is {}", node.noun()), Some("a single value".into()));
                None
            }
        }
    }

    fn expand(&self, span: Span, text: &str) -> Option<String> {
        let troubles = match variables::expand(text, self.env) {
            Ok(text) => return Some(text),
            Err(troubles) => troubles,
        };
        let forgiven = |trouble: &Trouble| matches!(trouble, Trouble::Missing(_)) && self.forgiving();
        if troubles.iter().all(forgiven) {
            return Some(text.to_owned());
        }
        for trouble in troubles.into_iter().filter(|trouble| !forgiven(trouble)) {
            match trouble {
                Trouble::Missing(name) => self.mistake(
                    span,
                    format!("environment variable `{name}` is not set"),
                    Some(format!("set `{name}`, or give a default: `${{{name}:-…}}`")),
                ),
                Trouble::Malformed(text) => self.mistake(
                    span,
                    format!("`{text}` is no variable"),
                    Some("`${VAR}` or `${VAR:-default}`; write `$${` for a plain `${`".into()),
                ),
            }
        }
        None
    }

    /// The one mistake of a text that is no tree. Which values are secret is not known yet, so what follows a key that
    /// sounds like a credential is starred out.
    pub fn broken(self, broken: Broken) -> Mistakes {
        let line = broken.place.line;
        let text = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        if let Some((key, _)) = text.split_once(':').filter(|(key, _)| secret::names_a_credential(key.trim()))
        {
            let start = Place { line, column: key.chars().count() + 2 };
            self.hide(Span { start, end: Place { line: line + 1, column: 1 } });
        }
        self.mistake(Span { start: broken.place, end: broken.place }, broken.what, broken.expected);
        Mistakes::new(self.rendered(self.mistakes.take()))
    }

    /// The warnings when nothing is wrong, all mistakes otherwise, each in the order of the file.
    pub fn finish(self) -> Result<Vec<Mistake>, Mistakes> {
        let mut mistakes = self.outside.take();
        mistakes.extend(self.rendered(self.mistakes.take()));
        if mistakes.is_empty() {
            Ok(self.rendered(self.warnings.take()))
        } else {
            Err(Mistakes::new(mistakes))
        }
    }

    fn rendered(&self, mut found: Vec<Found>) -> Vec<Mistake> {
        found.sort_by_key(|found| found.span.start);
        found.into_iter().map(|found| self.render(found)).collect()
    }

    fn render(&self, found: Found) -> Mistake {
        let Place { line, column } = found.span.start;
        let text: Vec<char> = self.starred(line);
        let end = if found.span.end.line == line { found.span.end.column } else { text.len() + 1 };
        let from = if text.len() <= WIDTH { 0 } else { column.saturating_sub(WIDTH / 2) };
        let shown: String = text.iter().skip(from).take(WIDTH).collect();
        let before = (column - 1).saturating_sub(from);
        let width = end.saturating_sub(column).clamp(1, WIDTH.saturating_sub(before).max(1));
        Mistake {
            file: self.file.clone(),
            line,
            column,
            excerpt: shown.trim_end().to_owned(),
            caret: " ".repeat(before) + &"^".repeat(width),
            what: found.what,
            expected: found.expected,
        }
    }

    /// A line as characters: tabs as spaces, so the caret stands right, and secrets as stars.
    fn starred(&self, line: usize) -> Vec<char> {
        let text = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let hidden = self.hidden.borrow();
        let secret = |column: usize| {
            let place = Place { line, column };
            hidden.iter().any(|span| span.start <= place && place < span.end)
        };
        text.chars()
            .enumerate()
            .map(|(index, letter)| match letter {
                '\t' => ' ',
                letter if !letter.is_whitespace() && secret(index + 1) => '*',
                letter => letter,
            })
            .collect()
    }
}
