//! Rules about size and form of files and functions.
//!
//! The limits are alarms, not goals: past them a file wants to be two. What may pass: `exceptions.rs`.

use super::Finding;
use super::exceptions::{self, LONG_FILES, LONG_FUNCTIONS};
use super::scan::{functions, scrub, tokens};
use super::tree::Tree;

/// Lines of a file that is still one sitting.
pub const FILE_LINES: usize = 500;

/// Lines of a function that still fits a screen.
pub const FUNCTION_LINES: usize = 80;

/// `core` attracts code; this is what it may hold.
const CORE_LINES: usize = 9_000;

/// Every Rust file opens with `//!`: where most files say what they are, one can be judged without a second.
pub fn every_file_opens_by_saying_what_it_is(tree: &Tree) -> Vec<Finding> {
    let silent = tree.rust().filter(|file| !file.text.starts_with("//! "));
    let what = "open with `//! `: what it is, what it never does, where to go next";
    silent.map(|file| Finding::new(&file.path, 1, what)).collect()
}

/// `foo.rs` and `foo/`, never `mod.rs`: twenty tabs called `mod.rs` tell nobody anything.
pub fn no_file_is_called_mod(tree: &Tree) -> Vec<Finding> {
    let badly_named = tree.rust().filter(|file| file.path.ends_with("/mod.rs"));
    badly_named
        .map(|file| Finding::new(&file.path, 1, "rename: `foo.rs` beside `foo/`, not `foo/mod.rs`"))
        .collect()
}

/// No file over five hundred lines, tests included: the tail of long files is where codebases rot.
pub fn files_are_one_sitting_long(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let lines = file.text.lines().count();
        let limit = exceptions::limit(LONG_FILES, &file.path, "").unwrap_or(FILE_LINES);
        if lines > limit {
            let what = format!("{lines} lines, over {limit}: split it by what a reader looks for");
            found.push(Finding::new(&file.path, limit + 1, what));
        }
    }
    found
}

/// No function over eighty lines: long ones are a better alarm than long files.
pub fn functions_fit_a_screen(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let scrubbed = scrub(&file.text);
        for function in functions(&tokens(&scrubbed)) {
            let lines = function.lines.end() - function.lines.start() + 1;
            let limit =
                exceptions::limit(LONG_FUNCTIONS, &file.path, function.name).unwrap_or(FUNCTION_LINES);
            if lines > limit {
                let what =
                    format!("`{}` is {lines} lines, over {limit}: give its parts names", function.name);
                found.push(Finding::new(&file.path, *function.lines.start(), what));
            }
        }
    }
    found
}

/// `core` stays under nine thousand lines: what does not belong to the path of a call belongs elsewhere.
pub fn core_keeps_its_budget(tree: &Tree) -> Vec<Finding> {
    let core = tree.rust().filter(|file| file.path.starts_with("crates/core/src/"));
    let lines: usize = core.map(|file| file.text.lines().count()).sum();
    if lines <= CORE_LINES {
        return Vec::new();
    }
    let what =
        format!("`core` has {lines} lines, over {CORE_LINES}: move out what is not the path of a call");
    vec![Finding::new("crates/core/src/lib.rs", 1, what)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rule: crate::tidy::Rule, path: &str, text: &str) -> usize {
        rule(&Tree::sample(&[(path, text)])).len()
    }

    #[test]
    fn a_file_without_a_header_is_found() {
        assert_eq!(count(every_file_opens_by_saying_what_it_is, "a.rs", "use x;\n//! late\n"), 1);
        assert_eq!(count(every_file_opens_by_saying_what_it_is, "a.rs", ""), 1);
        assert_eq!(count(every_file_opens_by_saying_what_it_is, "a.rs", "//! It is.\n"), 0);
    }

    #[test]
    fn a_file_called_mod_is_found() {
        assert_eq!(count(no_file_is_called_mod, "crates/x/src/y/mod.rs", ""), 1);
        assert_eq!(count(no_file_is_called_mod, "crates/x/src/mood.rs", ""), 0);
    }

    #[test]
    fn a_long_file_is_found_at_its_first_line_too_many() {
        let found = files_are_one_sitting_long(&Tree::sample(&[("a.rs", &"x\n".repeat(501))]));
        assert_eq!(found[0].line, 501);
        assert_eq!(count(files_are_one_sitting_long, "a.rs", &"x\n".repeat(500)), 0);
    }

    #[test]
    fn a_long_function_is_found() {
        let text =
            |lines: usize| format!("fn a() {{}}\nfn long() {{\n{}}}\n", "    x();\n".repeat(lines - 2));
        let found = functions_fit_a_screen(&Tree::sample(&[("a.rs", &text(81))]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert_eq!(count(functions_fit_a_screen, "a.rs", &text(80)), 0);
    }

    #[test]
    fn a_core_over_its_budget_is_found() {
        let half = "x\n".repeat(4501);
        let files = [("crates/core/src/a.rs", half.as_str()), ("crates/core/src/b.rs", half.as_str())];
        assert_eq!(core_keeps_its_budget(&Tree::sample(&files)).len(), 1);
        assert_eq!(count(core_keeps_its_budget, "crates/core/src/a.rs", &half), 0);
    }
}
