//! How a process is greeted and what it offers.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::{catalog::offer::Definition, error::Kind, source::Dialer};
use toolcrib_mcp::dial::StdioDialer;

use crate::stage::{connect, peer};

fn names(list: &[Definition]) -> Vec<&str> {
    list.iter().map(|definition| definition.name.as_str()).collect()
}

#[tokio::test]
async fn an_old_server_is_greeted_the_old_way_and_listed_whole() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let facts = stage.connection.facts();
    assert_eq!(facts.protocol.as_deref(), Some("2025-06-18"));
    assert_eq!(facts.server.unwrap().get(), r#"{"name": "peer", "version": "1", "odd": 1}"#);
    assert!(facts.pid.is_some());

    let offer = stage.connection.offer().await.unwrap();
    assert_eq!(names(&offer.tools), ["raw", "seen", "last"]);
    assert_eq!(
        offer.tools[0].raw.get(),
        r#"{"name": "raw", "inputSchema": {"type": "object"}, "odd": {"n": 1}}"#
    );
    assert_eq!(offer.mishaps, ["left out one definition: `name` is missing or not a text"]);
    assert_eq!((names(&offer.prompts), names(&offer.resources)), (vec!["p"], vec!["a:b"]));
    assert_eq!(names(&offer.templates), ["a:{x}"]);
    assert_eq!(offer.instructions.as_deref(), Some("be kind"));
    assert!(offer.has_resources && offer.fresh_ms.is_none());

    let seen = stage.seen().await;
    let methods: Vec<&str> = seen.iter().take(3).map(|m| m["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized"]);
    assert_eq!(seen[1]["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(seen[1]["params"]["capabilities"], json!({}));
    assert_eq!(seen[1]["params"]["clientInfo"]["name"], "toolcrib");
    stage.connection.close().await;
}

#[tokio::test]
async fn a_modern_server_is_recognised_and_never_initialized() {
    let stage = connect(&peer("modern")).await.unwrap();
    assert_eq!(stage.connection.facts().protocol.as_deref(), Some("2026-07-28"));
    assert!(stage.connection.facts().server.unwrap().get().contains("peer"));
    let offer = stage.connection.offer().await.unwrap();
    assert_eq!(offer.fresh_ms, Some(3000));
    let seen = stage.seen().await;
    assert!(seen.iter().all(|message| message["method"] != "initialize"));
    for message in seen.iter().filter(|message| message.get("id").is_some()) {
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{message}");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "toolcrib");
    }
    stage.connection.close().await;
}

#[tokio::test]
async fn silence_about_the_era_means_old() {
    let dialer = peer("deaf");
    let stage = connect(&dialer).await.unwrap();
    assert_eq!(stage.connection.facts().protocol.as_deref(), Some("2025-06-18"));
    assert!(stage.seen_of("notifications/cancelled").await.is_empty());
    stage.connection.close().await;
    // What was learnt is remembered: the second time nobody waits, because nobody asks.
    let again = connect(&dialer).await.unwrap();
    assert!(again.seen_of("server/discover").await.is_empty());
    again.connection.close().await;
}

#[tokio::test]
async fn a_server_that_dies_of_the_question_is_started_again_without_it() {
    let stage = connect(&peer("fragile")).await.unwrap();
    assert!(stage.seen_of("server/discover").await.is_empty());
    stage.connection.close().await;
}

#[tokio::test]
async fn an_unknown_revision_is_an_error_that_names_it() {
    let failure = connect(&peer("ancient")).await.err().unwrap();
    assert_eq!(failure.kind, Kind::BadSource);
    assert!(failure.told.contains("1999-01-01"), "{}", failure.told);
}

#[tokio::test]
async fn a_cursor_that_repeats_ends_the_list() {
    let stage = connect(&peer("cursor")).await.unwrap();
    assert_eq!(names(&stage.connection.offer().await.unwrap().tools), ["t1", "t2"]);
    stage.connection.close().await;
}

#[tokio::test]
async fn tools_that_cannot_be_listed_are_a_failure_and_prompts_a_mishap() {
    let stage = connect(&peer("no-tools")).await.unwrap();
    assert_eq!(stage.connection.offer().await.unwrap_err().told, "tools are out");
    stage.connection.close().await;
    let stage = connect(&peer("no-prompts")).await.unwrap();
    let offer = stage.connection.offer().await.unwrap();
    assert_eq!(offer.tools.len(), 3);
    assert!(offer.mishaps.iter().any(|mishap| mishap.contains("prompts are out")), "{:?}", offer.mishaps);
    stage.connection.close().await;
}

#[tokio::test]
async fn a_command_that_is_not_there_is_named() {
    let dialer = StdioDialer::new("no-such-command-here", vec![], vec![], None);
    let failure = connect(&dialer).await.err().unwrap();
    assert_eq!(failure.kind, Kind::Unavailable);
    assert!(
        failure.told.contains("`no-such-command-here`") && failure.told.contains("PATH"),
        "{}",
        failure.told
    );
    let nowhere = StdioDialer::new("python3", vec![], vec![], Some("/no/such/place".into()));
    assert!(connect(&nowhere).await.err().unwrap().told.contains("working directory `/no/such/place`"));
}

#[tokio::test]
async fn a_server_that_ends_at_once_is_quoted() {
    let failure = connect(&peer("dead")).await.err().unwrap();
    assert_eq!(failure.kind, Kind::Unavailable);
    assert!(
        failure.told.contains("no key, no work") && failure.told.contains("exit status: 1"),
        "{}",
        failure.told
    );
}

#[tokio::test]
async fn a_server_that_ends_when_asked_for_its_tools_is_quoted_until_something_was_called() {
    let stage = connect(&peer("no-list")).await.unwrap();
    let failure = stage.connection.offer().await.unwrap_err();
    assert!(failure.told.contains("the list was eaten"), "{}", failure.told);
    let stage = connect(&peer("no-list")).await.unwrap();
    stage.text("seen", "{}").await;
    let failure = stage.connection.offer().await.unwrap_err();
    assert!(!failure.told.contains("the list was eaten"), "{}", failure.told);
}

#[tokio::test]
async fn a_server_that_only_sends_noise_is_given_up() {
    let failure =
        tokio::time::timeout(Duration::from_secs(20), connect(&peer("noise"))).await.unwrap().err().unwrap();
    assert!(failure.told.contains("garbage"), "{}", failure.told);
}

#[tokio::test]
async fn a_child_sees_little_of_our_environment() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let env: Value = serde_json::from_str(&stage.text("env", "{}").await).unwrap();
    let env = env.as_object().unwrap();
    assert_eq!(env["CRIB_TEST"], "yes");
    assert!(env.contains_key("PATH"));
    // Cargo sets this for the test itself.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok() && !env.contains_key("CARGO_MANIFEST_DIR"));
    stage.connection.close().await;
}

#[test]
fn an_address_has_no_secrets() {
    let args = ["-y", "server", "--api-key", "s1", "--token=s2", "--port", "1"].map(String::from).to_vec();
    let dialer = StdioDialer::new("npx", args, vec![], None);
    assert_eq!(dialer.address(), "npx -y server --api-key *** --token=*** --port 1");
    assert_eq!(dialer.transport(), "stdio");
}
