//! The configuration page's tables, made from `shape`.
//!
//! Committed as `docs/reference/configuration.md`; a test compares the two. Prose about using the keys is in the guide.

use super::shape::{self, Key, Kind};

const OPENING: &str = "\
# Configuration reference

Every key of `toolcrib.yaml`. This page is generated from the same table the reader uses; a test keeps it current.

The file is looked for in this order: `--config PATH`, `TOOLCRIB_CONFIG`, `./toolcrib.yaml`,
`$XDG_CONFIG_HOME/toolcrib/toolcrib.yaml` (`~/.config` when unset). With none, an embedded default is used.
Keys and words may be written in `snake_case`, `camelCase` or `kebab-case`. Any single value may hold `${VAR}` or
`${VAR:-default}`; `$${` is a plain `${`. A variable that is neither in the environment nor in `toolcrib.env`
beside the config is a mistake, except in a disabled server.
Durations are `500ms`, `30s`, `5m`, `1h30m`, or a number of seconds; sizes are `512KiB`, `4MiB`, or a number of bytes.

Environment variables win over the file:

| variable | what it sets |
|---|---|
| `TOOLCRIB_CONFIG` | the file to read |
| `TOOLCRIB_DATA` | `data` |
| `TOOLCRIB_LISTEN_MCP`, `MCP_PORT` | `listen.mcp`; `MCP_PORT` only its port |
| `TOOLCRIB_LISTEN_ADMIN`, `ADMIN_PORT` | `listen.admin`; `ADMIN_PORT` only its port |
| `TOOLCRIB_LOG` | `log.level` |
| `TOOLCRIB_TOKEN`, `GATEWAY_TOKEN` | a caller `default` with this token, which may use every tool |
";

/// The page as Markdown.
pub fn reference() -> String {
    let mut page = OPENING.to_owned();
    for (path, shape) in shape::all() {
        let title = if path.is_empty() { "Top level".to_owned() } else { format!("`{path}`") };
        page += &format!("\n## {title}\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for key in shape.keys {
            page += &row(key);
        }
    }
    page
}

fn row(key: &Key) -> String {
    let spellings: Vec<String> =
        std::iter::once(&key.name).chain(key.aliases).map(|name| format!("`{name}`")).collect();
    let default = key.default.map(|default| format!("`{default}`")).unwrap_or_default();
    format!("| {} | {} | {default} | {} |\n", spellings.join(", "), noun(&key.kind), key.help)
}

fn noun(kind: &Kind) -> String {
    match kind {
        Kind::Text | Kind::Secret => "text".into(),
        Kind::Flag => "`true` or `false`".into(),
        Kind::Count => "number".into(),
        Kind::Duration => "duration".into(),
        Kind::Size => "size".into(),
        Kind::Address => "address".into(),
        Kind::Url => "URL".into(),
        Kind::Glob => "pattern".into(),
        Kind::Choice(words) => words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" "),
        Kind::List(item) => format!("list of {}", noun(item)),
        Kind::Map(value) => format!("names with {}", noun(value)),
        Kind::Entries(_) => "ids, see below".into(),
        Kind::Group(_) => "group, see below".into(),
    }
}
