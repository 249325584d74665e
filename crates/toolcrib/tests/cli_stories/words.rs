//! The words themselves: help, versions, mistakes on the command line, completions.

use crate::program::Home;

const COMMANDS: &[&str] = &[
    "serve",
    "stdio",
    "bridge",
    "servers",
    "tools",
    "call",
    "audit",
    "config",
    "import",
    "connect",
    "doctor",
    "completions",
];

#[test]
fn help_names_every_command_and_every_exit_code() {
    let help = Home::empty().run(&["--help"]).ended(0).out;
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
    }
    for code in 0..=6 {
        assert!(help.contains(&format!("\n  {code}  ")), "{code}: {help}");
    }
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let home = Home::empty();
    for command in COMMANDS {
        let help = home.run(&[command, "--help"]).ended(0).out;
        assert!(help.contains("Example"), "{command}: {help}");
    }
}

#[test]
fn the_version_is_told() {
    let out = Home::empty().run(&["--version"]).ended(0).out;
    assert_eq!(out.trim(), concat!("toolcrib ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_unknown_command_is_wrong_usage_and_a_near_one_is_named() {
    let run = Home::empty().run(&["serverz"]).ended(2);
    assert!(run.err.contains("unrecognized subcommand 'serverz'") && run.err.contains("servers"), "{run:?}");
    assert_eq!(run.out, "");
    Home::empty().run(&["servers", "list", "--nope"]).ended(2);
    Home::empty().run(&["call"]).ended(2);
}

#[test]
fn completions_are_made_for_every_shell() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]).ended(0).out;
        assert!(script.contains("disconnect") && script.contains("dry-run"), "{shell}");
    }
    home.run(&["completions", "cmd"]).ended(2);
}

#[test]
fn words_after_json_are_arguments_on_call_and_must_be_an_object() {
    let run = Home::new("").run(&["call", "a:b", "--json", "[1]"]).ended(2);
    assert!(run.err.contains("not a JSON object") && run.err.contains("--output json"), "{run:?}");
    let run = Home::new("").run(&["call", "a:b", "--arg", "x"]).ended(2);
    assert!(run.err.contains("--arg NAME=VALUE"), "{run:?}");
}

#[test]
fn no_command_and_a_pipe_serves_mcp_on_it() {
    let home = Home::with_servers();
    let lines = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "\n",
    );
    for words in [&["--config", "toolcrib.yaml"][..], &["stdio"], &[]] {
        let run = home.run_fed(words, lines).ended(0);
        assert!(run.out.contains("\"tiny__echo\""), "{words:?} {run:?}");
        for line in run.out.lines() {
            assert!(line.starts_with('{'), "only messages are written: {line}");
        }
    }
}
