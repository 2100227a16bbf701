//! What the kernel says of another process.

use std::{fs, path::Path, time::Duration};

/// CPU time that its threads have used, and whether one of them could run now, on a core or waiting for one. Nothing of a
/// process that is gone.
pub(crate) fn activity(pid: u32) -> (Duration, bool) {
    let (mut cpu, mut wants_core) = (Duration::ZERO, false);
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        cpu += cpu_of(&thread.path()).unwrap_or_default();
        wants_core |= can_run(&thread.path()).unwrap_or(false);
    }
    (cpu, wants_core)
}

/// The first figure of `schedstat`: nanoseconds on a core.
fn cpu_of(thread: &Path) -> Option<Duration> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split(' ')
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

/// The state in `stat`, after the name in brackets, which may have anything in it.
fn can_run(thread: &Path) -> Option<bool> {
    let text = fs::read_to_string(thread.join("stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?;
    Some(after.trim_start().starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::{Child, Command, Stdio};

    /// A process that is ended with the value.
    struct Process(Child);

    impl Process {
        fn start(program: &str, argument: &str) -> Self {
            let mut command = Command::new(program);
            command.arg(argument).stdout(Stdio::null());
            Self(command.spawn().expect("it can be started"))
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn until(what: &str, mut look: impl FnMut() -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !look() {
            assert!(std::time::Instant::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_that_works_is_told_from_one_that_rests_and_from_one_that_is_stopped() {
        let working = Process::start("yes", "on and on");
        let pid = working.0.id();
        until("it works", || {
            let (cpu, wants_core) = activity(pid);
            cpu > Duration::from_millis(5) && wants_core
        });
        let id = Pid::from_raw(pid.cast_signed()).expect("it has one");
        kill_process(id, Signal::STOP).expect("it is ours");
        until("it is stopped", || !activity(pid).1);
        let resting = Process::start("sleep", "60");
        until("it rests", || {
            let (cpu, wants_core) = activity(resting.0.id());
            cpu > Duration::ZERO && !wants_core
        });
        assert_eq!(activity(u32::MAX >> 4), (Duration::ZERO, false));
    }
}
