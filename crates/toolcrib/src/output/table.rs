//! A small table. On a terminal it has a head, is aligned and fits the width; in a pipe it is one line per row with a
//! tab between the columns, so that `cut` and `awk` can read it.

use super::{Output, Tint, clean};

/// One field of a table.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    tint: Option<Tint>,
}

impl Cell {
    pub fn new(text: impl ToString) -> Self {
        Self { text: clean(&text.to_string()).replace(['\n', '\t'], " "), tint: None }
    }

    pub fn tinted(text: impl ToString, tint: Tint) -> Self {
        Self { tint: Some(tint), ..Self::new(text) }
    }

    /// A dash where there is nothing.
    pub fn maybe(text: Option<impl ToString>) -> Self {
        text.map_or_else(|| Self::tinted("-", Tint::Faint), Self::new)
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

#[derive(Debug)]
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

const GAP: usize = 2;
/// No column is cut shorter than this.
const NARROWEST: usize = 8;

impl Table {
    pub fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn lines(&self, output: &Output) -> Vec<String> {
        let Some(limit) = output.limit() else {
            return self.rows.iter().map(|row| tabbed(row)).collect();
        };
        let widths = self.widths(limit);
        let head: Vec<Cell> = self.heads.iter().map(|head| Cell::tinted(head, Tint::Head)).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| aligned(row, &widths, output)).collect()
    }

    /// As wide as their contents, the widest ones cut until the line fits.
    fn widths(&self, limit: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heads.iter().map(|head| head.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > limit {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

fn tabbed(row: &[Cell]) -> String {
    row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("\t")
}

fn aligned(row: &[Cell], widths: &[usize], output: &Output) -> String {
    let mut line = String::new();
    let last = row.len().saturating_sub(1);
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = cut(&cell.text, *width);
        let padding = if index == last { 0 } else { width - text.chars().count() + GAP };
        line += &match cell.tint {
            Some(tint) => output.paint(tint, &text),
            None => text,
        };
        line += &" ".repeat(padding);
    }
    line.trim_end().to_owned()
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Color, Form, Stream};

    fn output(terminal: bool, width: usize) -> Output {
        let stream = Stream::new(terminal, Color::Never);
        Output { form: Form::Text, out: stream, err: stream, width }
    }

    fn sample() -> Table {
        let mut table = Table::new(&["ID", "DESCRIPTION"]);
        table.row(vec![Cell::new("notion:search"), Cell::new("Finds pages\nand more")]);
        table.row(vec![Cell::new("time:now"), Cell::maybe(None::<String>)]);
        table
    }

    #[test]
    fn a_terminal_sees_columns_that_fit() {
        let lines = sample().lines(&output(true, 28));
        assert_eq!(lines, ["ID             DESCRIPTION", "notion:search  Finds pages…", "time:now       -"]);
    }

    #[test]
    fn a_pipe_gets_whole_fields_and_no_head() {
        assert_eq!(
            sample().lines(&output(false, 20)),
            ["notion:search\tFinds pages and more", "time:now\t-"]
        );
    }
}
