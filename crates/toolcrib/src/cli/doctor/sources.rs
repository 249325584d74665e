//! Every server: reachable, connected once, and what it offered. A running crib is asked how its servers are doing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::Url;

use super::{Chart, Finding};
use crate::cli::moment;
use crate::cli::trouble::Trouble;
use crate::config::{Auth, Config, Server as Settings, Transport};
use crate::reach::{Here, Running, Server};

const PATIENCE: Duration = Duration::from_secs(5);

pub async fn look(config: &Config, running: Option<&Running>, chart: &mut Chart<'_>) -> Result<(), Trouble> {
    if let Some(running) = running {
        match running.servers().await {
            Ok(servers) => {
                let known = |server: &&Server| server.transport != "builtin" && !is_noted(chart, &server.id);
                for server in servers.iter().filter(known).collect::<Vec<_>>() {
                    chart.note(judged(server, None))?;
                }
            }
            Err(trouble) => {
                let remedy = trouble.hint.unwrap_or_else(|| "look at the log of the crib".into());
                chart.note(Finding::problem("crib", trouble.message, remedy))?;
            }
        }
        return Ok(());
    }
    if config.servers.is_empty() {
        let remedy = "`toolcrib import` brings in those your clients have";
        return Ok(chart.note(Finding::warning("servers", "none are configured", remedy))?);
    }
    let here = match Here::assemble(config).await {
        Ok(here) => Arc::new(here),
        Err(trouble) => {
            return Ok(chart.note(Finding::problem(
                "crib",
                trouble.message,
                "mend this first, then look again",
            ))?);
        }
    };
    let noted = each(config, &here, chart).await;
    if let Some(here) = Arc::into_inner(here) {
        here.close().await;
    }
    noted
}

/// Its program is missing; that was said, and trying would say it again.
fn is_noted(chart: &Chart<'_>, id: &str) -> bool {
    chart.findings.iter().any(|finding| finding.about == id)
}

/// Connects all at once; tells each as it is done.
async fn each(config: &Config, here: &Arc<Here>, chart: &mut Chart<'_>) -> Result<(), Trouble> {
    let mut attempts = JoinSet::new();
    for (id, settings) in &config.servers {
        if !settings.enabled {
            chart.note(Finding::good(id.to_string(), "switched off in the config"))?;
            continue;
        }
        if is_noted(chart, id.as_str()) {
            continue;
        }
        let (here, id, settings) = (here.clone(), id.to_string(), settings.clone());
        attempts.spawn(async move {
            let began = Instant::now();
            let connected = here.connect(&id).await;
            let took = began.elapsed();
            match connected {
                Ok(()) => match here.glance().into_iter().find(|server| server.id == id) {
                    Some(server) => judged(&server, Some(took)),
                    None => Finding::problem(id, "vanished", "look again"),
                },
                Err(trouble) => failed(&id, &settings, trouble.message).await,
            }
        });
    }
    while let Some(finding) = attempts.join_next().await {
        match finding {
            Ok(finding) => chart.note(finding)?,
            Err(error) => {
                chart.note(Finding::problem("doctor", error.to_string(), "this is a defect of the crib"))?
            }
        }
    }
    Ok(())
}

fn judged(server: &Server, took: Option<Duration>) -> Finding {
    let count = |number: Option<usize>, word: &str| number.map(|number| format!("{number} {word}"));
    let time = took.map(|took| format!("in {}", moment::span(took.as_micros() as u64)));
    let facts = [
        Some(server.state.clone()),
        time,
        count(server.tools, "tools"),
        server.protocol.as_ref().map(|version| format!("MCP {version}")),
    ];
    let found = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match &server.last_error {
        Some(error) if server.state == "failed" => {
            let remedy = format!("`toolcrib servers restart {}` tries again", server.id);
            Finding::problem(&server.id, format!("failed: {error}"), remedy)
        }
        _ => match server.warnings.first() {
            Some(warning) => {
                let remedy = "tell whoever makes this server; the rest of its tools work";
                Finding::warning(&server.id, format!("{found}; {warning}"), remedy)
            }
            None => Finding::good(&server.id, found),
        },
    }
}

/// A server that could not be connected, with what is most likely the reason.
async fn failed(id: &str, settings: &Settings, told: String) -> Finding {
    let remedy = match &settings.transport {
        Transport::Stdio(process) => {
            let words = process.args.iter().filter(|word| !word.contains(char::is_whitespace));
            let line = std::iter::once(&process.command).chain(words).cloned().collect::<Vec<_>>().join(" ");
            format!("run it by hand and read what it says: `{}`", hidden(&line))
        }
        Transport::Http(remote) | Transport::Sse(remote) => match unreachable(&remote.url).await {
            Some(why) => format!("{why}; check the address, the network and whether it is up"),
            None if matches!(settings.auth, Some(Auth::OAuth)) => {
                "it answers, but wants a login (OAuth), which this version cannot do yet".to_owned()
            }
            None => "its host answers; check the path of the `url`, and its credentials".to_owned(),
        },
    };
    Finding::problem(id, told, remedy)
}

/// A command line without values that sound like credentials.
fn hidden(line: &str) -> String {
    line.split(' ')
        .map(|word| match word.split_once('=') {
            Some((name, _)) if crate::config::names_a_credential(name.trim_start_matches('-')) => {
                format!("{name}=***")
            }
            _ => word.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Why no connection to the host of `url` can be made, if so.
async fn unreachable(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    let host = host.trim_matches(['[', ']']);
    match tokio::time::timeout(PATIENCE, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("{host}:{port} cannot be reached ({error})")),
        Err(_) => Some(format!("{host}:{port} does not answer")),
    }
}
