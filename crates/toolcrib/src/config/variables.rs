//! `${VAR}` and `${VAR:-default}` in values; `$${` stands for a plain `${`.
//!
//! Values come from the caller's lookup and never from the process environment directly, so tests choose them.

/// Why a value could not be written out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Missing(String),
    Malformed(String),
}

/// `text` with its variables written out. All troubles are returned, not the first.
pub(crate) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Vec<Trouble>> {
    let mut out = String::with_capacity(text.len());
    let mut troubles = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            troubles.push(Trouble::Malformed(format!("${{{after}")));
            rest = "";
            break;
        };
        match value(inside, env) {
            Ok(value) => out.push_str(&value),
            Err(trouble) => troubles.push(trouble),
        }
        rest = after;
    }
    out.push_str(rest);
    if troubles.is_empty() { Ok(out) } else { Err(troubles) }
}

fn value(inside: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Trouble> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        return Err(Trouble::Malformed(format!("${{{inside}}}")));
    }
    match (env(name), default) {
        // As in a shell: a default also stands in for an empty value.
        (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Trouble::Missing(name.to_owned())),
    }
}

/// A name an environment variable can have everywhere.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_defaults_and_escapes() {
        assert_eq!(expand("x ${A} y", &env).unwrap(), "x one y");
        assert_eq!(expand("${NO:-two}/${A:-z}", &env).unwrap(), "two/one");
        assert_eq!(expand("${EMPTY}|${EMPTY:-d}", &env).unwrap(), "|d");
        assert_eq!(expand("$${A} costs $5", &env).unwrap(), "${A} costs $5");
    }

    #[test]
    fn all_troubles_are_named() {
        let troubles = expand("${NO} ${input:token} ${A} ${open", &env).unwrap_err();
        assert_eq!(
            troubles,
            [
                Trouble::Missing("NO".into()),
                Trouble::Malformed("${input:token}".into()),
                Trouble::Malformed("${open".into()),
            ]
        );
    }
}
