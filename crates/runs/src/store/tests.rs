//! The file: what is written is read, by whoever may.

use super::*;
use tempfile::TempDir;

fn run(id: &str, expires_ms: u64) -> Run {
    Run {
        id: id.into(),
        name: "program.ts".into(),
        program: "1".into(),
        beginning: Beginning {
            at_ms: 1,
            seed: [1, 2, 3, u32::MAX],
        },
        expires_ms,
        state: RunState::Running,
        outcome: None,
    }
}

fn store() -> (TempDir, Store) {
    let folder = TempDir::new().expect("a folder");
    let store = Store::open(&folder.path().join("runs")).expect("a file");
    (folder, store)
}

#[test]
fn what_is_written_is_read() {
    let (_folder, store) = store();
    let written = run("r1", u64::MAX >> 1);
    store.create(&written).expect("there is room");
    let arguments = json!({ "b": [1, null], "a": "x" });
    let outcomes: [Outcome; 3] = [
        Ok(Output::Json(json!({ "value": { "code": 1 } }))),
        Ok(Output::Bytes(vec![0, 255])),
        Err(ToolError::new("http_status", "404")),
    ];
    for (number, outcome) in outcomes.iter().enumerate() {
        let ended = store.end("r1", (number, "a.b", &arguments), outcome);
        assert_eq!(ended.expect("it is written").0, number as u64);
    }
    let (read, calls) = store.run("r1").expect("it is there");
    assert_eq!(read, written);
    let read: Vec<_> = calls.iter().map(|call| call.outcome.clone()).collect();
    assert_eq!(read, outcomes.map(Some));
    assert_eq!(calls[2].arguments, arguments);
    assert!(matches!(store.run("r2"), Err(StoreError::Missing(_))));
}

/// Nobody approves of what nobody remembers.
#[test]
fn a_run_that_nobody_decides_about_expires() {
    let (_folder, store) = store();
    store.create(&run("r1", 1)).expect("there is room");
    let arguments = json!({});
    let asked = (CallState::Asked, "by rule 1");
    let noted = store.note("r1", (0, "a.b", &arguments), asked.0, asked.1);
    noted.expect("it is written");
    store
        .settle("r1", RunState::Paused, None)
        .expect("it waits");
    let decided = store.decide("r1", None, &Decision::Approve);
    assert_eq!(decided.expect("it is there"), 0);
    let (read, _) = store.run("r1").expect("it is there");
    assert_eq!(read.state, RunState::Expired);
    assert!(store.take("r1").expect("it is there").is_none());
}

#[test]
fn a_run_is_gone_on_with_by_one() {
    let (_folder, store) = store();
    store
        .create(&run("r1", u64::MAX >> 1))
        .expect("there is room");
    assert!(
        store.take("r1").expect("it is there").is_none(),
        "it is being run"
    );
    store
        .settle("r1", RunState::Paused, None)
        .expect("it waits");
    assert!(store.take("r1").expect("it is there").is_some());
    assert!(store.take("r1").expect("it is there").is_none());
}

#[test]
fn a_run_keeps_so_much() {
    let (_folder, store) = store();
    store
        .create(&run("r1", u64::MAX >> 1))
        .expect("there is room");
    let arguments = json!({});
    let large = Ok(Output::Json("x".repeat(40 << 20).into()));
    let end = |number| store.end("r1", (number, "a.b", &arguments), &large);
    end(0).expect("there is room");
    assert!(matches!(end(1), Err(StoreError::TooLarge)));
    assert_eq!(store.run("r1").expect("it is there").1.len(), 1);
}

#[test]
fn what_a_later_version_made_is_left_alone() {
    let (folder, store) = store();
    store
        .lock()
        .pragma_update(None, "user_version", VERSION + 1)
        .expect("it is written");
    let opened = Store::open(&folder.path().join("runs"));
    assert!(matches!(opened, Err(StoreError::Version(2))));
}

/// Who runs programs all day is not stopped by those of last week; what waits is never forgotten.
#[test]
fn the_oldest_that_are_over_make_room() {
    let (_folder, store) = store();
    let insert = "INSERT INTO runs SELECT 'x' || value, 'p', '1', '[1,2,3,4]', value, 9000000000000, ?1, 0, NULL
                  FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?2) SELECT value FROM n)";
    let filled = store.lock().execute(insert, params!["ended", RUNS_MAX]);
    assert_eq!(filled.expect("it is written") as u64, RUNS_MAX);
    let first = "UPDATE runs SET state = 'paused' WHERE id = 'x1'";
    store.lock().execute(first, []).expect("it is written");
    store
        .create(&run("r1", u64::MAX >> 1))
        .expect("there is room");
    assert!(store.run("x1").is_ok() && store.run("r1").is_ok());
    assert!(matches!(store.run("x2"), Err(StoreError::Missing(_))));
    assert_eq!(
        store.runs().expect("all").len() as u64,
        RUNS_MAX - FORGOTTEN + 1
    );
    let all = "UPDATE runs SET state = 'paused'";
    store.lock().execute(all, []).expect("it is written");
    store
        .lock()
        .execute(&insert.replace("'x'", "'y'"), params!["paused", FORGOTTEN])
        .expect("it is written");
    let refused = store.create(&run("r2", u64::MAX >> 1));
    assert!(matches!(refused, Err(StoreError::TooMany)), "{refused:?}");
}
