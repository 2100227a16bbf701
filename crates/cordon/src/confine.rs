//! Taking everything away from a process that it does not need to run isolates.
//!
//! Three layers, each enough against most of what a broken-out guest could try: Landlock (no file, no port, no socket or
//! signal beyond this process), seccomp (a list of the system calls that running isolates takes), and limits on resources.
//! None of them can be taken back.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::{collections::BTreeMap, env::consts::ARCH, io};

/// Descriptors that a cordon may have open: the three of every process, those of the pool, and none for anybody else.
const DESCRIPTORS_MAX: u64 = 32;
/// The newest rules that are asked for; what an older kernel does not know is left out.
const LANDLOCK: ABI = ABI::V6;

/// Whether this kernel can confine a process at all.
#[must_use]
pub fn can_confine() -> bool {
    // Says 0 where seccomp is built in, and is refused where it is not.
    let seccomp = std::fs::read_to_string("/proc/self/status");
    seccomp.is_ok_and(|status| status.lines().any(|line| line.starts_with("Seccomp:")))
        && filters().is_ok()
}

fn failed(what: &str, cause: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{what}: {cause}"))
}

/// The first part, before there are threads: they inherit it.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn confine_self_and_threads_to_come() -> io::Result<()> {
    // Who started this process is gone, or will be: so is this one then.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // No core file with a stranger's memory in it, and nobody of the same user looks in.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, DESCRIPTORS_MAX),
        (Resource::Msgqueue, 0),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        rustix::process::setrlimit(resource, limit)?;
    }
    rustix::thread::set_no_new_privs(true)?;
    landlock().map_err(|error| failed("Landlock", error))
}

/// No rule that allows anything: every file, port, and peer is beyond reach. On a kernel without it, it is seccomp alone that
/// keeps the process from them.
fn landlock() -> Result<(), landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .restrict_self()?;
    Ok(())
}

/// The last part, for all threads of this process, when everything is set up.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn confine_all_threads() -> io::Result<()> {
    for filter in filters()? {
        seccompiler::apply_filter_all_threads(&filter).map_err(|error| failed("seccomp", error))?;
    }
    Ok(())
}

/// `PAGEMAP_SCAN` of linux/fs.h: which pages were written to.
const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// Two programs, of which the stricter answer holds: one knows what may be done, and refuses the rest as an error, because a
/// library may ask for something in passing; the other one ends the process for what no library asks for in passing.
fn filters() -> io::Result<[BpfProgram; 2]> {
    let allowed = SeccompFilter::new(
        allowed()?,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        ARCH.try_into().map_err(|error| failed("seccomp", error))?,
    );
    let fatal = SeccompFilter::new(
        FATAL.iter().map(|call| (*call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::KillProcess,
        ARCH.try_into().map_err(|error| failed("seccomp", error))?,
    );
    let program = |filter: Result<SeccompFilter, _>| -> io::Result<BpfProgram> {
        let filter = filter.map_err(|error| failed("seccomp", error))?;
        filter.try_into().map_err(|error| failed("seccomp", error))
    };
    // The last one that is put on is asked first, and putting one on must still be allowed: the fatal one goes first.
    Ok([program(fatal)?, program(allowed)?])
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn allowed() -> io::Result<Rules> {
    let mut rules: Rules = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let mut only_where = |call: i64, argument: u8, operator: SeccompCmpOp, value: u64| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(|error| failed("seccomp", error))?;
        rules.insert(call, vec![condition]);
        io::Result::Ok(())
    };
    // Code is made before there is a guest. No page becomes executable afterwards.
    let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
    only_where(libc::SYS_mmap, 2, executable.clone(), 0)?;
    only_where(libc::SYS_mprotect, 2, executable, 0)?;
    only_where(libc::SYS_ioctl, 1, SeccompCmpOp::Eq, PAGEMAP_SCAN)?;
    // To end itself by a signal, and nobody else.
    let itself = u64::from(std::process::id());
    only_where(libc::SYS_tgkill, 0, SeccompCmpOp::Eq, itself)?;
    Ok(rules)
}

/// What running isolates, and ending, takes.
const ALLOWED: &[i64] = &[
    // The pipes to and from the server.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_ppoll,
    libc::SYS_close,
    // Threads that wait for each other and for a time.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_setpriority,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_membarrier,
    // Memory.
    libc::SYS_brk,
    // What was written to, in a file that has been open since before.
    libc::SYS_pread64,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Traps of Wasm are signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What only somebody asks for who has broken out.
const FATAL: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_mount,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_pidfd_getfd,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_can_be_made_for_this_machine() {
        assert!(filters().is_ok());
        assert!(can_confine());
    }

    #[test]
    fn no_call_is_both_allowed_and_fatal() {
        for call in FATAL {
            assert!(!ALLOWED.contains(call), "{call}");
        }
    }
}
