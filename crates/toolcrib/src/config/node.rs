//! YAML text as a tree in which every node knows where it was written.
//!
//! Built from parser events, because the usual way through serde stops at the first mistake and loses positions.
//! Bounded in depth and size, aliases included. It knows nothing of what the keys mean: that is `fields`.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle};

/// Deeper than any honest config; also bounds our own recursion.
const DEPTH: usize = 32;
/// Nodes after aliases are written out: what stops a billion laughs.
const NODES: usize = 100_000;

/// Line and column from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: Place,
    pub end: Place,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub value: Value,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Nothing after the colon, `~` or `null`.
    Nothing,
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// What the node is, for "expected a list, found …".
    pub fn noun(&self) -> &'static str {
        match &self.value {
            Value::Nothing => "nothing",
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a group of keys",
        }
    }
}

/// Why the text is no tree.
#[derive(Debug)]
pub(crate) struct Broken {
    pub place: Place,
    pub what: String,
    pub expected: Option<String>,
}

impl Broken {
    fn at(place: Place, what: &str, expected: &str) -> Self {
        Self { place, what: what.into(), expected: Some(expected.into()) }
    }
}

/// The tree of the one document in `text`; `Nothing` when there is none.
pub(crate) fn parse(text: &str) -> Result<Node, Broken> {
    let start = Place { line: 1, column: 1 };
    let mut builder = Builder { open: Vec::new(), anchors: HashMap::new(), made: 0, root: None };
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| Broken {
            place: place(error.marker()),
            what: format!("not valid YAML: {}", error.info()),
            expected: None,
        })?;
        builder.take(event, Span { start: place(&span.start), end: place(&span.end) })?;
    }
    Ok(builder.root.unwrap_or(Node { value: Value::Nothing, span: Span { start, end: start } }))
}

fn place(marker: &Marker) -> Place {
    Place { line: marker.line().max(1), column: marker.col() + 1 }
}

/// A collection whose end was not seen yet.
struct Open {
    anchor: usize,
    span: Span,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map { entries: Vec<(Node, Node)>, key: Option<Node> },
}

struct Builder {
    open: Vec<Open>,
    /// Each anchored node with its measure, so that an alias is priced before it is copied.
    anchors: HashMap<usize, (Node, Measure)>,
    made: usize,
    root: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Broken> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let nothing =
                    style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let value = if nothing { Value::Nothing } else { Value::Scalar(text.into_owned()) };
                self.spend(1, span)?;
                self.place(Node { value, span }, anchor);
                Ok(())
            }
            Event::SequenceStart(_, anchor, _) => {
                self.start(Open { anchor, span, inside: Inside::List(Vec::new()) })
            }
            Event::MappingStart(_, anchor, _) => {
                self.start(Open { anchor, span, inside: Inside::Map { entries: Vec::new(), key: None } })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.end(span);
                Ok(())
            }
            Event::Alias(id) => match self.anchors.get(&id) {
                Some((node, measure)) => {
                    if self.open.len() + measure.height > DEPTH {
                        return Err(too_deep(span));
                    }
                    let (node, nodes) = (Node { span, ..node.clone() }, measure.nodes);
                    self.spend(nodes, span)?;
                    self.place(node, 0);
                    Ok(())
                }
                None => Err(Broken::at(span.start, "an alias inside its own anchor", "a value")),
            },
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(Broken::at(span.start, "a second YAML document", "one document in the file"))
            }
            _ => Ok(()),
        }
    }

    fn spend(&mut self, nodes: usize, span: Span) -> Result<(), Broken> {
        self.made = self.made.saturating_add(nodes);
        if self.made > NODES {
            return Err(Broken::at(span.start, "too many values", "at most 100000, aliases written out"));
        }
        Ok(())
    }

    fn start(&mut self, open: Open) -> Result<(), Broken> {
        self.spend(1, open.span)?;
        if self.open.len() >= DEPTH {
            return Err(too_deep(open.span));
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self, end: Span) {
        let Some(Open { anchor, span, inside }) = self.open.pop() else { return };
        let value = match inside {
            Inside::List(items) => Value::List(items),
            Inside::Map { entries, .. } => Value::Map(entries),
        };
        self.place(Node { value, span: Span { start: span.start, end: end.end } }, anchor);
    }

    fn place(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), measure(&node)));
        }
        match self.open.last_mut().map(|open| &mut open.inside) {
            None => self.root = Some(node),
            Some(Inside::List(items)) => items.push(node),
            Some(Inside::Map { entries, key }) => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
        }
    }
}

fn too_deep(span: Span) -> Broken {
    Broken::at(span.start, "nested too deeply", "at most 32 levels, aliases written out")
}

struct Measure {
    nodes: usize,
    height: usize,
}

/// Recursion here, in `clone` and in `drop` is bounded: no tree is ever higher than `DEPTH`.
fn measure(node: &Node) -> Measure {
    let inner: Vec<Measure> = match &node.value {
        Value::Nothing | Value::Scalar(_) => Vec::new(),
        Value::List(items) => items.iter().map(measure).collect(),
        Value::Map(entries) => {
            entries.iter().flat_map(|(key, value)| [measure(key), measure(value)]).collect()
        }
    };
    Measure {
        nodes: 1 + inner.iter().map(|below| below.nodes).sum::<usize>(),
        height: 1 + inner.iter().map(|below| below.height).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_knows_where_it_was_written() {
        let tree = parse("a: 1\nb:\n  - x\n  - {c: ~}\n").unwrap();
        let Value::Map(entries) = &tree.value else { panic!("{tree:?}") };
        assert_eq!(entries[1].0.span.start, Place { line: 2, column: 1 });
        let Value::List(items) = &entries[1].1.value else { panic!("{tree:?}") };
        assert_eq!(items[0].span.start, Place { line: 3, column: 5 });
        assert_eq!(items[0].span.end, Place { line: 3, column: 6 });
        let Value::Map(inner) = &items[1].value else { panic!("{tree:?}") };
        assert_eq!(inner[0].0.span.start, Place { line: 4, column: 6 });
        assert!(matches!(inner[0].1.value, Value::Nothing));
    }

    #[test]
    fn aliases_work_but_a_billion_laughs_do_not() {
        let tree = parse("a: &x [1, 2]\nb: *x\n").unwrap();
        let Value::Map(entries) = &tree.value else { panic!("{tree:?}") };
        assert!(matches!(&entries[1].1.value, Value::List(items) if items.len() == 2));

        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
        }
        assert_eq!(parse(&bomb).unwrap_err().what, "too many values");
    }

    #[test]
    fn a_tower_of_aliases_is_as_deep_as_what_it_stands_for() {
        let mut tower = String::from("a0: &a0 [x]\n");
        for level in 1..5_000 {
            tower += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
        }
        assert_eq!(parse(&tower).unwrap_err().what, "nested too deeply");
    }

    #[test]
    fn depth_documents_and_syntax_are_checked() {
        assert_eq!(parse(&("[".repeat(40) + &"]".repeat(40))).unwrap_err().what, "nested too deeply");
        assert_eq!(parse("a: 1\n---\nb: 2\n").unwrap_err().what, "a second YAML document");
        let broken = parse("a: [1\nb: 2\n").unwrap_err();
        assert!(broken.what.starts_with("not valid YAML"), "{}", broken.what);
        assert!(matches!(parse("# nothing\n").unwrap().value, Value::Nothing));
    }
}
