//! The namespaces of a program: a user without rights, processes that end with their first one, and mounts of its own.

use crate::limits::drop_capabilities;
use rustix::process::{
    Pid, Signal, WaitOptions, getegid, geteuid, getpid, set_parent_process_death_signal, wait,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode, ExitStatus};
use tokio::signal::unix::{SignalKind, signal};

/// Added to the number of a signal, it is the exit code of a program that a signal ended, as shells do it.
const SIGNAL_EXIT_CODE: i32 = 128;

/// Whether this is the first process of its namespace.
pub(super) fn is_inside() -> bool {
    getpid() == Pid::INIT
}

/// Starts this program again inside new namespaces, with the same arguments, and waits for its end.
pub(super) fn enter() -> io::Result<ExitCode> {
    let (user, group) = (geteuid(), getegid());
    // Not deprecated for these namespaces: only a table of files of its own could break a safe program.
    #[allow(deprecated, reason = "the other function is not safe")]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID)?;
    // The numbers stay as they are. The kernel wants the second file first.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    keep_mount_capability()?;
    // New rights may have removed it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(arguments.next().unwrap_or_default()).args(arguments);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(exit_code(runtime.block_on(wait_for(command))?))
}

/// The rights inside the namespace end when a program is started, unless they are inherited like this.
fn keep_mount_capability() -> rustix::io::Result<()> {
    let sets = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::SYS_ADMIN, ..sets })?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)
}

/// Waits for the end of a command. A request to end is for the program, which is in the same group of processes and gets
/// it too. If this process ended first, the program would have no time.
async fn wait_for(command: Command) -> io::Result<ExitStatus> {
    let mut requests = signal(SignalKind::terminate())?;
    // The new process soon takes the root of this one away.
    let null = open_null()?;
    let mut child = tokio::process::Command::from(command).spawn()?;
    drop_capabilities()?;
    close_pipes(&null)?;
    loop {
        tokio::select! {
            status = child.wait() => return status,
            _ = requests.recv() => {}
        }
    }
}

/// Starts the program as the second process of the namespace, and waits for its end. The first one takes the exit status
/// of every process without a parent. Without a handler it takes no signal, so it is not the program itself.
pub(super) fn start(command: &mut Command) -> io::Result<ExitCode> {
    let null = open_null()?;
    let child = command.spawn()?;
    close_pipes(&null)?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process.as_raw_nonzero().get().unsigned_abs() == child.id() => {
                return Ok(exit_code(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Leaves the pipes to the program alone, so that they close when it closes them.
fn close_pipes(null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    Ok(rustix::stdio::dup2_stderr(null)?)
}

fn open_null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| SIGNAL_EXIT_CODE + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
