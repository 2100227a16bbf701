//! A cordon's life, on a thread of its own: what it says, and who answers for it when it is gone.

use super::{Failure, Heard, Shared, Voice};
use crate::{
    cordon::Cordon,
    ledger::{Inmate, Judgement, subject},
    protocol::Told,
};
use coracle_isolate::{Aftermath, Event, Outcome, Report, Usage, Verdict, VerdictKind};
use coracle_loader::{Sign, TenantId};
use rustix::io::ioctl_fionbio;
use std::{
    collections::HashMap,
    io::{self, ErrorKind},
    sync::{Arc, atomic::Ordering, mpsc},
    thread,
};

impl Shared {
    /// From the start of its process to its end.
    pub(super) fn keep(&self, cordon: &Arc<Cordon>) {
        let lived = self.live(cordon);
        if let Err(error) = &lived {
            cordon.end(format!("the process that it was in was given up: {error}"));
        }
        let manner = cordon.bury();
        let lost = cordon.ledger().close();
        let mut places = self.places();
        places.forget(cordon.id);
        for used in cordon.take_used() {
            let gone = places.cpu_us_gone.entry(used.tenant).or_default();
            *gone = gone.saturating_add(used.cpu_us);
        }
        places.isolates.retain(|_, held| held.id != cordon.id);
        if !cordon.is_ready() && places.failure.is_none() {
            places.failure = Some(Failure {
                image: false,
                reason: manner.clone(),
                at: self.now(),
            });
        }
        drop(places);
        self.settled.notify_all();
        if self.is_closing() || cordon.is_retired() {
            return;
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            cordon = cordon.id,
            isolates = lost.len(),
            reason = manner,
            "a cordon is lost"
        );
        self.answer_for(lost, &manner);
    }

    /// Starts its process, and hears what it says until it says nothing more: here, or on the listener's thread once it is
    /// ready and there is one.
    fn live(&self, cordon: &Arc<Cordon>) -> io::Result<()> {
        let image = self.image.try_clone()?;
        let pipe = cordon.spawn(&self.executable, image)?;
        let writer = Arc::clone(cordon);
        let name = format!("cordon-{}-out", cordon.id);
        let writer = thread::Builder::new()
            .name(name)
            .spawn(move || writer.write_on())?;
        let (over, is_over) = mpsc::channel();
        let shared = self.itself.upgrade().ok_or(ErrorKind::NotConnected)?;
        let mut voice = Voice::new(shared, Arc::clone(cordon), over);
        let lived = loop {
            match voice.try_hear(&pipe) {
                Ok(Heard::Part) => {}
                Ok(Heard::All) => {
                    if let (true, Some(listener)) = (cordon.is_ready(), self.listener.get()) {
                        ioctl_fionbio(&pipe, true)?;
                        listener(pipe, voice);
                        // Dropped without a word where it has nothing more to say.
                        break is_over.recv().unwrap_or(Ok(()));
                    }
                }
                Ok(Heard::End) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        cordon.close();
        let _ = writer.join();
        lived
    }

    pub(super) fn hear(&self, cordon: &Arc<Cordon>, told: Told) -> io::Result<()> {
        cordon.hear(self.now());
        match told {
            Told::Event {
                event,
                memory_bytes,
            } => {
                cordon.set_memory_bytes(memory_bytes);
                self.judge(cordon, event)?;
            }
            Told::Alive { state, tenants } => {
                cordon.set_state(state);
                cordon.set_used(tenants);
                if state.threads_lost > 0 {
                    cordon.end("a thread of the process that it was in was stuck");
                }
            }
            Told::Ready { fresh_bytes } => {
                self.fresh_bytes.store(fresh_bytes, Ordering::Relaxed);
                cordon.set_ready();
                let mut places = self.places();
                places.failure = None;
                drop(places);
                self.settled.notify_all();
            }
            Told::Failed { image, reason } => {
                self.places().failure = Some(Failure {
                    image,
                    reason,
                    at: self.now(),
                });
            }
        }
        Ok(())
    }

    fn judge(&self, cordon: &Arc<Cordon>, event: Event) -> io::Result<()> {
        let (isolate, _) = subject(&event);
        let mut ledger = cordon.ledger();
        let tenant = ledger.tenant(isolate);
        let judgement = ledger.judge(&event);
        drop(ledger);
        match judgement {
            Judgement::Late => return Ok(()),
            Judgement::Broken(reason) => return Err(io::Error::other(reason)),
            Judgement::Pass => {}
        }
        if let (Some(tenant), Some(sign)) = (tenant, sign_of(&event)) {
            self.note(TenantId(tenant), sign);
        }
        if let Event::Ended { isolate } = event {
            self.places().isolates.remove(&isolate);
        }
        self.emit(event);
        Ok(())
    }

    /// Answers every call that was in a cordon that is lost.
    fn answer_for(&self, lost: HashMap<u64, Inmate>, manner: &str) {
        for (isolate, inmate) in lost {
            if !inmate.open.is_empty() {
                // Whoever it was that broke the process, its code was running.
                self.note(TenantId(inmate.tenant), Sign::Broke);
            }
            for invocation in inmate.held {
                self.emit(Event::Lingered {
                    isolate,
                    invocation,
                    aftermath: Box::new(Aftermath {
                        verdict: Some(lost_verdict(true, manner)),
                        usage: Usage::default(),
                        logs: Vec::new(),
                        log_bytes_dropped: 0,
                    }),
                    isolate_reusable: true,
                });
            }
            for invocation in inmate.open.into_keys() {
                self.answer_lost(isolate, invocation, true, manner.to_owned());
            }
            self.emit(Event::Ended { isolate });
        }
    }

    pub(super) fn answer_lost(&self, isolate: u64, invocation: u64, started: bool, manner: String) {
        self.emit(Event::Finished {
            isolate,
            invocation,
            report: Box::new(Report {
                outcome: Outcome::Verdict(lost_verdict(started, &manner)),
                usage: Usage::default(),
                logs: Vec::new(),
                log_bytes_dropped: 0,
            }),
            held: false,
            isolate_reusable: false,
        });
    }

    pub(super) fn note(&self, tenant: TenantId, sign: Sign) {
        let now = self.now();
        if self.places().suspicions.note(tenant, sign, now) {
            tracing::warn!(
                tenant = tenant.0,
                "a tenant is suspect: its next isolates get a cordon of their own"
            );
        }
    }

    pub(super) fn emit(&self, event: Event) {
        (self.sink)(event);
    }
}

/// What an event says against the tenant whose isolate it is of.
fn sign_of(event: &Event) -> Option<Sign> {
    let verdict = match event {
        Event::Finished { report, .. } => match &report.outcome {
            Outcome::Verdict(verdict) => verdict,
            Outcome::Value(_) | Outcome::Threw(_) => return None,
        },
        Event::Lingered { aftermath, .. } => aftermath.verdict.as_ref()?,
        _ => return None,
    };
    match verdict.kind {
        VerdictKind::Trap | VerdictKind::Stack => Some(Sign::Broke),
        VerdictKind::Fuel
        | VerdictKind::Cpu
        | VerdictKind::Startup
        | VerdictKind::Wall
        | VerdictKind::Memory
        | VerdictKind::Subrequests
        | VerdictKind::Timers
        | VerdictKind::Exports => Some(Sign::Stopped),
        VerdictKind::ArgsSize
        | VerdictKind::ResultSize
        | VerdictKind::ValueDepth
        | VerdictKind::Hung
        | VerdictKind::Cancelled
        | VerdictKind::IsolateLost
        | VerdictKind::IsolateEvicted => None,
    }
}

fn lost_verdict(started: bool, manner: &str) -> Verdict {
    Verdict {
        detail: manner.to_owned(),
        ..Verdict::without_limit(VerdictKind::IsolateLost, started)
    }
}
