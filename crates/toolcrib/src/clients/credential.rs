//! Credentials in client files: recognised, taken out, and remembered under the name of a variable.
//!
//! A wrong yes costs a person one variable to set; a wrong no copies a secret into a file that may be shared. So it
//! leans to yes. Values stay in [`Secret`]; only names are shown.

use serde::Serialize;
use serde_json::{Map, Value};

use super::reference::variable_name;
use crate::config::{Secret, is_variable_name, names_a_credential};

/// A variable the imported servers need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    pub name: String,
    /// The servers that use it.
    pub servers: Vec<String>,
    /// The value that stood in the client's file; `None` when that file named a variable itself.
    #[serde(skip)]
    pub value: Option<Secret>,
}

/// All variables of one import.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables(Vec<Variable>);

impl Variables {
    pub fn into_list(self) -> Vec<Variable> {
        self.0
    }

    /// A variable the client's file names by itself.
    pub fn named(&mut self, name: &str, server: &str) {
        match self.0.iter_mut().find(|variable| variable.name == name) {
            Some(variable) => note(variable, server),
            None => self.0.push(Variable { name: name.into(), servers: vec![server.into()], value: None }),
        }
    }

    /// Puts a secret away and returns the variable that stands for it. The same value under the same wish is one
    /// variable; another value gets the server's name in front, then a number.
    fn put(&mut self, wish: &str, server: &str, value: &str) -> String {
        let secret = Secret::new(value);
        let longer = variable_name(&[server, wish]);
        let numbered = (2..).map(|number| format!("{longer}_{number}"));
        for name in [wish.to_owned(), longer.clone()].into_iter().chain(numbered) {
            match self.0.iter_mut().find(|variable| variable.name == name) {
                Some(variable) if variable.value.as_ref() == Some(&secret) => {
                    note(variable, server);
                    return name;
                }
                Some(_) => {}
                None => {
                    self.0.push(Variable {
                        name: name.clone(),
                        servers: vec![server.into()],
                        value: Some(secret),
                    });
                    return name;
                }
            }
        }
        longer
    }

    /// An environment value: itself, or a reference when it is secret.
    pub fn environment(&mut self, server: &str, key: &str, value: &str) -> String {
        if is_reference(value) || value.is_empty() || !(names_a_credential(key) || looks_secret(value)) {
            return value.to_owned();
        }
        let wish = if is_variable_name(key) { key.to_owned() } else { variable_name(&[key]) };
        format!("${{{}}}", self.put(&wish, server, value))
    }

    /// A header value. The scheme stays readable: `Bearer ${VAR}`.
    pub fn header(&mut self, server: &str, key: &str, value: &str) -> String {
        if is_reference(value) || value.is_empty() || !(names_a_credential(key) || looks_secret(value)) {
            return value.to_owned();
        }
        let word = if key.eq_ignore_ascii_case("authorization") { "TOKEN" } else { key };
        let wish = variable_name(&[server, word]);
        match value.split_once(' ') {
            Some((scheme, rest)) if scheme.chars().all(char::is_alphabetic) && !rest.trim().is_empty() => {
                format!("{scheme} ${{{}}}", self.put(&wish, server, rest.trim()))
            }
            _ => format!("${{{}}}", self.put(&wish, server, value)),
        }
    }

    /// Arguments: `--token x`, `--api-key=x`, `-e KEY=x` and values that look secret by themselves.
    pub fn arguments(&mut self, server: &str, arguments: &[String]) -> Vec<String> {
        let mut flag: Option<&str> = None;
        let mut out = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let named = flag.filter(|flag| names_a_credential(flag) && !argument.starts_with('-'));
            let kept = if is_reference(argument) {
                argument.clone()
            } else if let Ok(Value::Object(members)) = serde_json::from_str(argument) {
                self.members(server, members).to_string()
            } else if let Some((key, value)) =
                argument.split_once('=').filter(|(key, _)| !key.contains("://"))
            {
                self.assignment(server, key, value)
            } else if let Some(flag) = named {
                format!("${{{}}}", self.put(&variable_name(&[server, flag]), server, argument))
            } else if let Some((key, value)) = header_argument(argument) {
                format!("{key}: {}", self.header(server, key, value))
            } else if argument.contains("://") {
                self.url(server, argument)
            } else if looks_secret(argument) {
                format!("${{{}}}", self.put(&variable_name(&[server, "SECRET"]), server, argument))
            } else {
                argument.clone()
            };
            flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            out.push(kept);
        }
        out
    }

    /// JSON given as an argument, as `--config '{…}'`.
    fn members(&mut self, server: &str, members: Map<String, Value>) -> Value {
        let kept = members.into_iter().map(|(key, value)| {
            let value = match value {
                Value::String(text) => Value::String(self.environment(server, &key, &text)),
                Value::Object(inner) => self.members(server, inner),
                other => other,
            };
            (key, value)
        });
        Value::Object(kept.collect())
    }

    fn assignment(&mut self, server: &str, key: &str, value: &str) -> String {
        let name = key.trim_start_matches('-');
        if is_reference(value) || value.is_empty() || !(names_a_credential(name) || looks_secret(value)) {
            return format!("{key}={value}");
        }
        let wish = if is_variable_name(name) && !key.starts_with('-') {
            name.to_owned()
        } else {
            variable_name(&[server, name])
        };
        format!("{key}=${{{}}}", self.put(&wish, server, value))
    }

    /// A URL: a password in it, credentials in its query, and path segments that look secret are taken out.
    pub fn url(&mut self, server: &str, text: &str) -> String {
        let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
        let (address, query) =
            rest.split_once('?').map_or((rest, None), |(address, query)| (address, Some(query)));
        let (host, path) = address.split_once('/').map_or((address, None), |(host, path)| (host, Some(path)));
        let mut out = format!("{scheme}://");
        out += &match host.rsplit_once('@').and_then(|(user, host)| Some((user.split_once(':')?, host))) {
            Some(((user, password), host)) if !is_reference(password) => {
                let name = self.put(&variable_name(&[server, "PASSWORD"]), server, password);
                format!("{user}:${{{name}}}@{host}")
            }
            _ => host.to_owned(),
        };
        if let Some(path) = path {
            let segments = path.split('/').map(|segment| match looks_secret(segment) {
                true => format!("${{{}}}", self.put(&variable_name(&[server, "KEY"]), server, segment)),
                false => segment.to_owned(),
            });
            out += &format!("/{}", segments.collect::<Vec<_>>().join("/"));
        }
        if let Some(query) = query {
            let pairs = query.split('&').map(|pair| match pair.split_once('=') {
                Some((key, value)) => {
                    let kept = self.assignment(server, &format!("-{key}"), value);
                    kept.trim_start_matches('-').to_owned()
                }
                None => pair.to_owned(),
            });
            out += &format!("?{}", pairs.collect::<Vec<_>>().join("&"));
        }
        out
    }
}

fn note(variable: &mut Variable, server: &str) {
    if !variable.servers.iter().any(|known| known == server) {
        variable.servers.push(server.to_owned());
    }
}

/// `Authorization: Bearer x`, as `mcp-remote --header` takes it.
fn header_argument(argument: &str) -> Option<(&str, &str)> {
    let (key, value) = argument.split_once(':').filter(|(_, value)| !value.starts_with("//"))?;
    (names_a_credential(key) && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'))
        .then_some((key, value.trim()))
}

/// Whether the text already leaves its secret to a variable.
fn is_reference(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}

const KNOWN_STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "ntn_",
    "secret_",
    "lin_api_",
    "figd_",
    "dop_v1_",
    "SG.",
    "tvly-",
];

/// Whether a value looks like a credential by itself: a well-known start, a password in a URL, or random letters.
pub(crate) fn looks_secret(value: &str) -> bool {
    let long = value.chars().count() >= 16;
    if long && KNOWN_STARTS.iter().any(|start| value.starts_with(start)) {
        return true;
    }
    if let Some((_, rest)) = value.split_once("://") {
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        return host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    }
    is_uuid(value) || value.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_random)
}

/// A run of letters and digits too long and too mixed to be a word, a version or a date.
fn is_random(run: &str) -> bool {
    let digits = run.chars().filter(char::is_ascii_digit).count();
    run.len() >= 16 && digits >= 3 && run.len() - digits >= 3 && entropy(run) >= 3.0
}

fn is_uuid(value: &str) -> bool {
    let groups: Vec<usize> = value.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && value.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
}

/// Bits per character, by how often each occurs.
fn entropy(text: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for letter in text.chars() {
        *counts.entry(letter).or_insert(0u32) += 1;
    }
    let total = f64::from(counts.values().sum::<u32>());
    counts.values().map(|count| f64::from(*count) / total).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_letters_are_told_from_words() {
        for secret in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "postgres://me:pw@db/x",
            "a8f5f167f44f4964e6c998dee827110c",
        ] {
            assert!(looks_secret(secret), "{secret}");
        }
        for plain in [
            "@modelcontextprotocol/server-github",
            "production",
            "/usr/local/share/data/2024/file",
            "http://127.0.0.1:8080/mcp",
            "mcp-server-time==2025.1.1",
        ] {
            assert!(!looks_secret(plain), "{plain}");
        }
    }

    #[test]
    fn secrets_leave_arguments_headers_and_urls() {
        let mut variables = Variables::default();
        let arguments: Vec<String> = [
            "--token",
            "abc",
            "--api-key=def",
            "-e",
            "DB_PASSWORD=ghi",
            "--header",
            "Authorization: Bearer jkl",
            "x=1",
        ]
        .map(str::to_owned)
        .to_vec();
        let kept = variables.arguments("s", &arguments);
        assert_eq!(
            kept,
            [
                "--token",
                "${S_TOKEN}",
                "--api-key=${S_API_KEY}",
                "-e",
                "DB_PASSWORD=${DB_PASSWORD}",
                "--header",
                "Authorization: Bearer ${S_TOKEN_2}",
                "x=1"
            ]
            .map(|text| text.replace("S_TOKEN_2", "S_S_TOKEN"))
        );
        assert_eq!(variables.header("t", "Authorization", "Bearer mno"), "Bearer ${T_TOKEN}");
        assert_eq!(
            variables.url("u", "https://h/mcp?api_key=pqr&x=1"),
            "https://h/mcp?api_key=${U_API_KEY}&x=1"
        );
        assert_eq!(variables.url("u", "https://me:stu@h/mcp"), "https://me:${U_PASSWORD}@h/mcp");
        let shown = format!("{variables:?}");
        for secret in ["abc", "def", "ghi", "jkl", "mno", "pqr", "stu"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn one_name_never_stands_for_two_values() {
        let mut variables = Variables::default();
        assert_eq!(variables.environment("a", "API_KEY", "one"), "${API_KEY}");
        assert_eq!(variables.environment("b", "API_KEY", "one"), "${API_KEY}");
        assert_eq!(variables.environment("c", "API_KEY", "two"), "${C_API_KEY}");
        assert_eq!(variables.environment("c", "LOG", "debug"), "debug");
        assert_eq!(variables.environment("c", "API_KEY", "${MINE}"), "${MINE}");
    }
}
