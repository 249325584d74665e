//! Rules about the written pages: links lead somewhere, and every page can be found.
//!
//! Only links to files of the repository are followed; the web is never asked.

use super::Finding;
use super::tree::{TextFile, Tree};

/// A link as written, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link<'a> {
    target: &'a str,
    line: usize,
}

/// Every link to a file resolves: a page that sends readers nowhere is worse than none.
pub fn links_lead_somewhere(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for page in pages(tree) {
        for link in links(page) {
            let Some(path) = resolve(&page.path, link.target) else { continue };
            if !tree.holds(&path) {
                let what =
                    format!("link to `{}`, but there is no `{path}`: correct it or drop it", link.target);
                found.push(Finding::new(&page.path, link.line, what));
            }
        }
    }
    found
}

/// Every page below `docs/` is reached by links from README.md or docs/README.md: a page nobody is led to is not read.
pub fn every_page_can_be_reached(tree: &Tree) -> Vec<Finding> {
    let mut reached: Vec<&str> = Vec::new();
    let mut waiting: Vec<&TextFile> =
        ["README.md", "docs/README.md"].iter().filter_map(|path| tree.file(path)).collect();
    while let Some(page) = waiting.pop() {
        if reached.contains(&page.path.as_str()) {
            continue;
        }
        reached.push(&page.path);
        for path in links(page).iter().filter_map(|link| resolve(&page.path, link.target)) {
            waiting
                .extend(pages(tree).filter(|other| other.path == path || is_in_folder(&other.path, &path)));
        }
    }
    let lost =
        pages(tree).filter(|page| page.path.starts_with("docs/") && !reached.contains(&page.path.as_str()));
    lost.map(|page| Finding::new(&page.path, 1, "no way here from README.md or docs/README.md: link it"))
        .collect()
}

fn pages(tree: &Tree) -> impl Iterator<Item = &TextFile> {
    tree.files.iter().filter(|file| file.path.ends_with(".md"))
}

/// A link to a folder leads to the pages that lie directly in it.
fn is_in_folder(path: &str, folder: &str) -> bool {
    let inside = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    inside.is_some_and(|rest| !rest.contains('/'))
}

/// Inline links and definitions, outside code.
fn links(page: &TextFile) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (line, text) in page.lines() {
        if text.trim_start().starts_with("```") || text.trim_start().starts_with("~~~") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        // Every second piece between backticks is code.
        for prose in text.split('`').step_by(2) {
            let ends = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(ends.map(|target| Link { target, line }));
        }
        // A label in backticks leaves the opening of its target at the start of the next piece, seen above.
        if let Some((_, target)) = text.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            found.push(Link { target: target.trim(), line });
        }
    }
    found
}

/// The path from the root that a link in `page` means; `None` for the web and for places in the same page.
fn resolve(page: &str, target: &str) -> Option<String> {
    let target = target.split_whitespace().next()?.trim_matches(['<', '>']);
    let path = target.split('#').next().filter(|path| !path.is_empty())?;
    if path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = match path.starts_with('/') {
        true => Vec::new(),
        false => page.split('/').collect(),
    };
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_link_is_found_where_it_stands() {
        let text = "[a](guide.md)\n\n[b](missing.md#part) ![c](../pic.png \"t\")\n`[x](no.md)`\n```\n[y](no.md)\n```\n\
                    [`code`](gone.rs) [web](https://x.y) [here](#part)\n[z]: lost.md\n";
        let mut tree = Tree::sample(&[("docs/README.md", text), ("docs/guide.md", "")]);
        tree.paths.push("pic.png".to_string());
        let lines: Vec<usize> = links_lead_somewhere(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [3, 8, 9]);
    }

    #[test]
    fn a_page_without_a_way_to_it_is_found() {
        let tree = Tree::sample(&[
            ("README.md", "[docs](docs/guide/start.md) [all](docs/decisions/)"),
            ("docs/guide/start.md", "[next](../more.md)"),
            ("docs/more.md", ""),
            ("docs/decisions/0001-a.md", ""),
            ("docs/lost.md", "[back](more.md)"),
            ("ARCHITECTURE.md", "[not a way in](docs/lost.md)"),
        ]);
        let found: Vec<String> =
            every_page_can_be_reached(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["docs/lost.md"]);
    }

    #[test]
    fn links_are_read_from_where_they_stand() {
        assert_eq!(resolve("docs/a/b.md", "../c.md#x"), Some("docs/c.md".to_string()));
        assert_eq!(resolve("docs/a/b.md", "/README.md"), Some("README.md".to_string()));
        assert_eq!(resolve("b.md", "#x"), None);
    }
}
