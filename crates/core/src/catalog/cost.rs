//! What checking arguments against a schema can cost, before anything is checked.
//!
//! A schema of a few kilobytes can ask for more steps than there are atoms: by references that double, or by recursion
//! that branches with every level of the arguments. Such a schema is not used.

use std::collections::HashMap;

use serde_json::Value;

/// A schema that takes more steps than this, its references followed, is not used.
pub const MOST_STEPS: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Parts of the schema, each counted as often as references lead to it.
    pub steps: u64,
    /// References that lead back to where they came from.
    pub loops: u64,
}

impl Cost {
    pub fn of(schema: &Value) -> Self {
        let mut walk = Walk { root: schema, known: HashMap::new(), loops: 0 };
        let steps = walk.steps(schema, 0);
        Self { steps, loops: walk.loops }
    }

    /// Whether searching for every mistake is cheap.
    pub fn is_small(&self) -> bool {
        self.steps <= 1_000 && self.loops == 0
    }

    /// Whether arguments of this depth can be checked within [`MOST_STEPS`].
    pub fn bears(&self, arguments: &Value) -> bool {
        self.loops <= 1 || {
            let depth = u32::try_from(depth(arguments)).unwrap_or(u32::MAX);
            self.loops.checked_pow(depth).is_some_and(|steps| steps <= MOST_STEPS)
        }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// The steps and loops of each part a reference leads to; none while it is being walked.
    known: HashMap<&'a str, Option<(u64, u64)>>,
    loops: u64,
}

/// References nested deeper than this are not followed; nothing sensible does that.
const DEEPEST: usize = 500;

impl<'a> Walk<'a> {
    fn steps(&mut self, part: &'a Value, deep: usize) -> u64 {
        if deep > DEEPEST {
            return u64::MAX;
        }
        match part {
            Value::Object(members) => members.iter().fold(1, |sum: u64, (key, value)| {
                // Definitions cost only where they are referred to.
                let more = match (key.as_str(), value) {
                    ("$defs" | "definitions", _) => 0,
                    ("$ref" | "$dynamicRef", Value::String(to)) => self.referred(to, deep),
                    // These lead elsewhere than they seem to.
                    ("$recursiveRef", _) => u64::MAX,
                    ("$id", Value::String(_)) if deep > 0 => u64::MAX,
                    (_, value) => self.steps(value, deep + 1),
                };
                sum.saturating_add(more)
            }),
            Value::Array(items) => {
                items.iter().fold(1, |sum: u64, item| sum.saturating_add(self.steps(item, deep + 1)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }

    fn referred(&mut self, to: &'a str, deep: usize) -> u64 {
        match self.known.get(to) {
            Some(Some((steps, loops))) => {
                self.loops = self.loops.saturating_add(*loops);
                return *steps;
            }
            Some(None) => {
                self.loops = self.loops.saturating_add(1);
                return 1;
            }
            None => {}
        }
        let target = match to {
            "#" => Some(self.root),
            to => to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)),
        };
        // What cannot be found by its address may still be found by the validator, at any cost.
        let Some(target) = target else { return u64::MAX };
        let before = self.loops;
        self.known.insert(to, None);
        let steps = self.steps(target, deep + 1);
        self.known.insert(to, Some((steps, self.loops - before)));
        steps
    }
}
