//! The `Cargo.toml` files of the workspace: package names and direct dependencies, with their lines.
//!
//! It never asks cargo: what a rule judges is what stands in the file.

use toml_edit::{Document, Item, TableLike};

use super::tree::{TextFile, Tree};

/// One crate's manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub path: String,
    pub name: String,
    pub description: String,
    pub needs: Vec<Need>,
}

/// A direct dependency of any kind: normal, for tests, for the build, for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The package's name, also when it is renamed.
    pub package: String,
    pub line: usize,
}

impl Manifest {
    /// The folder the crate lives in, such as `crates/core`.
    pub fn folder(&self) -> &str {
        self.path.strip_suffix("/Cargo.toml").unwrap_or_default()
    }

    /// The folder's last name: how the house calls the crate.
    pub fn short(&self) -> &str {
        self.folder().rsplit('/').next().unwrap_or_default()
    }
}

/// Every manifest with a `[package]`.
pub fn all(tree: &Tree) -> Vec<Manifest> {
    tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml")).filter_map(read).collect()
}

fn read(file: &TextFile) -> Option<Manifest> {
    let document = Document::parse(file.text.as_str()).ok()?;
    let package = document.get("package")?.as_table_like()?;
    let text = |key| package.get(key).and_then(Item::as_str).unwrap_or_default().to_string();
    let mut needs = Vec::new();
    collect(document.as_table(), file, &mut needs);
    if let Some(platforms) = document.get("target").and_then(Item::as_table_like) {
        for (_, platform) in platforms.iter() {
            if let Some(table) = platform.as_table_like() {
                collect(table, file, &mut needs);
            }
        }
    }
    Some(Manifest { path: file.path.clone(), name: text("name"), description: text("description"), needs })
}

fn collect(table: &dyn TableLike, file: &TextFile, needs: &mut Vec<Need>) {
    for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let Some(section) = table.get(kind).and_then(Item::as_table_like) else { continue };
        for (key, item) in section.iter() {
            let renamed = item.as_table_like().and_then(|spec| spec.get("package")).and_then(Item::as_str);
            needs.push(Need { package: renamed.unwrap_or(key).to_string(), line: line_of_key(file, key) });
        }
    }
}

/// The line where `key` is set; the first line when it is written in a way we do not look for.
fn line_of_key(file: &TextFile, key: &str) -> usize {
    let sets_key = |line: &str| {
        let after = line.trim_start().trim_start_matches('"').strip_prefix(key);
        after.is_some_and(|after| after.starts_with([' ', '=', '.', '"', ']']))
            || line.ends_with(&format!(".{key}]"))
    };
    file.lines().find(|(_, line)| sets_key(line)).map_or(1, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::{Need, Tree, all};

    #[test]
    fn all_kinds_of_dependencies_are_seen() {
        let text = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = { package = \"c\", version = \"1\" }\n\
                    [target.'cfg(unix)'.dev-dependencies]\nd = \"1\"\n";
        let tree = Tree::sample(&[("crates/x/Cargo.toml", text), ("Cargo.toml", "[workspace]\n")]);
        let manifests = all(&tree);
        let need = |package: &str, line| Need { package: package.to_string(), line };
        assert_eq!(manifests.len(), 1);
        assert_eq!(manifests[0].needs, [need("a", 4), need("c", 5), need("d", 7)]);
        assert_eq!((manifests[0].folder(), manifests[0].short()), ("crates/x", "x"));
    }
}
