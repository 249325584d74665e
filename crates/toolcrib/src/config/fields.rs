//! The one way a group of keys is read: look a key up, turn its value into a type, report what does not fit.
//!
//! Every struct of the config is read through [`Fields`]; unknown and repeated keys are found here and nowhere else.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use super::node::{Node, Span, Value};
use super::reading::Reading;
use super::scalar::{self, Expected};
use super::secret::{self, Secret};
use super::shape::{self, Choice, Key, Kind, Shape};
use super::spelling;

pub(crate) struct Fields<'r, 'a> {
    pub reading: &'r Reading<'a>,
    /// Where the group stands, for what is missing from it.
    pub span: Span,
    shape: &'static Shape,
    entries: Vec<(&'static Key, &'r Node)>,
    /// Keys that were probably meant by unknown ones; their absence is not told a second time.
    misspelt: Vec<&'static str>,
}

impl<'r, 'a> Fields<'r, 'a> {
    /// Opens a group, reporting keys it may not have. A value that is no group is reported and read as empty.
    pub fn open(reading: &'r Reading<'a>, node: &'r Node, span: Span, shape: &'static Shape) -> Self {
        let mut fields = Self { reading, span, shape, entries: Vec::new(), misspelt: Vec::new() };
        match &node.value {
            Value::Nothing => {}
            Value::Map(entries) => entries.iter().for_each(|(key, value)| fields.admit(key, value)),
            Value::Scalar(_) | Value::List(_) => {
                let keys = spelling::one_of(shape.keys.iter().map(|key| key.name));
                reading.mistake(
                    node.span,
                    format!("{} is {}", shape.title, node.noun()),
                    Some(format!("a group of keys: {keys}")),
                );
            }
        }
        fields
    }

    fn admit(&mut self, key: &'r Node, value: &'r Node) {
        let Value::Scalar(word) = &key.value else {
            self.reading.mistake(key.span, format!("a key that is {}", key.noun()), Some("a word".into()));
            return;
        };
        match self.shape.key(word) {
            None => self.unknown(word, key, value),
            Some(known) if self.entries.iter().any(|(seen, _)| seen.name == known.name) => {
                let what = if word == known.name {
                    format!("`{word}` is given twice")
                } else {
                    format!("`{word}` is another spelling of `{}`, which is given already", known.name)
                };
                hide_secrets(self.reading, &known.kind, value);
                self.reading.mistake(key.span, what, Some(format!("`{}` once", known.name)));
            }
            Some(known) => {
                hide_secrets(self.reading, &known.kind, value);
                self.entries.push((known, value));
            }
        }
    }

    fn unknown(&mut self, word: &str, key: &Node, value: &Node) {
        let near = spelling::nearest(word, self.shape.keys.iter().map(|key| key.name));
        let meant = near.and_then(|near| self.shape.key(near));
        let secret =
            secret::names_a_credential(word) || meant.is_some_and(|key| matches!(key.kind, Kind::Secret));
        if secret || matches!(value.value, Value::List(_) | Value::Map(_)) {
            self.reading.hide(value.span);
        }
        self.misspelt.extend(near);
        let expected = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => spelling::one_of(self.shape.keys.iter().map(|key| key.name)),
        };
        self.reading.mistake(
            key.span,
            format!("unknown key `{word}` in {}", self.shape.title),
            Some(expected),
        );
    }

    /// The node under `name`, which must be a key of the shape.
    pub fn node(&self, name: &str) -> Option<&'r Node> {
        debug_assert!(self.shape.key(name).is_some(), "`{name}` is not in the shape of {}", self.shape.title);
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| *node)
    }

    pub fn has(&self, name: &str) -> bool {
        self.node(name).is_some_and(|node| !matches!(node.value, Value::Nothing))
    }

    /// Whether nothing was written for `name`, not even something like it.
    pub fn lacks(&self, name: &str) -> bool {
        !self.has(name) && !self.misspelt.contains(&name)
    }

    /// Where `name` stands, or the group when it is absent.
    pub fn span_of(&self, name: &str) -> Span {
        self.node(name).map_or(self.span, |node| node.span)
    }

    /// The value as it is written, for what a disabled server leaves unresolved.
    pub fn unresolved(&self, name: &str) -> Option<String> {
        match &self.node(name)?.value {
            Value::Scalar(text) if self.reading.forgiving() => Some(text.clone()),
            _ => None,
        }
    }

    /// A mistake of the group as a whole.
    pub fn lacking(&self, what: &str, expected: &str) {
        self.reading.mistake(self.span, what, Some(expected.to_owned()));
    }

    /// A mistake at the value of `name`.
    pub fn mistake(&self, name: &str, what: impl Into<String>, expected: &str) {
        self.reading.mistake(self.span_of(name), what, Some(expected.to_owned()));
    }

    /// A single value through `parse`; the path of every typed reader below.
    pub fn value<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T, Expected>) -> Option<T> {
        value(self.reading, self.node(name)?, name, &parse)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name, |text| Ok(text.to_owned()))
    }

    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.text(name).map(Secret::new)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.value(name, scalar::flag)
    }

    pub fn count(&self, name: &str) -> Option<usize> {
        self.value(name, scalar::count)
    }

    pub fn duration(&self, name: &str) -> Option<Duration> {
        self.value(name, scalar::duration)
    }

    pub fn size(&self, name: &str) -> Option<u64> {
        self.value(name, scalar::size)
    }

    pub fn address(&self, name: &str) -> Option<SocketAddr> {
        self.value(name, scalar::address)
    }

    pub fn url(&self, name: &str) -> Option<String> {
        self.value(name, scalar::web_url)
    }

    pub fn choice<C: Choice>(&self, name: &str) -> Option<C> {
        self.value(name, choose::<C>)
    }

    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        self.list(name, |text| Ok(text.to_owned()))
    }

    pub fn globs(&self, name: &str) -> Option<Vec<String>> {
        self.list(name, scalar::glob)
    }

    fn list<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T, Expected>) -> Option<Vec<T>> {
        let node = self.node(name)?;
        match &node.value {
            Value::Nothing => None,
            Value::List(items) => {
                Some(items.iter().filter_map(|item| required(self.reading, item, name, &parse)).collect())
            }
            Value::Scalar(_) | Value::Map(_) => {
                self.mistake(
                    name,
                    format!("`{name}` is {}", node.noun()),
                    "a list, such as `[\"one\", \"two\"]`",
                );
                None
            }
        }
    }

    /// Free keys with text values; a key given twice is reported.
    pub fn map(&self, name: &str) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        for (key, _, node) in self.pairs(name) {
            if let Some(text) = required(self.reading, node, key, &|text| Ok(text.to_owned())) {
                map.insert(key.to_owned(), text);
            }
        }
        map
    }

    /// The key, its place and its value for each entry of the map `name`; repeated keys are reported and left out.
    pub fn pairs(&self, name: &str) -> Vec<(&'r str, Span, &'r Node)> {
        let Some(node) = self.node(name) else { return Vec::new() };
        let entries = match &node.value {
            Value::Nothing => return Vec::new(),
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => {
                self.mistake(name, format!("`{name}` is {}", node.noun()), "keys with values under it");
                return Vec::new();
            }
        };
        let mut pairs = Vec::with_capacity(entries.len());
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (key, value) in entries {
            let Value::Scalar(word) = &key.value else {
                self.reading.mistake(
                    key.span,
                    format!("a key that is {}", key.noun()),
                    Some("a word".into()),
                );
                continue;
            };
            match seen.get(word.as_str()) {
                Some(first) => {
                    self.reading.hide(value.span);
                    let what = format!("`{word}` is given twice under `{name}`, first on line {first}");
                    self.reading.mistake(key.span, what, Some("each name once".to_owned()));
                }
                None => {
                    seen.insert(word, key.span.start.line);
                    pairs.push((word.as_str(), key.span, value));
                }
            }
        }
        pairs
    }

    /// The group under `name`, when it is given.
    pub fn group(&self, name: &str) -> Option<Fields<'r, 'a>> {
        let node = self.node(name)?;
        match self.shape.key(name)?.kind {
            Kind::Group(shape) => Some(Fields::open(self.reading, node, node.span, shape)),
            _ => None,
        }
    }
}

pub(crate) fn choose<C: Choice>(text: &str) -> Result<C, Expected> {
    let snake = spelling::snake(text);
    let found = C::WORDS.iter().find(|(word, _)| spelling::snake(word) == snake);
    match found {
        Some((_, choice)) => Ok(*choice),
        None => Err(match spelling::nearest(text, shape::words::<C>()) {
            Some(near) => format!("{}; did you mean `{near}`?", spelling::one_of(shape::words::<C>())),
            None => spelling::one_of(shape::words::<C>()),
        }),
    }
}

fn value<T>(
    reading: &Reading<'_>,
    node: &Node,
    label: &str,
    parse: &dyn Fn(&str) -> Result<T, Expected>,
) -> Option<T> {
    let text = reading.scalar(node, &format!("`{label}`"))?;
    match parse(&text) {
        Ok(value) => Some(value),
        Err(_) if reading.forgiving() && text.contains("${") => None,
        Err(expected) => {
            // What a variable stands for may be secret; what is written in the file is in the excerpt anyway.
            let what = match &node.value {
                Value::Scalar(written) if *written != text => {
                    format!("`{label}` cannot be what `{written}` stands for")
                }
                _ => format!("`{label}` cannot be `{text}`"),
            };
            reading.mistake(node.span, what, Some(expected));
            None
        }
    }
}

/// As [`value`], for places where nothing is a mistake too.
fn required<T>(
    reading: &Reading<'_>,
    node: &Node,
    label: &str,
    parse: &dyn Fn(&str) -> Result<T, Expected>,
) -> Option<T> {
    if matches!(node.value, Value::Nothing) {
        reading.mistake(
            node.span,
            format!("nothing is given for `{label}`"),
            Some("a value; `\"\"` for an empty one".to_owned()),
        );
        return None;
    }
    value(reading, node, label, parse)
}

/// Stars out secret values in excerpts; a reference such as `${VAR}` gives nothing away and stays readable.
fn hide_secrets(reading: &Reading<'_>, kind: &Kind, node: &Node) {
    match (kind, &node.value) {
        (Kind::Secret, Value::Scalar(text)) if !text.starts_with("${") => reading.hide(node.span),
        (Kind::Secret, Value::List(_) | Value::Map(_)) => reading.hide(node.span),
        (Kind::Map(kind), Value::Map(entries)) => {
            entries.iter().for_each(|(_, value)| hide_secrets(reading, kind, value));
        }
        _ => {}
    }
}
