//! Whether others send requests to a server while we do. Its times then include theirs.
//!
//! A server on this machine: the kernel lists its ends of connections, and how many bytes each
//! received. Those whose other end is not a socket of this process are others'. A connection counts
//! only if it received bytes since the look before; idle ones of a browser or a proxy say nothing. Who
//! opens a connection for each quick request is hardly seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use model::Endpoint;

use crate::owners::sockets_of;
use crate::sock_diag::{ESTABLISHED, FAMILIES, KernelSocket, SockDiag, SocketQuery};

/// Looks for other clients of a server, a few times while a load goes on.
#[derive(Debug)]
pub struct OtherClients {
    kernel: SockDiag,
    ports: BTreeSet<u16>,
    /// Bytes that the server had received from each other client at the last look, if there was one.
    before: Option<BTreeMap<u16, u64>>,
    most: u64,
}

impl OtherClients {
    /// Of a server at these TCP ports of this machine; `None` if the kernel does not tell.
    pub fn of<'a>(places: impl Iterator<Item = &'a Endpoint>) -> Option<OtherClients> {
        let ports: BTreeSet<u16> = places.filter_map(Endpoint::port).collect();
        let kernel = SockDiag::open().ok().filter(|_| !ports.is_empty())?;
        Some(OtherClients { kernel, ports, before: None, most: 0 })
    }

    /// Looks once. A connection of ours may be opened while the kernel lists its sockets, one by one,
    /// which makes it look like another's, so it has to be another's twice in a row.
    pub fn look(&mut self) {
        let first = self.ask();
        let mut now = self.ask();
        now.retain(|client, _| first.contains_key(client));
        // What was sent before the first look may have been long ago.
        if let Some(before) = self.before.replace(now.clone()) {
            let sent = now
                .iter()
                .filter(|(client, received)| *received > before.get(client).unwrap_or(&0));
            self.most = self.most.max(sent.count() as u64);
        }
    }

    /// Bytes that the server received on each connection of others, by the client's port.
    fn ask(&mut self) -> BTreeMap<u16, u64> {
        // One that we close after the kernel listed it is ours, and so is one that we opened before.
        let mut own = own_sockets();
        let query = SocketQuery { states: 1 << ESTABLISHED, port: 0, has_last_words: true };
        // A kernel may lack IPv6.
        let families = FAMILIES.iter();
        let sockets = families.filter_map(|family| self.kernel.ask(&[*family], query).ok());
        let sockets: Vec<KernelSocket> = sockets.flatten().collect();
        own.append(&mut own_sockets());
        received_from_others(&sockets, &self.ports, &own)
    }

    /// The most connections that sent something between two looks.
    pub fn most(&self) -> u64 {
        self.most
    }
}

/// The inodes of this process's sockets. Each lane has a table of descriptors of its own.
fn own_sockets() -> BTreeSet<u64> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    threads.filter_map(|thread| sockets_of(thread).ok()).flatten().collect()
}

/// Bytes that a server at these ports received on each connection that is not ours, by the client's
/// port. `own`: the inodes of our sockets. Nothing where none of the connections is ours: then
/// something in between changes ports, and it is not known whose they are. Nor is that known of a
/// connection over the loopback device whose other end is not listed: it has just been closed.
fn received_from_others(
    sockets: &[KernelSocket],
    ports: &BTreeSet<u16>,
    own: &BTreeSet<u64>,
) -> BTreeMap<u16, u64> {
    let is_own = |socket: &&KernelSocket| own.contains(&socket.inode);
    let ports_of = |sockets: &mut dyn Iterator<Item = &KernelSocket>| -> BTreeSet<u16> {
        sockets.filter_map(|socket| socket.place.port()).collect()
    };
    let own_ports = ports_of(&mut sockets.iter().filter(is_own));
    let is_client =
        |socket: &&KernelSocket| socket.peer_port.is_some_and(|port| ports.contains(&port));
    let listed_clients = ports_of(&mut sockets.iter().filter(is_client));
    let is_of_server = |socket: &&KernelSocket| {
        socket.place.port().is_some_and(|port| ports.contains(&port)) && !is_own(socket)
    };
    let is_known = |socket: &&KernelSocket| {
        let is_loopback = socket.place.tcp().is_some_and(|at| at.ip().to_canonical().is_loopback());
        !is_loopback || socket.peer_port.is_some_and(|port| listed_clients.contains(&port))
    };
    let clients: BTreeMap<u16, u64> = sockets
        .iter()
        .filter(is_of_server)
        .filter(is_known)
        .filter_map(|socket| Some((socket.peer_port?, socket.received?)))
        .collect();
    let mut others = clients.clone();
    others.retain(|port, _| !own_ports.contains(port));
    if others.len() == clients.len() { BTreeMap::new() } else { others }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(port: u16, peer_port: u16, inode: u64, received: u64) -> KernelSocket {
        socket_at([127, 0, 0, 1], port, peer_port, inode, received)
    }

    fn socket_at(
        address: [u8; 4],
        port: u16,
        peer_port: u16,
        inode: u64,
        received: u64,
    ) -> KernelSocket {
        KernelSocket {
            place: Endpoint::Tcp((address, port).into()),
            is_listener: false,
            inode,
            queue: Some(0),
            limit: None,
            user: Some(0),
            is_v6_only: false,
            last_word: None,
            peer_port: Some(peer_port),
            received: Some(received),
            answered: None,
            cookie: 0,
        }
    }

    #[test]
    fn only_connections_whose_other_end_is_not_ours_are_others() {
        let sockets = [
            // Ours, both ends.
            socket(3000, 50_001, 11, 700),
            socket(50_001, 3000, 1, 900),
            // Another process's of this machine, both ends, and one from another machine.
            socket(3000, 50_002, 12, 300),
            socket(50_002, 3000, 21, 400),
            socket_at([10, 0, 0, 1], 3000, 50_003, 0, 100),
            // Ours or not: its other end was closed while the kernel listed them.
            socket(3000, 50_005, 0, 100),
            // Of another server.
            socket(3001, 50_004, 13, 100),
        ];
        let others = received_from_others(&sockets, &[3000].into(), &[1].into());
        assert_eq!(others, [(50_002, 300), (50_003, 100)].into());
        let others = received_from_others(&sockets, &[3000].into(), &[2].into());
        assert_eq!(others, [].into(), "none is ours");
    }

    #[test]
    fn sockets_of_this_process_are_ours() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = rustix::fs::fstat(&listener).unwrap().st_ino;
        assert!(own_sockets().contains(&inode));
    }
}
