//! `toolcrib import`: the servers of other clients, brought into `toolcrib.yaml`.
//!
//! [`plan`] reads and shows; [`Plan::apply`] writes, after a backup, and only a text that was loaded and found to mean the
//! old config plus the new servers. Secrets do not come along: each becomes `${VAR}`, and the plan names the variables.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Map;

pub use super::credential::Variable;
use super::credential::Variables;
use super::draft::{self, Taken};
use super::entry::{self, Found};
use super::keep::{self, Readers};
use super::{Client, ClientError, Places, settings, yaml};
use crate::config::{self, Config, Lookup};

/// What to import from, and into what.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only these clients; empty means all.
    pub clients: Vec<Client>,
    /// A file by path instead of the clients' own places.
    pub file: Option<PathBuf>,
}

/// A server that would be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Added {
    pub id: String,
    pub transport: &'static str,
    /// The command line or URL, with variables in place of secrets.
    pub address: String,
    pub from: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A server, or a whole file, that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    pub name: String,
    pub from: String,
    pub why: String,
}

/// What an import would do; nothing is written yet.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub target: PathBuf,
    pub added: Vec<Added>,
    pub skipped: Vec<Skipped>,
    pub variables: Vec<Variable>,
    #[serde(skip)]
    before: Option<String>,
    #[serde(skip)]
    after: String,
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    pub target: PathBuf,
    pub backup: Option<PathBuf>,
    pub env_file: Option<PathBuf>,
}

/// Whether the values of the variables are written too, into a file only the owner can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnvFile {
    #[default]
    Leave,
    /// `<config>.env` beside the config: `toolcrib.env` for `toolcrib.yaml`.
    Write,
}

/// Reads the clients' files and works out what would be added to `target`, which need not exist.
pub fn plan(options: &Options, places: &Places, target: &Path, env: Lookup<'_>) -> Result<Plan, ClientError> {
    let before = keep::text(target)?;
    let text = before.clone().unwrap_or_default();
    let current = config::outline(&text, Some(target), env).map_err(ClientError::Config)?.config;
    let mut skipped = Vec::new();
    let found = find(options, places, &mut skipped)?;
    let mut variables = Variables::default();
    let (taken, added) = take(&found, places, &current, &mut variables, &mut skipped);
    let variables = variables.into_list();
    let servers: Vec<_> = taken.into_iter().map(|taken| (taken.id, taken.members)).collect();
    let after = if servers.is_empty() { text } else { place(&text, target, &servers, &current, env)? };
    Ok(Plan { target: target.to_owned(), added, skipped, variables, before, after })
}

fn find(options: &Options, places: &Places, skipped: &mut Vec<Skipped>) -> Result<Vec<Found>, ClientError> {
    if let Some(file) = &options.file {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let text =
            keep::text(file)?.ok_or_else(|| ClientError::Read { path: file.clone(), source: missing() })?;
        return Ok(entry::all(file, None, &settings::read(file, &text)?));
    }
    let mut found = Vec::new();
    for client in Client::ALL
        .into_iter()
        .filter(|client| options.clients.is_empty() || options.clients.contains(client))
    {
        for file in places.files(client) {
            // One unreadable file is told and does not hide the others.
            match keep::text(&file).and_then(|text| text.map(|text| settings::read(&file, &text)).transpose())
            {
                Ok(Some(value)) => found.extend(entry::all(&file, Some(client), &value)),
                Ok(None) => {}
                Err(error) => skipped.push(Skipped {
                    name: "(the whole file)".into(),
                    from: origin(Some(client), &file, None),
                    why: error.to_string(),
                }),
            }
        }
    }
    Ok(found)
}

fn origin(client: Option<Client>, file: &Path, project: Option<&Path>) -> String {
    let client = client.map(|client| format!("{client}, ")).unwrap_or_default();
    let project = project.map(|project| format!(", project {}", project.display())).unwrap_or_default();
    format!("{client}{}{project}", file.display())
}

/// Each entry is taken or skipped with its reason.
fn take(
    found: &[Found],
    places: &Places,
    current: &Config,
    variables: &mut Variables,
    skipped: &mut Vec<Skipped>,
) -> (Vec<Taken>, Vec<Added>) {
    let (mut taken, mut added): (Vec<Taken>, Vec<Added>) = (Vec::new(), Vec::new());
    for found in found {
        let from = origin(found.client, &found.file, found.project.as_deref());
        match draft::take(found, places, current, &taken, variables) {
            Err(why) => skipped.push(Skipped { name: found.name.clone(), from, why }),
            Ok(new) => {
                let (transport, address, notes) = (new.transport, new.address.clone(), new.notes.clone());
                added.push(Added { id: new.id.clone(), transport, address, from, notes });
                taken.push(new);
            }
        }
    }
    (taken, added)
}

/// The new text, proved: it loads, the old servers and settings are as they were, and each new server is there.
fn place(
    text: &str,
    target: &Path,
    servers: &[(String, Map<String, serde_json::Value>)],
    current: &Config,
    env: Lookup<'_>,
) -> Result<String, ClientError> {
    let unplaceable = || ClientError::Unplaceable { path: target.to_owned() };
    let after = yaml::insert(text, servers).ok_or_else(unplaceable)?;
    // The new variables are for the person to set later; here they only must not be in the way.
    let mut loaded = config::outline(&after, Some(target), env).map_err(ClientError::Config)?.config;
    for (id, _) in servers {
        let id = config::Id::new(id).ok_or_else(unplaceable)?;
        loaded.servers.remove(&id).ok_or_else(unplaceable)?;
    }
    if loaded == *current { Ok(after) } else { Err(unplaceable()) }
}

impl Plan {
    /// Writes the plan: the config after a backup and, if asked, the variables' values into a file of their own.
    pub fn apply(&self, env_file: EnvFile) -> Result<Applied, ClientError> {
        if self.added.is_empty() {
            return Ok(Applied { target: self.target.clone(), backup: None, env_file: None });
        }
        // Values first: were the config written and they not, they would be nowhere.
        let env_file = match env_file {
            EnvFile::Write => self.write_values()?,
            EnvFile::Leave => None,
        };
        let backup = keep::replace(&self.target, self.before.as_deref(), &self.after, Readers::Everyone)?;
        Ok(Applied { target: self.target.clone(), backup, env_file })
    }

    /// The text the config would have.
    pub fn text(&self) -> &str {
        &self.after
    }

    fn write_values(&self) -> Result<Option<PathBuf>, ClientError> {
        let path = self.target.with_extension("env");
        let before = keep::text(&path)?;
        let mut text = before.clone().unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let known = text.clone();
        for (name, value) in self.variables.iter().filter_map(|one| Some((&one.name, one.value.as_ref()?))) {
            if !known.lines().any(|line| line.starts_with(&format!("{name}="))) {
                text += &format!("{name}='{}'\n", value.expose().replace('\'', r"'\''"));
            }
        }
        if text == known {
            return Ok(None);
        }
        keep::replace(&path, before.as_deref(), &text, Readers::Owner)?;
        Ok(Some(path))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.added.len() {
            0 => writeln!(out, "Nothing to add to {}.", self.target.display())?,
            count => writeln!(out, "{count} to add to {}:", self.target.display())?,
        }
        for added in &self.added {
            writeln!(
                out,
                "  + {}  ({}) {}\n      from {}",
                added.id, added.transport, added.address, added.from
            )?;
            for note in &added.notes {
                writeln!(out, "      note: {note}")?;
            }
        }
        if !self.skipped.is_empty() {
            writeln!(out, "Skipped:")?;
        }
        for skipped in &self.skipped {
            writeln!(out, "  - {}  {}\n      from {}", skipped.name, skipped.why, skipped.from)?;
        }
        if !self.variables.is_empty() {
            writeln!(out, "Variables to set before the crib starts:")?;
        }
        for variable in &self.variables {
            writeln!(out, "  {}  for {}", variable.name, variable.servers.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Wrote {}", self.target.display())?;
        if let Some(backup) = &self.backup {
            writeln!(out, "Backup: {}", backup.display())?;
        }
        if let Some(file) = &self.env_file {
            writeln!(out, "Values: {} (the crib reads it; keep it to yourself)", file.display())?;
        }
        Ok(())
    }
}
