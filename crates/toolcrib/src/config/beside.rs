//! Values for `${VAR}` from a file beside the config: `toolcrib.env` for `toolcrib.yaml`, one `NAME=value` a line.
//!
//! The environment goes before it. A shell can read the file too: values may stand in single or double quotes, `#`
//! begins a comment line. Nothing is expanded.

use std::{collections::BTreeMap, path::Path};

use super::{is_variable_name, reading::Lookup};

/// Longer files are not values somebody wrote.
const LONGEST: u64 = 256 * 1024;

pub struct Beside(BTreeMap<String, String>);

impl Beside {
    /// What stands beside `config`; nothing where there is no such file or it cannot be read.
    pub fn of(config: &Path) -> Self {
        let path = config.with_extension("env");
        let fits = std::fs::metadata(&path).is_ok_and(|about| about.is_file() && about.len() <= LONGEST);
        let text = if fits { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        Self(text.lines().filter_map(value).collect())
    }

    /// The environment, and what it does not have from the file.
    pub fn behind<'a>(&'a self, env: Lookup<'a>) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| env(name).or_else(|| self.0.get(name).cloned())
    }
}

fn value(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if !is_variable_name(name) {
        return None;
    }
    let quoted = |mark| value.strip_prefix(mark).and_then(|rest: &str| rest.strip_suffix(mark));
    let value = match (quoted('\''), quoted('"')) {
        // How a shell writes a single quote between single quotes.
        (Some(inner), _) => inner.replace(r"'\''", "'"),
        (None, Some(inner)) => inner.to_owned(),
        (None, None) => value.to_owned(),
    };
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_goes_before_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("toolcrib.yaml");
        let text =
            "# mine\nA=plain\nexport B='it'\\''s = quoted'\nC=\"double\"\nnot a line\n9X=1\nD=from file\n";
        std::fs::write(folder.path().join("toolcrib.env"), text).unwrap();
        let beside = Beside::of(&config);
        let env = |name: &str| (name == "D").then(|| "from env".to_owned());
        let find = beside.behind(&env);
        assert_eq!(find("A").as_deref(), Some("plain"));
        assert_eq!(find("B").as_deref(), Some("it's = quoted"));
        assert_eq!(find("C").as_deref(), Some("double"));
        assert_eq!(find("D").as_deref(), Some("from env"));
        assert_eq!((find("9X"), find("E")), (None, None));
        assert!(Beside::of(Path::new("/nowhere/x.yaml")).0.is_empty());
    }
}
