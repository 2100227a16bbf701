//! When to tell whom the time: alarms by time and, so that none outlives its reason, by what they are of.

use crate::actor::{Alarm, AlarmOf, Mail};
use std::{collections::BTreeMap, time::Duration};

#[derive(Default)]
pub(super) struct Alarms {
    by_time: BTreeMap<Time, (u64, Mail)>,
    by_reason: BTreeMap<(u64, AlarmOf), Time>,
    last: u64,
}

/// By time, and in order of being set.
type Time = (Duration, u64);

impl Alarms {
    pub(super) fn len(&self) -> usize {
        self.by_time.len()
    }

    /// The time of the next one.
    pub(super) fn next(&self) -> Option<Duration> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    /// Sets an alarm in place of the one for the same reason.
    pub(super) fn set(&mut self, isolate: u64, alarm: Alarm) {
        let Some(of) = alarm.mail.alarm_of() else {
            return;
        };
        self.last += 1;
        let time = (alarm.at, self.last);
        if let Some(before) = self.by_reason.insert((isolate, of), time) {
            self.by_time.remove(&before);
        }
        self.by_time.insert(time, (isolate, alarm.mail));
    }

    pub(super) fn clear(&mut self, isolate: u64, of: AlarmOf) {
        if let Some(time) = self.by_reason.remove(&(isolate, of)) {
            self.by_time.remove(&time);
        }
    }

    /// Clears whatever an isolate has set.
    pub(super) fn clear_all(&mut self, isolate: u64) {
        let first = (isolate, AlarmOf::WallTime(0));
        while let Some((reason, _)) = self.by_reason.range(first..).next()
            && reason.0 == isolate
        {
            let (isolate, of) = *reason;
            self.clear(isolate, of);
        }
    }

    /// Takes one that is due.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<(u64, Mail)> {
        let first = self.by_time.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let (isolate, mail) = first.remove();
        if let Some(of) = mail.alarm_of() {
            self.by_reason.remove(&(isolate, of));
        }
        Some((isolate, mail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alarm(ms: u64, mail: Mail) -> Alarm {
        let at = Duration::from_millis(ms);
        Alarm { at, mail }
    }

    fn settle(operation: u64) -> Mail {
        let bytes = Vec::new();
        Mail::Settle { operation, bytes }
    }

    fn due(alarms: &mut Alarms, ms: u64) -> Vec<(u64, AlarmOf)> {
        let now = Duration::from_millis(ms);
        std::iter::from_fn(|| alarms.take_due(now))
            .filter_map(|(isolate, mail)| Some((isolate, mail.alarm_of()?)))
            .collect()
    }

    #[test]
    fn alarms_ring_by_time_and_then_in_the_order_in_which_they_were_set() {
        let mut alarms = Alarms::default();
        alarms.set(1, alarm(20, settle(1)));
        alarms.set(2, alarm(10, settle(1)));
        alarms.set(1, alarm(10, settle(2)));
        alarms.set(1, alarm(30, Mail::WallTime { invocation: 2 }));
        assert_eq!(alarms.next(), Some(Duration::from_millis(10)));
        assert_eq!(due(&mut alarms, 9), []);
        let operation = AlarmOf::Operation;
        assert_eq!(
            due(&mut alarms, 20),
            [(2, operation(1)), (1, operation(2)), (1, operation(1))]
        );
        assert_eq!(due(&mut alarms, 99), [(1, AlarmOf::WallTime(2))]);
        assert_eq!((alarms.len(), alarms.by_reason.len()), (0, 0));
    }

    #[test]
    fn an_alarm_is_replaced_and_cleared_by_its_reason() {
        let mut alarms = Alarms::default();
        alarms.set(1, alarm(10, settle(1)));
        alarms.set(1, alarm(20, settle(1)));
        assert_eq!(alarms.len(), 1);
        alarms.clear(2, AlarmOf::Operation(1));
        assert_eq!(alarms.len(), 1);
        alarms.clear(1, AlarmOf::Operation(1));
        alarms.clear(1, AlarmOf::Operation(1));
        assert_eq!((alarms.len(), alarms.by_reason.len()), (0, 0));
    }

    #[test]
    fn an_isolate_takes_all_of_its_alarms_along_and_no_other() {
        let mut alarms = Alarms::default();
        for isolate in 1..4 {
            for operation in 0..5 {
                alarms.set(isolate, alarm(10, settle(operation)));
            }
            alarms.set(isolate, alarm(10, Mail::WallTime { invocation: 0 }));
            alarms.set(
                isolate,
                alarm(
                    10,
                    Mail::WallTime {
                        invocation: u64::MAX,
                    },
                ),
            );
        }
        alarms.clear_all(2);
        assert_eq!(alarms.len(), 14);
        assert!(
            due(&mut alarms, 10)
                .iter()
                .all(|(isolate, _)| *isolate != 2)
        );
    }

    #[test]
    fn what_is_no_alarm_is_not_set() {
        let mut alarms = Alarms::default();
        alarms.set(1, alarm(10, Mail::End));
        assert_eq!(alarms.len(), 0);
    }
}
