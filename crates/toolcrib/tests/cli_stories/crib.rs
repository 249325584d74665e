//! The same commands with a crib running: it is asked, and it is the one that changes.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::program::{Home, Serving};

#[test]
fn a_running_crib_is_asked_and_steered() {
    let home = Home::with_servers();
    let serving = Serving::start(&home);
    let (admin, mcp) = (serving.admin.as_str(), serving.mcp.as_str());
    let run = |words: &[&str]| home.run(&[words, &["--admin", admin, "--mcp", mcp]].concat());

    assert!(run(&["servers", "list"]).ended(0).out.contains("tiny\tidle\t"));
    assert_eq!(run(&["call", "tiny:echo", "--arg", "text=over there"]).ended(0).out, "over there\n");
    assert!(run(&["servers", "list"]).ended(0).out.contains("tiny\tready\t"), "it stayed connected");
    assert_eq!(run(&["servers", "disconnect", "tiny"]).ended(0).out, "tiny is stopped\n");
    assert_eq!(run(&["servers", "connect", "tiny"]).ended(0).out, "tiny is ready, 3 tools\n");
    assert_eq!(run(&["servers", "restart", "tiny", "--json"]).ended(0).json()["state"], "ready");
    run(&["servers", "restart", "dead"]).ended(6);
    let unknown = run(&["servers", "connect", "tinny"]).ended(4);
    assert!(unknown.err.contains("did you mean `tiny`?"), "{unknown:?}");
    run(&["call", "tiny:fail"]).ended(1);
    let wrong = run(&["call", "tiny:ecco", "-o", "json"]).ended(4);
    assert!(wrong.err.contains("\"kind\":\"unknown\""), "{wrong:?}");
    assert!(run(&["tools", "show", "tiny:echo"]).ended(0).out.contains("what to say"));
    assert!(run(&["doctor"]).ended(1).out.contains("one is running at http"));
}

#[test]
fn a_crib_that_asks_for_a_token_refuses_without_one() {
    let home = Home::with_servers();
    let text = home.read("toolcrib.yaml").unwrap();
    let caller =
        "callers: { boss: { token: \"a-token-of-some-length\", admin: true, tools: { allow: [\"*\"] } } }\n";
    home.write("toolcrib.yaml", &format!("{text}{caller}"));
    let serving = Serving::start(&home);
    let words = ["servers", "list", "--admin", &serving.admin];
    let refused = home.run(&words).ended(5);
    assert!(refused.err.contains("TOOLCRIB_TOKEN"), "{refused:?}");
    home.run(&[&words[..], &["--token", "not-the-token-at-all"]].concat()).ended(5);
    home.run(&[&words[..], &["--token", "a-token-of-some-length"]].concat()).ended(0);
}

#[test]
fn a_crib_that_was_named_must_be_there() {
    let run = Home::with_servers().run(&["tools", "list", "--admin", "http://127.0.0.1:1"]).ended(6);
    assert!(run.err.contains("cannot be reached") && run.err.contains("toolcrib serve"), "{run:?}");
    Home::new("").run(&["tools", "list", "--admin", "nowhere"]).ended(2);
}

#[test]
fn the_ledger_is_followed_as_calls_end() {
    let home = Home::with_servers();
    home.run(&["call", "tiny:fail"]).ended(1);
    let mut command = home.command(&["audit", "tail", "-f", "--json", "-n", "1"]);
    let mut tail = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["item"], "tiny:fail");
    home.run(&["call", "tiny:echo", "--arg", "text=x"]).ended(0);
    let line = next();
    assert_eq!((line["item"].as_str(), line["progress"].as_str()), (Some("tiny:echo"), Some("finished")));
    tail.kill().unwrap();
    tail.wait().unwrap();
}

#[test]
fn the_bridge_reaches_it_too() {
    let home = Home::with_servers();
    let serving = Serving::start(&home);
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let run = home.run_fed(&["bridge", &serving.mcp], &format!("{line}\n")).ended(0);
    assert!(run.out.contains("\"serverInfo\""), "{run:?}");
    let run = home.run(&["bridge", "not-a-url"]).ended(2);
    assert!(run.err.contains("http://tool-gateway:8081"), "{run:?}");
}
