//! What was sent into a cordon, and so what may come out of it.
//!
//! A cordon whose guest has broken out can say anything. It must not speak for an isolate of another cordon, nor answer a
//! call that another isolate was given.

use coracle_isolate::Event;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

/// Invocations of an isolate that are remembered after they were over, for what they leave behind.
const RECENT_MAX: usize = 64;

/// The isolates of one cordon and what is under way in them.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    isolates: HashMap<u64, Inmate>,
    tenants: HashSet<u64>,
    closed: bool,
}

/// One isolate.
#[derive(Debug)]
pub(crate) struct Inmate {
    pub(crate) tenant: u64,
    /// Calls without an answer, and when each is overdue.
    pub(crate) open: HashMap<u64, Duration>,
    /// Calls that are answered and run on.
    pub(crate) held: HashSet<u64>,
    recent: VecDeque<u64>,
}

/// What is to become of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is passed on.
    Pass,
    /// It is about what is over.
    Late,
    /// No well-behaved cordon says this.
    Broken(&'static str),
}

const STRANGE_ISOLATE: Judgement =
    Judgement::Broken("it spoke of an isolate that it does not have");
const STRANGE_CALL: Judgement = Judgement::Broken("it answered a call that it was not given");

impl Ledger {
    /// An isolate goes in. False where the cordon is gone.
    #[must_use]
    pub(crate) fn start(&mut self, isolate: u64, tenant: u64) -> bool {
        if !self.closed {
            let inmate = Inmate {
                tenant,
                open: HashMap::new(),
                held: HashSet::new(),
                recent: VecDeque::new(),
            };
            self.isolates.insert(isolate, inmate);
            self.tenants.insert(tenant);
        }
        !self.closed
    }

    /// A call goes in. False where its isolate is not there.
    #[must_use]
    pub(crate) fn open(&mut self, isolate: u64, invocation: u64, overdue_at: Duration) -> bool {
        let inmate = self.isolates.get_mut(&isolate);
        inmate.is_some_and(|inmate| {
            inmate.open.insert(invocation, overdue_at);
            true
        })
    }

    /// Whether none is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.isolates.is_empty()
    }

    /// How many are there, and how many calls without an answer.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let calls = self.isolates.values().map(|inmate| inmate.open.len()).sum();
        (self.isolates.len(), calls)
    }

    /// Whether a call should have been answered by now, whatever it does: its wall time is long over.
    pub(crate) fn is_overdue(&self, now: Duration) -> bool {
        let mut open = self
            .isolates
            .values()
            .flat_map(|inmate| inmate.open.values());
        open.any(|overdue_at| *overdue_at < now)
    }

    /// Whether isolates of a tenant are or were there.
    pub(crate) fn has_had(&self, tenant: u64) -> bool {
        self.tenants.contains(&tenant)
    }

    /// Whose isolate that is.
    pub(crate) fn tenant(&self, isolate: u64) -> Option<u64> {
        self.isolates.get(&isolate).map(|inmate| inmate.tenant)
    }

    /// An event comes out.
    pub(crate) fn judge(&mut self, event: &Event) -> Judgement {
        let (isolate, invocation) = subject(event);
        let Some(inmate) = self.isolates.get_mut(&isolate) else {
            return STRANGE_ISOLATE;
        };
        match event {
            Event::Ended { .. } => {
                // Calls that it was told to forget have been answered by who told it.
                self.isolates.remove(&isolate);
                return Judgement::Pass;
            }
            Event::Finished {
                invocation, held, ..
            } => {
                if inmate.open.remove(invocation).is_none() {
                    return STRANGE_CALL;
                }
                if *held {
                    inmate.held.insert(*invocation);
                } else {
                    inmate.remember(*invocation);
                }
                return Judgement::Pass;
            }
            Event::Lingered { invocation, .. } if inmate.held.remove(invocation) => {
                inmate.remember(*invocation);
                return Judgement::Pass;
            }
            _ => {}
        }
        match invocation {
            Some(invocation) if !inmate.knows(invocation) => Judgement::Late,
            _ => Judgement::Pass,
        }
    }

    /// Nothing goes in any more, and what was there comes out.
    pub(crate) fn close(&mut self) -> HashMap<u64, Inmate> {
        self.closed = true;
        std::mem::take(&mut self.isolates)
    }
}

impl Inmate {
    fn knows(&self, invocation: u64) -> bool {
        self.open.contains_key(&invocation)
            || self.held.contains(&invocation)
            || self.recent.contains(&invocation)
    }

    fn remember(&mut self, invocation: u64) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(invocation);
    }
}

/// The isolate that an event is of, and the invocation that it claims to be of.
pub(crate) fn subject(event: &Event) -> (u64, Option<u64>) {
    match *event {
        Event::Finished {
            isolate,
            invocation,
            ..
        }
        | Event::Logged {
            isolate,
            invocation,
            ..
        }
        | Event::Lingered {
            isolate,
            invocation,
            ..
        }
        | Event::Called {
            isolate,
            invocation,
            ..
        }
        | Event::OutboundRefused {
            isolate,
            invocation,
            ..
        }
        | Event::Loading {
            isolate,
            invocation,
            ..
        } => (isolate, Some(invocation)),
        Event::Released { isolate, .. }
        | Event::CallDropped { isolate, .. }
        | Event::Ended { isolate } => (isolate, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_isolate::{Bytes, Outcome, Report, Usage};

    const SOON: Duration = Duration::from_secs(1);

    fn finished(isolate: u64, invocation: u64, held: bool) -> Event {
        Event::Finished {
            isolate,
            invocation,
            report: Box::new(Report {
                outcome: Outcome::Value(Bytes::UNDEFINED),
                usage: Usage::default(),
                logs: Vec::new(),
                log_bytes_dropped: 0,
            }),
            held,
            isolate_reusable: true,
        }
    }

    fn logged(isolate: u64, invocation: u64) -> Event {
        Event::Logged {
            isolate,
            invocation,
            logs: Vec::new(),
        }
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        assert!(ledger.start(1, 10) && ledger.start(2, 20));
        assert!(ledger.open(1, 100, SOON) && ledger.open(2, 200, SOON));
        ledger
    }

    #[test]
    fn a_call_is_answered_once_and_by_the_isolate_that_it_was_given_to() {
        let mut ledger = ledger();
        assert_eq!(ledger.judge(&finished(2, 100, false)), STRANGE_CALL);
        assert_eq!(ledger.judge(&finished(1, 100, false)), Judgement::Pass);
        assert_eq!(ledger.judge(&finished(1, 100, false)), STRANGE_CALL);
        assert_eq!(ledger.judge(&finished(1, 999, false)), STRANGE_CALL);
    }

    #[test]
    fn nobody_speaks_for_an_isolate_that_is_not_there() {
        let mut ledger = ledger();
        assert_eq!(ledger.judge(&Event::Ended { isolate: 3 }), STRANGE_ISOLATE);
        assert_eq!(ledger.judge(&Event::Ended { isolate: 1 }), Judgement::Pass);
        assert_eq!(ledger.judge(&Event::Ended { isolate: 1 }), STRANGE_ISOLATE);
        assert!(!ledger.open(1, 101, SOON));
        assert_eq!((ledger.tenant(1), ledger.tenant(2)), (None, Some(20)));
    }

    #[test]
    fn what_a_call_leaves_behind_is_passed_on_and_another_isolates_call_is_not_named() {
        let mut ledger = ledger();
        assert_eq!(ledger.judge(&logged(1, 100)), Judgement::Pass);
        assert_eq!(ledger.judge(&finished(1, 100, true)), Judgement::Pass);
        assert_eq!(ledger.judge(&logged(1, 100)), Judgement::Pass);
        assert_eq!(ledger.judge(&logged(1, 200)), Judgement::Late);
        assert_eq!(ledger.judge(&logged(1, 300)), Judgement::Late);
        assert_eq!(ledger.counts(), (2, 1));
    }

    #[test]
    fn a_call_is_overdue_when_its_time_is_over_and_it_has_no_answer() {
        let mut ledger = ledger();
        assert!(!ledger.is_overdue(SOON));
        let later = SOON + Duration::from_millis(1);
        assert!(ledger.is_overdue(later));
        ledger.judge(&finished(1, 100, true));
        ledger.judge(&finished(2, 200, false));
        assert!(!ledger.is_overdue(later));
    }

    #[test]
    fn what_is_lost_comes_out_once_and_nothing_goes_in_after() {
        let mut ledger = ledger();
        let lost = ledger.close();
        assert_eq!(lost.len(), 2);
        assert!(lost[&1].open.contains_key(&100) && lost[&1].tenant == 10);
        assert!(!ledger.start(3, 30) && !ledger.open(1, 101, SOON));
        assert!(ledger.close().is_empty());
    }
}
