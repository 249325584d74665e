//! `import` and `connect`, on a home folder of their own.

use crate::program::Home;

const CURSOR: &str = r#"{
  // mine
  "mcpServers": {
    "notion": { "url": "https://mcp.notion.com/mcp", "headers": { "Authorization": "Bearer ntn_1234567890abcdef1234" } },
    "time": { "command": "uvx", "args": ["mcp-server-time"] }
  }
}
"#;

#[test]
fn an_import_is_a_plan_until_it_is_told_to_write() {
    let home = Home::empty();
    home.write(".cursor/mcp.json", CURSOR);
    let run = home.run(&["import"]).ended(0);
    assert!(run.out.contains("+ notion") && run.out.contains("+ time"), "{run:?}");
    assert!(run.out.contains("would add") && run.out.contains("--write"), "{run:?}");
    assert!(!run.out.contains("ntn_"), "{run:?}");
    assert_eq!(home.read(".config/toolcrib/toolcrib.yaml"), None);

    let told = home.run(&["import", "--json", "cursor"]).ended(0).json();
    assert_eq!(told["plan"]["added"].as_array().unwrap().len(), 2);
    assert!(told["applied"].is_null());

    home.run(&["import", "--write", "--env-file"]).ended(0);
    home.run(&["config", "check"]).ended(0);
    home.run(&["connect", "zed", "--dry-run"]).ended(0);
    let written = home.read(".config/toolcrib/toolcrib.yaml").unwrap();
    assert!(written.contains("notion") && !written.contains("ntn_"), "{written}");
    assert!(home.read(".config/toolcrib/toolcrib.env").unwrap().contains("ntn_"));
    let run = home.run(&["import"]).ended(0);
    assert!(run.out.starts_with("Nothing to add"), "{run:?}");
}

#[test]
fn an_import_goes_where_it_is_told() {
    let home = Home::empty();
    let file = home.write("plain.json", r#"{ "mcpServers": { "a": { "command": "x" } } }"#);
    home.run(&["import", "--file", file.to_str().unwrap(), "--to", "here.yaml", "--write"]).ended(0);
    assert!(home.read("here.yaml").unwrap().contains("command: x"));
    home.run(&["import", "--file", "nowhere.json"]).ended(1);
    home.run(&["import", "notepad"]).ended(2);
}

#[test]
fn connecting_a_client_is_tried_done_and_undone() {
    let home = Home::empty();
    home.write(".cursor/mcp.json", CURSOR);
    let run = home.run(&["connect", "cursor", "--dry-run"]).ended(0);
    assert!(run.out.contains("would add") && run.out.contains("http://127.0.0.1:8081/mcp"), "{run:?}");
    assert!(run.out.contains("nothing was written"), "{run:?}");
    assert_eq!(home.read(".cursor/mcp.json").as_deref(), Some(CURSOR));

    let run = home.run(&["connect", "cursor"]).ended(0);
    assert!(run.out.contains("the crib was added") && run.out.contains("backup"), "{run:?}");
    assert!(home.read(".cursor/mcp.json").unwrap().contains("http://127.0.0.1:8081/mcp"));
    let listed = home.run(&["connect", "--list"]).ended(0).out;
    assert!(listed.contains("cursor\tCursor\tconnected\t"), "{listed}");
    assert!(listed.contains("zed\tZed\tno file\t"), "{listed}");

    let run = home.run(&["connect", "cursor", "--undo", "--dry-run"]).ended(0);
    assert!(run.out.contains("would put back as it was"), "{run:?}");
    home.run(&["connect", "cursor", "--undo"]).ended(0);
    assert_eq!(home.read(".cursor/mcp.json").as_deref(), Some(CURSOR));
}

#[test]
fn a_crib_that_asks_for_tokens_is_connected_with_a_variable() {
    let home = Home::empty();
    home.write("toolcrib.yaml", "callers: { me: { token: \"s3cret-s3cret-s3cret\" } }\n");
    home.run(&["connect", "vscode", "--project"]).ended(0);
    let written = home.read(".vscode/mcp.json").unwrap();
    assert!(written.contains("Bearer ${env:TOOLCRIB_TOKEN}") && !written.contains("s3cret"), "{written}");
}

#[test]
fn what_cannot_be_connected_is_told() {
    let run = Home::new("").run(&["connect", "cursor"]).ended(2);
    assert!(run.err.contains("--url"), "the port is the system's choice: {run:?}");
    Home::new("").run(&["connect", "cursor", "--url", "http://crib.example:8081"]).ended(0);
    Home::empty().run(&["connect", "windsurf", "--project"]).ended(2);
    Home::empty().run(&["connect"]).ended(2);
}
