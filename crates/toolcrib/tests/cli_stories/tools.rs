//! `servers`, `tools`, `call` and `audit` without a running crib: one is put together for the moment.

use crate::program::Home;

#[test]
fn tools_of_all_servers_are_listed_and_a_dead_one_is_mentioned() {
    let home = Home::with_servers();
    let run = home.run(&["tools", "list"]).ended(0);
    assert!(run.out.contains("tiny:echo\tSays it back.\n"), "{run:?}");
    assert!(run.out.contains("crib:search_tools\t"), "{run:?}");
    assert!(run.err.contains("warning: `dead` is not connected"), "{run:?}");
    let told = home.run(&["tools", "list", "--server", "tiny", "--json"]).ended(0).json();
    let ids: Vec<&str> =
        told["tools"].as_array().unwrap().iter().map(|tool| tool["toolId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["tiny:echo", "tiny:fail", "tiny:picture"]);
    home.run(&["tools", "list", "--server", "nobody"]).ended(4);
}

#[test]
fn a_tool_is_found_by_words_and_shown_with_its_arguments() {
    let home = Home::with_servers();
    assert_eq!(home.run(&["tools", "search", "draws", "dot"]).ended(0).out, "tiny:picture\tDraws a dot.\n");
    home.run(&["tools", "search", "unheard-of"]).ended(4);
    let run = home.run(&["tools", "show", "tiny__echo"]).ended(0);
    assert!(run.out.contains("text\tstring\trequired\twhat to say"), "{run:?}");
    assert!(run.out.ends_with("toolcrib call tiny:echo --arg text=…\n"), "{run:?}");
    assert_eq!(home.run(&["tools", "show", "echo", "--json"]).ended(0).json()["toolId"], "tiny:echo");
}

#[test]
fn a_call_prints_what_the_tool_says() {
    let home = Home::with_servers();
    assert_eq!(home.run(&["call", "tiny:echo", "--arg", "text=hello there"]).ended(0).out, "hello there\n");
    assert_eq!(home.run(&["call", "echo", "--json", r#"{"text":"5"}"#]).ended(0).out, "5\n");
    assert_eq!(
        home.run_fed(&["call", "tiny__echo", "--json", "-"], r#"{"text":"piped"}"#).ended(0).out,
        "piped\n"
    );
    let raw = home.run(&["call", "tiny:echo", "-a", "text=x", "-o", "json"]).ended(0).json();
    assert_eq!(raw["content"][0]["text"], "x");
    let run = home.run(&["call", "tiny:picture", "--out", "dot.png"]).ended(0);
    assert!(run.out.contains("[image: image/png, 8 B"), "{run:?}");
    assert_eq!(std::fs::read(home.path().join("dot.png")).unwrap(), b"\x89PNG\r\n\x1a\n");
}

#[test]
fn each_way_a_call_fails_has_its_code() {
    let home = Home::with_servers();
    let run = home.run(&["call", "tiny:fail"]).ended(1);
    assert!(run.err.contains("`tiny:fail` says: it broke") && run.out.is_empty(), "{run:?}");
    assert_eq!(home.run(&["call", "tiny:fail", "-o", "json"]).ended(1).json()["isError"], true);
    let run = home.run(&["call", "tiny:echo", "--arg", "text=5"]).ended(2);
    assert!(run.err.contains("hint: `toolcrib tools show tiny:echo`"), "{run:?}");
    let run = home.run(&["call", "tiny:ecco"]).ended(4);
    assert!(run.err.contains("did you mean `tiny:echo`?"), "{run:?}");
    home.run(&["call", "dead:anything"]).ended(6);
}

#[test]
fn what_is_not_allowed_is_not_there() {
    let home = Home::with_servers();
    let text = home.read("toolcrib.yaml").unwrap();
    home.write("toolcrib.yaml", &format!("{text}local: {{ tools: {{ allow: [\"tiny:echo\"] }} }}\n"));
    assert_eq!(home.run(&["tools", "list", "--server", "tiny"]).ended(0).out, "tiny:echo\tSays it back.\n");
    home.run(&["call", "tiny:fail"]).ended(4);
    let calls = home.run(&["audit", "list", "--json"]).ended(0).json();
    assert_eq!(calls["calls"][0]["outcome"], "denied");
}

#[test]
fn servers_are_listed_with_their_state() {
    let home = Home::with_servers();
    let run = home.run(&["servers", "list"]).ended(0);
    assert!(run.out.contains("tiny\tready\tstdio\t3\tpython3"), "{run:?}");
    assert!(run.out.contains("dead\tfailed\tstdio\t-\t"), "{run:?}");
    assert_eq!(home.run(&["servers", "show", "tiny", "--json"]).ended(0).json()["server"]["name"], "tiny");
    let run = home.run(&["servers", "show", "tinny"]).ended(4);
    assert!(run.err.contains("did you mean `tiny`?"), "{run:?}");
}

#[test]
fn connecting_needs_a_running_crib() {
    for deed in ["connect", "disconnect", "restart"] {
        let run = Home::with_servers().run(&["servers", deed, "tiny"]).ended(6);
        assert!(run.err.contains("toolcrib serve"), "{run:?}");
    }
}

#[test]
fn an_empty_ledger_has_no_calls() {
    let home = Home::new("");
    let run = home.run(&["audit", "list"]).ended(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    assert_eq!(home.run(&["audit", "list", "--json"]).ended(0).json()["calls"], serde_json::json!([]));
    home.run(&["audit", "tail"]).ended(0);
    home.run(&["audit", "show", "0198"]).ended(4);
    let run = home.run(&["audit", "list", "--since", "soon"]).ended(2);
    assert!(run.err.contains("2026-11-15"), "{run:?}");
}

#[test]
fn calls_are_read_back_and_narrowed() {
    let home = Home::with_servers();
    home.run(&["call", "tiny:echo", "--arg", "text=not for the ledger"]).ended(0);
    home.run(&["call", "tiny:fail"]).ended(1);
    let told = home.run(&["audit", "list", "--json", "--source", "tiny", "--since", "1h"]).ended(0);
    assert!(!told.out.contains("not for the ledger"), "{told:?}");
    let calls = told.json()["calls"].clone();
    let endings: Vec<&str> =
        calls.as_array().unwrap().iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(endings, ["tool_error", "done"], "newest first");
    let id = calls[1]["callId"].as_str().unwrap();
    let run = home.run(&["audit", "show", id]).ended(0);
    assert!(run.out.contains("found: tiny:echo") && run.out.contains("through: cli"), "{run:?}");
    let run = home.run(&["audit", "list", "--outcome", "tool_error", "--about", "fail"]).ended(0);
    assert_eq!(run.out.lines().count(), 1, "{run:?}");
    assert_eq!(home.run(&["audit", "list", "--until", "1h"]).ended(0).out, "");
    let run = home.run(&["audit", "tail", "-n", "1", "--json"]).ended(0);
    assert_eq!(run.json()["item"], "tiny:fail");
}
