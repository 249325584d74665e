//! The command line of `toolcrib-bridge`: arguments and environment become [`Options`].
//!
//! Starts nothing and prints nothing; `main.rs` does both.

use std::ffi::OsString;
use std::time::Duration;

use lexopt::prelude::{Long, Short, Value, ValueExt};

use crate::options::{Options, OptionsError};

/// What the command line asks for.
#[derive(Debug)]
pub enum Wanted {
    Bridge(Box<Options>),
    Help,
    Version,
}

/// Why the command line cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    #[error(transparent)]
    Syntax(#[from] lexopt::Error),
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("no URL given; say where the crib is, such as `toolcrib-bridge http://tool-gateway:8081`")]
    NoUrl,
    #[error("`{0}` is not a number of seconds")]
    NotSeconds(String),
}

/// The text of `--help`.
pub const HELP: &str = "\
Relays MCP between stdin/stdout and a crib's HTTP endpoint, one JSON-RPC message per line.

Usage: toolcrib-bridge [OPTIONS] URL

  URL                  the crib, such as http://tool-gateway:8081 (`/mcp` is added when missing)

Options:
  --token TOKEN        send `Authorization: Bearer TOKEN`; better: set TOOLCRIB_TOKEN or GATEWAY_TOKEN
  --header 'K: V'      send this header with every message (may be repeated)
  --wait SECONDS       wait this long for a crib that refuses connections (default 60)
  --timeout SECONDS    give up on a request after this long (default: never)
  --grace SECONDS      let requests in flight finish this long after the input ends (default 10)
  -h, --help           print this
  -V, --version        print the version
";

/// Reads arguments (without the program's name) and asks `env` for the tokens.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Wanted, ArgsError> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut url, mut token, mut headers) = (None, None, Vec::new());
    let (mut wait, mut timeout, mut grace) = (None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Wanted::Help),
            Short('V') | Long("version") => return Ok(Wanted::Version),
            Long("token") => token = Some(parser.value()?.string()?),
            Long("header") => headers.push(parser.value()?.string()?),
            Long("wait") => wait = Some(seconds(parser.value()?.string()?)?),
            Long("timeout") => timeout = Some(seconds(parser.value()?.string()?)?),
            Long("grace") => grace = Some(seconds(parser.value()?.string()?)?),
            Value(value) if url.is_none() => url = Some(value.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let mut options = Options::new(&url.ok_or(ArgsError::NoUrl)?)?;
    let from_env = || ["TOOLCRIB_TOKEN", "GATEWAY_TOKEN"].into_iter().find_map(|name| set(env(name)));
    if let Some(token) = set(token).or_else(from_env) {
        options = options.with_token(&token)?;
    }
    for header in headers {
        options = options.with_header(&header)?;
    }
    options.wait = wait.unwrap_or(options.wait);
    options.grace = grace.unwrap_or(options.grace);
    options.timeout = timeout.filter(|t| !t.is_zero());
    Ok(Wanted::Bridge(Box::new(options)))
}

/// Compose files often pass `TOKEN=` for a token that is not used.
fn set(value: Option<String>) -> Option<String> {
    value.filter(|v| !v.trim().is_empty())
}

fn seconds(text: String) -> Result<Duration, ArgsError> {
    let number: f64 = text.parse().map_err(|_| ArgsError::NotSeconds(text.clone()))?;
    Duration::try_from_secs_f64(number).map_err(|_| ArgsError::NotSeconds(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str], env: &[(&str, &str)]) -> Result<Options, ArgsError> {
        let look = |name: &str| env.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned());
        match parse(arguments.iter().map(OsString::from), look)? {
            Wanted::Bridge(options) => Ok(*options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_url_is_enough() {
        let options = options(&["http://tool-gateway:8081"], &[]).unwrap();
        assert_eq!(options.endpoint.to_string(), "http://tool-gateway:8081/mcp");
        assert_eq!((options.wait.as_secs(), options.grace.as_secs(), options.timeout), (60, 10, None));
    }

    #[test]
    fn an_argument_wins_over_the_environment() {
        let env = [("TOOLCRIB_TOKEN", " "), ("GATEWAY_TOKEN", "from-env")];
        let bearer = |arguments: &[&str]| {
            let options = options(arguments, &env).unwrap();
            options.headers.get("authorization").unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(bearer(&["http://h"]), "Bearer from-env");
        assert_eq!(bearer(&["http://h", "--token", "mine"]), "Bearer mine");
    }

    #[test]
    fn times_are_seconds() {
        let options = options(&["--wait=0.5", "--timeout", "30", "--grace", "0", "http://h"], &[]).unwrap();
        assert_eq!(options.wait, Duration::from_millis(500));
        assert_eq!(options.timeout, Some(Duration::from_secs(30)));
        assert!(options.grace.is_zero());
    }

    #[test]
    fn mistakes_are_told() {
        assert!(matches!(options(&[], &[]), Err(ArgsError::NoUrl)));
        assert!(matches!(options(&["http://h", "--wait", "soon"], &[]), Err(ArgsError::NotSeconds(_))));
        assert!(matches!(options(&["http://h", "--wait", "-1"], &[]), Err(ArgsError::NotSeconds(_))));
        assert!(matches!(options(&["http://h", "extra"], &[]), Err(ArgsError::Syntax(_))));
        assert!(matches!(options(&["http://h", "--nope"], &[]), Err(ArgsError::Syntax(_))));
    }
}
