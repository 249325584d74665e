//! Stories every ledger must live up to, whatever is behind the port. Each backend's test file runs all of them.

use std::sync::Arc;

use toolcrib_core::{
    call::{Outcome, Surface, Target},
    error::Kind,
    id::SourceId,
    ledger::{Closing, Ending, Entry, Filter, Ledger, Line, Opening, Order, Progress},
    testing::caller,
};

pub fn opening(who: &str, target: &str) -> Opening {
    let me = caller(who, &["*"], &[]);
    let target = Target::Tool(target.into());
    Opening::new(&toolcrib_core::call::Call::new(me, Surface::Rest, target, None))
}

pub fn closing(item: &str, ending: Ending) -> Closing {
    let source = item.split_once(':').map(|(source, _)| SourceId::new(source).unwrap());
    Closing {
        at: toolcrib_core::ledger::now(),
        ending,
        item: source.is_some().then(|| item.to_owned()),
        source,
        duration_us: 1_234,
        bytes_out: 56,
        layer: None,
        detail: None,
    }
}

pub async fn entry(ledger: &dyn Ledger, who: &str, item: &str, ending: Ending) -> i64 {
    let entry = ledger.open(opening(who, item)).await.unwrap();
    let number = entry.number;
    ledger.close(entry, closing(item, ending)).await.unwrap();
    number
}

pub async fn lines(ledger: &dyn Ledger, filter: Filter) -> Vec<Line> {
    ledger.read(filter).await.unwrap()
}

const DONE: Ending = Ending::Ran(Outcome::Done);

pub async fn what_is_written_is_read_back(ledger: &dyn Ledger) {
    let mut opening = opening("ci", "fs__read");
    (opening.at, opening.bytes_in) = (1_700_000_000_123, 42);
    let call = opening.call.to_string();
    let entry = ledger.open(opening).await.unwrap();
    let number = entry.number;
    let by_call = || Filter { call: Some(call.clone()), ..Filter::default() };
    let open = lines(ledger, by_call()).await.remove(0);
    assert_eq!((open.progress, open.outcome, open.duration_us), (Progress::Running, None, None));

    let mut closing = closing("fs:read", Ending::Denied);
    (closing.layer, closing.detail) = (Some("access"), Some("hidden".into()));
    ledger.close(entry, closing).await.unwrap();
    let line = lines(ledger, by_call()).await.remove(0);
    assert_eq!((line.number, line.at, line.caller.as_str()), (number, 1_700_000_000_123, "ci"));
    assert_eq!(
        (line.caller_kind.as_str(), line.surface.as_str(), line.kind.as_str()),
        ("agent", "rest", "tool")
    );
    assert_eq!((line.target.as_str(), line.progress), ("fs__read", Progress::Finished));
    assert_eq!((line.item.as_deref(), line.source.as_deref()), (Some("fs:read"), Some("fs")));
    assert_eq!((line.outcome.as_deref(), line.duration_us), (Some("denied"), Some(1_234)));
    assert_eq!((line.bytes_in, line.bytes_out), (42, Some(56)));
    assert_eq!((line.layer.as_deref(), line.detail.as_deref()), (Some("access"), Some("hidden")));
}

pub async fn every_filter_narrows(ledger: &dyn Ledger) {
    let a = entry(ledger, "ann", "git:status", DONE).await;
    let b = entry(ledger, "ann", "fs:read_100%", DONE).await;
    let c = entry(ledger, "bob", "git:read_100x", Ending::Ran(Outcome::ToolError)).await;
    let d = entry(ledger, "bob", "nowhere", Ending::Failed(Kind::Unknown)).await;
    let open = ledger.open(opening("bob", "git:slow")).await.unwrap();
    let e = open.number;
    let text = |text: &str| Some(text.to_owned());
    let every = Filter::default;
    let cases = [
        (every(), vec![e, d, c, b, a]),
        (Filter { order: Order::OldestFirst, ..every() }, vec![a, b, c, d, e]),
        (Filter { limit: 2, ..every() }, vec![e, d]),
        (Filter { caller: text("ann"), ..every() }, vec![b, a]),
        (Filter { source: text("git"), ..every() }, vec![c, a]),
        (Filter { caller: text("bob"), source: text("git"), ..every() }, vec![c]),
        (Filter { outcome: text("unknown"), ..every() }, vec![d]),
        (Filter { outcome: text("running"), ..every() }, vec![e]),
        (Filter { outcome: text("unfinished"), ..every() }, vec![]),
        (Filter { about: text("read_100%"), ..every() }, vec![b]),
        (Filter { about: text("git:"), ..every() }, vec![e, c, a]),
        (Filter { about: text("%"), ..every() }, vec![b]),
        (Filter { about: text("' OR 1 = 1 --"), ..every() }, vec![]),
        (Filter { after: Some(c), ..every() }, vec![e, d]),
        (Filter { since: Some(u64::MAX), ..every() }, vec![]),
        (Filter { until: Some(1), ..every() }, vec![]),
        (Filter { call: text("no such call"), ..every() }, vec![]),
    ];
    for (filter, expected) in cases {
        let told = format!("{filter:?}");
        let found: Vec<i64> = lines(ledger, filter).await.iter().map(|line| line.number).collect();
        assert_eq!(found, expected, "{told}");
    }
    ledger.close(open, closing("git:slow", DONE)).await.unwrap();
}

pub async fn bounds_of_time_are_inclusive(ledger: &dyn Ledger) {
    for at in [1_000, 2_000, 3_000] {
        let mut opening = opening("clock", "t");
        opening.at = at;
        let entry = ledger.open(opening).await.unwrap();
        ledger.close(entry, closing("t", DONE)).await.unwrap();
    }
    let caller = Some("clock".to_owned());
    let filter = Filter { caller, since: Some(2_000), until: Some(3_000), ..Filter::default() };
    let at: Vec<u64> = lines(ledger, filter).await.iter().map(|line| line.at).collect();
    assert_eq!(at, [3_000, 2_000]);
}

pub async fn an_entry_is_closed_once(ledger: &dyn Ledger) {
    let number = entry(ledger, "ann", "git:status", DONE).await;
    for number in [number, number + 1_000_000] {
        let again = ledger.close(Entry { number }, closing("git:status", Ending::Denied)).await;
        assert!(again.unwrap_err().to_string().contains("is not open"), "{number}");
    }
    let line = lines(ledger, Filter { limit: 1, ..Filter::default() }).await.remove(0);
    assert_eq!(line.outcome.as_deref(), Some("done"), "the first end stands");
}

/// A refused write fails alone, also when it shares a commit with others.
pub async fn one_bad_write_spoils_no_other(ledger: &Arc<dyn Ledger>) {
    let mut writes = Vec::new();
    for n in 0..64 {
        let ledger = ledger.clone();
        writes.push(tokio::spawn(async move {
            match n % 8 {
                0 => ledger.close(Entry { number: 1_000_000 + n }, closing("x", DONE)).await.is_err(),
                _ => ledger.open(opening("mixed", "x")).await.is_ok(),
            }
        }));
    }
    for write in writes {
        assert!(write.await.unwrap());
    }
    let filter = Filter { caller: Some("mixed".into()), ..Filter::default() };
    assert_eq!(lines(&**ledger, filter).await.len(), 56);
}

pub async fn numbers_grow_with_many_producers(ledger: &Arc<dyn Ledger>, producers: usize, each: usize) {
    let tasks: Vec<_> = (0..producers)
        .map(|n| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut last = 0;
                for _ in 0..each {
                    let next = entry(&*ledger, &format!("p{n}"), "git:status", DONE).await;
                    assert!(next > last, "a later entry has a higher number");
                    last = next;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let all = lines(&**ledger, Filter::default()).await;
    assert_eq!(all.len(), producers * each);
    assert!(all.iter().all(|line| line.progress == Progress::Finished));
}
