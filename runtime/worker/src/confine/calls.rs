//! The system calls that a confined program can make. The kernel has no other ones for it, so that a C library or a
//! runtime goes on without them.
//!
//! What is missing: mounts, namespaces, tracing, keys, modules, clocks, `io_uring`, which no filter sees, and shared memory
//! and queues that every process of the user can open. A call that a later kernel adds is missing too.

use libc::c_long;

macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
}

/// The calls, with their names.
pub(super) const ALLOWED_CALLS: &[(&str, c_long)] = calls! {
    // Files that are open.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2
    SYS_pwritev2 SYS_close SYS_close_range SYS_lseek SYS_ftruncate SYS_fallocate SYS_fadvise64
    SYS_readahead SYS_copy_file_range SYS_sendfile SYS_splice SYS_tee SYS_vmsplice SYS_fsync SYS_fdatasync
    SYS_sync SYS_syncfs SYS_flock SYS_fcntl SYS_ioctl SYS_dup SYS_dup3 SYS_pipe2 SYS_umask SYS_getdents64
    SYS_io_setup SYS_io_destroy SYS_io_submit SYS_io_cancel SYS_io_getevents
    // Files by their path, which Landlock limits. Not `openat2`: a filter cannot read its flags.
    SYS_openat SYS_newfstatat SYS_fstat SYS_statx SYS_statfs SYS_fstatfs SYS_readlinkat SYS_faccessat
    SYS_faccessat2 SYS_getcwd SYS_chdir SYS_fchdir SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_linkat
    SYS_symlinkat SYS_mknodat SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr SYS_llistxattr
    SYS_flistxattr SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch
    // Modes, owners, times and attributes: see `MODE_CALLS`.
    SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_setxattr SYS_lsetxattr SYS_fsetxattr
    SYS_removexattr SYS_lremovexattr SYS_fremovexattr SYS_utimensat
    // Events.
    SYS_eventfd2 SYS_signalfd4 SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime SYS_epoll_create1
    SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_ppoll SYS_pselect6
    // Sockets, of some families.
    SYS_socket SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_getsockname
    SYS_getpeername SYS_getsockopt SYS_setsockopt SYS_shutdown SYS_sendto SYS_recvfrom SYS_sendmsg
    SYS_recvmsg SYS_sendmmsg SYS_recvmmsg
    // Memory.
    SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_msync SYS_madvise SYS_mincore SYS_brk SYS_mlock
    SYS_mlock2 SYS_munlock SYS_mlockall SYS_munlockall SYS_remap_file_pages SYS_memfd_create
    SYS_memfd_secret SYS_membarrier SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_mseal
    // Processes. `clone` without namespaces; not `clone3`, whose flags a filter cannot read.
    SYS_clone SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_kill SYS_tkill
    SYS_tgkill SYS_pidfd_open SYS_pidfd_send_signal SYS_prctl SYS_personality SYS_seccomp
    SYS_landlock_create_ruleset SYS_landlock_add_rule SYS_landlock_restrict_self SYS_set_tid_address
    SYS_set_robust_list SYS_get_robust_list SYS_rseq SYS_futex SYS_futex_waitv SYS_restart_syscall
    // Who the process is.
    SYS_getpid SYS_getppid SYS_gettid SYS_getpgid SYS_setpgid SYS_getsid SYS_setsid SYS_getuid SYS_geteuid
    SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups SYS_setuid SYS_setgid SYS_setreuid
    SYS_setregid SYS_setresuid SYS_setresgid SYS_setfsuid SYS_setfsgid SYS_setgroups SYS_capget SYS_capset
    // Limits and priorities, to be set for itself alone.
    SYS_prlimit64 SYS_getrusage SYS_times SYS_sysinfo SYS_uname SYS_getcpu SYS_getrandom SYS_getpriority
    SYS_setpriority SYS_ioprio_get SYS_ioprio_set SYS_sched_yield SYS_sched_getaffinity
    SYS_sched_setaffinity SYS_sched_getscheduler SYS_sched_setscheduler SYS_sched_getparam
    SYS_sched_setparam SYS_sched_getattr SYS_sched_setattr SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_rr_get_interval
    // Signals and time.
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigpending SYS_rt_sigreturn SYS_rt_sigsuspend
    SYS_rt_sigtimedwait SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_sigaltstack SYS_nanosleep
    SYS_clock_nanosleep SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_getitimer SYS_setitimer
    SYS_timer_create SYS_timer_settime SYS_timer_gettime SYS_timer_getoverrun SYS_timer_delete
};

/// The older calls of this processor, for which the others have newer ones.
#[cfg(target_arch = "x86_64")]
pub(super) const OLDER_CALLS: &[(&str, c_long)] = calls! {
    SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_getdents SYS_mkdir SYS_rmdir
    SYS_unlink SYS_rename SYS_link SYS_symlink SYS_mknod SYS_chmod SYS_chown SYS_lchown SYS_utime
    SYS_utimes SYS_futimesat SYS_dup2 SYS_pipe SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait
    SYS_inotify_init SYS_eventfd SYS_signalfd SYS_fork SYS_vfork SYS_getpgrp SYS_alarm SYS_pause SYS_time
    SYS_arch_prctl SYS_sync_file_range SYS_getrlimit SYS_setrlimit SYS_renameat
};

/// The older calls of this processor: none.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OLDER_CALLS: &[(&str, c_long)] = &[];

/// The calls that change a mode, an owner, a time or an attribute. A filter does not see the file, so a program without
/// a root of its own can make none of them: it could open the user's files to others.
pub(super) const MODE_CALLS: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];
