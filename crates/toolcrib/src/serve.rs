//! The two ways to run the crib: listening on its ports, or on a pipe.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::Context;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    assemble::{self, Crib},
    banner,
    config::{self, Config, Loaded, Mistakes},
    listen, telemetry,
};

/// What the command line says beside the config.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServeFlags {
    pub mcp: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
}

/// `toolcrib serve`: both listeners, hot reload, until a signal.
pub async fn serve(mut loaded: Loaded, flags: ServeFlags) -> anyhow::Result<()> {
    let config = &mut loaded.config;
    config.listen.mcp = flags.mcp.unwrap_or(config.listen.mcp);
    config.listen.admin = flags.admin.unwrap_or(config.listen.admin);
    let telemetry = telemetry::start(config)?;
    warn(&loaded);
    let config = &loaded.config;
    let mcp = listen::bind("the MCP listener", "listen.mcp", config.listen.mcp).await?;
    let admin = listen::bind("the admin listener", "listen.admin", config.listen.admin).await?;
    let crib = Arc::new(Crib::traced(config, telemetry.tracer()).await?);
    let closing = crib.desk.closing.clone();
    let sessions = crib.desk.sessions.clone();
    let state = toolcrib_rest::Desk {
        doorway: Arc::new(assemble::doorway(config)),
        names: crib.desk.settings.style,
        largest_body: crib.desk.settings.longest_body,
        sessions: Some(Arc::new(move || sessions.load(Ordering::Relaxed))),
        closing: closing.clone(),
        ..toolcrib_rest::Desk::new(crib.gateway.clone(), crib.callers.clone())
    };
    let tools = toolcrib_mcp::serve::http::router(crib.desk.clone())
        .merge(toolcrib_rest::tools_router(state.clone()));
    let patience = config.limits.shutdown;
    let open = crib.callers.is_open();
    // Both before the banner: who has read it may stop the crib or edit its config at once.
    let (stop, edits) = (stop_asked(), edits(&loaded));
    banner::print(&banner::Facts {
        mcp: mcp.local_addr()?,
        admin: admin.local_addr()?,
        config: loaded.path.as_deref(),
        data: &config.data,
        servers: config.servers.len(),
        open,
    });
    let listeners = [
        tokio::spawn(listen::run(mcp, tools, closing.clone(), patience)),
        tokio::spawn(listen::run(admin, toolcrib_rest::admin_router(state), closing.clone(), patience)),
    ];
    let reload = tokio::spawn(reload(crib.clone(), loaded.clone(), edits, closing.clone()));
    stop.await;
    tracing::info!("closing: no new requests, running calls may finish");
    closing.cancel();
    let _ = reload.await;
    finish(crib, patience).await;
    for listener in listeners {
        let _ = listener.await;
    }
    telemetry.flush().await;
    Ok(())
}

/// `toolcrib stdio`: the same crib for one client on a pipe; hot reload too.
pub async fn stdio(loaded: Loaded) -> anyhow::Result<()> {
    let telemetry = telemetry::start(&loaded.config)?;
    warn(&loaded);
    let patience = loaded.config.limits.shutdown;
    let (stop, edits) = (stop_asked(), edits(&loaded));
    let crib = Arc::new(Crib::traced(&loaded.config, telemetry.tracer()).await?);
    let closing = crib.desk.closing.clone();
    let reload = tokio::spawn(reload(crib.clone(), loaded, edits, closing.clone()));
    let pipe = toolcrib_mcp::serve::stdio::serve(crib.desk.clone(), tokio::io::stdin(), tokio::io::stdout());
    let ended = tokio::select! {
        ended = pipe => ended.context("the pipe broke"),
        () = stop => Ok(()),
    };
    closing.cancel();
    let _ = reload.await;
    finish(crib, patience).await;
    telemetry.flush().await;
    ended
}

fn warn(loaded: &Loaded) {
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
}

/// Closes the crib once nobody else holds it.
async fn finish(crib: Arc<Crib>, patience: Duration) {
    match Arc::try_unwrap(crib) {
        Ok(crib) => crib.close(patience).await,
        Err(crib) => crib.gateway.supervisor().close().await,
    }
}

type Edits = mpsc::Receiver<Result<Loaded, Mistakes>>;

fn edits(loaded: &Loaded) -> Option<Edits> {
    Some(config::watch(loaded.path.as_deref()?, Arc::new(|name: &str| std::env::var(name).ok())))
}

/// Follows the config file: a good edit takes hold, a bad one is told and changes nothing.
async fn reload(crib: Arc<Crib>, loaded: Loaded, edits: Option<Edits>, closing: CancellationToken) {
    let (Some(path), Some(mut edits)) = (loaded.path, edits) else { return };
    let mut current = loaded.config;
    // What was written between the first reading and the watch is an edit too.
    if let Ok(now) = config::load(Some(&path), &|name: &str| std::env::var(name).ok()) {
        let differs = (&now.config.servers, &now.config.callers, &now.config.local)
            != (&current.servers, &current.callers, &current.local);
        if differs {
            current = take(&crib, current, now);
        }
    }
    loop {
        let edit = tokio::select! {
            edit = edits.recv() => edit,
            () = closing.cancelled() => return,
        };
        match edit {
            None => return,
            Some(Err(mistakes)) => {
                tracing::error!("the edited config is refused and the old one stays in force\n{mistakes}");
            }
            Some(Ok(next)) => {
                current = take(&crib, current, next);
            }
        }
    }
}

/// What is bound stays bound, so who is let in is judged by that and not by what the edit would like to bind.
fn take(crib: &Crib, current: Config, mut next: Loaded) -> Config {
    warn(&next);
    let wanted = std::mem::replace(&mut next.config.listen, current.listen.clone());
    let was_open = crib.callers.is_open();
    if let Err(error) = crib.apply(&next.config) {
        tracing::error!("the edited config is refused and the old one stays in force: {error:#}");
        return current;
    }
    let Config { listen, names, limits, data, log, telemetry, .. } = &current;
    let new = &next.config;
    let fixed = (listen, names, limits, data, log, telemetry);
    if fixed != (&wanted, &new.names, &new.limits, &new.data, &new.log, &new.telemetry) {
        tracing::warn!("servers and callers were reloaded; the other changes need a restart");
    }
    match (was_open, crib.callers.is_open()) {
        (false, true) => tracing::warn!("no token is needed any more: whoever is on this machine is `local`"),
        (true, false) => tracing::info!("a token is needed from now on"),
        _ => {}
    }
    tracing::info!(servers = new.servers.len(), "config reloaded");
    next.config
}

/// Ends when the process is asked to stop. It is heard from this call on, not only once it is awaited.
#[cfg(unix)]
fn stop_asked() -> impl Future<Output = ()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn came(signal: Option<Signal>) {
        match signal {
            Some(mut signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
    let (interrupt, terminate) = (signal(SignalKind::interrupt()).ok(), signal(SignalKind::terminate()).ok());
    async move {
        tokio::select! {
            () = came(interrupt) => {}
            () = came(terminate) => {}
        }
    }
}

#[cfg(not(unix))]
async fn stop_asked() {
    let _ = tokio::signal::ctrl_c().await;
}
