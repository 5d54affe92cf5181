//! Who listens where: listening sockets with their inodes, and the processes that hold them open.
//!
//! TCP sockets are asked for by `sock_diag`, and where there is none read from `/proc/net/{tcp,tcp6}`; those of Unix are in
//! `/proc/net/unix`. Everybody may do so. Which process holds a socket is only in its `/proc/PID/fd`, which root and the process's own
//! user may read (proc(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::processes::parent;
use crate::sock_diag::{self, FAMILIES, SockDiag};

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket: its path, or `@` and its abstract name.
    Unix(String),
}

impl Place {
    /// Its TCP port.
    pub fn port(&self) -> Option<u16> {
        match self {
            Place::Tcp(address) => Some(address.port()),
            Place::Unix(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(address) => write!(out, "{address}"),
            Place::Unix(address) => write!(out, "{address}"),
        }
    }
}

/// A socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where.
    pub place: Place,
    /// Its number in `/proc/PID/fd`.
    pub inode: u64,
    /// Whose it is; of a Unix socket the kernel's table does not tell.
    pub user: Option<u32>,
    /// Whether it takes IPv6 alone (`IPV6_V6ONLY`); false where the kernel does not say, as what listens at `[::]` takes both unless
    /// it is told otherwise.
    pub is_v6_only: bool,
}

/// All sockets of this network namespace that listen; several may share one place (`SO_REUSEPORT`).
///
/// # Errors
/// Where there is no `sock_diag`, and `/proc/net` cannot be read either.
pub fn listening() -> io::Result<Vec<Listening>> {
    let mut all = by_sock_diag().or_else(|_| by_table())?;
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    all.extend(unix(&String::from_utf8_lossy(&table)));
    Ok(all)
}

/// TCP listeners, as the kernel lists them by themselves.
fn by_sock_diag() -> io::Result<Vec<Listening>> {
    let mut kernel = SockDiag::open()?;
    let mut all = Vec::new();
    let [four, six] = FAMILIES.map(|family| {
        kernel.ask(family, 1 << sock_diag::LISTEN, 0, &mut |message| {
            all.push(Listening {
                place: Place::Tcp(message.address()),
                inode: message.inode(),
                user: Some(message.user()),
                is_v6_only: message.is_v6_only().unwrap_or(false),
            });
        })
    });
    // The kernel may lack IPv6.
    let _ = six;
    four.map(|()| all)
}

/// TCP listeners from the table of all sockets.
fn by_table() -> io::Result<Vec<Listening>> {
    let mut all = tcp(&fs::read_to_string("/proc/net/tcp")?);
    // Absent where the kernel has no IPv6.
    all.extend(tcp(&fs::read_to_string("/proc/net/tcp6").unwrap_or_default()));
    Ok(all)
}

/// State of a listener in `/proc/net/tcp`, and its flag in `/proc/net/unix` (`__SO_ACCEPTCON`).
const LISTEN: &str = "0A";
const ACCEPTS: u32 = 1 << 16;

fn tcp(table: &str) -> Vec<Listening> {
    let of_line = |line: &str| {
        let columns: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let [_, local, _, state, _, _, _, user, _, inode] = columns[..] else { return None };
        if state != LISTEN {
            return None;
        }
        Some(Listening {
            place: Place::Tcp(address(local)?),
            inode: inode.parse().ok()?,
            user: Some(user.parse().ok()?),
            is_v6_only: false,
        })
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// `0100007F:9C41`: words of four bytes as the machine stores them, in hexadecimal, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = if host.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(word(0)?))
    } else {
        let mut bytes = [0; 16];
        for at in 0..4 {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at * 8)?);
        }
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    Some(SocketAddr::new(ip, port))
}

fn unix(table: &str) -> Vec<Listening> {
    let of_line = |line: &str| {
        // Num: RefCount Protocol Flags Type St Inode Path; the path may hold blanks.
        let columns: Vec<&str> = line.split_ascii_whitespace().take(7).collect();
        let [_, _, _, flags, _, _, inode] = columns[..] else { return None };
        if u32::from_str_radix(flags, 16).ok()? & ACCEPTS == 0 {
            return None;
        }
        // What follows the inode, which is the first word from the seventh column on that is it.
        let after = line.find(&format!(" {inode} "))? + inode.len() + 2;
        let path = line.get(after..).filter(|path| !path.is_empty())?;
        let inode = inode.parse().ok()?;
        Some(Listening { place: Place::Unix(path.to_owned()), inode, user: None, is_v6_only: false })
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// The processes that hold some of these sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Each with those that it holds.
    pub pids: BTreeMap<u32, BTreeSet<u64>>,
    /// Processes whose descriptors this user may not see.
    pub hidden: usize,
}

impl Holders {
    /// Those whose parent holds none: the first process of each server. A service manager that keeps a socket for its server
    /// (`systemd`, process 1) is none.
    pub fn roots(&self) -> Vec<u32> {
        let is_server = |pid: &u32| *pid != 1 && comm(*pid).as_deref() != Some("systemd");
        let servers: BTreeSet<u32> = self.pids.keys().copied().filter(is_server).collect();
        let is_root = |pid: &u32| parent_of(*pid).is_none_or(|parent| !servers.contains(&parent));
        servers.iter().copied().filter(is_root).collect()
    }
}

fn comm(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|text| text.trim_end().to_owned())
}

fn parent_of(pid: u32) -> Option<u32> {
    parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// All processes that hold one of the sockets with these inodes, as far as this user may see.
pub fn holders(inodes: &BTreeSet<u64>) -> Holders {
    let mut found = Holders::default();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        match sockets_of(pid) {
            Ok(held) => {
                let held: BTreeSet<u64> = held.intersection(inodes).copied().collect();
                if !held.is_empty() {
                    found.pids.insert(pid, held);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found.hidden += 1,
            // It has ended meanwhile.
            Err(_) => {}
        }
    }
    found
}

/// Inodes of all sockets that a process holds open.
///
/// # Errors
/// `PermissionDenied` where it is another user's, `NotFound` where there is no such process.
pub fn sockets_of(pid: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        // One that is closed meanwhile leads nowhere.
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        inodes.extend(link.to_str().and_then(inode));
    }
    Ok(inodes)
}

/// `socket:[12345]`
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether a process is in this network namespace; `None` where this user may not see it.
pub fn is_in_our_network(pid: u32) -> Option<bool> {
    let of = |whose: &str| fs::read_link(format!("/proc/{whose}/ns/net")).ok();
    Some(of(&pid.to_string())? == of("self")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

    #[test]
    fn addresses_of_both_families_are_understood() {
        assert_eq!(address("0100007F:9C41"), Some("127.0.0.1:40001".parse().unwrap()));
        let six = "00000000000000000000000001000000:1F90";
        assert_eq!(address(six), Some("[::1]:8080".parse().unwrap()));
        assert_eq!(address("00000000:0050"), Some("0.0.0.0:80".parse().unwrap()));
        assert_eq!((address("x"), address("01:1"), address("0100007F:")), (None, None, None));
    }

    #[test]
    fn a_path_may_hold_blanks_and_numbers() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000003027b53: 00000002 00000000 00010000 0001 01 2821344 /run/a 2821344 b.sock\n\
            0000000003027b54: 00000003 00000000 00000000 0001 03 2821345 /run/a b.sock\n\
            0000000003027b55: 00000002 00000000 00010000 0001 01   812 @name\n\
            0000000003027b56: 00000002 00000000 00010000 0001 01   813\n";
        let found: Vec<(String, u64)> = unix(table).into_iter().map(|one| (one.place.to_string(), one.inode)).collect();
        assert_eq!(found, [("/run/a 2821344 b.sock".to_owned(), 2_821_344), ("@name".to_owned(), 812)]);
    }

    #[test]
    fn this_process_holds_what_it_listens_on() {
        let folder = std::env::temp_dir().join(format!("owners of {}.sock", std::process::id()));
        let unix = UnixListener::bind(&folder).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let all = listening().unwrap();
        for place in [Place::Tcp(address), Place::Unix(folder.to_str().unwrap().to_owned())] {
            let one = all.iter().find(|one| one.place == place).unwrap_or_else(|| panic!("{place} in {all:?}"));
            let found = holders(&BTreeSet::from([one.inode]));
            assert!(found.pids.contains_key(&std::process::id()), "{found:?}");
            assert!(sockets_of(std::process::id()).unwrap().contains(&one.inode));
        }
        drop(unix);
        fs::remove_file(folder).unwrap();
        assert_eq!(is_in_our_network(std::process::id()), Some(true));
        assert_eq!(sockets_of(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Both ways of asking the kernel must agree on each of these, whatever others listen meanwhile.
    #[test]
    fn what_sock_diag_lists_is_what_the_table_lists() {
        let listeners: Vec<_> = ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", "127.0.0.1:0"]
            .iter()
            .filter_map(|address| TcpListener::bind(address).ok())
            .collect();
        let connected = TcpStream::connect(listeners[0].local_addr().unwrap()).unwrap();
        let (diag, table) = (by_sock_diag().unwrap(), by_table().unwrap());
        for listener in &listeners {
            let place = Place::Tcp(listener.local_addr().unwrap());
            let of = |all: &[Listening]| all.iter().filter(|one| one.place == place).cloned().collect::<Vec<_>>();
            let [told, listed] = [of(&diag), of(&table)].map(|of| {
                assert_eq!(of.len(), 1, "{place}");
                of[0].clone()
            });
            // The table does not tell who takes IPv6 alone: as nobody was asked to, those at an address of IPv6 do.
            assert_eq!(Listening { is_v6_only: false, ..told }, listed);
        }
        let ours = Place::Tcp(connected.local_addr().unwrap());
        assert!(diag.iter().all(|one| one.place != ours), "it does not listen");
    }

    #[test]
    fn a_listener_of_ipv6_alone_is_known() {
        use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
        for is_v6_only in [false, true] {
            let Ok(one) = socket(AddressFamily::INET6, SocketType::STREAM, None) else { return };
            sockopt::set_ipv6_v6only(&one, is_v6_only).unwrap();
            let any: SocketAddr = "[::]:0".parse().unwrap();
            if bind(&one, &any).is_err() {
                return;
            }
            listen(&one, 8).unwrap();
            let place = Place::Tcp(TcpListener::from(one.try_clone().unwrap()).local_addr().unwrap());
            let all = by_sock_diag().unwrap();
            let found = all.iter().find(|one| one.place == place).unwrap_or_else(|| panic!("{place} in {all:?}"));
            assert_eq!(found.is_v6_only, is_v6_only, "{place}");
        }
    }

    #[test]
    fn several_sockets_may_share_a_port() {
        use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
        let bound = |address: SocketAddr| {
            let one = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            sockopt::set_socket_reuseport(&one, true).unwrap();
            bind(&one, &address).unwrap();
            listen(&one, 8).unwrap();
            TcpListener::from(one)
        };
        let one = bound("127.0.0.1:0".parse().unwrap());
        let address = one.local_addr().unwrap();
        let other = bound(address);
        let all = listening().unwrap();
        let inodes: BTreeSet<u64> =
            all.iter().filter(|one| one.place == Place::Tcp(address)).map(|one| one.inode).collect();
        let held = &holders(&inodes).pids[&std::process::id()];
        assert_eq!((inodes.len(), held), (2, &inodes));
        // Each has a queue of its own, and the server's is both.
        let seen = crate::InetDiag::of_port(address.port()).unwrap().look().unwrap();
        assert_eq!(seen.limit, Some(16));
        drop((one, other));
    }

    #[test]
    fn a_root_is_held_by_nobody_above_it() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let both = [std::process::id(), child.id(), 1].map(|pid| (pid, BTreeSet::from([7])));
        let holders = Holders { pids: both.into_iter().collect(), hidden: 0 };
        assert_eq!(holders.roots(), [std::process::id()]);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
