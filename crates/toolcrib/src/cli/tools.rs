//! `tools`: what there is to call, and how.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::servers::nearest;
use super::trouble::{Code, Trouble};
use super::{Desk, Ended, JsonBelow, interruptible};
use crate::output::{Cell, Table, Tint, first_line};
use crate::reach::{Reach, Tool};

/// List, search and explain the tools of the crib
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolcrib tools list --server notion
  toolcrib tools search create calendar event
  toolcrib tools show notion:search")]
pub struct Tools {
    #[command(flatten)]
    pub(super) form: JsonBelow,
    #[command(subcommand)]
    deed: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// All tools, or those of one server
    #[command(visible_alias = "ls")]
    List {
        /// Only tools of this server
        #[arg(long, short, value_name = "SERVER")]
        server: Option<String>,
    },
    /// One tool: what it does and which arguments it takes
    Show {
        /// Any spelling of its name
        tool: String,
    },
    /// Tools by words in their names and descriptions, best match first
    Search {
        #[arg(required = true)]
        words: Vec<String>,
        /// At most this many
        #[arg(long, short = 'n', default_value = "20")]
        limit: usize,
    },
}

pub async fn run(words: Tools, desk: &Desk) -> Ended {
    let config = desk.load()?.config;
    let reach = Reach::find(&config, &desk.address()).await?;
    desk.say_whom(&reach);
    let ended = interruptible(Box::pin(look(&words.deed, desk, &reach))).await;
    reach.close().await;
    ended
}

async fn look(which: &Which, desk: &Desk, reach: &Reach) -> Ended {
    match which {
        Which::List { server } => {
            let tools = reach.tools(server.as_deref()).await?;
            if let Some(id) = server.as_ref().filter(|_| tools.is_empty()) {
                // A server without tools, or no such server: only the crib knows.
                reach.server(id).await?;
            }
            list(&tools, desk)?;
            if server.is_none() {
                say_missing(reach, desk).await;
            }
        }
        Which::Show { tool } => show(&find(tool, reach).await?, desk)?,
        Which::Search { words, limit } => {
            let mut found = best(words, reach.tools(None).await?);
            found.truncate(*limit);
            list(&found, desk)?;
            if found.is_empty() && !desk.output.is_json() {
                return Err(Trouble::unknown(format!("no tool is about `{}`", words.join(" "))));
            }
        }
    }
    Ok(Code::Done)
}

/// Servers that failed have no tools on the list; said, so that nobody wonders.
async fn say_missing(reach: &Reach, desk: &Desk) {
    let Ok(servers) = reach.glance().await else { return };
    for server in servers.iter().filter(|server| server.state == "failed") {
        let why = server.last_error.as_deref().unwrap_or("no reason known");
        desk.warn(format!("`{}` is not connected, its tools may be missing: {why}", server.id));
    }
}

/// The tool by any spelling; the near miss is named.
pub(super) async fn find(spelling: &str, reach: &Reach) -> Result<Tool, Trouble> {
    match reach.tool(spelling).await {
        Err(trouble) if trouble.code == Code::Unknown => {
            let tools = reach.known_tools().await.unwrap_or_default();
            let near =
                nearest(spelling, tools.iter().flat_map(|tool| [tool.tool_id.as_str(), tool.name.as_str()]));
            Err(match near {
                Some(near) => trouble.hint(format!("did you mean `{near}`?")),
                None => trouble,
            })
        }
        found => found,
    }
}

fn list(tools: &[Tool], desk: &Desk) -> std::io::Result<()> {
    if desk.output.is_json() {
        return desk.output.json(&json!({ "tools": tools }));
    }
    let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
    for tool in tools {
        table.row(vec![Cell::new(&tool.tool_id), Cell::tinted(first_line(&tool.description), Tint::Faint)]);
    }
    desk.output.table(&table)
}

/// Every word that is part of the name counts four, of the description one; all words must be somewhere.
fn best(words: &[String], tools: Vec<Tool>) -> Vec<Tool> {
    let words: Vec<String> =
        words.iter().flat_map(|word| word.split_whitespace()).map(str::to_lowercase).collect();
    let mut found: Vec<(usize, Tool)> = tools
        .into_iter()
        .filter_map(|tool| {
            let (id, text) = (tool.tool_id.to_lowercase(), tool.description.to_lowercase());
            let score = |word: &String| {
                4 * usize::from(id.contains(word.as_str())) + usize::from(text.contains(word.as_str()))
            };
            let scores: Vec<usize> = words.iter().map(score).collect();
            (!scores.contains(&0)).then(|| (scores.iter().sum(), tool))
        })
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, tool)| tool).collect()
}

fn show(tool: &Tool, desk: &Desk) -> std::io::Result<()> {
    let output = &desk.output;
    if output.is_json() {
        return output.json(tool);
    }
    output.line(output.paint(Tint::Head, &first_line(&tool.tool_id)))?;
    output.line(format!("listed to MCP clients as {}", tool.name))?;
    if !tool.description.trim().is_empty() {
        output.line("")?;
        output.text(tool.description.trim())?;
    }
    let schema = tool.tool.get("inputSchema").unwrap_or(&Value::Null);
    let arguments = arguments(schema);
    output.line("")?;
    if arguments.is_empty() {
        output.line("It takes no arguments.")?;
    } else {
        output.table(&arguments)?;
    }
    output.line("")?;
    output.line(format!("toolcrib call {}{}", tool.tool_id, sample(schema)))
}

fn arguments(schema: &Value) -> Table {
    let mut table = Table::new(&["ARGUMENT", "TYPE", "", "DESCRIPTION"]);
    let required = required(schema);
    for (name, argument) in properties(schema) {
        let needed = if required.contains(&name.as_str()) { "required" } else { "" };
        let description = argument.get("description").and_then(Value::as_str).unwrap_or_default();
        table.row(vec![
            Cell::new(name),
            Cell::new(kind(argument)),
            Cell::tinted(needed, Tint::Warn),
            Cell::tinted(first_line(description), Tint::Faint),
        ]);
    }
    table
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn required(schema: &Value) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A schema in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let words =
            choices.iter().map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned));
        return words.collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type") {
        Some(Value::String(word)) if word == "array" => match schema.get("items") {
            Some(items) => format!("list of {}", kind(items)),
            None => "list".to_owned(),
        },
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

/// The flags a call needs at least.
fn sample(schema: &Value) -> String {
    required(schema).iter().map(|name| format!(" --arg {name}=…")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(id: &str, description: &str) -> Tool {
        Tool {
            tool_id: id.into(),
            server_id: String::new(),
            name: String::new(),
            description: description.into(),
            tool: Value::Null,
        }
    }

    #[test]
    fn a_word_in_the_name_beats_one_in_the_description() {
        let tools =
            vec![tool("a:one", "opens a page"), tool("b:page_open", "opens"), tool("c:two", "nothing")];
        let found: Vec<String> =
            best(&["open".into(), "page".into()], tools).into_iter().map(|tool| tool.tool_id).collect();
        assert_eq!(found, ["b:page_open", "a:one"]);
    }

    #[test]
    fn schemas_are_told_in_words() {
        assert_eq!(kind(&json!({ "type": "array", "items": { "type": "string" } })), "list of string");
        assert_eq!(kind(&json!({ "enum": ["a", 1] })), "a | 1");
        assert_eq!(kind(&json!({ "type": ["string", "null"] })), "string or null");
        assert_eq!(sample(&json!({ "required": ["a", "b"] })), " --arg a=… --arg b=…");
    }
}
