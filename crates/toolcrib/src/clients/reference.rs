//! Variables in client files, said in the words of `toolcrib.yaml`.
//!
//! `${env:X}`, `${input:x}`, `${workspaceFolder}` and their like become `${X}` or the folder itself; what is not
//! understood is escaped, so that it stays the text it was. No value of a variable is looked up here.

use std::path::Path;

use super::place::Client;
use crate::config::is_variable_name;

/// What the words of one file stand for.
pub(crate) struct Dialect<'a> {
    pub client: Option<Client>,
    pub home: &'a Path,
    /// The project the file belongs to.
    pub project: &'a Path,
}

/// The text as `toolcrib.yaml` would have it, and the variables it names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Translated {
    pub text: String,
    pub variables: Vec<String>,
}

impl Dialect<'_> {
    pub fn translate(&self, text: &str) -> Translated {
        let mut out = Translated { text: String::with_capacity(text.len()), variables: Vec::new() };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            self.plain(before, &mut out);
            let Some((inside, after)) = after.split_once('}') else {
                out.text.push_str("$${");
                rest = after;
                continue;
            };
            self.braced(inside, &mut out);
            rest = after;
        }
        self.plain(rest, &mut out);
        out
    }

    fn braced(&self, inside: &str, out: &mut Translated) {
        let input;
        let name = match inside.split_once(':') {
            Some(("env", name)) => name,
            Some(("input", id)) => {
                input = variable_name(&[id]);
                &input
            }
            _ => inside,
        };
        let known = match name {
            "workspaceFolder" | "workspaceRoot" => Some(self.project.display().to_string()),
            "userHome" => Some(self.home.display().to_string()),
            "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
            _ => None,
        };
        let bare = name.split_once(":-").map_or(name, |(name, _)| name);
        match known {
            Some(text) => out.text.push_str(&text),
            None if is_variable_name(bare) => {
                out.text.push_str(&format!("${{{name}}}"));
                if bare == name {
                    out.variables.push(bare.to_owned());
                }
            }
            None => out.text.push_str(&format!("$${{{inside}}}")),
        }
    }

    /// Text without braces; only Gemini CLI reads `$VAR` in it.
    fn plain(&self, text: &str, out: &mut Translated) {
        if self.client != Some(Client::Gemini) {
            out.text.push_str(text);
            return;
        }
        let mut pieces = text.split('$');
        out.text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let end = piece
                .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .unwrap_or(piece.len());
            match piece.split_at_checked(end) {
                Some((name, tail)) if is_variable_name(name) => {
                    out.text.push_str(&format!("${{{name}}}{tail}"));
                    out.variables.push(name.to_owned());
                }
                _ => out.text.push_str(&format!("${piece}")),
            }
        }
    }
}

/// `["github", "Authorization"]` becomes `GITHUB_AUTHORIZATION`: a name every shell takes.
pub(crate) fn variable_name(parts: &[&str]) -> String {
    let joined = parts.join("_");
    let mut name: String = joined
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' })
        .collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(client: Client, text: &str) -> (String, Vec<String>) {
        let dialect =
            Dialect { client: Some(client), home: Path::new("/home/me"), project: Path::new("/project") };
        let Translated { text, variables } = dialect.translate(text);
        (text, variables)
    }

    #[test]
    fn each_dialect_becomes_ours() {
        let named = |name: &str| vec![name.to_owned()];
        assert_eq!(translate(Client::Cursor, "${env:TOKEN}"), ("${TOKEN}".into(), named("TOKEN")));
        assert_eq!(
            translate(Client::VsCode, "Bearer ${input:api-key}"),
            ("Bearer ${API_KEY}".into(), named("API_KEY"))
        );
        assert_eq!(translate(Client::VsCode, "${workspaceFolder}/x"), ("/project/x".into(), vec![]));
        assert_eq!(translate(Client::ClaudeCode, "${A:-b}${C}"), ("${A:-b}${C}".into(), named("C")));
        assert_eq!(translate(Client::Gemini, "a $TOKEN $5"), ("a ${TOKEN} $5".into(), named("TOKEN")));
        assert_eq!(translate(Client::ClaudeDesktop, "$HOME"), ("$HOME".into(), vec![]));
    }

    #[test]
    fn what_is_not_understood_stays_text() {
        assert_eq!(translate(Client::Windsurf, "${file:/x} ${"), ("$${file:/x} $${".into(), vec![]));
        assert_eq!(variable_name(&["my.server", "X-Api-Key"]), "MY_SERVER_X_API_KEY");
        assert_eq!(variable_name(&["1st"]), "_1ST");
    }
}
