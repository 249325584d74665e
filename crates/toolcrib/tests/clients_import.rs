//! `import` over sample files of every client: what is taken, what is skipped and why, and that no secret comes along.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::{Path, PathBuf};

use toolcrib::clients::import::{self, EnvFile, Options, Plan};
use toolcrib::clients::{Client, ClientError, Places, System};
use toolcrib::config::{self, Id, Transport};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

fn places() -> Places {
    Places::under(&samples().join("home"), &samples().join("project"), System::Linux)
}

fn plan(options: &Options, target: &Path) -> Plan {
    import::plan(options, &places(), target, &|_| None).unwrap()
}

fn only(client: Client) -> Options {
    Options { clients: vec![client], file: None }
}

/// The config as it would be, with every variable set.
fn loaded(plan: &Plan) -> config::Config {
    let env =
        |name: &str| plan.variables.iter().any(|one| one.name == name).then(|| format!("value-of-{name}"));
    config::parse(plan.text(), Some(&plan.target), &env)
        .unwrap_or_else(|mistakes| panic!("{mistakes}\n{}", plan.text()))
        .config
}

fn variables(plan: &Plan) -> Vec<&str> {
    plan.variables.iter().map(|one| one.name.as_str()).collect()
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.added.iter().map(|one| one.id.as_str()).collect()
}

fn nowhere() -> PathBuf {
    PathBuf::from("/no/such/folder/toolcrib.yaml")
}

#[test]
fn everything_together_loads_and_holds_no_secret() {
    let plan = plan(&Options::default(), &nowhere());
    let config = loaded(&plan);
    assert_eq!(config.servers.len(), plan.added.len());
    assert_eq!(plan.added.len(), 21, "{plan}");
    for shown in
        [plan.text(), &plan.to_string(), &format!("{plan:?}"), &serde_json::to_string(&plan).unwrap()]
    {
        assert!(!shown.contains("not-a-real"), "{shown}");
    }
    assert!(plan.text().contains("${GITHUB_PERSONAL_ACCESS_TOKEN}"));
}

#[test]
fn the_crib_itself_and_what_is_there_twice_are_skipped_with_the_reason() {
    let plan = plan(&Options::default(), &nowhere());
    let why = |name: &str| plan.skipped.iter().find(|one| one.name == name).map(|one| one.why.as_str());
    assert_eq!(why("toolcrib"), Some("it is the crib itself"));
    assert_eq!(why("crib-by-url"), Some("it is the crib itself"));
    assert_eq!(why("files-again"), Some("the same as `filesystem` above"));
    assert_eq!(why("live"), Some("WebSocket is not supported"));
    assert!(why("mcp-server-context7").unwrap().contains("extension of the editor"));
    assert_eq!(plan.skipped.len(), 5, "{plan}");
}

#[test]
fn claude_desktop_and_claude_code() {
    let plan = plan(&only(Client::ClaudeDesktop), &nowhere());
    assert_eq!(ids(&plan), ["filesystem", "github"]);
    assert_eq!(variables(&plan), ["GITHUB_PERSONAL_ACCESS_TOKEN"]);

    let plan = self::plan(&only(Client::ClaudeCode), &nowhere());
    assert_eq!(ids(&plan), ["linear", "sqlite", "sentry"]);
    let config = loaded(&plan);
    assert!(matches!(&config.servers[&Id::new("linear").unwrap()].transport, Transport::Sse(_)));
    let Transport::Stdio(sqlite) = &config.servers[&Id::new("sqlite").unwrap()].transport else { panic!() };
    assert_eq!(sqlite.cwd.as_deref(), Some(Path::new("/home/someone/blog")));
    assert!(plan.text().contains("X-Region: \"${REGION:-eu}\""), "{}", plan.text());
    assert_eq!(variables(&plan), ["SENTRY_TOKEN"]);
}

#[test]
fn cursor_and_vs_code() {
    let plan = plan(&only(Client::Cursor), &nowhere());
    assert_eq!(ids(&plan), ["github", "postgres", "files-again", "notes"]);
    assert_eq!(variables(&plan), ["GITHUB_TOKEN", "POSTGRES_PASSWORD", "NOTES_KEY"]);
    assert!(plan.text().contains("postgresql://me:${POSTGRES_PASSWORD}@db.example/app"), "{}", plan.text());
    assert!(plan.text().contains("\"Bearer ${GITHUB_TOKEN}\""));

    let plan = self::plan(&only(Client::VsCode), &nowhere());
    assert_eq!(ids(&plan), ["playwright", "perplexity", "fetch"]);
    assert_eq!(variables(&plan), ["PERPLEXITY_KEY"]);
    assert_eq!(plan.added[1].notes, ["`envFile` is not carried over"]);
    assert!(plan.text().contains("project/docs"), "{}", plan.text());
}

#[test]
fn windsurf_codex_gemini_and_zed() {
    let plan = plan(&only(Client::Windsurf), &nowhere());
    let config = loaded(&plan);
    let slack = &config.servers[&Id::new("slack").unwrap()];
    assert!(!slack.enabled && slack.hide == ["slack_post_message"]);
    assert_eq!(variables(&plan), ["FIGMA_TOKEN", "SLACK_BOT_TOKEN"]);

    let plan = self::plan(&only(Client::Codex), &nowhere());
    let config = loaded(&plan);
    assert_eq!(variables(&plan), ["CONTEXT7_API_KEY", "FIGMA_OAUTH_TOKEN"]);
    assert_eq!(config.servers[&Id::new("context7").unwrap()].timeout.as_secs(), 45);
    assert!(!config.servers[&Id::new("figma-dev").unwrap()].enabled);

    let plan = self::plan(&only(Client::Gemini), &nowhere());
    let config = loaded(&plan);
    assert!(matches!(&config.servers[&Id::new("old-style").unwrap()].transport, Transport::Sse(_)));
    assert!(matches!(&config.servers[&Id::new("new-style").unwrap()].transport, Transport::Http(_)));
    assert_eq!(variables(&plan), ["NEW_STYLE_API_KEY", "WEATHER_API_KEY"]);

    let plan = self::plan(&only(Client::Zed), &nowhere());
    assert_eq!(ids(&plan), ["brave", "older-form", "remote"]);
    assert_eq!(variables(&plan), ["BRAVE_API_KEY"]);
}

#[test]
fn a_file_by_path_and_a_name_made_legal() {
    let options = Options { clients: vec![], file: Some(samples().join("plain.json")) };
    let plan = plan(&options, &nowhere());
    assert_eq!(ids(&plan), ["My-Server-"]);
    assert!(plan.text().contains("LITERAL: \"$${weird:thing}\""), "{}", plan.text());
    let missing = Options { clients: vec![], file: Some("/no/such.json".into()) };
    let told = import::plan(&missing, &places(), &nowhere(), &|_| None).unwrap_err();
    assert!(matches!(told, ClientError::Read { .. }));
}

#[test]
fn applying_keeps_the_file_backs_it_up_and_is_done_once() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("toolcrib.yaml");
    let mine = "# mine\nnames: bare # short\n\nservers:\n  # the first\n  github:\n    command: my-own\n\n# the end\nlog: { level: warn }\n";
    std::fs::write(&target, mine).unwrap();

    let first = plan(&Options::default(), &target);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), mine, "a plan writes nothing");
    assert!(ids(&first).contains(&"github-claude-desktop") && ids(&first).contains(&"github-cursor"));
    let applied = first.apply(EnvFile::Write).unwrap();

    assert_eq!(std::fs::read_to_string(applied.backup.unwrap()).unwrap(), mine);
    let after = std::fs::read_to_string(&target).unwrap();
    assert!(after.starts_with(
        "# mine\nnames: bare # short\n\nservers:\n  # the first\n  github:\n    command: my-own\n"
    ));
    assert!(after.ends_with("\n# the end\nlog: { level: warn }\n"), "{after}");
    assert!(!after.contains("not-a-real"));

    let values = std::fs::read_to_string(applied.env_file.as_ref().unwrap()).unwrap();
    assert!(values.contains("GITHUB_PERSONAL_ACCESS_TOKEN='not-a-real-token-desktop'\n"), "{values}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(applied.env_file.unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    let again = plan(&Options::default(), &target);
    assert_eq!(ids(&again), Vec::<&str>::new(), "{again}");
    assert!(again.variables.is_empty());
    assert_eq!(again.apply(EnvFile::Write).unwrap().backup, None);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), after);
}

#[test]
fn a_config_with_mistakes_or_edited_meanwhile_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("toolcrib.yaml");
    std::fs::write(&target, "serverz: {}\n").unwrap();
    let told = import::plan(&Options::default(), &places(), &target, &|_| None).unwrap_err();
    assert!(matches!(&told, ClientError::Config(mistakes) if mistakes.to_string().contains("serverz")));

    std::fs::write(&target, "names: bare\n").unwrap();
    let plan = plan(&Options::default(), &target);
    std::fs::write(&target, "names: safe\n").unwrap();
    assert!(matches!(plan.apply(EnvFile::Leave), Err(ClientError::Changed { .. })));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "names: safe\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn one_broken_file_does_not_hide_the_others() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".cursor")).unwrap();
    std::fs::write(home.path().join(".cursor/mcp.json"), "{ \"mcpServers\": { ").unwrap();
    std::fs::write(home.path().join(".claude.json"), "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}")
        .unwrap();
    let places = Places::under(home.path(), home.path(), System::Linux);
    let plan = import::plan(&Options::default(), &places, &nowhere(), &|_| None).unwrap();
    assert_eq!(ids(&plan), ["a"]);
    assert!(plan.skipped[0].why.contains("cannot be understood"), "{plan}");
}
