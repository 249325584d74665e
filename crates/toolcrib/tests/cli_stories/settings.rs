//! `config` and `doctor`: mistakes, the schema, what is in force.

use crate::program::Home;

#[test]
fn a_good_config_is_ok() {
    let home = Home::new("servers: { a: { command: python3 } }");
    assert_eq!(home.run(&["config", "check"]).ended(0).out, "ok: toolcrib.yaml (1 servers)\n");
    let told = home.run(&["config", "check", "--json"]).ended(0).json();
    assert_eq!((&told["ok"], &told["servers"]), (&true.into(), &1.into()));
}

#[test]
fn all_mistakes_are_told_with_their_places_and_the_code_is_3() {
    let home =
        Home::new("serverz: {}\nnames: loud\nservers: { a: { command: x, token: \"${UNSET_HERE}\" } }");
    let run = home.run(&["config", "check"]).ended(3);
    assert!(run.err.starts_with("error: the config has mistakes"), "{run:?}");
    for part in ["toolcrib.yaml:3:1", "`serverz`", "toolcrib.yaml:4:8", "loud"] {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
    let told = home.run(&["config", "check", "-o", "json"]).ended(3).json();
    assert_eq!(told["ok"], false);
    assert_eq!(told["mistakes"][0]["line"], 3);
    for words in [&["tools", "list"][..], &["audit", "list"], &["doctor"], &["serve"], &["stdio"]] {
        home.run(words).ended(3);
    }
}

#[test]
fn a_missing_config_that_was_asked_for_is_a_mistake() {
    let run = Home::empty().run(&["config", "check", "--config", "nowhere.yaml"]).ended(3);
    assert!(run.err.contains("nowhere.yaml"), "{run:?}");
    let run = Home::empty().run(&["config", "show"]).ended(0);
    assert!(run.out.starts_with("# embedded default"), "{run:?}");
}

#[test]
fn errors_are_an_object_for_programs() {
    let run = Home::empty().run(&["config", "show", "--json", "--config", "nowhere.yaml"]).ended(3);
    let told: serde_json::Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!(told["error"]["kind"], "config");
    assert_eq!(run.out, "");
}

#[test]
fn the_schema_is_json_schema() {
    let schema = Home::empty().run(&["config", "schema"]).ended(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn no_secret_is_shown() {
    let home = Home::new(concat!(
        "callers: { ci: { token: \"s3cret-s3cret-s3cret\" } }\n",
        "servers:\n",
        "  a: { command: python3, args: [\"--api-key\", \"s3cret-in-args\"], env: { A_TOKEN: \"${SECRET}\" } }\n",
        "  b: { url: \"https://h.example/mcp?token=s3cret-in-url\", headers: { Authorization: \"Bearer ${SECRET}\" } }\n",
    ));
    for words in [&["config", "show"][..], &["config", "show", "--json"]] {
        let run = home.run_with(words, &[("SECRET", "s3cret-from-env")]).ended(0);
        assert!(!run.out.contains("s3cret") && !run.err.contains("s3cret"), "{run:?}");
        assert!(run.out.contains("***") && run.out.contains("toolcrib.yaml"), "{run:?}");
    }
}

#[test]
fn the_doctor_finds_what_is_missing_and_says_what_to_do() {
    let home = Home::with_servers();
    let run = home.run(&["doctor"]).ended(1);
    assert!(run.out.contains("problem  dead: its command `no-such-program-here` is not found"), "{run:?}");
    assert!(run.out.contains("-> install `no-such-program-here`"), "{run:?}");
    assert!(run.out.contains("ok       tiny: ready") && run.out.contains("3 tools"), "{run:?}");
    let told = home.run(&["doctor", "--json", "--no-connect"]).ended(1).json();
    assert_eq!(told["problems"], 1);
}

#[test]
fn a_healthy_place_has_no_problems() {
    let home = Home::new("");
    let run = home.run(&["doctor"]).ended(0);
    assert!(
        run.out.contains("none are configured") && run.out.ends_with("no problems, 1 warning\n"),
        "{run:?}"
    );
    assert!(!home.path().join("data").exists(), "looking makes nothing");
}
