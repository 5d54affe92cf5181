//! Finds listening sockets, and the processes that hold them open.
//!
//! TCP sockets come from `sock_diag`, or from `/proc/net/{tcp,tcp6}` if there is none; Unix sockets
//! come from `/proc/net/unix`. Any user may read these. Which process holds a socket is only in the
//! process's `/proc/PID/fd`, which its own user may read, and those who may see the processes of
//! other users ([`rights`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use proctree::ProcessStat;
use rustix::fs::{Mode, OFlags, RawDir, open, readlinkat};
use rustix::io::Errno;

use crate::rights;
use crate::sock_diag::{FAMILIES, SockDiag, SocketQuery};
use crate::sockets::{KernelSocket, tcp_table, unix_table};

/// All listening sockets of this network namespace; several may share an address (`SO_REUSEPORT`).
///
/// # Errors
/// If there is no `sock_diag`, and `/proc/net` cannot be read either.
pub fn listening() -> io::Result<Vec<KernelSocket>> {
    let mut all = by_sock_diag().or_else(|_| tcp_table())?;
    all.extend(unix_table().unwrap_or_default());
    all.retain(|socket| socket.is_listener);
    Ok(all)
}

/// TCP listeners by `sock_diag`. The kernel may lack IPv6.
fn by_sock_diag() -> io::Result<Vec<KernelSocket>> {
    let mut kernel = SockDiag::open()?;
    let listeners = SocketQuery::listeners(0);
    let mut all = kernel.ask(&FAMILIES[..1], listeners)?;
    all.extend(kernel.ask(&FAMILIES[1..], listeners).unwrap_or_default());
    Ok(all)
}

/// The processes that hold some of these sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketHolders {
    /// Each process with the sockets that it holds.
    pub pids: BTreeMap<u32, BTreeSet<u64>>,
    /// How many processes have descriptors that this user may not see.
    pub hidden: usize,
}

impl SocketHolders {
    /// Processes whose parent holds none of the sockets: the first process of each server. A
    /// service manager that keeps a socket for its server (`systemd`, process 1) does not count.
    pub fn roots(&self) -> Vec<u32> {
        let stats: BTreeMap<u32, Option<ProcessStat>> =
            self.pids.keys().map(|pid| (*pid, ProcessStat::of(*pid))).collect();
        let is_server =
            |pid: u32| pid != 1 && stats[&pid].as_ref().is_none_or(|stat| stat.name != "systemd");
        let is_below = |parent: u32| stats.contains_key(&parent) && is_server(parent);
        let is_root = |pid: &u32| stats[pid].as_ref().is_none_or(|stat| !is_below(stat.parent));
        stats.keys().copied().filter(|pid| is_server(*pid) && is_root(pid)).collect()
    }
}

/// Whether `/proc` hides other users' processes from this user.
pub fn are_hidden() -> bool {
    !rights::sees_other_users() && proctree::hides_processes()
}

/// The processes that hold the sockets with these inodes, as far as this user may see.
pub fn holders(inodes: &BTreeSet<u64>) -> SocketHolders {
    let mut found = SocketHolders::default();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        match sockets_of(pid) {
            Ok(held) => {
                let held: BTreeSet<u64> = held.intersection(inodes).copied().collect();
                if !held.is_empty() {
                    found.pids.insert(pid, held);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found.hidden += 1,
            // It has just ended.
            Err(_) => {}
        }
    }
    found
}

/// The inodes of all sockets that a process holds open.
///
/// # Errors
/// `PermissionDenied` if it is another user's, `NotFound` if there is no such process.
pub fn sockets_of(pid: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    // Reading each link relative to its folder takes a third of the time that its full path takes,
    // which matters when all descriptors of the machine are read.
    let folder =
        open(format!("/proc/{pid}/fd"), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut entries = Vec::with_capacity(8192);
    let mut entries = RawDir::new(&folder, entries.spare_capacity_mut());
    while let Some(Ok(entry)) = entries.next() {
        if entry.file_name().to_bytes().starts_with(b".") {
            continue;
        }
        match readlinkat(&folder, entry.file_name(), Vec::with_capacity(64)) {
            Ok(link) => inodes.extend(link.to_str().ok().and_then(inode)),
            // Some processes let this user read the folder, but no link in it.
            Err(refused @ (Errno::ACCESS | Errno::PERM)) => return Err(refused.into()),
            // It has just been closed.
            Err(_) => {}
        }
    }
    Ok(inodes)
}

/// `socket:[12345]`
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether a process is in this network namespace; `None` if this user may not see it.
pub fn is_in_our_network(pid: u32) -> Option<bool> {
    let of = |whose: &str| fs::read_link(format!("/proc/{whose}/ns/net")).ok();
    Some(of(&pid.to_string())? == of("self")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets;
    use model::Endpoint;
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixListener;

    #[test]
    fn this_process_holds_what_it_listens_on() {
        let path = std::env::temp_dir().join(format!("owners of {}.sock", std::process::id()));
        let unix = UnixListener::bind(&path).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let all = listening().unwrap();
        for place in [Endpoint::Tcp(address), Endpoint::Unix(path.clone())] {
            let one = all
                .iter()
                .find(|one| one.place == place)
                .unwrap_or_else(|| panic!("{place} in {all:?}"));
            let found = holders(&BTreeSet::from([one.inode]));
            assert!(found.pids.contains_key(&std::process::id()), "{found:?}");
            assert!(sockets_of(std::process::id()).unwrap().contains(&one.inode));
        }
        drop(unix);
        fs::remove_file(path).unwrap();
        assert_eq!(is_in_our_network(std::process::id()), Some(true));
        assert_eq!(sockets_of(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Both ways of asking the kernel must agree on each of these, whatever others listen
    /// meanwhile.
    #[test]
    fn what_sock_diag_lists_is_what_the_table_lists() {
        let listeners: Vec<_> = ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", "127.0.0.1:0"]
            .iter()
            .filter_map(|address| TcpListener::bind(address).ok())
            .collect();
        let connected = TcpStream::connect(listeners[0].local_addr().unwrap()).unwrap();
        let diag = by_sock_diag().unwrap();
        let table = tcp_table().unwrap();
        for listener in &listeners {
            let place = Endpoint::Tcp(listener.local_addr().unwrap());
            let is_it = |one: &&KernelSocket| one.is_listener && one.place == place;
            let of = |all: &[KernelSocket]| all.iter().filter(is_it).cloned().collect::<Vec<_>>();
            let [by_netlink, listed] = [of(&diag), of(&table)].map(|of| {
                assert_eq!(of.len(), 1, "{place}");
                of[0].clone()
            });
            // The table does not say which sockets take IPv6 only. The kernel sets that by itself
            // for those that listen at a single IPv6 address.
            assert_eq!(
                KernelSocket { is_v6_only: false, limit: None, cookie: 0, ..by_netlink },
                listed
            );
        }
        let ours = Endpoint::Tcp(connected.local_addr().unwrap());
        assert!(diag.iter().all(|one| one.place != ours), "it does not listen");
    }

    /// Listens at this address with a queue of 8, after `prepare` has set the socket's options;
    /// `None` if there is no such address here.
    fn listening_at(address: &str, prepare: impl Fn(&OwnedFd)) -> Option<TcpListener> {
        let address: SocketAddr = address.parse().unwrap();
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let one = socket(family, SocketType::STREAM, None).ok()?;
        prepare(&one);
        bind(&one, &address).ok()?;
        listen(&one, 8).unwrap();
        Some(TcpListener::from(one))
    }

    #[test]
    fn a_listener_of_ipv6_alone_is_known() {
        for is_v6_only in [false, true] {
            let set = |one: &OwnedFd| sockopt::set_ipv6_v6only(one, is_v6_only).unwrap();
            let Some(one) = listening_at("[::]:0", set) else { return };
            let place = Endpoint::Tcp(one.local_addr().unwrap());
            let all = by_sock_diag().unwrap();
            let found = all
                .iter()
                .find(|one| one.place == place)
                .unwrap_or_else(|| panic!("{place} in {all:?}"));
            assert_eq!(found.is_v6_only, is_v6_only, "{place}");
        }
    }

    #[test]
    fn several_sockets_may_share_a_port() {
        let shared = |address: &str| {
            listening_at(address, |one| sockopt::set_socket_reuseport(one, true).unwrap())
                .expect("loopback is there")
        };
        let one = shared("127.0.0.1:0");
        let address = one.local_addr().unwrap();
        let other = shared(&address.to_string());
        let all = listening().unwrap();
        let inodes: BTreeSet<u64> = all
            .iter()
            .filter(|one| one.place == Endpoint::Tcp(address))
            .map(|one| one.inode)
            .collect();
        let held = &holders(&inodes).pids[&std::process::id()];
        assert_eq!((inodes.len(), held), (2, &inodes));
        // Each has a queue of its own, and the server's is both.
        let seen = sockets::ServerListener::of_port(address.port()).sample().unwrap();
        assert_eq!(seen.limit, Some(16));
        drop((one, other));
    }

    #[test]
    fn the_first_process_of_a_server_is_its_root() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let held = [std::process::id(), child.id(), 1].map(|pid| (pid, BTreeSet::from([7])));
        let holders = SocketHolders { pids: held.into_iter().collect(), hidden: 0 };
        assert_eq!(holders.roots(), [std::process::id()]);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
