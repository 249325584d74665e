//! Rules about names.
//!
//! A word is judged whole, in snake_case, kebab-case or CamelCase: `base64` and `Database` are fine.

use super::Finding;
use super::exceptions::{self, NAMES};
use super::manifest;
use super::scan::{functions, scrub, tokens, trait_impls};
use super::tree::Tree;

/// Each of these hides the noun that was wanted.
const EMPTY_WORDS: &[&str] = &[
    "common",
    "util",
    "utils",
    "helper",
    "helpers",
    "misc",
    "manager",
    "handler",
    "service",
    "processor",
    "context",
    "data",
    "info",
    "base",
    "impl",
];

/// Verbs that say nothing.
const EMPTY_PREFIXES: &[&str] = &["get_", "do_", "handle_", "process_"];

/// Names of files, folders, crates and types have no empty words in them.
pub fn names_say_what_a_thing_is(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut judge = |path: &str, line: usize, kind: &str, name: &str| {
        if exceptions::limit(NAMES, path, name).is_some() {
            return;
        }
        if let Some(word) = words(name).into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str())) {
            let what = format!("{kind} `{name}`: `{word}` hides the noun that is wanted; name what it is");
            found.push(Finding::new(path, line, what));
        }
    };
    for manifest in manifest::all(tree) {
        judge(&manifest.path, 2, "crate", &manifest.name);
    }
    for file in tree.rust() {
        for part in file.path.trim_end_matches(".rs").split('/') {
            judge(&file.path, 1, "file", part);
        }
        let scrubbed = scrub(&file.text);
        let tokens = tokens(&scrubbed);
        let chosen_elsewhere = trait_impls(&tokens);
        for (index, pair) in tokens.windows(2).enumerate() {
            let [keyword, name] = pair else { continue };
            let is_type = matches!(keyword.text, "struct" | "enum" | "trait" | "union" | "type");
            let is_ours = !chosen_elsewhere.iter().any(|block| block.contains(&index));
            if is_type && is_ours && name.text.starts_with(char::is_uppercase) {
                judge(&file.path, name.line, keyword.text, name.text);
            }
        }
    }
    found
}

/// Functions are named by what they do: not `get_`, `do_`, `handle_`, `process_`. Functions that implement a trait
/// are not judged: the trait chose their names, and our own traits are judged where they are declared.
pub fn functions_are_named_by_their_verb(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let scrubbed = scrub(&file.text);
        for function in functions(&tokens(&scrubbed)).iter().filter(|function| !function.of_trait) {
            let empty = EMPTY_PREFIXES.iter().find(|prefix| function.name.starts_with(**prefix));
            if let Some(prefix) =
                empty.filter(|_| exceptions::limit(NAMES, &file.path, function.name).is_none())
            {
                let what =
                    format!("fn `{}`: drop `{prefix}` and say the verb, or just the noun", function.name);
                found.push(Finding::new(&file.path, *function.lines.start(), what));
            }
        }
    }
    found
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in name.split(['_', '-', '.']) {
        let mut word = String::new();
        let mut previous_is_lower = false;
        for letter in part.chars() {
            if letter.is_uppercase() && previous_is_lower {
                found.push(std::mem::take(&mut word));
            }
            previous_is_lower = !letter.is_uppercase();
            word.extend(letter.to_lowercase());
        }
        found.push(word);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rule: crate::tidy::Rule, path: &str, text: &str) -> Vec<String> {
        rule(&Tree::sample(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("HTTPInfo_base64-Database"), ["httpinfo", "base64", "database"]);
        assert_eq!(words("SourceInfo"), ["source", "info"]);
    }

    #[test]
    fn an_empty_word_in_a_type_is_found() {
        let text = "//! x\nstruct Fine;\npub struct CallContext<T> {}\nenum ServerInfo {}\ntype A = B;\n";
        let found = told(names_say_what_a_thing_is, "a.rs", text);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("a.rs:3: struct `CallContext`: `context`"));
        assert!(found[1].starts_with("a.rs:4: enum `ServerInfo`: `info`"));
    }

    #[test]
    fn an_empty_word_in_a_file_folder_or_crate_is_found() {
        assert_eq!(told(names_say_what_a_thing_is, "crates/x/src/http_utils.rs", "").len(), 1);
        assert_eq!(told(names_say_what_a_thing_is, "crates/common/src/lib.rs", "").len(), 1);
        let manifest = "[package]\nname = \"toolcrib-base\"\n";
        assert_eq!(told(names_say_what_a_thing_is, "crates/x/Cargo.toml", manifest).len(), 1);
        assert!(told(names_say_what_a_thing_is, "crates/store/src/database.rs", "struct Base64;").is_empty());
    }

    #[test]
    fn an_empty_verb_is_found() {
        let text = "fn get_name() {}\nfn get() {}\nfn handle_call() {}\n// fn do_it() {}\nfn document() {}\n";
        let found = told(functions_are_named_by_their_verb, "a.rs", text);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("a.rs:1: fn `get_name`") && found[1].starts_with("a.rs:3:"));
    }

    #[test]
    fn a_name_the_trait_chose_is_not_found() {
        let text = "impl Peer for Fixture {\n    fn get_info(&self) {}\n}\n";
        assert!(told(functions_are_named_by_their_verb, "a.rs", text).is_empty());
        let text = "impl Body for Stream {\n    type Data = Bytes;\n}\n";
        assert!(told(names_say_what_a_thing_is, "a.rs", text).is_empty());
    }
}
