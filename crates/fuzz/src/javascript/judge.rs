//! What must be true of a call, whatever the program was.

use super::{Called, Pace};
use crate::Reached;
use coracle_isolate::{Log, Outcome, Verdict, VerdictKind};
use coracle_loader::Limits;
use std::time::Duration;

/// CPU time after which a turn is over, though each of its entries was short.
const TURN: Duration = Duration::from_millis(1);

/// Says what is wrong with a call, if anything is.
pub(super) fn within_limits(called: &Called, isolate: &Limits, pace: Pace) -> Result<(), String> {
    let Called {
        limits,
        report,
        aftermaths,
    } = called;
    let at_most = |what: &str, used: u64, limit: u64| match used <= limit {
        true => Ok(()),
        false => Err(format!("{what}: {used} is more than {limit}")),
    };
    // What came after the report is on top of it.
    let sum = |of: fn(&coracle_isolate::Usage) -> u64| -> u64 {
        let later = aftermaths.iter().map(|aftermath| of(&aftermath.usage));
        of(&report.usage) + later.sum::<u64>()
    };
    at_most("fuel", sum(|usage| usage.fuel_run), limits.fuel_max)?;
    at_most(
        "startup fuel",
        sum(|usage| usage.fuel_load),
        limits.startup_fuel_max,
    )?;
    // One slice may be under way when the time is up.
    let cpu_max = limits.cpu_ms_max * 1_000 + pace.cpu.as_micros() as u64;
    at_most("cpu", sum(|usage| usage.cpu_us), cpu_max)?;
    // And one turn, of a slice or of short entries that are a slice together.
    let turn = if pace.wall.is_zero() {
        Duration::ZERO
    } else {
        TURN + pace.wall
    };
    let wall_max = limits.wall_ms_max * 1_000 + turn.as_micros() as u64;
    at_most("wall", sum(|usage| usage.wall_us), wall_max)?;
    at_most(
        "memory",
        report.usage.memory_peak_bytes,
        isolate.memory_bytes_max,
    )?;
    at_most(
        "subrequests",
        sum(|usage| usage.subrequests.into()),
        limits.subrequests_max,
    )?;
    let logs = report
        .logs
        .iter()
        .chain(aftermaths.iter().flat_map(|aftermath| &aftermath.logs));
    at_most(
        "output",
        logs.map(Log::bytes).sum::<usize>() as u64,
        limits.log_bytes_max,
    )?;
    match &report.outcome {
        Outcome::Value(value) => {
            at_most("result", value.bytes.len() as u64, limits.result_bytes_max)?
        }
        Outcome::Threw(thrown) => at_most("message", thrown.message.len() as u64, 1 << 20)?,
        Outcome::Verdict(verdict) => allowed(verdict)?,
    }
    for verdict in aftermaths
        .iter()
        .filter_map(|aftermath| aftermath.verdict.as_ref())
    {
        allowed(verdict)?;
    }
    Ok(())
}

/// A worker can be stopped by a limit. It can't break the engine, or bring about what only the host decides.
fn allowed(verdict: &Verdict) -> Result<(), String> {
    let is_ours = matches!(
        verdict.kind,
        VerdictKind::Trap
            | VerdictKind::Stack
            | VerdictKind::ArgsSize
            | VerdictKind::IsolateEvicted
    );
    if is_ours || !verdict.detail.is_empty() {
        return Err(format!("a program came to {:?}", verdict.kind));
    }
    if !verdict.limit_name.is_empty() && verdict.used < verdict.limit {
        return Err(format!("{} is not used up", verdict.limit_name));
    }
    Ok(())
}

pub(super) fn note(called: &Called, reached: &mut Reached) {
    for _ in &called.report.logs {
        reached.note("log");
    }
    for _ in &called.aftermaths {
        reached.note("aftermath");
    }
    reached.note(match &called.report.outcome {
        Outcome::Value(_) => "value",
        Outcome::Threw(thrown) if thrown.during_load => "threw during load",
        Outcome::Threw(_) => "threw",
        Outcome::Verdict(verdict) => verdict.kind.as_str(),
    });
}
