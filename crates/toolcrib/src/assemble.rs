//! Where every port meets its implementation, and nowhere else: a config becomes a running crib.
//!
//! [`Crib::apply`] takes a changed config; sources that did not change keep their connections.

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    builtin::{self, Builtin},
    caller::{Caller, CallerKind, Callers, Role, Roll},
    catalog::{LiveCatalog, Style, name::Prefix, offer::ShelfSettings},
    doorway::Doorway,
    gateway::{Gateway, Parts},
    id::{CallerId, SourceId},
    ledger::Ledger,
    news::Newsroom,
    policy::{Access, Policy, globs},
    source::{
        ConnectMode, Dialer,
        supervisor::{SourceSpec, Supervisor},
        terms::Terms,
    },
    trace::Tracer,
};
use toolcrib_mcp::{
    dial::{HttpDialer, HttpKind, StdioDialer},
    serve::{Desk, Settings},
    version::Era,
};
use toolcrib_store::SqliteLedger;

use crate::config::{self, Auth, Config, Connect, Names, Server, Transport};

/// An on-demand source that nobody used for this long is let go.
const IDLE_AFTER: Duration = Duration::from_secs(15 * 60);

/// How long cancelled calls may take to be written down.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A whole crib, without listeners.
pub struct Crib {
    pub gateway: Arc<Gateway>,
    pub callers: Arc<Callers>,
    pub desk: Arc<Desk>,
    builtin: Arc<Builtin>,
    reaper: JoinHandle<()>,
}

impl Crib {
    pub async fn assemble(config: &Config) -> anyhow::Result<Self> {
        Self::traced(config, None).await
    }

    pub async fn traced(config: &Config, tracer: Option<Arc<dyn Tracer>>) -> anyhow::Result<Self> {
        let ledger: Arc<dyn Ledger> = Arc::new(
            SqliteLedger::open(&config.data)
                .with_context(|| format!("the ledger in `{}` cannot be opened", config.data.display()))?,
        );
        let newsroom = Newsroom::default();
        let catalog = Arc::new(LiveCatalog::new(newsroom.clone()));
        let supervisor = Supervisor::new(catalog.clone(), newsroom.clone());
        let policy = Policy::by_access();
        let builtin = Arc::new(Builtin {
            catalog: catalog.clone(),
            policy: policy.clone(),
            ledger: ledger.clone(),
            supervisor: Arc::downgrade(&supervisor),
        });
        let parts = Parts {
            catalog,
            policy,
            ledger,
            supervisor: supervisor.clone(),
            newsroom,
            tracer,
            most_calls: config.limits.calls,
        };
        let gateway = Gateway::new(parts);
        let callers = Arc::new(Callers::new(roll(config)?));
        let desk = Arc::new(Desk {
            gateway: gateway.clone(),
            callers: callers.clone(),
            settings: settings(config),
            closing: CancellationToken::new(),
            sessions: Arc::new(AtomicUsize::new(0)),
        });
        let reaper = tokio::spawn(supervisor.reap());
        let crib = Self { gateway, callers, desk, builtin, reaper };
        crib.gateway.supervisor().apply(crib.specs(config)?);
        Ok(crib)
    }

    /// Who asks on a pipe and on the command line.
    pub fn local(&self) -> Arc<Caller> {
        self.callers.local()
    }

    /// Takes a changed config: callers and sources. Listeners and limits stay as they were.
    pub fn apply(&self, config: &Config) -> anyhow::Result<()> {
        let (roll, specs) = (roll(config)?, self.specs(config)?);
        self.callers.replace(roll);
        self.gateway.supervisor().apply(specs);
        Ok(())
    }

    fn specs(&self, config: &Config) -> anyhow::Result<Vec<SourceSpec>> {
        let mut specs = vec![builtin_spec(&self.builtin)?];
        for (id, server) in &config.servers {
            specs.push(spec(id, server, config)?);
        }
        Ok(specs)
    }

    /// Waits until no call runs, for `patience` at most.
    async fn quiet_within(&self, patience: Duration) {
        let deadline = tokio::time::Instant::now() + patience;
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while !self.gateway.roster().calls().is_empty() && tokio::time::Instant::now() < deadline {
            tick.tick().await;
        }
    }

    /// Ends everything: calls get `limits.shutdown` to finish, then children are closed.
    pub async fn close(self, patience: Duration) {
        self.desk.closing.cancel();
        self.quiet_within(patience).await;
        self.gateway.roster().cancel_all();
        // A call that was called off still has its end to write down.
        self.quiet_within(LAST_WORDS).await;
        self.reaper.abort();
        self.gateway.supervisor().close().await;
    }
}

/// Who is let in. Nobody without a token, except on loopback when no caller is configured.
fn roll(config: &Config) -> anyhow::Result<Roll> {
    let local = Caller::local(access(&config.local.tools)?);
    if config.callers.is_empty() {
        for (what, address) in [("mcp", config.listen.mcp), ("admin", config.listen.admin)] {
            if !address.ip().is_loopback() {
                bail!(
                    "`listen.{what}` is {address}, which others can reach, and no `callers` are configured; \
                     add a caller with a token, or listen on 127.0.0.1"
                );
            }
        }
        return Ok(Roll::open(local));
    }
    let mut roll = Roll::closed(local);
    for (id, caller) in &config.callers {
        let known = Caller {
            id: CallerId::new(id.as_str()),
            kind: match caller.kind {
                config::CallerKind::Agent => CallerKind::Agent,
                config::CallerKind::Service => CallerKind::Service,
                config::CallerKind::Person => CallerKind::Person,
            },
            role: if caller.admin { Role::Admin } else { Role::User },
            access: access(&caller.tools)?,
        };
        roll.add(caller.token.expose(), known);
    }
    Ok(roll)
}

fn access(tools: &config::Tools) -> anyhow::Result<Access> {
    Access::new(&tools.allow, &tools.deny).context("a pattern of `tools` cannot be used")
}

fn settings(config: &Config) -> Settings {
    Settings {
        style: match config.names {
            Names::Safe => Style::Safe,
            Names::Colon => Style::Colon,
            Names::Bare => Style::Bare,
        },
        doorway: doorway(config),
        longest_body: usize::try_from(config.limits.body).unwrap_or(usize::MAX),
        most_sessions: config.limits.sessions,
        session_idle: config.limits.session_idle,
    }
}

pub fn doorway(config: &Config) -> Doorway {
    let listen = &config.listen;
    let mut hosts = listen.allowed_hosts.clone();
    hosts.extend([listen.mcp, listen.admin].map(|address| address.ip().to_string()));
    Doorway { hosts, origins: listen.allowed_origins.clone() }
}

fn builtin_spec(builtin: &Arc<Builtin>) -> anyhow::Result<SourceSpec> {
    Ok(SourceSpec {
        terms: Terms {
            id: SourceId::new(builtin::ID)?,
            title: Some("Toolcrib".into()),
            description: Some("the crib's own tools".into()),
            enabled: true,
            mode: ConnectMode::Always,
            idle_after: IDLE_AFTER,
            connect_limit: Duration::from_secs(5),
            shelf: Arc::new(ShelfSettings { builtin: true, ..ShelfSettings::default() }),
        },
        dialer: builtin.clone(),
        dial_print: builtin::ID.into(),
        terms_print: String::new(),
    })
}

fn spec(id: &config::Id, server: &Server, config: &Config) -> anyhow::Result<SourceSpec> {
    let shelf = ShelfSettings {
        prefix: match &server.prefix {
            config::Prefix::Id => Prefix::Id,
            config::Prefix::None => Prefix::None,
            config::Prefix::Text(text) => Prefix::Text(text.clone()),
        },
        strip: server.strip_server_prefix,
        expose: if server.expose.is_empty() { None } else { Some(globs(&server.expose)?) },
        hide: globs(&server.hide)?,
        rename: server.rename.clone(),
        describe: server.describe.clone(),
        patience: server.timeout,
        builtin: false,
    };
    Ok(SourceSpec {
        terms: Terms {
            id: SourceId::new(id.as_str())?,
            title: server.name.clone(),
            description: server.description.clone(),
            enabled: server.enabled,
            mode: match server.connect {
                Connect::OnDemand => ConnectMode::OnDemand,
                Connect::Always => ConnectMode::Always,
            },
            idle_after: IDLE_AFTER,
            connect_limit: config.limits.connect,
            shelf: Arc::new(shelf),
        },
        dialer: dialer(server),
        dial_print: dial_print(server),
        terms_print: format!("{server:?} {:?}", config.limits.connect),
    })
}

/// Everything that decides how a source is reached, secrets included; never shown.
fn dial_print(server: &Server) -> String {
    let secrets: Vec<&str> = match &server.transport {
        Transport::Stdio(process) => process.env.values().map(config::Secret::expose).collect(),
        Transport::Http(remote) | Transport::Sse(remote) => {
            remote.headers.values().map(config::Secret::expose).collect()
        }
    };
    let key = match &server.auth {
        Some(Auth::ApiKey(key)) => key.key.as_ref().map(config::Secret::expose),
        Some(Auth::OAuth) | None => None,
    };
    format!("{:?} {:?} {:?} {secrets:?} {key:?}", server.transport, server.auth, server.era)
}

fn dialer(server: &Server) -> Arc<dyn Dialer> {
    let key = match &server.auth {
        Some(Auth::ApiKey(key)) => Some(key),
        Some(Auth::OAuth) | None => None,
    };
    match &server.transport {
        Transport::Stdio(process) => {
            let mut env: Vec<(String, String)> =
                process.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
            if let Some((Some(name), Some(secret))) = key.map(|key| (&key.env, &key.key)) {
                env.push((name.clone(), secret.expose().to_owned()));
            }
            let dialer =
                StdioDialer::new(process.command.clone(), process.args.clone(), env, process.cwd.clone());
            Arc::new(match era(server) {
                Some(era) => dialer.speaking(era),
                None => dialer,
            })
        }
        Transport::Http(remote) | Transport::Sse(remote) => {
            let mut headers: Vec<(String, String)> = remote
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect();
            if let Some(secret) = key.and_then(|key| key.key.as_ref()) {
                headers.push(("Authorization".into(), format!("Bearer {}", secret.expose())));
            }
            let kind =
                if matches!(server.transport, Transport::Sse(_)) { HttpKind::Sse } else { HttpKind::Auto };
            let dialer = HttpDialer::new(remote.url.clone(), headers, kind);
            Arc::new(match era(server) {
                Some(era) => dialer.speaking(era),
                None => dialer,
            })
        }
    }
}

/// The wire the operator says the server speaks.
fn era(server: &Server) -> Option<Era> {
    match server.era {
        config::Era::Auto => None,
        config::Era::Legacy => Some(Era::Legacy),
        config::Era::Modern => Some(Era::Modern),
    }
}
