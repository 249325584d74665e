//! `config`: checked, described, shown. Secrets are never printed.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use url::Url;

use super::trouble::{Code, Trouble};
use super::{Desk, Ended, JsonBelow};
use crate::config::{self as settings, Loaded, names_a_credential};
use crate::output::{Tint, tree};

/// Check, describe or show the config
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolcrib config check --config toolcrib.yaml
  toolcrib config schema > toolcrib.schema.json
  toolcrib config show --json | jq .config.listen")]
pub struct ConfigWords {
    #[command(flatten)]
    pub(super) form: JsonBelow,
    #[command(subcommand)]
    deed: Which,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Which {
    /// Report every mistake, with its place and what was expected; the same check as at start-up
    Check,
    /// Print the JSON Schema of the config, for editors
    Schema,
    /// Print the config in force, defaults filled in, secrets as ***
    Show,
}

pub fn run(words: &ConfigWords, desk: &Desk) -> Ended {
    match words.deed {
        Which::Check => check(desk),
        Which::Schema => {
            desk.output.json(&settings::schema())?;
            Ok(Code::Done)
        }
        Which::Show => show(desk),
    }
}

fn place(loaded: &Loaded) -> String {
    loaded.path.as_ref().map_or_else(|| "embedded default".into(), |path| path.display().to_string())
}

fn check(desk: &Desk) -> Ended {
    let mistakes = match settings::load(desk.config.as_deref(), &super::env) {
        Ok(loaded) => {
            if desk.output.is_json() {
                let servers = loaded.config.servers.len();
                desk.output.json(&json!({
                    "ok": true, "file": loaded.path, "servers": servers, "warnings": loaded.warnings, "mistakes": [],
                }))?;
                return Ok(Code::Done);
            }
            for warning in &loaded.warnings {
                desk.warn(warning);
            }
            let ok = desk.output.paint(Tint::Good, "ok");
            desk.output.line(format!(
                "{ok}: {} ({} servers)",
                place(&loaded),
                loaded.config.servers.len()
            ))?;
            return Ok(Code::Done);
        }
        Err(mistakes) => mistakes,
    };
    if desk.output.is_json() {
        let found = &mistakes.mistakes;
        desk.output.json(&json!({ "ok": false, "mistakes": found, "more": mistakes.more }))?;
        return Ok(Code::Config);
    }
    Err(Trouble::from(mistakes))
}

fn show(desk: &Desk) -> Ended {
    let loaded = desk.load()?;
    let mut config =
        serde_json::to_value(&loaded.config).map_err(|error| Trouble::failed(error.to_string()))?;
    hide(&mut config);
    if desk.output.is_json() {
        desk.output.json(&json!({ "file": loaded.path, "config": config, "warnings": loaded.warnings }))?;
    } else {
        desk.output.line(desk.output.paint(Tint::Faint, &format!("# {}", place(&loaded))))?;
        desk.output.text(&tree(&config))?;
    }
    Ok(Code::Done)
}

const STARS: &str = "***";

/// Stars out credentials that stand in URLs and in arguments; all others print as stars by themselves.
fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                match member {
                    Value::String(text) if matches!(key.as_str(), "url" | "otlp") => *text = hidden_url(text),
                    Value::Array(words) if key == "args" => hide_arguments(words),
                    other => hide(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

fn hidden_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return text.to_owned() };
    let secret = |(key, _): &(std::borrow::Cow<'_, str>, _)| names_a_credential(key);
    let query_has_one = url.query_pairs().any(|pair| secret(&pair));
    if !query_has_one && url.password().is_none() {
        return text.to_owned();
    }
    if url.password().is_some() {
        // It had one, so it can take another.
        let _ = url.set_password(Some(STARS));
    }
    if query_has_one {
        let pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(key, value)| {
                let shown = if names_a_credential(&key) { STARS.to_owned() } else { value.into_owned() };
                (key.into_owned(), shown)
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.to_string()
}

/// `--token x`, `--token=x`, `TOKEN=x`.
fn hide_arguments(words: &mut [Value]) {
    let mut next = false;
    for word in words {
        let Value::String(text) = word else { continue };
        let shown = match text.split_once('=') {
            _ if next => Some(STARS.to_owned()),
            Some((name, _)) if names_a_credential(name.trim_start_matches('-')) => {
                Some(format!("{name}={STARS}"))
            }
            _ => None,
        };
        next = shown.is_none()
            && text.starts_with('-')
            && !text.contains('=')
            && names_a_credential(text.trim_start_matches('-'));
        if let Some(shown) = shown {
            *text = shown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_urls_and_arguments_are_starred() {
        let mut config = json!({ "servers": { "a": { "transport": {
            "url": "https://me:pw@h/x?api_key=s3cret&q=1",
            "args": ["-y", "pkg", "--token", "s3cret", "--api-key=s3cret", "--keyboard", "de", "A_TOKEN=s3cret"],
        } } } });
        hide(&mut config);
        let shown = config.to_string();
        assert!(!shown.contains("s3cret") && !shown.contains("pw@"), "{shown}");
        assert!(shown.contains("q=1") && shown.contains(r#""--keyboard","de""#), "{shown}");
    }
}
