"""Which system calls a confined child may make, by purpose."""

from __future__ import annotations

import fcntl
import os
import signal
import termios
from typing import Final, NamedTuple


class Test(NamedTuple):
    """A call is allowed when this argument, under this mask, has this value."""

    argument: int
    mask: int
    value: int


_FILES = """
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close creat
    stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat
    getcwd chdir fchdir getdents getdents64 mkdir mkdirat rmdir unlink unlinkat rename renameat
    ftruncate fsync fdatasync flock dup dup2 dup3 pipe pipe2 umask sendfile copy_file_range fadvise64
"""
_MEMORY = "mmap munmap mremap mprotect madvise brk msync membarrier"
_PROCESS = """
    fork vfork execve exit exit_group wait4 waitid restart_syscall set_tid_address set_robust_list rseq
    arch_prctl futex futex_waitv getpid getppid gettid getpgrp getpgid getsid getuid geteuid getgid getegid
    getresuid getresgid getgroups capget getrlimit setrlimit getrusage times sysinfo uname getrandom getcpu
    getpriority sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval
"""
_TIME = """
    clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time alarm setitimer getitimer
"""
_SIGNALS = """
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack pause
"""
_WAITING = """
    select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
    eventfd eventfd2
"""


def _names(*groups: str) -> tuple[str, ...]:
    return tuple(name for group in groups for name in group.split())


ALLOWED: Final = _names(_FILES, _MEMORY, _PROCESS, _TIME, _SIGNALS, _WAITING)

_INT = 0xFFFFFFFF
_CLOSE_RANGE_UNSHARE = 2
_RENAME_FLAGS = 3
_EXIT_SIGNAL = 0xFF
_CLONE_FILES = 0x400
_CLONE_THREAD = 0x10000
# CLONE_PIDFD, PTRACE, PARENT, UNTRACED, IO and those that make namespaces
_CLONE_NEVER = 0x1000 | 0x2000 | 0x8000 | 0x800000 | 0x80000000 | 0x20000 | 0x7E000000
_FCNTL = (
    fcntl.F_DUPFD,
    fcntl.F_DUPFD_CLOEXEC,
    fcntl.F_GETFD,
    fcntl.F_SETFD,
    fcntl.F_GETFL,
    fcntl.F_SETFL,
    fcntl.F_GETLK,
    fcntl.F_SETLK,
    fcntl.F_SETLKW,
    fcntl.F_OFD_GETLK,
    fcntl.F_OFD_SETLK,
    fcntl.F_OFD_SETLKW,
)
_IOCTL = (termios.TCGETS, termios.TIOCGWINSZ, termios.FIONREAD, termios.FIONBIO, termios.FIOCLEX, termios.FIONCLEX)
# PR_GET_DUMPABLE, SET_NAME, GET_NAME, GET_SECCOMP, CAPBSET_READ, GET_NO_NEW_PRIVS, SET_VMA
_PRCTL = (3, 15, 16, 21, 23, 39, 0x53564D41)


def _opens(argument: int) -> tuple[Test, ...]:
    """Opening: never O_TRUNC without writing, which old Landlock ABIs let through on read-only files."""
    mode = os.O_ACCMODE
    return (
        Test(argument, os.O_TRUNC, 0),
        Test(argument, mode, os.O_WRONLY),
        Test(argument, mode, os.O_RDWR),
    )


ALLOWED_VALUES: Final[dict[str, tuple[Test, ...]]] = {
    "open": _opens(1),
    "openat": _opens(2),
    "close_range": (Test(2, _CLOSE_RANGE_UNSHARE, 0),),  # a thread's own table would hide open files
    "renameat2": (Test(4, ~_RENAME_FLAGS & _INT, 0),),
    "clone": (
        Test(0, _CLONE_NEVER | _CLONE_THREAD | _EXIT_SIGNAL, signal.SIGCHLD),
        Test(0, _CLONE_NEVER | _CLONE_THREAD | _CLONE_FILES | _EXIT_SIGNAL, _CLONE_THREAD | _CLONE_FILES),
    ),
    "fcntl": tuple(Test(1, _INT, command) for command in _FCNTL),  # not SETOWN and SETSIG: they send signals
    "ioctl": tuple(Test(1, _INT, request) for request in _IOCTL),
    "prctl": tuple(Test(0, _INT, option) for option in _PRCTL),  # not PDEATHSIG
    "prlimit64": (Test(0, _INT, 0),),  # a process of the same uid could otherwise be limited to death
}

REFUSED: Final = _names(
    """
    socket socketpair connect bind listen accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg
    shutdown setsockopt getsockopt getsockname getpeername
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp
    pidfd_open pidfd_getfd pidfd_send_signal tkill rt_sigqueueinfo rt_tgsigqueueinfo
    setsid setpgid unshare setns chroot pivot_root mount umount2 mount_setattr move_mount open_tree
    fsopen fsconfig fsmount fspick
    shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr memfd_create memfd_secret
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
    link linkat symlink symlinkat mknod mknodat truncate name_to_handle_at open_by_handle_at
    inotify_init inotify_init1 inotify_add_watch fanotify_init fanotify_mark
    setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset
    setpriority ioprio_set sched_setaffinity sched_setparam sched_setscheduler sched_setattr
    mbind set_mempolicy migrate_pages move_pages mlock mlock2 mlockall
    execveat uselib personality modify_ldt iopl ioperm seccomp
    bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register io_setup io_submit
    add_key request_key keyctl splice tee vmsplice
    init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl
    syslog settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname vhangup
    """
)
