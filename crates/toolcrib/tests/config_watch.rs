//! Edits of a real file, in the ways editors and clusters make them, arrive within a second.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use toolcrib::config::{self, Id, Loaded, Mistakes};

type Readings = Receiver<Result<Loaded, Mistakes>>;

fn watch(path: &Path) -> Readings {
    config::watch(path, Arc::new(|_: &str| None))
}

async fn next(readings: &mut Readings) -> Result<Loaded, Mistakes> {
    tokio::time::timeout(Duration::from_secs(1), readings.recv())
        .await
        .expect("no reading within a second")
        .unwrap()
}

fn has(loaded: &Loaded, id: &str) -> bool {
    loaded.config.servers.contains_key(&Id::new(id).unwrap())
}

#[tokio::test]
async fn a_write_a_replacement_and_a_bad_edit_are_each_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toolcrib.yaml");
    std::fs::write(&path, "servers: {a: {command: x}}\n").unwrap();
    let mut readings = watch(&path);

    std::fs::write(&path, "servers: {b: {command: x}}\n").unwrap();
    assert!(has(&next(&mut readings).await.unwrap(), "b"));

    let beside = folder.path().join("toolcrib.yaml.tmp");
    std::fs::write(&beside, "servers: {c: {command: x}}\n").unwrap();
    std::fs::rename(&beside, &path).unwrap();
    assert!(has(&next(&mut readings).await.unwrap(), "c"));

    std::fs::write(&path, "servers: {c: {comand: x}}\n").unwrap();
    let mistakes = next(&mut readings).await.unwrap_err();
    assert_eq!(mistakes.mistakes[0].line, 1);
    assert!(mistakes.to_string().contains("did you mean `command`?"));

    std::fs::remove_file(&path).unwrap();
    assert!(next(&mut readings).await.unwrap_err().to_string().contains("cannot be read"));

    std::fs::write(&path, "servers: {d: {command: x}}\n").unwrap();
    assert!(has(&next(&mut readings).await.unwrap(), "d"));
}

#[tokio::test]
async fn saving_the_same_text_is_no_edit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toolcrib.yaml");
    std::fs::write(&path, "names: safe\n").unwrap();
    let mut readings = watch(&path);
    std::fs::write(&path, "names: safe\n").unwrap();
    std::fs::write(folder.path().join("other.txt"), "noise").unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(900), readings.recv()).await.is_err());
    std::fs::write(&path, "names: bare\n").unwrap();
    assert_eq!(next(&mut readings).await.unwrap().config.names, config::Names::Bare);
}

#[cfg(unix)]
#[tokio::test]
async fn a_swapped_symlink_is_an_edit() {
    use std::os::unix::fs::symlink;
    // The layout of a mounted ConfigMap: toolcrib.yaml -> ..data/toolcrib.yaml, ..data -> ..1, then -> ..2.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (version, server) in [("..1", "a"), ("..2", "b")] {
        std::fs::create_dir(at(version)).unwrap();
        std::fs::write(at(version).join("toolcrib.yaml"), format!("servers: {{{server}: {{command: x}}}}\n"))
            .unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/toolcrib.yaml", at("toolcrib.yaml")).unwrap();
    let mut readings = watch(&at("toolcrib.yaml"));
    symlink("..2", at("..data_tmp")).unwrap();
    std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
    assert!(has(&next(&mut readings).await.unwrap(), "b"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_into_another_folder_is_seen_without_events() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (link, real) = (folder.path().join("toolcrib.yaml"), elsewhere.path().join("dotfile.yaml"));
    std::fs::write(&real, "names: safe\n").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut readings = watch(&link);
    std::fs::write(&real, "names: colon\n").unwrap();
    assert_eq!(next(&mut readings).await.unwrap().config.names, config::Names::Colon);
}

#[tokio::test]
async fn dropping_the_receiver_ends_the_watch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toolcrib.yaml");
    std::fs::write(&path, "").unwrap();
    let env: config::Environment = Arc::new(|_: &str| None);
    drop(config::watch(&path, env.clone()));
    let gone = async {
        while Arc::strong_count(&env) > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), gone).await.unwrap();
}
