//! `connect` and `undo` on sample files of every client: one entry comes and goes, everything else stays as it was.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolcrib::clients::connect::{self, Action, Options};
use toolcrib::clients::{Client, ClientError, Places, Scope, System};

const BASE: &str = "http://127.0.0.1:8081";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A home folder with the sample files in it.
fn home() -> (TempDir, Places) {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients"), folder.path());
    let places = Places::under(&folder.path().join("home"), &folder.path().join("project"), System::Linux);
    (folder, places)
}

fn options(client: Client) -> Options {
    Options { name: "crib".into(), ..Options::new(client, BASE) }
}

fn user_file(places: &Places, client: Client) -> PathBuf {
    places.file(client, Scope::User).unwrap()
}

/// The lines of `after` that are not in `before`, in order; every line of `before` must still be there, in order, but
/// for a comma at its end.
fn new_lines(before: &str, after: &str) -> Vec<String> {
    let mut left = before.lines().peekable();
    let mut new = Vec::new();
    for line in after.lines() {
        match left.peek() {
            Some(old) if line.trim_end_matches(',') == old.trim_end_matches(',') => drop(left.next()),
            _ => new.push(line.to_owned()),
        }
    }
    assert_eq!(left.next(), None, "lost from the file:\n{after}");
    new
}

#[test]
fn every_client_gets_one_entry_and_keeps_the_rest() {
    for client in Client::ALL {
        let (_folder, places) = home();
        let file = user_file(&places, client);
        let before = fs::read_to_string(&file).unwrap();
        let report = connect::connect(&options(client), &places).unwrap();
        assert_eq!((report.action, &report.file), (Action::Added, &file));
        assert_eq!(fs::read_to_string(report.backup.unwrap()).unwrap(), before);
        let after = fs::read_to_string(&file).unwrap();
        let new = new_lines(&before, &after).join("\n");
        assert!(new.contains("crib") && new.contains("127.0.0.1:8081"), "{client}: {new}");

        let again = connect::connect(&options(client), &places).unwrap();
        assert_eq!((again.action, again.backup), (Action::Unchanged, None), "{client}");
        assert_eq!(fs::read_to_string(&file).unwrap(), after);

        let undone = connect::undo(&options(client), &places).unwrap();
        assert_eq!(undone.action, Action::Restored, "{client}");
        assert_eq!(fs::read_to_string(&file).unwrap(), before, "{client}");
        assert_eq!(connect::undo(&options(client), &places).unwrap().action, Action::Unchanged);
    }
}

#[test]
fn after_other_edits_only_the_entry_is_taken_out() {
    for client in Client::ALL {
        let (_folder, places) = home();
        let file = user_file(&places, client);
        connect::connect(&options(client), &places).unwrap();
        let connected = fs::read_to_string(&file).unwrap();
        let comment = if client == Client::Codex { "# since\n" } else { "// since\n" };
        fs::write(&file, format!("{comment}{connected}")).unwrap();
        assert_eq!(connect::undo(&options(client), &places).unwrap().action, Action::Removed, "{client}");
        let after = fs::read_to_string(&file).unwrap();
        assert!(after.starts_with(comment) && !after.contains("\"crib\""), "{client}: {after}");
        assert!(!after.contains("[mcp_servers.crib]"), "{after}");
    }
}

#[test]
fn a_file_that_was_not_there_is_made_and_taken_away() {
    for client in Client::ALL {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::under(folder.path(), folder.path(), System::Mac);
        let report = connect::connect(&options(client), &places).unwrap();
        assert_eq!((report.action, report.backup), (Action::Added, None));
        let text = fs::read_to_string(&report.file).unwrap();
        assert!(text.ends_with('\n') && text.contains("crib"), "{client}: {text}");
        assert_eq!(connect::undo(&options(client), &places).unwrap().action, Action::Restored);
        assert!(!report.file.exists(), "{client}");
    }
}

#[test]
fn each_client_is_told_in_its_own_words() {
    let told = |client: Client, token: Option<&str>| {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::under(folder.path(), folder.path(), System::Linux);
        let options = Options { token_variable: token.map(str::to_owned), ..options(client) };
        let file = connect::connect(&options, &places).unwrap().file;
        fs::read_to_string(file).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        told(Client::ClaudeDesktop, None),
        r#"{ "mcpServers": { "crib": { "command": "toolcrib-bridge", "args": ["http://127.0.0.1:8081"] } } }"#
    );
    assert_eq!(
        told(Client::ClaudeCode, Some("CRIB_TOKEN")),
        r#"{ "mcpServers": { "crib": { "type": "http", "url": "http://127.0.0.1:8081/mcp", "headers": { "Authorization": "Bearer ${CRIB_TOKEN}" } } } }"#
    );
    assert!(told(Client::Cursor, Some("T")).contains("Bearer ${env:T}"));
    assert!(told(Client::VsCode, None).starts_with(r#"{ "servers": { "crib": { "type": "http""#));
    assert!(told(Client::Windsurf, None).contains(r#""serverUrl": "http://127.0.0.1:8081/mcp""#));
    assert!(told(Client::Gemini, None).contains(r#""httpUrl": "http://127.0.0.1:8081/mcp""#));
    assert!(told(Client::Zed, None).contains(r#""context_servers": { "crib": { "url""#));
    assert_eq!(
        told(Client::Codex, Some("T")),
        r#"[mcp_servers.crib] url = "http://127.0.0.1:8081/mcp" bearer_token_env_var = "T""#
    );
}

#[test]
fn a_new_address_renews_the_entry_and_somebody_elses_is_left_alone() {
    let (_folder, places) = home();
    let cursor = Options::new(Client::Cursor, "http://127.0.0.1:8081/mcp");
    connect::connect(&cursor, &places).unwrap();
    let moved = Options::new(Client::Cursor, "http://127.0.0.1:9000/");
    assert_eq!(connect::connect(&moved, &places).unwrap().action, Action::Renewed);
    let text = fs::read_to_string(user_file(&places, Client::Cursor)).unwrap();
    assert!(text.contains("9000/mcp") && !text.contains("8081"), "{text}");
    assert_eq!(connect::undo(&moved, &places).unwrap().action, Action::Removed);

    let taken = Options { name: "github".into(), ..cursor };
    assert!(matches!(connect::connect(&taken, &places), Err(ClientError::Taken { .. })));
    assert!(matches!(connect::undo(&taken, &places), Err(ClientError::Taken { .. })));
}

#[test]
fn a_project_has_files_of_its_own_where_the_client_has_them() {
    let (_folder, places) = home();
    let project = |client| Options { scope: Scope::Project, ..options(client) };
    let report = connect::connect(&project(Client::VsCode), &places).unwrap();
    assert!(report.file.ends_with("project/.vscode/mcp.json"));
    let text = fs::read_to_string(&report.file).unwrap();
    assert!(text.contains("// Shared with the team.") && text.contains("// small"), "{text}");
    assert!(matches!(
        connect::connect(&project(Client::Windsurf), &places),
        Err(ClientError::NoScope { .. })
    ));
}

#[test]
fn a_broken_file_is_refused_and_kept() {
    let (_folder, places) = home();
    let file = user_file(&places, Client::Cursor);
    for broken in ["{ \"mcpServers\": ", "{ \"mcpServers\": [] }", "[]"] {
        fs::write(&file, broken).unwrap();
        assert!(
            matches!(connect::connect(&options(Client::Cursor), &places), Err(ClientError::Malformed { .. })),
            "{broken}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let (folder, places) = home();
    let (file, real) = (user_file(&places, Client::Cursor), folder.path().join("dotfiles.json"));
    fs::rename(&file, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &file).unwrap();
    connect::connect(&options(Client::Cursor), &places).unwrap();
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("crib"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(connect::undo(&options(Client::Cursor), &places).unwrap().action, Action::Restored);
}

#[test]
fn the_snippet_is_the_line_to_paste() {
    let text = |client| connect::snippet(client, BASE).text;
    assert_eq!(
        text(Client::ClaudeCode),
        "claude mcp add --transport http toolcrib http://127.0.0.1:8081/mcp"
    );
    assert_eq!(text(Client::Codex), "codex mcp add toolcrib --url http://127.0.0.1:8081/mcp");
    assert_eq!(text(Client::Cursor), r#"{"mcpServers":{"toolcrib":{"url":"http://127.0.0.1:8081/mcp"}}}"#);
    for client in Client::ALL {
        assert_eq!(Client::from_word(client.word()), Some(client));
        assert!(text(client).contains("127.0.0.1:8081"), "{client}");
    }
}
