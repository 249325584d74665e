//! The tracked text files of the checkout, read once, for the rules to look at.
//!
//! It never holds binary files, and never build output. Samples in tests are trees too.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// A text file: its path from the root with `/`, and its text.
#[derive(Clone, Debug)]
pub struct TextFile {
    pub path: String,
    pub text: String,
}

impl TextFile {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Lines with their numbers, from one.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub files: Vec<TextFile>,
    /// Paths of everything tracked, text or not, so that links to pictures resolve.
    pub paths: Vec<String>,
}

impl Tree {
    /// Reads what git tracks or would track; in a checkout without git, everything but build output.
    pub fn read(root: &Path) -> Result<Tree> {
        let mut paths = tracked(root).or_else(|_| walked(root))?;
        paths.sort();
        paths.dedup();
        let mut tree = Tree::default();
        for path in paths {
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                tree.files.push(TextFile { path: path.clone(), text });
            }
            tree.paths.push(path);
        }
        Ok(tree)
    }

    /// A tree made by hand.
    pub fn sample(files: &[(&str, &str)]) -> Tree {
        let files: Vec<TextFile> = files
            .iter()
            .map(|(path, text)| TextFile { path: path.to_string(), text: text.to_string() })
            .collect();
        let paths = files.iter().map(|file| file.path.clone()).collect();
        Tree { files, paths }
    }

    pub fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether `path` is a tracked file, or a folder that holds one.
    pub fn holds(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty() || self.paths.iter().any(|known| known == path || known.starts_with(&folder))
    }
}

/// Tracked files, and new ones not ignored: a finding is cheapest before the commit.
fn tracked(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    anyhow::ensure!(output.status.success(), "not a git checkout");
    let text = String::from_utf8(output.stdout).context("a tracked path is not UTF-8")?;
    Ok(text.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect())
}

fn walked(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))?
        {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type()?.is_dir() {
                if ![".git", "target", "node_modules", "__pycache__"].iter().any(|skipped| name == *skipped) {
                    folders.push(entry.path());
                }
                continue;
            }
            if let Some(path) = entry.path().strip_prefix(root)?.to_str() {
                found.push(path.to_string());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Tree, tracked, walked};
    use std::path::Path;

    #[test]
    fn a_checkout_without_git_is_read_too() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = walked(root).unwrap();
        assert!(found.contains(&"src/tidy/tree.rs".to_string()));
        assert!(tracked(Path::new("/")).is_err());
    }

    #[test]
    fn folders_are_held_by_their_files() {
        let tree = Tree::sample(&[("docs/guide/start.md", "")]);
        assert!(tree.holds("docs/guide") && tree.holds("docs/guide/start.md"));
        assert!(!tree.holds("docs/gui"));
    }
}
