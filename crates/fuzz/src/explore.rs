//! Runs a target: its kept seeds, then numbered ones, then random ones for as long as there is time.

use crate::{Reached, Target};
use std::{
    fmt::Write as _,
    fs::File,
    os::unix::fs::FileExt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    time::{Duration, Instant},
};

/// What a run came to; one that finds something does not come back.
pub struct Explored {
    /// Inputs that were run.
    pub executions: u64,
    /// CPU time that they took, in all threads: on a busy machine less than the time that passed.
    pub cpu: Duration,
    /// What the kept and the numbered seeds reached, which does not depend on time or chance.
    pub reached: Reached,
}

/// Runs the target's seeds, and those that follow from `seed` until `time` is over.
///
/// Before each input its bytes are written to a file in `folder`, of which they are the first line, so that they are known
/// also where the process dies of them.
///
/// # Panics
/// The oracle found something. The input is printed; it belongs into `seeds/`, with what it found.
pub fn explore(target: &Target, time: Duration, mut seed: u64, folder: &Path) -> Explored {
    let (began, cpu_began) = (Instant::now(), process_cpu());
    let mut explored = Explored {
        executions: 0,
        cpu: Duration::ZERO,
        reached: Reached::default(),
    };
    let last = File::create(folder.join(format!("{}-last", target.name))).ok();
    let mut try_input = |input: &[u8]| {
        if let Some(file) = &last {
            let _ = file.write_all_at(format!("{}\n", hex::encode(input)).as_bytes(), 0);
        }
        explored.executions += 1;
        catch_unwind(AssertUnwindSafe(|| (target.run)(input))).unwrap_or_else(|cause| {
            let mut found = format!("{} fails with this input:\n", target.name);
            let _ = writeln!(found, "{}", hex::encode(input));
            eprintln!("{found}keep it in crates/fuzz/seeds/{}.txt", target.name);
            resume_unwind(cause)
        })
    };
    let numbered = (0..target.numbered).map(|number| number.to_le_bytes().to_vec());
    let mut reached = Reached::default();
    for input in seeds(target.seeds).chain(numbered) {
        reached.add(try_input(&input));
    }
    while began.elapsed() < time {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        try_input(&seed.rotate_left(32).to_le_bytes());
    }
    explored.reached = reached;
    explored.cpu = process_cpu().saturating_sub(cpu_began);
    explored
}

fn process_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The inputs of a file of seeds.
fn seeds(text: &str) -> impl Iterator<Item = Vec<u8>> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).map(|line| {
        hex::decode(line)
            .unwrap_or_else(|error| panic!("the seed {line:?} is not hexadecimal: {error}"))
    })
}
