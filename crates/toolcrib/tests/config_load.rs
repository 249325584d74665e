//! Files that are right, and what they mean: every key, every spelling, the search order, the environment.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib::config::{self, Auth, Config, Connect, Era, Id, Loaded, Names, Prefix, Transport};

fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    let map: HashMap<&str, &str> = pairs.iter().copied().collect();
    move |name| map.get(name).map(|value| (*value).to_owned())
}

fn parse(text: &str) -> Config {
    let loaded =
        config::parse(text, Some(Path::new("/etc/crib/toolcrib.yaml")), &env(&[("HOME", "/home/someone")]));
    loaded.unwrap_or_else(|mistakes| panic!("{mistakes}")).config
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config").join(name)
}

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

#[test]
fn servers_yaml_of_the_first_design_loads_as_it_stands() {
    let Loaded { config, warnings, .. } = config::load(Some(&fixture("servers.yaml")), &|_| None).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(config.servers.len(), 4);
    let notion = &config.servers[&id("notion")];
    assert!(notion.enabled && notion.connect == Connect::OnDemand);
    assert!(
        matches!(&notion.transport, Transport::Http(remote) if remote.url == "https://mcp.notion.com/mcp")
    );
    assert_eq!(notion.auth, Some(Auth::OAuth));
    let local = &config.servers[&id("notion-local")];
    assert!(!local.enabled);
    let Transport::Stdio(process) = &local.transport else { panic!("{local:?}") };
    assert_eq!((process.command.as_str(), process.args.len()), ("npx", 2));
    let Some(Auth::ApiKey(key)) = &local.auth else { panic!("{local:?}") };
    assert_eq!((key.env.as_deref(), &key.key), (Some("NOTION_API_KEY"), &None));
}

#[test]
fn every_key_arrives() {
    let pairs = [("HOME", "/home/someone"), ("CI_TOKEN", "0123456789abcdef")];
    let config = config::load(Some(&fixture("full.yaml")), &env(&pairs)).unwrap().config;
    assert_eq!(config.data, Path::new("/home/someone/crib"));
    assert_eq!(config.listen.admin.to_string(), "127.0.0.1:9100");
    assert_eq!(config.names, Names::Colon);
    assert_eq!(config.limits.connect, Duration::from_millis(2500));
    assert_eq!(config.telemetry.otlp.as_deref(), Some("http://127.0.0.1:4318"));
    let caller = &config.callers[&id("ci-bot")];
    assert!(caller.admin && caller.token.expose() == "0123456789abcdef");
    let git = &config.servers[&id("git")];
    let Transport::Stdio(process) = &git.transport else { panic!("{git:?}") };
    assert_eq!(process.command, "/home/someone/bin/mcp-git");
    assert_eq!(process.args, ["--repository", ".", "8080"]);
    assert_eq!(process.env["LITERAL"].expose(), "${NOT_A_VARIABLE}");
    assert_eq!(process.cwd.as_deref(), Some(fixture("work").as_path()));
    assert_eq!(
        (git.era, &git.prefix, git.timeout),
        (Era::Legacy, &Prefix::Text("vcs".into()), Duration::from_secs(90))
    );
    let search = &config.servers[&id("search")];
    assert!(
        matches!(&search.transport, Transport::Sse(remote) if remote.headers["X-Api-Key"].expose() == "anonymous")
    );
    assert_eq!(search.prefix, Prefix::None);
    let shown = serde_json::to_string(&config).unwrap();
    assert!(!shown.contains("0123456789abcdef") && !shown.contains("anonymous"), "{shown}");
    assert!(!format!("{config:?}").contains("0123456789abcdef"));
}

#[test]
fn every_spelling_of_a_transport_is_understood() {
    for word in ["http", "streamableHttp", "streamable_http", "streamable-http", "remote-mcp"] {
        let config = parse(&format!("servers: {{x: {{type: {word}, url: 'http://h/mcp'}}}}"));
        assert!(matches!(config.servers[&id("x")].transport, Transport::Http(_)), "{word}");
    }
    for word in ["sse", "http+sse"] {
        let config = parse(&format!("servers: {{x: {{transport: {word}, url: 'http://h/mcp'}}}}"));
        assert!(matches!(config.servers[&id("x")].transport, Transport::Sse(_)), "{word}");
    }
    for line in ["type: stdio, command: c", "type: stdio-mcp, command: c", "command: c"] {
        let config = parse(&format!("servers: {{x: {{{line}}}}}"));
        assert!(matches!(config.servers[&id("x")].transport, Transport::Stdio(_)), "{line}");
    }
    for word in ["websocket", "ws"] {
        let text = format!("servers: {{x: {{type: {word}, url: 'http://h/mcp'}}}}");
        let told = config::parse(&text, None, &|_| None).unwrap_err().to_string();
        assert!(told.contains("`websocket` is not supported"), "{told}");
    }
}

#[test]
fn camel_case_and_mcp_servers_are_accepted() {
    let config = parse("mcpServers: {x: {command: c, stripServerPrefix: false}}\nlimits: {sessionIdle: 5m}");
    assert!(!config.servers[&id("x")].strip_server_prefix);
    assert_eq!(config.limits.session_idle, Duration::from_secs(300));
}

#[test]
fn the_environment_wins_over_the_file() {
    let pairs = [
        ("HOME", "/h"),
        ("TOOLCRIB_DATA", "/d"),
        ("MCP_PORT", "7001"),
        ("TOOLCRIB_LISTEN_ADMIN", "0.0.0.0:7002"),
        ("TOOLCRIB_LOG", "debug"),
        ("GATEWAY_TOKEN", "0123456789abcdef"),
    ];
    let config =
        config::parse("data: /else\nlisten: {mcp: '10.0.0.1:1'}", None, &env(&pairs)).unwrap().config;
    assert_eq!(config.data, Path::new("/d"));
    assert_eq!(config.listen.mcp.to_string(), "10.0.0.1:7001");
    assert_eq!(config.listen.admin.to_string(), "0.0.0.0:7002");
    assert_eq!(config.log.level, "debug");
    assert_eq!(config.callers[&id("default")].tools.allow, ["*"]);

    let told =
        config::parse("", None, &env(&[("MCP_PORT", "many"), ("TOOLCRIB_TOKEN", "tiny-hush")])).unwrap_err();
    assert_eq!(told.mistakes.len(), 2, "{told}");
    assert!(!told.to_string().contains("tiny-hush"), "{told}");
}

#[test]
fn the_file_is_found_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("toolcrib/toolcrib.yaml");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    let xdg = folder.path().to_str().unwrap().to_owned();
    let lookup = |pairs: &[(&str, &str)], asked: Option<&Path>| config::locate(asked, &env(pairs));

    assert_eq!(lookup(&[("XDG_CONFIG_HOME", &xdg)], None), None);
    std::fs::write(&user, "").unwrap();
    assert_eq!(lookup(&[("XDG_CONFIG_HOME", &xdg)], None), Some(user));
    let named = [("XDG_CONFIG_HOME", xdg.as_str()), ("TOOLCRIB_CONFIG", "/named.yaml")];
    assert_eq!(lookup(&named, None), Some("/named.yaml".into()));
    assert_eq!(lookup(&named, Some(Path::new("/asked.yaml"))), Some("/asked.yaml".into()));
}

#[test]
fn no_file_is_the_embedded_default() {
    let loaded = config::parse("", None, &env(&[("HOME", "/h"), ("XDG_DATA_HOME", "/x")])).unwrap();
    assert_eq!(loaded.config, Config::with_data("/x/toolcrib".into()));
    assert_eq!((loaded.path, loaded.warnings), (None, vec![]));
    assert_eq!(parse("servers:\ncallers:\n").servers.len(), 0);
}

#[test]
fn what_is_allowed_but_hardly_meant_is_a_warning() {
    let text = "local: {tools: {allow: [git]}}\nservers: {x: {url: 'http://h/', cwd: /}}";
    let loaded = config::parse(text, None, &|_| None).unwrap();
    let told: Vec<&str> = loaded.warnings.iter().map(|warning| warning.what.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`git` matches nothing"));

    let text = "callers: {a: {token: 0123456789abcdef}}";
    let loaded = config::parse(text, None, &|_| None).unwrap();
    assert!(loaded.warnings[0].what.contains("may use no tool"));
}

#[test]
fn a_disabled_server_with_missing_variables_is_kept() {
    let config = parse("servers: {x: {url: '${NOWHERE}/mcp', enabled: false, headers: {A: '${NO}'}}}");
    assert!(
        matches!(&config.servers[&id("x")].transport, Transport::Http(remote) if remote.url == "${NOWHERE}/mcp")
    );
}

#[test]
fn a_change_of_one_server_shows_in_that_server_only() {
    let before = parse("servers: {a: {command: x}, b: {command: y}}");
    let after = parse("servers: {a: {command: x}, b: {command: y, timeout: 5s}}");
    assert_ne!(before, after);
    assert_eq!(before.servers[&id("a")], after.servers[&id("a")]);
    assert_ne!(before.servers[&id("b")], after.servers[&id("b")]);
}
