//! Whether a URI could have come from a URI template (RFC 6570), to route a read to the source that has the template.
//!
//! It decides where a read goes, never whether it may happen; a doubtful match is left to the source.

/// A template as literal text and gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// One variable: anything but `/`.
    Segment,
    /// A reserved, path or query expansion: anything.
    Anything,
}

impl Template {
    pub fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
            let Some((expression, tail)) = after.split_once('}') else {
                rest = "";
                break;
            };
            let reserved =
                expression.starts_with(['+', '#', '/', '?', '&', ';', '.']) || expression.ends_with('*');
            pieces.push(if reserved { Piece::Anything } else { Piece::Segment });
            rest = tail;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Self(pieces)
    }

    /// Tried over a set of positions, so the time is bounded by pieces × length.
    pub fn matches(&self, uri: &str) -> bool {
        let bytes = uri.as_bytes();
        let mut reached = vec![false; bytes.len() + 1];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        for piece in &self.0 {
            reached = step(piece, bytes, &reached);
        }
        reached.last().copied().unwrap_or(false)
    }
}

fn step(piece: &Piece, bytes: &[u8], reached: &[bool]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    match piece {
        Piece::Literal(text) => {
            for (at, _) in reached.iter().enumerate().filter(|(_, here)| **here) {
                if bytes.get(at..).is_some_and(|tail| tail.starts_with(text.as_bytes()))
                    && let Some(slot) = next.get_mut(at + text.len())
                {
                    *slot = true;
                }
            }
        }
        Piece::Segment | Piece::Anything => {
            let mut running = false;
            for (at, slot) in next.iter_mut().enumerate() {
                let arrived = reached.get(at).copied().unwrap_or(false);
                let stopped = *piece == Piece::Segment && at > 0 && bytes.get(at - 1) == Some(&b'/');
                running = arrived || (running && !stopped);
                *slot = running;
            }
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_stays_within_a_segment_and_a_path_does_not() {
        let one = Template::parse("test://template/{id}/data");
        assert!(one.matches("test://template/123/data"));
        assert!(!one.matches("test://template/1/2/data") && !one.matches("test://template/123"));
        let path = Template::parse("file://{+path}");
        assert!(path.matches("file:///a/b/c") && !path.matches("http:///a"));
        assert!(Template::parse("x://{a}{b}").matches("x://"));
    }
}
