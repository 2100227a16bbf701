//! What budgets let through, and when again.

use super::*;
use crate::{Destination, Policies, Policy, PolicyOrigin};
use proptest::prelude::*;
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

fn policy(name: &str, budget: &Value) -> Arc<Policy> {
    let text = json!({"rules": [{"allow": ["*"], "budget": budget}]}).to_string();
    Arc::new(Policy::of_json(name, PolicyOrigin::Operator, &text).expect("a policy"))
}

fn url(text: &str) -> Destination {
    Destination::of_url(text).expect("a URL")
}

fn open(
    budgets: &Budgets,
    policy: &Policy,
    text: &str,
    now: Instant,
) -> Result<Meter, BudgetError> {
    budgets.open(&policy.decide(&url(text), None), 1, now)
}

#[test]
fn requests_are_counted_and_forgotten() {
    let (budgets, start) = (Budgets::default(), Instant::now());
    let policy = policy("test", &json!({"requests_max": 2, "per_seconds": 16}));
    let meter = open(&budgets, &policy, "https://a.com/x", start).expect("room");
    assert_eq!(meter.take_request(start), Ok(()));
    // Another meter of the same destination takes of the same budget.
    let other = open(&budgets, &policy, "https://a.com/y?z", start).expect("room");
    assert_eq!(other.take_request(start + 5 * SECOND), Ok(()));
    let refused = meter.take_request(start + 6 * SECOND).expect_err("used up");
    assert_eq!(
        refused,
        BudgetError::Spent {
            rule: "rule 1 of the policy \"test\"".into(),
            destination: "https://a.com".into(),
            limit: "requests_max",
            used: 2,
            max: 2,
            per_seconds: 16,
            // The first part of the time is forgotten when all of it is sixteen seconds ago.
            retry_after: Some(11 * SECOND),
        }
    );
    assert_eq!(
        refused.to_string(),
        "the budget of rule 1 of the policy \"test\" for https://a.com is used up: requests_max is 2 in 16 seconds, \
         and 2 requests are used: retry in 11 seconds"
    );
    assert!(
        meter
            .take_request(start + 17 * SECOND - Duration::from_nanos(1))
            .is_err()
    );
    assert_eq!(meter.take_request(start + 17 * SECOND), Ok(()));
    assert!(meter.take_request(start + 17 * SECOND).is_err());
    assert_eq!(meter.take_request(start + 22 * SECOND), Ok(()));
    // Long after, all is forgotten.
    let later = start + 1_000_000 * SECOND;
    assert_eq!(meter.take_request(later), Ok(()));
    assert_eq!(meter.take_request(later), Ok(()));
    assert!(meter.take_request(later).is_err());
}

#[test]
fn each_destination_has_a_budget_of_its_own() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let policy = policy("test", &json!({"requests_max": 1, "per_seconds": 60}));
    for text in ["https://a.com/", "https://b.com/"] {
        let meter = open(&budgets, &policy, text, now).expect("room");
        assert_eq!(meter.take_request(now), Ok(()), "{text}");
        assert!(meter.take_request(now).is_err(), "{text}");
    }
    // No spelling of a destination is another one.
    for text in ["https://A.com./", "https:\\\\a.com:443", "wss://a.com/x"] {
        let meter = open(&budgets, &policy, text, now).expect("room");
        assert!(meter.take_request(now).is_err(), "{text}");
    }
}

#[test]
fn bytes_that_came_are_counted_though_they_are_refused() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let policy = policy("test", &json!({"bytes_max": 100, "per_seconds": 60}));
    let meter = open(&budgets, &policy, "https://a.com/", now).expect("room");
    assert_eq!(meter.take_bytes(60, now), Ok(()));
    assert_eq!(meter.take_request(now), Ok(()));
    let refused = meter.take_bytes(41, now).expect_err("too many");
    assert!(matches!(
        refused,
        BudgetError::Spent {
            limit: "bytes_max",
            used: 60,
            max: 100,
            ..
        }
    ));
    // What was left is gone, and there is no use in another request.
    assert!(meter.take_bytes(1, now).is_err());
    assert!(meter.take_request(now).is_err());
    assert_eq!(meter.take_bytes(0, now), Ok(()));
    let never = meter.take_bytes(101, now).expect_err("more than there is");
    assert!(
        never
            .to_string()
            .ends_with("this is more than there ever is")
    );
}

/// A request takes from the budgets of all the policies that allow it, or from none.
#[test]
fn all_budgets_count_or_none() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let wide = policy("wide", &json!({"requests_max": 2, "per_seconds": 60}));
    let narrow = policy("narrow", &json!({"requests_max": 1, "per_seconds": 60}));
    let both = Policies::from(wide.clone()).and(narrow).expect("room");
    let destination = url("https://a.com/");
    let meter = budgets
        .open(&both.decide(&destination, None), 1, now)
        .expect("room");
    assert_eq!(meter.take_request(now), Ok(()));
    for _ in 0..5 {
        assert!(meter.take_request(now).is_err());
    }
    let meter = open(&budgets, &wide, "https://a.com/", now).expect("room");
    assert_eq!(meter.take_request(now), Ok(()));
    assert!(meter.take_request(now).is_err());
    // The same policy twice counts once.
    let twice = Policies::from(wide.clone()).and(wide).expect("room");
    let destination = url("https://b.com/");
    let meter = budgets
        .open(&twice.decide(&destination, None), 1, now)
        .expect("room");
    assert_eq!(meter.take_request(now), Ok(()));
    assert_eq!(meter.take_request(now), Ok(()));
}

/// A rule that is read again, as when configuration is, goes on counting.
#[test]
fn a_policy_that_is_read_again_has_no_fresh_budget() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let budget = json!({"requests_max": 1, "per_seconds": 60});
    let take = |name: &str| {
        let meter = open(&budgets, &policy(name, &budget), "https://a.com/", now);
        meter.and_then(|meter| meter.take_request(now))
    };
    assert_eq!(take("test"), Ok(()));
    assert!(take("test").is_err());
    assert_eq!(take("other"), Ok(()));
}

/// No number of destinations makes a budget fresh: when all are counting, no other is let in.
#[test]
fn destinations_are_bounded_and_none_that_counts_is_forgotten() {
    let (budgets, start) = (Budgets::new(3, 3), Instant::now());
    let policy = policy("test", &json!({"requests_max": 1, "per_seconds": 16}));
    let take = |host: &str, now| {
        let meter = open(&budgets, &policy, &format!("https://{host}/"), now)?;
        meter.take_request(now)
    };
    assert_eq!(take("a.com", start), Ok(()));
    assert_eq!(take("b.com", start + 8 * SECOND), Ok(()));
    assert_eq!(take("c.com", start + 8 * SECOND), Ok(()));
    let crowded = Err(BudgetError::Crowded {
        destinations_max: 3,
    });
    assert_eq!(take("d.com", start + 9 * SECOND), crowded);
    assert!(matches!(
        take("a.com", start + 9 * SECOND),
        Err(BudgetError::Spent { .. })
    ));
    // The first is idle then, and the second is not.
    let later = start + 17 * SECOND;
    assert_eq!(take("d.com", later), Ok(()));
    assert_eq!(take("a.com", later), crowded);
    assert!(matches!(
        take("b.com", later),
        Err(BudgetError::Spent { .. })
    ));
}

/// Nor one that has a meter: it may count at any time, and must count where others look.
#[test]
fn a_destination_with_a_meter_is_not_forgotten() {
    let (budgets, start) = (Budgets::new(1, 1), Instant::now());
    let policy = policy("test", &json!({"requests_max": 1, "per_seconds": 1}));
    let meter = open(&budgets, &policy, "https://a.com/", start).expect("room");
    let later = start + 100 * SECOND;
    assert!(open(&budgets, &policy, "https://b.com/", later).is_err());
    drop(meter);
    assert!(open(&budgets, &policy, "https://b.com/", later + 2 * SECOND).is_ok());
}

#[test]
fn without_budgets_nothing_is_kept() {
    let (budgets, now) = (Budgets::new(0, 0), Instant::now());
    let text = json!({"rules": [{"allow": ["*"]}]}).to_string();
    let policy = Policy::of_json("test", PolicyOrigin::Operator, &text).expect("a policy");
    let meter = open(&budgets, &policy, "https://a.com/", now).expect("no need of room");
    assert_eq!(meter.take_request(now), Ok(()));
    assert_eq!(meter.take_bytes(u64::MAX, now), Ok(()));
}

/// However many threads take, no more is given than there is.
#[test]
fn threads_get_no_more_than_there_is() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let policies =
        [100, 150].map(|max| policy("test", &json!({"requests_max": max, "per_seconds": 60})));
    let [one, other] = policies;
    let both = Policies::from(one.clone())
        .and(other.clone())
        .expect("room");
    let reverse = Policies::from(other).and(one).expect("room");
    let destination = url("https://a.com/");
    let taken = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for policies in [&both, &reverse, &both, &reverse] {
            let (budgets, destination, taken) = (&budgets, &destination, &taken);
            scope.spawn(move || {
                for _ in 0..100 {
                    let decision = policies.decide(destination, None);
                    let meter = budgets.open(&decision, 1, now).expect("room");
                    if meter.take_request(now).is_ok() {
                        taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(taken.into_inner(), 100);
}

proptest! {
    /// In no stretch of the budget's time is more used than the budget, and who waits as long as is said is let through.
    #[test]
    fn no_stretch_of_time_has_more_in_it(
        steps in proptest::collection::vec((0u64..4_000, 1u64..6), 1..80),
        per_seconds in 1u64..20,
    ) {
        let start = Instant::now();
        let max = 10;
        let policy = policy("test", &json!({"bytes_max": max, "per_seconds": per_seconds}));
        let meter = open(&Budgets::default(), &policy, "https://a.com/", start).expect("room");
        let mut now = start;
        let mut taken: Vec<(Instant, u64)> = Vec::new();
        for (milliseconds, bytes) in steps {
            now += Duration::from_millis(milliseconds);
            // Only what fits, so that nothing is taken by a refusal.
            let used = locked(&meter.accounts[0].usage);
            let mut used = used;
            used.advance(now);
            let left = max - used.used(Amount::Bytes);
            let wait = used.at_most_after(Amount::Bytes, max - bytes, now);
            drop(used);
            if bytes > left {
                prop_assert!(wait > Duration::ZERO);
                now += wait;
            }
            prop_assert_eq!(meter.take_bytes(bytes, now), Ok(()));
            taken.push((now, bytes));
            let stretch = Duration::from_secs(per_seconds);
            let within = taken.iter().filter(|(at, _)| now - *at < stretch);
            prop_assert!(within.map(|(_, bytes)| bytes).sum::<u64>() <= max);
        }
    }
}

/// A policy of a client's counts for the session that gave it: another session's of the same text is another.
#[test]
fn the_same_text_of_another_session_has_a_budget_of_its_own() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let text =
        json!({"rules": [{"allow": ["*"], "budget": {"requests_max": 1, "per_seconds": 60}}]});
    let read = |origin| Policy::of_json("given", origin, &text.to_string()).expect("a policy");
    for (origin, others_are_let_through) in [
        (PolicyOrigin::Client, true),
        (PolicyOrigin::Operator, false),
    ] {
        let (policy, again) = (read(origin), read(origin));
        let destination = url("https://a.com/");
        let take = |policy: &Policy, session| {
            let meter = budgets.open(&policy.decide(&destination, None), session, now);
            meter.expect("room").take_request(now).is_ok()
        };
        assert!(take(&policy, 1) && !take(&again, 1), "{origin:?}");
        assert_eq!(take(&again, 2), others_are_let_through, "{origin:?}");
    }
}

/// One session can't fill the table for the others, and has room again when its budgets are idle.
#[test]
fn a_session_has_its_share_of_the_table() {
    let (budgets, now) = (Budgets::new(10, 3), Instant::now());
    let policy = policy("test", &json!({"requests_max": 1, "per_seconds": 16}));
    let take = |name: u32, session, now| {
        let destination = url(&format!("https://h{name}.com/"));
        let meter = budgets.open(&policy.decide(&destination, None), session, now)?;
        meter.take_request(now)
    };
    for name in 0..3 {
        assert_eq!(take(name, 1, now), Ok(()));
    }
    let crowded = Err(BudgetError::Crowded {
        destinations_max: 3,
    });
    assert_eq!(take(3, 1, now), crowded);
    assert_eq!(take(3, 2, now), Ok(()));
    // What another has brought up counts for that one.
    assert!(matches!(take(3, 1, now), Err(BudgetError::Spent { .. })));
    let later = now + 20 * SECOND;
    assert_eq!(take(4, 1, later), Ok(()));
}

/// What is given back can be taken again, and nothing more.
#[test]
fn a_request_that_nobody_got_is_given_back() {
    let (budgets, start) = (Budgets::default(), Instant::now());
    let policy = policy(
        "test",
        &json!({"requests_max": 2, "bytes_max": 100, "per_seconds": 16}),
    );
    let meter = open(&budgets, &policy, "https://a.com/", start).expect("room");
    meter.take_request(start).expect("the first");
    meter.take_request(start).expect("the second");
    meter.take_bytes(60, start).expect("enough");
    // It may take a while until it is known.
    let later = start + 3 * SECOND;
    meter.give_back(60, later);
    assert_eq!(meter.take_request(later), Ok(()));
    assert!(meter.take_request(later).is_err());
    assert_eq!(meter.take_bytes(100, later), Ok(()));
    meter.give_back(1_000, later);
    assert_eq!(meter.take_bytes(100, later), Ok(()));
    assert!(meter.take_bytes(1, later).is_err());
}
