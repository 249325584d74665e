//! `call`: one tool, once.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolcrib_core::error::Kind;

use super::trouble::{Code, Trouble};
use super::{Desk, Ended, content, tools};
use crate::output::Tint;
use crate::reach::Reach;

/// Call a tool and print what it answers
#[derive(Debug, Args)]
#[command(after_help = "\
A value that is JSON is taken as JSON, anything else as text: `--arg limit=5` is a number, `--arg 'limit=\"5\"'` a text. \
Text is printed as it is; images, audio and files are described, and saved with --out. The raw result comes with \
`--output json`. When the tool itself reports an error, its words go to stderr and the exit code is 1.

Examples:
  toolcrib call time:get_current_time --arg timezone=Europe/Berlin
  toolcrib call notion:search --json '{\"query\": \"roadmap\", \"limit\": 5}'
  jq '{query: .title}' page.json | toolcrib call notion:search --json - -o json
  toolcrib call shots:screenshot --arg url=https://example.org --out page.png")]
pub struct CallTool {
    /// Any spelling of the tool's name: `server:tool`, `server__tool`, or `tool` where only one server has it
    tool: String,
    /// One argument; may be repeated
    #[arg(long = "arg", short = 'a', value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from stdin
    #[arg(long, value_name = "OBJECT", conflicts_with = "arguments")]
    json: Option<String>,
    /// Save the first image, audio or file of the answer here
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub async fn run(words: CallTool, desk: &Desk) -> Ended {
    let arguments = match &words.json {
        Some(text) => object(text)?,
        None => pairs(&words.arguments)?,
    };
    let config = desk.load()?.config;
    let reach = Reach::find(&config, &desk.address()).await?;
    desk.say_whom(&reach);
    let (progress, mut heard) = mpsc::channel::<String>(64);
    let output = desk.output;
    let listening = tokio::spawn(async move {
        while let Some(line) = heard.recv().await {
            output.aside(line);
        }
    });
    let answered = match Box::pin(reach.call(&words.tool, arguments, progress)).await {
        Err(trouble) if trouble.code == Code::Unknown => {
            Err(tools::find(&words.tool, &reach).await.err().unwrap_or(trouble))
        }
        Err(trouble) if trouble.kind == Kind::InvalidArguments.word() => Err(trouble.hint(format!(
            "`toolcrib tools show {}` shows what it takes; a text that looks like JSON is written `--arg 'name=\"5\"'`",
            words.tool
        ))),
        answered => answered,
    };
    let _ = listening.await;
    reach.close().await;
    tell(&answered?, &words, desk)
}

fn tell(result: &RawValue, words: &CallTool, desk: &Desk) -> Ended {
    let value: Value = serde_json::from_str(result.get())
        .map_err(|error| Trouble::failed(format!("the result is not understood: {error}")))?;
    if let Some(path) = &words.out {
        let saved = content::save(&value, path)?;
        desk.output.told("saved", Tint::Good, format!("{saved} to {}", path.display()));
    }
    let failed = value.get("isError") == Some(&Value::Bool(true));
    if desk.output.is_json() {
        desk.output.json(&value)?;
    } else if failed {
        let trouble = Trouble::new(Code::Failed, "tool_error", content::text(&value));
        desk.output.told("error", Tint::Bad, format!("`{}` says: {}", words.tool, trouble.message));
    } else {
        let text = content::text(&value);
        if !text.is_empty() {
            desk.output.text(&text)?;
        }
    }
    let waits = value.get("resultType").and_then(Value::as_str) == Some("input_required");
    if waits {
        let told =
            format!("`{}` wants an answer from a person first, which this command cannot give", words.tool);
        return Err(Trouble::new(Code::Failed, "input_required", told));
    }
    Ok(if failed { Code::Failed } else { Code::Done })
}

/// The arguments as they were written, if they are an object.
fn object(text: &str) -> Result<Box<RawValue>, Trouble> {
    let mut piped = String::new();
    let text = if text == "-" {
        std::io::stdin().read_to_string(&mut piped)?;
        piped.as_str()
    } else {
        text
    };
    let wrong = |why: String| {
        Trouble::usage(format!("the arguments after `--json` are not a JSON object: {why}"))
            .hint("write them like `--json '{\"name\": \"value\"}'`; for JSON output use `--output json`")
    };
    let raw: Box<RawValue> = serde_json::from_str(text.trim()).map_err(|error| wrong(error.to_string()))?;
    if raw.get().starts_with('{') { Ok(raw) } else { Err(wrong(format!("it is `{}`", raw.get()))) }
}

fn pairs(words: &[String]) -> Result<Box<RawValue>, Trouble> {
    let mut members = Map::new();
    for word in words {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(
                Trouble::usage(format!("`--arg {word}` is not an argument")).hint("write `--arg NAME=VALUE`")
            );
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if members.insert(name.to_owned(), value).is_some() {
            return Err(Trouble::usage(format!("the argument `{name}` is given twice")));
        }
    }
    serde_json::value::to_raw_value(&members).map_err(|error| Trouble::failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_where_they_can_be() {
        let words = ["a=5", "b=five", "c=true", "d=[1,2]", "e=\"5\"", "f=", "g=x=y"].map(str::to_owned);
        let raw = pairs(&words).unwrap();
        assert_eq!(raw.get(), r#"{"a":5,"b":"five","c":true,"d":[1,2],"e":"5","f":"","g":"x=y"}"#);
    }

    #[test]
    fn what_is_no_argument_is_told() {
        for words in [&["a"][..], &["=1"], &["a=1", "a=2"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(pairs(&words).unwrap_err().code, Code::Usage);
        }
        for text in ["[1]", "5", "{", "{} {}", ""] {
            assert_eq!(object(text).unwrap_err().code, Code::Usage, "{text}");
        }
        assert_eq!(
            object(" {\"b\": 1.0, \"a\":2} ").unwrap().get(),
            "{\"b\": 1.0, \"a\":2}",
            "kept as written"
        );
    }
}
