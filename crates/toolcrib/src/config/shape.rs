//! The keys of `toolcrib.yaml`, as a table: name, kind of value, default, one line of help.
//!
//! Three readers share it and so cannot drift apart: `fields` refuses keys that are not in it, `schema` turns it into
//! JSON Schema, `reference` into the configuration page. It holds no values; those are in `model`.

use super::spelling;

/// The keys one group may hold.
pub(crate) struct Shape {
    /// What a group of this shape is called in messages.
    pub title: &'static str,
    pub keys: &'static [Key],
}

pub(crate) struct Key {
    pub name: &'static str,
    /// Other spellings besides the camelCase and kebab-case of `name`.
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    pub default: Option<&'static str>,
    pub help: &'static str,
}

pub(crate) enum Kind {
    Text,
    /// Text that is starred out wherever it would print.
    Secret,
    Flag,
    Count,
    Duration,
    Size,
    Address,
    Url,
    Glob,
    /// One of these words.
    Choice(fn() -> Vec<&'static str>),
    List(&'static Kind),
    /// Free keys, each with a value of this kind.
    Map(&'static Kind),
    /// Ids, each with a group of this shape.
    Entries(&'static Shape),
    Group(&'static Shape),
}

/// An enum that is written as one of a few words.
pub(crate) trait Choice: Copy + 'static {
    /// Each accepted word, the one to recommend first.
    const WORDS: &'static [(&'static str, Self)];
}

pub(crate) fn words<C: Choice>() -> Vec<&'static str> {
    C::WORDS.iter().map(|(word, _)| *word).collect()
}

impl Shape {
    /// The key meant by `word` in any of its spellings.
    pub fn key(&self, word: &str) -> Option<&'static Key> {
        let snake = spelling::snake(word);
        let keys: &'static [Key] = self.keys;
        keys.iter()
            .find(|key| key.name == snake || key.aliases.iter().any(|alias| spelling::snake(alias) == snake))
    }
}

const fn key(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> Key {
    Key { name, aliases: &[], kind, default, help }
}

impl Key {
    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

pub(crate) static ROOT: Shape = Shape {
    title: "the file",
    keys: &[
        key("version", Kind::Count, Some("1"), "Version of this file's format. Only `1` exists."),
        key(
            "data",
            Kind::Text,
            None,
            "Folder for what the crib remembers. Default: `$XDG_DATA_HOME/toolcrib`, else `~/.local/share/toolcrib`. \
             A relative path starts at this file's folder.",
        ),
        key("listen", Kind::Group(&LISTEN), None, "Addresses the crib listens on."),
        key(
            "names",
            Kind::Choice(words::<super::Names>),
            Some("safe"),
            "Spelling of tool names in MCP listings: `safe` (`source__tool`), `colon` (`source:tool`) or `bare` (`tool`). \
             Every spelling is accepted on a call.",
        ),
        key(
            "callers",
            Kind::Entries(&CALLER),
            None,
            "Who may call, by bearer token. With none, only this machine may, as the caller `local`.",
        ),
        key(
            "local",
            Kind::Group(&LOCAL),
            None,
            "The caller on this machine while no callers are configured.",
        ),
        key(
            "limits",
            Kind::Group(&LIMITS),
            None,
            "Caps. Reaching one is an error for whoever asked, never growth.",
        ),
        key("log", Kind::Group(&LOG), None, "What the crib says about itself on standard error."),
        key("telemetry", Kind::Group(&TELEMETRY), None, "Where traces are sent."),
        key("servers", Kind::Entries(&SERVER), None, "The MCP servers behind the crib, by id.")
            .also(&["mcpServers"]),
    ],
};

pub(crate) static LISTEN: Shape = Shape {
    title: "`listen`",
    keys: &[
        key("mcp", Kind::Address, Some("127.0.0.1:8081"), "Address of the MCP endpoint and the tools API."),
        key("admin", Kind::Address, Some("127.0.0.1:3100"), "Address of the admin API."),
        key(
            "allowed_hosts",
            Kind::List(&Kind::Text),
            Some("[]"),
            "`Host` values let in besides loopback names.",
        ),
        key(
            "allowed_origins",
            Kind::List(&Kind::Text),
            Some("[]"),
            "`Origin` values of web pages let in besides loopback ones.",
        ),
    ],
};

pub(crate) static CALLER: Shape = Shape {
    title: "a caller",
    keys: &[
        key(
            "token",
            Kind::Secret,
            None,
            "The bearer token, at least 16 characters. Write `${VAR}` to keep it out of the file.",
        ),
        key(
            "kind",
            Kind::Choice(words::<super::CallerKind>),
            Some("agent"),
            "What the caller is; shown in the audit.",
        ),
        key("tools", Kind::Group(&TOOLS), None, "Which tools it may see and call. Without it, none."),
        key("admin", Kind::Flag, Some("false"), "Whether the token also opens the admin API."),
    ],
};

pub(crate) static LOCAL: Shape = Shape {
    title: "`local`",
    keys: &[key("tools", Kind::Group(&TOOLS), None, "Which tools it may see and call. Without it, all.")],
};

pub(crate) static TOOLS: Shape = Shape {
    title: "`tools`",
    keys: &[
        key(
            "allow",
            Kind::List(&Kind::Glob),
            None,
            "Patterns over `source:tool`; what none matches is refused.",
        ),
        key("deny", Kind::List(&Kind::Glob), Some("[]"), "Patterns over `source:tool`; wins over `allow`."),
    ],
};

pub(crate) static LIMITS: Shape = Shape {
    title: "`limits`",
    keys: &[
        key("body", Kind::Size, Some("4MiB"), "Largest request body."),
        key("sessions", Kind::Count, Some("1000"), "MCP sessions open at once."),
        key("session_idle", Kind::Duration, Some("30m"), "How long a session may be silent before it ends."),
        key("calls", Kind::Count, Some("1024"), "Calls in flight at once."),
        key("connect", Kind::Duration, Some("30s"), "How long reaching a server may take."),
        key(
            "shutdown",
            Kind::Duration,
            Some("10s"),
            "How long calls in flight may finish after a stop was asked for.",
        ),
    ],
};

pub(crate) static LOG: Shape = Shape {
    title: "`log`",
    keys: &[
        key(
            "level",
            Kind::Text,
            Some("info"),
            "`trace`, `debug`, `info`, `warn`, `error` or `off`, or a list such as `info,toolcrib_mcp=debug`.",
        ),
        key(
            "format",
            Kind::Choice(words::<super::LogFormat>),
            Some("auto"),
            "`auto` is text on a terminal and JSON otherwise.",
        ),
    ],
};

pub(crate) static TELEMETRY: Shape = Shape {
    title: "`telemetry`",
    keys: &[key(
        "otlp",
        Kind::Url,
        None,
        "OTLP over HTTP endpoint for traces, such as `http://127.0.0.1:4318`.",
    )],
};

pub(crate) static SERVER: Shape = Shape {
    title: "a server",
    keys: &[
        key("name", Kind::Text, None, "Name for people."),
        key("description", Kind::Text, None, "What it is for."),
        key(
            "type",
            Kind::Choice(words::<super::read_server::Spoken>),
            None,
            "Transport. Left out, it follows from `command` (stdio) or `url` (Streamable HTTP, with HTTP+SSE as fallback).",
        )
        .also(&["transport"]),
        key("url", Kind::Url, None, "Address of a remote server."),
        key("command", Kind::Text, None, "Program of a local server, spoken to over stdin and stdout."),
        key("args", Kind::List(&Kind::Text), Some("[]"), "Arguments of `command`."),
        key("env", Kind::Map(&Kind::Secret), None, "Environment variables added for `command`."),
        key("cwd", Kind::Text, None, "Working folder of `command`. A relative path starts at this file's folder."),
        key("headers", Kind::Map(&Kind::Secret), None, "HTTP headers sent to `url`."),
        key("auth", Kind::Group(&AUTH), None, "How the crib shows who it is to this server."),
        key("enabled", Kind::Flag, Some("true"), "A disabled server is kept in the file and left alone."),
        key(
            "connect",
            Kind::Choice(words::<super::Connect>),
            Some("on-demand"),
            "`on-demand` connects when its tools are first wanted, `always` at start.",
        ),
        key(
            "era",
            Kind::Choice(words::<super::Era>),
            Some("auto"),
            "Which MCP wire to speak: `legacy` (2025-11-25 and before), `modern` (2026-07-28 and after), or ask.",
        ),
        key(
            "timeout",
            Kind::Duration,
            Some("30s"),
            "How long it may stay silent during a call. Progress and log messages begin the time anew, so a call as a \
             whole may take longer.",
        ),
        key("prefix", Kind::Text, None, "Text before its tools' names in listings instead of the id; `none` lists them bare."),
        key(
            "strip_server_prefix",
            Kind::Flag,
            Some("true"),
            "Show `notion-search` of server `notion` as `search`.",
        ),
        key(
            "expose",
            Kind::List(&Kind::Glob),
            Some("[]"),
            "Patterns over the server's own names of its tools and prompts; only these are shown. Resources are not \
             concerned.",
        ),
        key(
            "hide",
            Kind::List(&Kind::Glob),
            Some("[]"),
            "Patterns over the server's own names of its tools and prompts; wins over `expose`. Resources are not concerned.",
        ),
        key("rename", Kind::Map(&Kind::Text), None, "The server's name of a tool, and the name to show instead."),
        key("describe", Kind::Map(&Kind::Text), None, "The server's name of a tool, and the description to show instead."),
    ],
};

pub(crate) static AUTH: Shape = Shape {
    title: "`auth`",
    keys: &[
        key(
            "type",
            Kind::Choice(words::<super::read_server::AuthKind>),
            None,
            "`api-key`: a fixed key. `oauth2-pkce` (also `oauth2`) is accepted, but nothing signs in yet: the server is \
             reached without credentials, and says `wants credentials` where it refuses that.",
        ),
        key("env", Kind::Text, None, "For `api-key`: the environment variable that holds the key."),
        key("key", Kind::Secret, None, "For `api-key`: the key. Write `${VAR}` to keep it out of the file."),
    ],
};

/// Every shape with the path it stands at, in the order of the file; for tests and the reference page.
pub(crate) fn all() -> [(&'static str, &'static Shape); 10] {
    [
        ("", &ROOT),
        ("listen", &LISTEN),
        ("callers.<id>", &CALLER),
        ("callers.<id>.tools", &TOOLS),
        ("local", &LOCAL),
        ("limits", &LIMITS),
        ("log", &LOG),
        ("telemetry", &TELEMETRY),
        ("servers.<id>", &SERVER),
        ("servers.<id>.auth", &AUTH),
    ]
}
