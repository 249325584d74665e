//! Who gets in and what they may use: bearer tokens, hidden tools by every spelling, sessions that belong to their
//! caller, and requests a web page might have sent.

#![allow(clippy::indexing_slicing, reason = "a test that finds nothing where it looks has to fail")]

use anyhow::Result;
use e2e::crib::Crib;
use e2e::program;
use e2e::session::Session;
use e2e::wire::{Reply, fetch, hello, modern_meta, names, text};
use http::{Method, StatusCode, header};
use serde_json::{Value, json};

const READER: &str = "reader-token-of-some-length";
const BOSS: &str = "boss-token-of-enough-length";

async fn guarded() -> Result<Crib> {
    Crib::serve(&format!(
        "callers:\n  \
           reader: {{ token: {READER}, kind: agent, tools: {{ allow: [\"fx:echo\", \"fx:test_*\", \"crib:*\"], deny: [\"*:recent_calls\", \"fx:*error*\"] }} }}\n  \
           boss: {{ token: {BOSS}, kind: person, admin: true, tools: {{ allow: [\"*\"] }} }}\n\
         servers:\n  fx: {{ command: {}, args: [--stdio] }}\n",
        program::path("fixture")?.display()
    ))
    .await
}

/// One modern request with these headers besides those the wire asks for.
async fn send(url: &str, method: &str, mut params: Value, extra: &[(&str, &str)]) -> Result<Reply> {
    let name = params.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
    params["_meta"] = modern_meta();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
    headers.extend_from_slice(extra);
    fetch(Method::POST, url, &headers, &message.to_string()).await
}

async fn send_as(token: &str, crib: &Crib, method: &str, params: Value) -> Result<Reply> {
    send(&crib.mcp, method, params, &[("authorization", &format!("Bearer {token}"))]).await
}

async fn call_as(token: &str, crib: &Crib, tool: &str) -> Result<Reply> {
    let params = json!({ "name": tool, "arguments": { "text": "said", "a": 1, "b": 2 } });
    send_as(token, crib, "tools/call", params).await
}

async fn admin_as(token: Option<&str>, crib: &Crib, path: &str) -> Result<Reply> {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    fetch(Method::GET, &format!("{}{path}", crib.admin), &headers, "").await
}

#[tokio::test]
async fn without_a_token_nothing_is_answered() -> Result<()> {
    let crib = guarded().await?;
    let base = crib.mcp.trim_end_matches("/mcp").to_owned();
    let plain = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let initialize =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello() }).to_string();
    let refused = [
        send(&crib.mcp, "tools/list", json!({}), &[]).await?,
        send(&crib.mcp, "server/discover", json!({}), &[]).await?,
        send_as("reader-token-of-some-lengtH", &crib, "tools/list", json!({})).await?,
        send(&crib.mcp, "tools/list", json!({}), &[("authorization", &format!("Basic {READER}"))]).await?,
        fetch(Method::POST, &crib.mcp, &plain, &initialize).await?,
        fetch(Method::GET, &crib.mcp, &plain, "").await?,
        fetch(Method::POST, &format!("{base}/api/call"), &plain, "{}").await?,
        fetch(Method::GET, &format!("{base}/openapi.json"), &[], "").await?,
        admin_as(None, &crib, "/servers").await?,
        admin_as(None, &crib, "/calls").await?,
        admin_as(Some("no-such-token-anywhere"), &crib, "/tools").await?,
    ];
    for reply in &refused {
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{reply:?}");
        assert!(reply.headers.contains_key(header::WWW_AUTHENTICATE), "{reply:?}");
    }
    // Whether it lives may be asked by anybody.
    assert_eq!(admin_as(None, &crib, "/health").await?.status, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn each_caller_sees_its_own_list() -> Result<()> {
    let crib = guarded().await?;
    let boss = send_as(BOSS, &crib, "tools/list", json!({})).await?.result()?;
    assert!(names(&boss).contains(&"fx__add") && names(&boss).contains(&"crib__recent_calls"));
    let reader = send_as(READER, &crib, "tools/list", json!({})).await?.result()?;
    let seen = names(&reader);
    let allowed =
        |name: &str| name == "fx__echo" || name.starts_with("fx__test_") || name.starts_with("crib__");
    assert!(
        seen.iter().all(|name| allowed(name) && !name.contains("error") && *name != "crib__recent_calls")
    );
    assert!(seen.contains(&"fx__echo") && seen.contains(&"crib__search_tools"), "{seen:?}");
    assert_eq!(text(&call_as(READER, &crib, "fx__echo").await?.result()?), "said");

    // No other way round: not by searching, not by describing, not in the other document.
    let search = json!({ "name": "crib__search_tools", "arguments": { "query": "add" } });
    let found = send_as(READER, &crib, "tools/call", search).await?.result()?;
    assert!(!found.to_string().contains("fx:add"), "{found}");
    let base = crib.mcp.trim_end_matches("/mcp");
    let bearer = format!("Bearer {READER}");
    let headers = [("authorization", bearer.as_str())];
    let document = fetch(Method::GET, &format!("{base}/openapi.json"), &headers, "").await?;
    assert!(document.body.contains("/fx/echo") && !document.body.contains("/fx/add"), "{}", document.body);
    Ok(())
}

#[tokio::test]
async fn a_hidden_tool_is_unknown_by_every_spelling() -> Result<()> {
    let crib = guarded().await?;
    send_as(BOSS, &crib, "tools/list", json!({})).await?;
    let words = |reply: Reply, name: &str| -> Result<String> {
        Ok(reply.answer()?["error"].to_string().replace(name, "NAME"))
    };
    let never = words(call_as(READER, &crib, "fx__never_there").await?, "fx__never_there")?;
    for spelling in ["fx__add", "fx:add", "add", "fx/add", "fx__test_error_handling", "crib:recent_calls"] {
        let told = words(call_as(READER, &crib, spelling).await?, spelling)?;
        assert_eq!(told, never, "`{spelling}` is told otherwise than what does not exist");
    }
    let base = crib.mcp.trim_end_matches("/mcp");
    let bearer = format!("Bearer {READER}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({ "server": "fx", "tool": "add", "args": { "a": 1, "b": 2 } }).to_string();
    let plain = fetch(Method::POST, &format!("{base}/api/call"), &headers, &body).await?;
    assert_eq!(plain.status, StatusCode::NOT_FOUND, "{plain:?}");

    // The attendant knows better, and tells only those who may know.
    let ledger: Value = serde_json::from_str(&admin_as(Some(BOSS), &crib, "/calls?finished=50").await?.body)?;
    let entries = ledger["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let denied = entries.iter().filter(|entry| entry["outcome"] == "denied" && entry["caller"] == "reader");
    assert!(denied.count() >= 5, "{ledger}");
    let own: Value = serde_json::from_str(&admin_as(Some(READER), &crib, "/calls?finished=50").await?.body)?;
    assert!(!own.to_string().contains("denied"), "{own}");
    Ok(())
}

#[tokio::test]
async fn a_session_belongs_to_its_caller() -> Result<()> {
    let crib = guarded().await?;
    let boss = Session::open_as(&crib.mcp, Some(BOSS)).await?;
    assert!(names(&boss.request("tools/list", json!({})).await?).contains(&"fx__add"));
    let message = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {} }).to_string();
    let (reader, boss_again) = (format!("Bearer {READER}"), format!("Bearer {BOSS}"));
    let with = |bearer| {
        [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", boss.id()),
            ("mcp-protocol-version", "2025-11-25"),
            ("authorization", bearer),
        ]
    };
    let stolen = with(reader.as_str());
    for (method, body) in [(Method::POST, message.as_str()), (Method::GET, ""), (Method::DELETE, "")] {
        let reply = fetch(method, &crib.mcp, &stolen, body).await?;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{reply:?}");
    }
    // Its owner still has it, until it ends it.
    assert!(boss.request("ping", json!({})).await.is_ok());
    let owned = with(boss_again.as_str());
    assert!(fetch(Method::DELETE, &crib.mcp, &owned, "").await?.status.is_success());
    assert_eq!(fetch(Method::POST, &crib.mcp, &owned, &message).await?.status, StatusCode::NOT_FOUND);
    Ok(())
}

#[tokio::test]
async fn the_admin_api_is_for_administrators() -> Result<()> {
    let crib = guarded().await?;
    for path in ["/servers", "/servers/fx", "/metrics", "/events"] {
        assert_eq!(admin_as(Some(READER), &crib, path).await?.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(admin_as(Some(BOSS), &crib, "/servers").await?.status, StatusCode::OK);
    let metrics = admin_as(Some(BOSS), &crib, "/metrics").await?;
    assert!(metrics.body.contains("# TYPE "), "{}", metrics.body);
    Ok(())
}

#[tokio::test]
async fn a_new_token_takes_hold_without_a_restart() -> Result<()> {
    let crib = guarded().await?;
    let late = "late-token-of-enough-length";
    assert_eq!(send_as(late, &crib, "tools/list", json!({})).await?.status, StatusCode::UNAUTHORIZED);
    crib.home.configure(&format!(
        "callers:\n  late: {{ token: {late}, tools: {{ allow: [\"crib:*\"] }} }}\nservers: {{}}\n"
    ))?;
    e2e::patience::eventually("the new token to be let in", e2e::wire::PATIENCE, async || {
        Ok(send_as(late, &crib, "tools/list", json!({})).await?.status.is_success().then_some(()))
    })
    .await?;
    assert_eq!(send_as(READER, &crib, "tools/list", json!({})).await?.status, StatusCode::UNAUTHORIZED);
    Ok(())
}

#[tokio::test]
async fn a_web_page_cannot_use_the_crib() -> Result<()> {
    let crib = Crib::serve("servers: {}\n").await?;
    let port = crib.mcp.trim_start_matches("http://127.0.0.1:").trim_end_matches("/mcp").to_owned();
    let base = crib.mcp.trim_end_matches("/mcp").to_owned();
    let rebound = format!("evil.example:{port}");
    for strange in [("host", rebound.as_str()), ("origin", "http://evil.example"), ("origin", "null")] {
        let asked = send(&crib.mcp, "tools/list", json!({}), &[strange]).await?;
        assert_eq!(asked.status, StatusCode::FORBIDDEN, "{strange:?} {asked:?}");
        for url in [
            format!("{}/servers", crib.admin),
            format!("{}/health", crib.admin),
            format!("{base}/openapi.json"),
        ] {
            let asked = fetch(Method::GET, &url, &[strange], "").await?;
            assert_eq!(asked.status, StatusCode::FORBIDDEN, "{url} {strange:?}");
        }
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello() });
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            strange,
        ];
        let asked = fetch(Method::POST, &crib.mcp, &headers, &initialize.to_string()).await?;
        assert_eq!(asked.status, StatusCode::FORBIDDEN, "{strange:?}");
    }
    let (local, own) = (format!("localhost:{port}"), format!("http://127.0.0.1:{port}"));
    for known in [("host", local.as_str()), ("origin", own.as_str()), ("origin", "http://localhost:6274")] {
        assert!(send(&crib.mcp, "tools/list", json!({}), &[known]).await?.status.is_success(), "{known:?}");
    }
    Ok(())
}
