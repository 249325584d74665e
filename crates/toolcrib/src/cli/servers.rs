//! `servers`: what is configured, how each is doing, and connecting by hand.

use clap::{Args, Subcommand};
use serde_json::json;

use super::trouble::{Code, Trouble};
use super::{Desk, Ended, JsonBelow, interruptible};
use crate::output::{Cell, Table, Tint, tree};
use crate::reach::{Deed, Reach, Running, Server};

/// Show the servers behind the crib and how they are doing; connect them by hand
#[derive(Debug, Args)]
#[command(after_help = "\
`list` and `show` ask the running crib; without one they start the config's servers for the moment and stop them again. \
`connect`, `disconnect` and `restart` need a running crib.

Examples:
  toolcrib servers list
  toolcrib servers show notion
  toolcrib servers restart notion --admin http://tool-gateway:3100")]
pub struct Servers {
    #[command(flatten)]
    pub(super) form: JsonBelow,
    #[command(subcommand)]
    deed: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// All servers, their state and how many tools each has
    #[command(visible_alias = "ls")]
    List,
    /// Everything known about one server
    Show {
        #[arg(value_name = "SERVER")]
        id: String,
    },
    /// Connect a server now, whatever its mode
    Connect {
        #[arg(value_name = "SERVER")]
        id: String,
    },
    /// Disconnect a server until it is connected again
    Disconnect {
        #[arg(value_name = "SERVER")]
        id: String,
    },
    /// Disconnect a server and connect it again
    Restart {
        #[arg(value_name = "SERVER")]
        id: String,
    },
}

pub async fn run(words: Servers, desk: &Desk) -> Ended {
    let config = desk.load()?.config;
    let address = desk.address();
    let (deed, id) = match &words.deed {
        Which::Connect { id } => (Deed::Connect, id),
        Which::Disconnect { id } => (Deed::Disconnect, id),
        Which::Restart { id } => (Deed::Restart, id),
        Which::List | Which::Show { .. } => {
            let reach = Reach::find(&config, &address).await?;
            desk.say_whom(&reach);
            let ended = interruptible(Box::pin(look(&words.deed, desk, &reach))).await;
            reach.close().await;
            return ended;
        }
    };
    let running = Running::required(&config, &address, deed.word()).await?;
    let done = running.act(deed, id).await;
    let server = match done {
        Err(trouble) if trouble.code == Code::Unknown => {
            return Err(unknown(id, &running.servers().await.unwrap_or_default()));
        }
        done => done?,
    };
    report(&server, desk)?;
    Ok(Code::Done)
}

async fn look(which: &Which, desk: &Desk, reach: &Reach) -> Ended {
    match which {
        Which::Show { id } => match reach.server(id).await {
            Err(trouble) if trouble.code == Code::Unknown => {
                return Err(unknown(id, &reach.glance().await.unwrap_or_default()));
            }
            server => show(&server?, desk)?,
        },
        _ => list(&reach.servers().await?, desk)?,
    }
    Ok(Code::Done)
}

fn list(servers: &[Server], desk: &Desk) -> std::io::Result<()> {
    if desk.output.is_json() {
        return desk.output.json(&json!({ "servers": servers }));
    }
    let mut table = Table::new(&["SERVER", "STATE", "TRANSPORT", "TOOLS", "ADDRESS OR LAST ERROR"]);
    for server in servers {
        let said = match &server.last_error {
            Some(error) if server.state == "failed" => Cell::tinted(error, Tint::Bad),
            _ => Cell::tinted(&server.address, Tint::Faint),
        };
        table.row(vec![
            Cell::new(&server.id),
            Cell::tinted(&server.state, tint(&server.state)),
            Cell::new(&server.transport),
            Cell::maybe(server.tools),
            said,
        ]);
    }
    desk.output.table(&table)
}

/// How a state is to be taken.
pub(super) fn tint(state: &str) -> Tint {
    match state {
        "ready" => Tint::Good,
        "failed" => Tint::Bad,
        "connecting" => Tint::Warn,
        _ => Tint::Faint,
    }
}

fn show(server: &Server, desk: &Desk) -> std::io::Result<()> {
    if desk.output.is_json() {
        return desk.output.json(server);
    }
    desk.output.text(&tree(&json!(server)))
}

fn report(server: &Server, desk: &Desk) -> std::io::Result<()> {
    if desk.output.is_json() {
        return desk.output.json(server);
    }
    let state = desk.output.paint(tint(&server.state), &server.state);
    let tools = server.tools.map(|count| format!(", {count} tools")).unwrap_or_default();
    desk.output.line(format!("{} is {state}{tools}", server.id))
}

/// The near miss is named.
pub(super) fn unknown(id: &str, servers: &[Server]) -> Trouble {
    let near = nearest(id, servers.iter().map(|server| server.id.as_str()));
    let trouble = Trouble::unknown(format!("there is no server `{id}`"));
    match near {
        Some(near) => trouble.hint(format!("did you mean `{near}`?")),
        None => trouble.hint("`toolcrib servers list` shows what there is"),
    }
}

/// The name most like `wanted`, where one is.
pub(super) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.75;
    names
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}
