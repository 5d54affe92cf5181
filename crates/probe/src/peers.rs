//! Where the sockets of a process lead: the address or the path at the other end of a connection that
//! it made.
//!
//! For TCP the process's own `/proc/PID/net/tcp` and `tcp6` say it, also in another network
//! namespace. For a Unix socket only `sock_diag` knows the other end (`unix_diag`), in this namespace
//! alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};

use crate::sock_diag;
use crate::sockets::{LISTENING, address, columns};

/// The most sockets that are remembered.
const MOST: usize = 4096;

/// A connection that a process made, and that it may share with others: the same socket has the same
/// inode in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendConnection {
    /// The socket's inode.
    pub inode: u64,
    /// The address or the path at its other end.
    pub place: String,
}

/// Where sockets lead, by their inode. Each is looked up once, since connections to a backend stay.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: BTreeMap<u64, Option<String>>,
}

impl Peers {
    /// Where these sockets of a process lead, one after the other. Left out are those that it accepted,
    /// whose other end is a client, and those of which it is not known.
    pub(crate) fn of(&mut self, pid: u32, inodes: &[u64]) -> Vec<BackendConnection> {
        if inodes.iter().any(|inode| !self.known.contains_key(inode)) {
            self.look_up(pid, inodes);
        }
        let known = |inode: &u64| {
            let place = self.known.get(inode)?.clone()?;
            Some(BackendConnection { inode: *inode, place })
        };
        inodes.iter().filter_map(known).collect()
    }

    fn look_up(&mut self, pid: u32, inodes: &[u64]) {
        if self.known.len() + inodes.len() > MOST {
            self.known.clear();
        }
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
        let tables = ["tcp", "tcp6"].map(|name| read(name).unwrap_or_default());
        let mut made = made_in(&tables);
        for inode in inodes {
            let peer = made.remove(inode);
            let peer = peer.or_else(|| sock_diag::unix_peer(u32::try_from(*inode).ok()?));
            self.known.entry(*inode).or_insert(peer);
        }
    }
}

/// The connections in these tables that were made here, by inode, and where each leads.
fn made_in(tables: &[String]) -> BTreeMap<u64, String> {
    let lines = tables.iter().flat_map(|table| table.lines()).filter(|line| !is_over(line));
    let lines: Vec<TcpLine> = lines.filter_map(TcpLine::of).collect();
    let listening = lines.iter().filter(|line| line.state == LISTENING);
    let listened: BTreeSet<u16> = listening.map(|line| line.local.port()).collect();
    let made =
        lines.iter().filter(|line| line.inode != 0 && !listened.contains(&line.local.port()));
    made.map(|line| (line.inode, in_words(line.remote))).collect()
}

/// Whether a line is of a connection that is closed and waits for stray segments. A server that asks its
/// backend over a new connection each time leaves thousands of them.
fn is_over(line: &str) -> bool {
    const TIME_WAIT: &str = "06";
    line.split_ascii_whitespace().nth(3) == Some(TIME_WAIT)
}

/// An IPv4 address that is written as an IPv6 one is shown as what it is.
fn in_words(place: SocketAddr) -> String {
    let ip = match place.ip() {
        IpAddr::V6(ip) => ip.to_canonical(),
        ip @ IpAddr::V4(_) => ip,
    };
    SocketAddr::new(ip, place.port()).to_string()
}

/// What a line of `/proc/net/tcp` says of a socket.
struct TcpLine {
    local: SocketAddr,
    remote: SocketAddr,
    state: u8,
    inode: u64,
}

impl TcpLine {
    fn of(line: &str) -> Option<TcpLine> {
        // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
        let ([_, local, remote, state, _, _, _, _, _, inode], _) = columns(line)?;
        Some(TcpLine {
            local: address(local)?,
            remote: address(remote)?,
            state: u8::from_str_radix(state, 16).ok()?,
            inode: inode.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn inode_of(socket: impl AsFd) -> u64 {
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    #[test]
    fn a_connection_that_was_made_leads_to_its_server_and_one_that_was_accepted_nowhere() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let made = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let mut peers = Peers::default();
        let mut of = |socket| {
            let found = peers.of(std::process::id(), &[socket]);
            found.into_iter().map(|one| one.place).collect::<Vec<String>>()
        };
        assert_eq!(of(inode_of(&made)), [listener.local_addr().unwrap().to_string()]);
        assert_eq!(of(inode_of(&accepted)), [""; 0]);
        assert_eq!(of(u64::MAX), [""; 0]);
    }

    #[test]
    fn a_connection_to_a_unix_socket_leads_to_its_path() {
        let path = std::env::temp_dir().join(format!("peers of {}.sock", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let made = UnixStream::connect(&path).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let mut peers = Peers::default();
        let mut of = |socket| {
            let found = peers.of(std::process::id(), &[socket]);
            found.into_iter().map(|one| one.place).collect::<Vec<String>>()
        };
        let found = of(inode_of(&made));
        // A kernel may lack unix_diag.
        assert!(found.is_empty() || found == [path.display().to_string()], "{found:?}");
        assert_eq!(of(inode_of(&accepted)), [""; 0]);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_ipv4_address_in_the_table_of_ipv6_is_shown_as_one() {
        let place = "[::ffff:127.0.0.1]:5432".parse().unwrap();
        assert_eq!(in_words(place), "127.0.0.1:5432");
        assert_eq!(in_words("[::1]:5432".parse().unwrap()), "[::1]:5432");
    }
}
