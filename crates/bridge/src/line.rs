//! Lines in and lines out: a bounded reader of the input, and the joining of JSON text into one line.
//!
//! A line past the limit is dropped and told, never held. Nothing here looks at what a line says.

use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// What the input gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// One line without its end, never blank.
    Line(Bytes),
    /// A line longer than the limit was skipped.
    TooLong,
}

/// Reads lines of at most `limit` bytes.
#[derive(Debug)]
pub struct Lines<R> {
    input: BufReader<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(input: R, limit: usize) -> Self {
        Self { input: BufReader::with_capacity(64 * 1024, input), limit }
    }

    /// The next line that is not blank; `None` when the input has ended. A last line without an end counts.
    pub async fn next(&mut self) -> std::io::Result<Option<Input>> {
        loop {
            let Some(found) = one(&mut self.input, self.limit).await? else { return Ok(None) };
            match found {
                Input::Line(line) if line.trim_ascii().is_empty() => {}
                found => return Ok(Some(found)),
            }
        }
    }
}

async fn one(input: &mut (impl AsyncBufRead + Unpin), limit: usize) -> std::io::Result<Option<Input>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            let nothing = line.is_empty() && !too_long;
            return Ok(if nothing { None } else { Some(finish(line, too_long)) });
        }
        let end = chunk.iter().position(|b| *b == b'\n');
        let taken = end.unwrap_or(chunk.len());
        if line.len() + taken > limit {
            too_long = true;
            line = Vec::new();
        }
        if !too_long {
            line.extend_from_slice(chunk.get(..taken).unwrap_or_default());
        }
        input.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Ok(Some(finish(line, too_long)));
        }
    }
}

fn finish(mut line: Vec<u8>, too_long: bool) -> Input {
    if too_long {
        return Input::TooLong;
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Input::Line(line.into())
}

/// Makes one line of JSON text. Inside JSON strings a raw line break cannot stand, so every one found is
/// whitespace between tokens and a space says the same.
pub fn joined(text: String) -> String {
    if text.bytes().any(|b| matches!(b, b'\n' | b'\r')) { text.replace(['\n', '\r'], " ") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8], limit: usize) -> Vec<Input> {
        let mut lines = Lines::new(input, limit);
        let mut found = Vec::new();
        while let Some(one) = lines.next().await.unwrap() {
            found.push(one);
        }
        found
    }

    fn line(text: &str) -> Input {
        Input::Line(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[tokio::test]
    async fn lines_are_cut_at_their_ends_and_blank_ones_skipped() {
        assert_eq!(all(b"a\r\n\n  \nb\nlast", 100).await, [line("a"), line("b"), line("last")]);
    }

    #[tokio::test]
    async fn a_line_past_the_limit_is_skipped_and_the_next_one_read() {
        let long = [b'x'; 200_000];
        let mut input = long.to_vec();
        input.extend_from_slice(b"\nshort\n");
        assert_eq!(all(&input, 100_000).await, [Input::TooLong, line("short")]);
    }

    #[test]
    fn joining_keeps_the_value() {
        let text = "{\r\n  \"a\": \"x\\ny\",\n  \"b\": [1,\n2]\n}";
        let one = joined(text.to_owned());
        assert!(!one.contains(['\n', '\r']));
        let before: serde_json::Value = serde_json::from_str(text).unwrap();
        let after: serde_json::Value = serde_json::from_str(&one).unwrap();
        assert_eq!(before, after);
    }
}
