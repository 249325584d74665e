//! Which clients are known, and where each keeps its MCP servers.
//!
//! Paths only: whether a file exists, and what is in it, is found out elsewhere.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::Lookup;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    #[serde(rename = "vscode")]
    VsCode,
    Windsurf,
    Codex,
    Gemini,
    Zed,
}

impl Client {
    pub const ALL: [Client; 8] = [
        Client::ClaudeDesktop,
        Client::ClaudeCode,
        Client::Cursor,
        Client::VsCode,
        Client::Windsurf,
        Client::Codex,
        Client::Gemini,
        Client::Zed,
    ];

    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "claude-desktop",
            Client::ClaudeCode => "claude-code",
            Client::Cursor => "cursor",
            Client::VsCode => "vscode",
            Client::Windsurf => "windsurf",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::Zed => "zed",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.word() == word)
    }

    /// The name people know it by.
    pub fn title(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "Claude Desktop",
            Client::ClaudeCode => "Claude Code",
            Client::Cursor => "Cursor",
            Client::VsCode => "VS Code",
            Client::Windsurf => "Windsurf",
            Client::Codex => "Codex",
            Client::Gemini => "Gemini CLI",
            Client::Zed => "Zed",
        }
    }

    /// The keys down to the servers in its file.
    pub(crate) fn section(self) -> &'static [&'static str] {
        match self {
            Client::VsCode => &["servers"],
            Client::Codex => &["mcp_servers"],
            Client::Zed => &["context_servers"],
            _ => &["mcpServers"],
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.title())
    }
}

/// For one person everywhere, or for one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    #[default]
    User,
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    Linux,
    Mac,
    Windows,
}

/// The folders client files are looked for in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub config: PathBuf,
    /// Where applications keep settings on this system: `~/Library/Application Support`, `%APPDATA%`, or `config`.
    pub applications: PathBuf,
    /// `$CODEX_HOME`, else `~/.codex`.
    pub codex: PathBuf,
    /// The project.
    pub cwd: PathBuf,
}

impl Places {
    /// The folders as a system lays them out under `home`.
    pub fn under(home: &Path, cwd: &Path, system: System) -> Self {
        let config = home.join(".config");
        let applications = match system {
            System::Linux => config.clone(),
            System::Mac => home.join("Library/Application Support"),
            System::Windows => home.join("AppData/Roaming"),
        };
        Self { home: home.to_owned(), config, applications, codex: home.join(".codex"), cwd: cwd.to_owned() }
    }

    /// The folders of this machine; `None` when no home folder is known.
    pub fn here(env: Lookup<'_>, cwd: &Path) -> Option<Self> {
        let system = match std::env::consts::OS {
            "macos" => System::Mac,
            "windows" => System::Windows,
            _ => System::Linux,
        };
        let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME").or_else(|| folder("USERPROFILE"))?;
        let mut places = Self::under(&home, cwd, system);
        if let Some(config) = folder("XDG_CONFIG_HOME") {
            if system == System::Linux {
                places.applications.clone_from(&config);
            }
            places.config = config;
        }
        if let Some(applications) = folder("APPDATA").filter(|_| system == System::Windows) {
            places.applications = applications;
        }
        places.codex = folder("CODEX_HOME").unwrap_or(places.codex);
        Some(places)
    }

    /// The file of `client` that `connect` writes; `None` when it has none for that scope.
    pub fn file(&self, client: Client, scope: Scope) -> Option<PathBuf> {
        Some(match (client, scope) {
            (Client::ClaudeDesktop, Scope::User) => {
                self.applications.join("Claude/claude_desktop_config.json")
            }
            (Client::ClaudeCode, Scope::User) => self.home.join(".claude.json"),
            (Client::ClaudeCode, Scope::Project) => self.cwd.join(".mcp.json"),
            (Client::Cursor, Scope::User) => self.home.join(".cursor/mcp.json"),
            (Client::Cursor, Scope::Project) => self.cwd.join(".cursor/mcp.json"),
            (Client::VsCode, Scope::User) => self.applications.join("Code/User/mcp.json"),
            (Client::VsCode, Scope::Project) => self.cwd.join(".vscode/mcp.json"),
            (Client::Windsurf, Scope::User) => self.home.join(".codeium/windsurf/mcp_config.json"),
            (Client::Codex, Scope::User) => self.codex.join("config.toml"),
            (Client::Codex, Scope::Project) => self.cwd.join(".codex/config.toml"),
            (Client::Gemini, Scope::User) => self.home.join(".gemini/settings.json"),
            (Client::Gemini, Scope::Project) => self.cwd.join(".gemini/settings.json"),
            // Zed keeps to ~/.config on macOS too.
            (Client::Zed, Scope::User) => self.config.join("zed/settings.json"),
            (Client::Zed, Scope::Project) => self.cwd.join(".zed/settings.json"),
            (Client::ClaudeDesktop | Client::Windsurf, Scope::Project) => return None,
        })
    }

    /// Every file of `client` that may hold servers, the user's before the project's.
    pub(crate) fn files(&self, client: Client) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            [Scope::User, Scope::Project].into_iter().filter_map(|scope| self.file(client, scope)).collect();
        if client == Client::VsCode {
            // Where servers stood before `mcp.json`.
            files.insert(1, self.applications.join("Code/User/settings.json"));
        }
        files.dedup();
        files
    }
}
