//! What may break a rule, each with its reason. These lists only shrink: an entry that is no longer needed is a
//! finding itself, and so is a file that outgrew its entry.

use super::Finding;
use super::habits::sleeping_lines;
use super::scan::{functions, scrub, tokens};
use super::shape::{FILE_LINES, FUNCTION_LINES};
use super::tree::Tree;

/// One thing that may break one rule.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    pub path: &'static str,
    /// The name it is about, where a rule is about names.
    pub name: &'static str,
    /// How far it may go, where a rule is about a size.
    pub limit: usize,
    pub reason: &'static str,
}

/// Files over the limit of lines.
pub const LONG_FILES: &[Exception] = &[];

/// Functions over the limit of lines.
pub const LONG_FUNCTIONS: &[Exception] = &[];

/// Names with an empty word or verb in them.
pub const NAMES: &[Exception] = &[];

/// Files whose tests sleep.
pub const SLEEPS: &[Exception] = &[];

/// How far `path` (and `name` in it) may go; `None` when there is no exception.
pub fn limit(list: &[Exception], path: &str, name: &str) -> Option<usize> {
    list.iter().find(|entry| entry.path == path && entry.name == name).map(|entry| entry.limit)
}

/// Exceptions that are no longer needed are deleted, so that the lists only shrink.
pub fn exceptions_are_still_needed(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(LONG_FILES.iter().filter(|entry| !is_long_file(tree, entry)).map(stale));
    found.extend(LONG_FUNCTIONS.iter().filter(|entry| !is_long_function(tree, entry)).map(stale));
    found.extend(NAMES.iter().filter(|entry| !is_named(tree, entry)).map(stale));
    found.extend(SLEEPS.iter().filter(|entry| !sleeps(tree, entry)).map(stale));
    found
}

fn stale(entry: &Exception) -> Finding {
    let what = format!("exception for `{}{}` is no longer needed: delete it", entry.path, entry.name);
    Finding::new("xtask/src/tidy/exceptions.rs", 1, what)
}

fn is_long_file(tree: &Tree, entry: &Exception) -> bool {
    tree.file(entry.path).is_some_and(|file| file.text.lines().count() > FILE_LINES)
}

fn is_long_function(tree: &Tree, entry: &Exception) -> bool {
    let Some(file) = tree.file(entry.path) else { return false };
    let scrubbed = scrub(&file.text);
    let all = functions(&tokens(&scrubbed));
    all.iter().any(|function| {
        function.name == entry.name && function.lines.end() - function.lines.start() + 1 > FUNCTION_LINES
    })
}

fn is_named(tree: &Tree, entry: &Exception) -> bool {
    tree.file(entry.path).is_some_and(|file| file.path.contains(entry.name) || file.text.contains(entry.name))
}

fn sleeps(tree: &Tree, entry: &Exception) -> bool {
    tree.file(entry.path).is_some_and(|file| !sleeping_lines(file).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Exception = Exception { path: "a.rs", name: "", limit: 600, reason: "a table" };

    #[test]
    fn an_exception_raises_the_limit_of_its_own_path_only() {
        assert_eq!(limit(&[SAMPLE], "a.rs", ""), Some(600));
        assert_eq!(limit(&[SAMPLE], "b.rs", ""), None);
        assert_eq!(limit(&[SAMPLE], "a.rs", "name"), None);
    }

    #[test]
    fn an_exception_that_is_not_needed_is_told_apart() {
        let long = Tree::sample(&[("a.rs", &"x\n".repeat(501))]);
        let short = Tree::sample(&[("a.rs", "x\n")]);
        assert!(is_long_file(&long, &SAMPLE) && !is_long_file(&short, &SAMPLE));
        let entry = Exception { path: "e2e/a.rs", name: "long", ..SAMPLE };
        let text = format!("fn long() {{\n{}}}\nfn b() {{ sleep(1) }}\n", "x;\n".repeat(80));
        let tree = Tree::sample(&[("e2e/a.rs", &text)]);
        assert!(is_long_function(&tree, &entry) && sleeps(&tree, &entry) && is_named(&tree, &entry));
        assert!(!is_long_function(&short, &SAMPLE) && !sleeps(&short, &SAMPLE));
        assert!(stale(&SAMPLE).to_string().contains("delete it"));
    }

    #[test]
    fn every_exception_gives_its_reason() {
        for entry in [LONG_FILES, LONG_FUNCTIONS, NAMES, SLEEPS].concat() {
            assert!(entry.reason.len() > 10, "say why `{}` is an exception", entry.path);
        }
    }
}
