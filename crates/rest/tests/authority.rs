//! The authority of the admin API as a table in git: every endpoint of its OpenAPI document, tried for real without a
//! token, with a wrong one, as a user and as an administrator. Set `UPDATE=1` to write the files anew.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that trips has failed"
)]

#[path = "stories/crib.rs"]
#[allow(dead_code, reason = "shared with the other test files")]
mod crib;

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use axum::Router;
use crib::{ADMIN, Crib, USER, ask, crib, json, request};
use toolcrib_rest::admin_router;

const HEAD: &str = "\
# Who may do what on the admin API, by status: 401 not recognised, 403 not allowed, 2xx allowed.
# Written by `UPDATE=1 cargo test -p toolcrib-rest --test authority` from the OpenAPI document; a test keeps it true.
# A user sees less than an administrator where both may look: only its own calls, only tools it may use.
";

/// `GET /servers`, … of the document.
fn endpoints(document: &serde_json::Value) -> Vec<String> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The same file as in git, or written anew.
fn same_as_in_git(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "`tests/{file}` differs; if that is meant, run again with UPDATE=1");
}

async fn document(router: &Router) -> serde_json::Value {
    json(&ask(router, "GET /openapi.json", Some(ADMIN), None).await.1)
}

#[tokio::test]
async fn the_table_of_authority_holds() {
    let Crib { desk, ledger, .. } = crib().await;
    let gateway = desk.gateway.clone();
    let ann = desk.callers.recognise(Some(USER)).unwrap();
    gateway.call(toolcrib_core::testing::call(&ann, "s:echo", "{}")).finish().await.unwrap();
    let call = ledger.lines.lock().unwrap()[0].call.clone();
    let router = admin_router(desk);
    let mut table = format!("{HEAD}\n{:<34} {:>6} {:>6} {:>6} {:>6}\n", "", "none", "wrong", "user", "admin");
    for endpoint in endpoints(&document(&router).await) {
        let mut row = format!("{endpoint:<34}");
        for token in [None, Some("wrong-token"), Some(USER), Some(ADMIN)] {
            let (method, path) = endpoint.split_once(' ').unwrap();
            let real = path.replace("/servers/{id}", "/servers/s").replace("/tools/{id}", "/tools/s:echo");
            let real = real.replace("/calls/{id}", &format!("/calls/{call}"));
            assert!(!real.contains('{'), "say what stands for the parameter of `{path}`");
            // Only the status: a stream of events has no end.
            let response = crib::answer(&router, request(method, &real, token, None)).await;
            write!(row, " {:>6}", response.status().as_u16()).unwrap();
        }
        table.push_str(row.trim_end());
        table.push('\n');
    }
    same_as_in_git("authority.txt", &table);
}

#[tokio::test]
async fn every_route_is_in_the_document() {
    let router = admin_router(crib().await.desk);
    let described = document(&router).await;
    let described: BTreeSet<&str> =
        described["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    // The router prints its paths among other things.
    let printed = format!("{router:?}");
    let routed: BTreeSet<&str> = printed.split('"').filter(|part| part.starts_with('/')).collect();
    let fallback = |path: &&str| path.contains("__private__axum");
    let routed: BTreeSet<&str> = routed.into_iter().filter(|path| *path != "/" && !fallback(path)).collect();
    assert!(routed.len() > 10, "{routed:?}");
    assert_eq!(routed, described);
}

#[tokio::test]
async fn the_document_is_the_one_in_git() {
    let router = admin_router(crib().await.desk);
    let document = document(&router).await;
    assert_eq!(document["openapi"], "3.1.0");
    same_as_in_git("admin-openapi.json", &format!("{}\n", serde_json::to_string_pretty(&document).unwrap()));
}

#[tokio::test]
async fn keys_are_in_camel_case_throughout() {
    fn walk(value: &serde_json::Value) {
        if let Some(properties) = value["properties"].as_object() {
            for key in properties.keys() {
                assert!(!key.contains(['_', '-']), "`{key}`");
            }
        }
        let children: Vec<_> = match value {
            serde_json::Value::Object(map) => map.values().collect(),
            serde_json::Value::Array(list) => list.iter().collect(),
            _ => Vec::new(),
        };
        children.into_iter().for_each(walk);
    }
    walk(&document(&admin_router(crib().await.desk)).await);
}
