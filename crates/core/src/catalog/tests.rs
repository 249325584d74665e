//! What the catalog promises about order, names and addresses.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    call::Target,
    catalog::{Catalog, Offer, Shelf, Style, build::build, name::Prefix, offer::ShelfSettings},
    error::Kind,
    id::SourceId,
    policy::{Policy, globs},
    testing::{caller, json, tool},
};

fn shelf(id: &str, settings: ShelfSettings, fill: impl FnOnce(&mut Offer)) -> Arc<Shelf> {
    let mut offer = Offer::default();
    fill(&mut offer);
    Arc::new(Shelf::new(SourceId::new(id).unwrap(), Arc::new(settings), Arc::new(offer)))
}

fn tools(id: &str, settings: ShelfSettings, names: &[&str]) -> Arc<Shelf> {
    let raws = names.iter().map(|name| tool(name)).collect();
    shelf(id, settings, |offer| Offer::read(&mut offer.tools, "name", raws, &mut offer.mishaps))
}

fn listed(catalog: &Catalog, style: Style) -> Vec<String> {
    let name = |text: &str| serde_json::from_str::<Value>(text).unwrap()["name"].as_str().unwrap().to_owned();
    catalog.tools().entries().iter().map(|entry| name(entry.listing(style).get())).collect()
}

#[test]
fn the_order_is_by_source_and_then_by_name_whatever_came_first() {
    let one = || tools("a-b", ShelfSettings::default(), &["z", "x"]);
    let two = || tools("a", ShelfSettings::default(), &["m"]);
    let (first, second) = (build(vec![one(), two()]), build(vec![two(), one()]));
    assert_eq!(listed(&first, Style::Colon), ["a:m", "a-b:x", "a-b:z"]);
    assert_eq!(first.revision(), second.revision());
    assert_ne!(first.revision(), build(vec![two()]).revision());
}

#[test]
fn the_redundant_prefix_of_a_server_is_dropped_unless_that_name_is_taken() {
    let catalog = build(vec![tools(
        "notion",
        ShelfSettings::default(),
        &["notion-search", "notion-fetch", "fetch", "notion-"],
    )]);
    assert_eq!(
        listed(&catalog, Style::Colon),
        ["notion:fetch", "notion:notion-", "notion:notion-fetch", "notion:search"]
    );
    assert_eq!(listed(&catalog, Style::Safe)[3], "notion__search");
}

#[test]
fn hidden_renamed_and_described_as_the_operator_says() {
    let settings = ShelfSettings {
        expose: Some(globs(&["read*".into(), "write".into()]).unwrap()),
        hide: globs(&["*secret*".into()]).unwrap(),
        rename: [("write".to_owned(), "save".to_owned())].into(),
        describe: [("write".to_owned(), "Saves a file".to_owned())].into(),
        ..ShelfSettings::default()
    };
    let catalog = build(vec![tools("fs", settings, &["read", "read_secret", "write", "delete"])]);
    assert_eq!(listed(&catalog, Style::Safe), ["fs__read", "fs__save"]);
    let save: Value = serde_json::from_str(catalog.tools().entries()[1].listing(Style::Safe).get()).unwrap();
    assert_eq!(save["description"], "Saves a file");
}

#[test]
fn without_a_prefix_names_stand_bare_until_they_clash() {
    let bare = || ShelfSettings { prefix: Prefix::None, ..ShelfSettings::default() };
    let catalog = build(vec![tools("a", bare(), &["x", "y"]), tools("b", bare(), &["y"])]);
    assert_eq!(listed(&catalog, Style::Safe), ["x", "a__y", "b__y"]);
}

#[test]
fn a_definition_keeps_every_byte_but_its_name() {
    let odd = r#"{"x-vendor":{"a":1.50},"name":"t","description":"d","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}"#;
    let catalog = build(vec![shelf("s", ShelfSettings::default(), |offer| {
        Offer::read(&mut offer.tools, "name", vec![json(odd)], &mut offer.mishaps);
    })]);
    let shown = catalog.tools().entries()[0].listing(Style::Safe);
    assert_eq!(shown.get(), odd.replace(r#""name":"t""#, r#""name":"s__t""#));
}

#[test]
fn one_malformed_definition_costs_only_itself() {
    let catalog = build(vec![shelf("s", ShelfSettings::default(), |offer| {
        let raws = vec![json(r#"{"name":7}"#), tool("good"), json("[]"), json(r#"{"name":" "}"#)];
        Offer::read(&mut offer.tools, "name", raws, &mut offer.mishaps);
        assert_eq!(offer.mishaps.len(), 3);
    })]);
    assert_eq!(listed(&catalog, Style::Safe), ["s__good"]);
}

#[test]
fn a_uri_is_kept_and_qualified_only_where_two_sources_share_it() {
    let resources = |id: &str, uris: &[&str]| {
        let raws = uris.iter().map(|uri| json(&format!(r#"{{"uri":{uri:?},"name":"n"}}"#))).collect();
        shelf(id, ShelfSettings::default(), |offer| {
            offer.has_resources = true;
            Offer::read(&mut offer.resources, "uri", raws, &mut offer.mishaps);
            let raws = vec![json(&format!(r#"{{"uriTemplate":"{id}://item/{{id}}","name":"t"}}"#))];
            Offer::read(&mut offer.templates, "uriTemplate", raws, &mut offer.mishaps);
        })
    };
    let catalog = build(vec![resources("a", &["x://1", "x://2"]), resources("b", &["x://2"])]);
    let uris: Vec<_> =
        catalog.resources().entries().iter().map(|entry| entry.names.safe.to_string()).collect();
    assert_eq!(uris, ["x://1", "a+x://2", "b+x://2"]);

    let (policy, me) = (Policy::by_access(), caller("me", &["*"], &[]));
    let find = |uri: &str| catalog.find(&Target::Resource(uri.into()), &me, &policy);
    let at = |uri: &str| find(uri).map(|item| format!("{} {}", item.source, item.own)).unwrap_or_default();
    assert_eq!(at("x://1"), "a x://1");
    assert_eq!(at("b+x://2"), "b x://2");
    assert_eq!(at("b://item/7"), "b b://item/7", "a template says whose it is");
    assert_eq!(at("a+y://unlisted"), "a y://unlisted");
    assert_eq!(find("x://2").unwrap_err().kind, Kind::Ambiguous);
    assert_eq!(find("y://nobody").unwrap_err().kind, Kind::Unknown);
}

#[test]
fn a_hidden_resource_cannot_be_read_by_any_spelling() {
    let settings = ShelfSettings {
        expose: Some(globs(&["only_this_tool".into()]).unwrap()),
        hide: globs(&["x://secret*".into()]).unwrap(),
        ..ShelfSettings::default()
    };
    let catalog = build(vec![shelf("a", settings, |offer| {
        offer.has_resources = true;
        let raws =
            ["x://open", "x://secret/1"].map(|uri| json(&format!(r#"{{"uri":{uri:?},"name":"n"}}"#))).into();
        Offer::read(&mut offer.resources, "uri", raws, &mut offer.mishaps);
        let raws = vec![json(r#"{"uriTemplate":"x://{+any}","name":"t"}"#)];
        Offer::read(&mut offer.templates, "uriTemplate", raws, &mut offer.mishaps);
    })]);
    let (policy, me) = (Policy::by_access(), caller("me", &["*"], &[]));
    let find = |target| catalog.find(&target, &me, &policy);
    assert!(find(Target::Resource("x://open".into())).is_ok(), "`expose` names tools");
    for uri in ["x://secret/1", "a+x://secret/1", "x://secret/2"] {
        assert_eq!(find(Target::Resource(uri.into())).unwrap_err().kind, Kind::Unknown, "{uri}");
    }
    let method = Target::Method { source: None, method: "vendor/anything".into() };
    assert!(find(method).is_err(), "what is not exposed is not reached by its method either");
}
