//! Servers added to `toolcrib.yaml` as text, so that comments, order and spacing of what is there stay as they are.
//!
//! It only makes the new text. Whether that text means the old config plus the new servers is checked by whoever asks.

use serde_json::{Map, Value};

use crate::config::node::{self, Node, Place, Value as Tree};

/// The text with `servers` added under `servers:`; `None` when there is no place that can be found.
pub(crate) fn insert(text: &str, servers: &[(String, Map<String, Value>)]) -> Option<String> {
    let tree = node::parse(text).ok()?;
    let entries = match &tree.value {
        Tree::Nothing => &[][..],
        Tree::Map(entries) => entries.as_slice(),
        Tree::Scalar(_) | Tree::List(_) => return None,
    };
    let section = entries.iter().find(
        |(key, _)| matches!(&key.value, Tree::Scalar(word) if word == "servers" || word == "mcpServers"),
    );
    match section {
        None => Some(append(text, &format!("servers:\n{}", blocks(servers, 2)))),
        Some((_, node)) => under(text, node, servers),
    }
}

fn under(text: &str, node: &Node, servers: &[(String, Map<String, Value>)]) -> Option<String> {
    let flow = at(text, node.span.start).is_some_and(|rest| rest.starts_with('{'));
    match &node.value {
        Tree::Nothing => {
            // `servers:` with nothing after it; a written `~` or `null` has to go.
            let start = offset(text, node.span.start)?;
            let (before, rest) = text.split_at_checked(start)?;
            let rest =
                ["null", "Null", "NULL", "~"].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
            let joined = format!("{before}{rest}");
            Some(after_line(&joined, line_of_key(text, node)?, &blocks(servers, 2)))
        }
        Tree::Map(entries) if flow && entries.is_empty() => {
            let (start, end) = (offset(text, node.span.start)?, offset(text, node.span.end)?);
            let (before, after) = (text.get(..start)?.trim_end_matches(' '), text.get(end..)?);
            Some(after_line(&format!("{before}{after}"), node.span.start.line, &blocks(servers, 2)))
        }
        Tree::Map(_) if flow => {
            let end = offset(text, node.span.end)?;
            let (before, after) = text.split_at_checked(end.checked_sub(1)?)?;
            let comma = if before.trim_end().ends_with(',') { "" } else { "," };
            let added: Vec<String> = servers
                .iter()
                .map(|(id, server)| format!("{}: {}", quoted(id), Value::Object(server.clone())))
                .collect();
            Some(format!("{}{comma} {} {after}", before.trim_end(), added.join(", ")))
        }
        Tree::Map(entries) => {
            let indent = entries.first()?.0.span.start.column - 1;
            let last = with_trailing_comments(text, last_line(text, node), indent);
            Some(after_line(text, last, &blocks(servers, indent)))
        }
        Tree::Scalar(_) | Tree::List(_) => None,
    }
}

/// The line of `servers:` itself. Its empty value may be placed by the parser on a later line.
fn line_of_key(text: &str, node: &Node) -> Option<usize> {
    let lines: Vec<&str> = text.lines().take(node.span.start.line).collect();
    let found =
        lines.iter().rposition(|line| line.starts_with("servers") || line.starts_with("mcpServers"))?;
    Some(found + 1)
}

/// The last line that belongs to a node. The end of a block is not trusted: parsers put it at the next token.
fn last_line(text: &str, node: &Node) -> usize {
    let flow = at(text, node.span.start).is_some_and(|rest| rest.starts_with(['{', '[']));
    let inner = match &node.value {
        Tree::List(items) if !flow => items.iter().map(|item| last_line(text, item)).max(),
        Tree::Map(entries) if !flow => entries
            .iter()
            .map(|(key, value)| match &value.value {
                Tree::Nothing => key.span.end.line,
                _ => last_line(text, value),
            })
            .max(),
        _ => None,
    };
    let Place { line, column } = node.span.end;
    inner.unwrap_or(if column == 1 && line > node.span.start.line { line - 1 } else { line })
}

/// Comments after the last entry that are indented like it belong to it.
fn with_trailing_comments(text: &str, last: usize, indent: usize) -> usize {
    let mut end = last;
    for (index, line) in text.lines().enumerate().skip(last) {
        let trimmed = line.trim_start();
        if trimmed.starts_with('#') && line.len() - trimmed.len() >= indent && indent > 0 {
            end = index + 1;
        } else if !trimmed.is_empty() {
            break;
        }
    }
    end
}

fn after_line(text: &str, line: usize, block: &str) -> String {
    let end = text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
    let (before, after) = text.split_at_checked(end).unwrap_or((text, ""));
    let gap = if before.ends_with('\n') || before.is_empty() { "" } else { "\n" };
    format!("{before}{gap}{block}{after}")
}

fn append(text: &str, block: &str) -> String {
    match text.trim_end() {
        "" => block.to_owned(),
        kept => format!("{kept}\n\n{block}"),
    }
}

fn offset(text: &str, place: Place) -> Option<usize> {
    let before = text.split_inclusive('\n').take(place.line - 1).map(str::len).sum::<usize>();
    let line = text.get(before..)?;
    let within = line.char_indices().nth(place.column - 1).map_or(line.len(), |(index, _)| index);
    Some(before + within)
}

fn at(text: &str, place: Place) -> Option<&str> {
    text.get(offset(text, place)?..)
}

fn blocks(servers: &[(String, Map<String, Value>)], indent: usize) -> String {
    servers
        .iter()
        .map(|(id, server)| format!("{}{}:\n{}", " ".repeat(indent), quoted(id), block(server, indent + 2)))
        .collect()
}

/// A group of keys in block style; lists in one line.
fn block(members: &Map<String, Value>, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let lines = members.iter().map(|(key, value)| match value {
        Value::Object(inner) if !inner.is_empty() => {
            format!("{margin}{}:\n{}", quoted(key), block(inner, indent + 2))
        }
        Value::String(text) => format!("{margin}{}: {}\n", quoted(key), quoted(text)),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("{margin}{}: [{}]\n", quoted(key), items.join(", "))
        }
        other => format!("{margin}{}: {other}\n", quoted(key)),
    });
    lines.collect()
}

/// Text as a YAML scalar: plain when nothing about it is special, else in double quotes as JSON has them.
fn quoted(text: &str) -> String {
    let first = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || matches!(letter, '/' | '_'));
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '_' | '-' | '.');
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    if first && !word && text.chars().all(plain) { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> String {
        let Value::Object(server) =
            serde_json::json!({ "command": "npx", "args": ["-y", "x"], "env": { "A": "${A}" } })
        else {
            panic!("not an object")
        };
        let after = insert(text, &[("new".into(), server)]).unwrap();
        let env = |name: &str| (name == "A").then(|| "value".to_owned());
        let count = crate::config::parse(text, None, &env).unwrap().config.servers.len();
        let loaded =
            crate::config::parse(&after, None, &env).unwrap_or_else(|mistakes| panic!("{mistakes}\n{after}"));
        assert_eq!(loaded.config.servers.len(), count + 1, "{after}");
        after
    }

    const BLOCK: &str = "new:\n    command: npx\n    args: [\"-y\", \"x\"]\n    env:\n      A: \"${A}\"\n";

    #[test]
    fn an_empty_file_and_one_without_servers_get_a_section() {
        assert_eq!(added(""), format!("servers:\n  {BLOCK}"));
        assert_eq!(added("names: bare # mine\n\n"), format!("names: bare # mine\n\nservers:\n  {BLOCK}"));
        assert_eq!(
            added("servers: # none yet\nnames: bare\n"),
            format!("servers: # none yet\n  {BLOCK}names: bare\n")
        );
        assert_eq!(added("servers:\n"), format!("servers:\n  {BLOCK}"));
        assert_eq!(added("servers: ~\nnames: bare\n"), format!("servers: \n  {BLOCK}names: bare\n"));
        assert_eq!(added("servers: {}\n"), format!("servers:\n  {BLOCK}"));
    }

    #[test]
    fn entries_go_after_the_last_one_and_its_comments() {
        let text =
            "servers:\n  # first\n  a:\n    command: x\n    # timeout: 5s\n\n# the names\nnames: bare\n";
        let expected = format!(
            "servers:\n  # first\n  a:\n    command: x\n    # timeout: 5s\n  {BLOCK}\n# the names\nnames: bare\n"
        );
        assert_eq!(added(text), expected);
        added("servers:\n    a:\n        command: x");
        added(
            "servers:\n  a: {command: x}\n  b:\n    command: y\n    describe:\n      t: |\n        long\n        text\n\nnames: safe\n",
        );
        added("servers:\n  a:\n    command: x\n    args:\n    - one\n    - two\nlog: {level: info}\n");
        added("names: safe\nservers:\n  a:\n    command: x\n    name:\n");
    }

    #[test]
    fn flow_style_stays_flow_style() {
        let after = added("servers: {a: {command: x}} # kept\n");
        assert!(
            after.starts_with("servers: {a: {command: x}, new: {\"command\"")
                && after.ends_with("} # kept\n"),
            "{after}"
        );
        added("servers: {a: {command: x},}\n");
        added("servers: {\n  a: {command: x}\n}\nnames: bare\n");
        added("{servers: {a: {command: x}}, names: bare}\n");
    }

    #[test]
    fn special_text_is_quoted() {
        assert_eq!(quoted("npx"), "npx");
        for special in ["-y", "true", "8080", "a: b", "${A}", "", "~", "é", "a#b"] {
            assert!(quoted(special).starts_with('"'), "{special}");
        }
    }
}
