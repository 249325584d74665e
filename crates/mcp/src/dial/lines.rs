//! Lines of bytes with a limit. Knows nothing of what is in them; bytes that are not text are no reason to stop.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    /// What was read of the line so far: reading may be interrupted and taken up again.
    line: Vec<u8>,
    limit: usize,
    overlong: Overlong,
}

/// What is done with a line over the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlong {
    Refuse,
    /// Given out in pieces.
    Cut,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LineFault {
    #[error("too large: a line is over the limit of {0} bytes")]
    TooLarge(usize),
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R, limit: usize, overlong: Overlong) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, reader), line: Vec::new(), limit, overlong }
    }

    /// The next line without its end; none at the end of everything. A last line without an end counts.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, LineFault> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let piece = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            self.line.extend_from_slice(piece);
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if self.line.len() > self.limit && self.overlong == Overlong::Refuse {
                return Err(LineFault::TooLarge(self.limit));
            }
            if end.is_some() || self.line.len() > self.limit {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], limit: usize, overlong: Overlong) -> Vec<Result<Vec<u8>, String>> {
        let mut lines = Lines::new(text, limit, overlong);
        let mut seen = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => seen.push(Ok(line)),
                Ok(None) => return seen,
                Err(error) => {
                    seen.push(Err(error.to_string()));
                    return seen;
                }
            }
        }
    }

    #[tokio::test]
    async fn a_last_line_without_an_end_counts() {
        assert_eq!(
            all(b"a\n\n\xff\nb", 10, Overlong::Refuse).await,
            [Ok(b"a".to_vec()), Ok(vec![]), Ok(vec![0xff]), Ok(b"b".to_vec())]
        );
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_refused_or_cut() {
        assert!(all(b"12345\n", 5, Overlong::Refuse).await[0].is_ok());
        assert!(all(b"123456\n", 5, Overlong::Refuse).await[0].as_ref().unwrap_err().contains("too large"));
        assert_eq!(all(b"123456\n7", 5, Overlong::Cut).await.len(), 2);
    }
}
