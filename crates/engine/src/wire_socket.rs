//! Sockets over epoll, edge triggered: each is registered once and never touched by `epoll_ctl` again.
//!
//! TCP over IPv4 and IPv6, and Unix sockets. The wait is to the nanosecond (crate `poller`), and the lane's
//! timer slack is 1 ns (the default of 50 000 ns would make each send that late). What goes over the sockets is not looked at.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use model::Nanos;
use poller::{EventFlags, Poller};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getpeername,
    getsockname, recv, send, socket_with, sockopt,
};

use crate::stamps::{self, ArrivalStamps};
use crate::tcp_info::TcpInfo;
use crate::transport::{Endpoint, Transport};
use crate::wire::{ConnectionDriver, ConnectionError, ConnectionEvent};

/// Events taken from the kernel in one wait.
const EVENTS: usize = 1024;

/// The connections of one lane.
pub struct SocketDriver {
    first_connection: usize,
    places: Vec<ConnectAddress>,
    poller: Poller,
    /// What the last wait brought.
    news: Vec<poller::Event>,
    slots: Vec<Socket>,
    /// What the kernel says of when bytes came, where it is asked.
    stamps: Option<ArrivalStamps>,
}

/// An endpoint as the kernel wants it, and the addresses from which to go there (port 0; empty: the kernel chooses).
enum ConnectAddress {
    Tcp { family: AddressFamily, address: SocketAddr, sources: Vec<SocketAddr> },
    Unix(SocketAddrUnix),
}

/// A slot's socket. The generation tells the events of a closed socket from those of its successor.
struct Socket {
    fd: Option<OwnedFd>,
    generation: u32,
}

impl SocketDriver {
    /// No connection yet, room for `slots`, of which the first has the number `first_connection` in the run. Sets the
    /// calling thread's timer slack: call it on the lane's own thread.
    ///
    /// # Errors
    /// Where the kernel gives no epoll instance (out of descriptors), or the transport has not passed [`Transport::check`].
    ///
    /// # Panics
    /// Where the transport has no endpoint: our bug.
    pub fn new(transport: &Transport, first_connection: u32, slots: usize) -> Result<SocketDriver, Errno> {
        assert!(!transport.endpoints.is_empty(), "a transport has an endpoint");
        let places: Result<_, Errno> =
            transport.endpoints.iter().map(|e| ConnectAddress::new(e, &transport.source_ips)).collect();
        // A failure leaves the default slack, which the recorded send lag shows.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(SocketDriver {
            first_connection: first_connection as usize,
            places: places?,
            poller: Poller::new()?,
            news: Vec::with_capacity(EVENTS),
            slots: (0..slots).map(|_| Socket { fd: None, generation: 0 }).collect(),
            stamps: None,
        })
    }

    /// Has the kernel stamp what is received from now on, on connections that are opened from now on.
    ///
    /// # Errors
    /// Where the kernel does not know such stamps.
    pub fn stamp_arrivals(&mut self) -> Result<(), Errno> {
        self.stamps = Some(ArrivalStamps::new()?);
        Ok(())
    }

    fn fd(&self, slot: usize) -> Result<&OwnedFd, ConnectionError> {
        self.slots[slot].fd.as_ref().ok_or(ConnectionError::Failed)
    }

    /// A socket that connects, or is connected.
    fn connect(&self, slot: usize) -> Result<OwnedFd, Errno> {
        let number = self.first_connection + slot;
        match &self.places[number % self.places.len()] {
            ConnectAddress::Tcp { family, address, sources } => {
                let fd = stream(*family)?;
                sockopt::set_tcp_nodelay(&fd, true)?;
                if self.stamps.is_some() {
                    stamps::ask(&fd)?;
                }
                if !sources.is_empty() {
                    bind_source(&fd, &sources[number / self.places.len() % sources.len()])?;
                }
                match connect(&fd, address) {
                    Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(fd),
                    Err(errno) => Err(errno),
                }
            }
            ConnectAddress::Unix(address) => {
                let fd = stream(AddressFamily::UNIX)?;
                match connect(&fd, address) {
                    Ok(()) => Ok(fd),
                    // The listener's accept queue is full (unix(7); net/unix/af_unix.c, unix_stream_connect). Unlike TCP,
                    // where the kernel tries again by itself, nothing is under way and no event would ever come. It is the
                    // server's side that did not take us: refused.
                    Err(Errno::AGAIN) => Err(Errno::CONNREFUSED),
                    Err(errno) => Err(errno),
                }
            }
        }
    }
}

impl ConnectAddress {
    fn new(endpoint: &Endpoint, source_ips: &[IpAddr]) -> Result<ConnectAddress, Errno> {
        match endpoint {
            Endpoint::Tcp(address) => {
                let sources: Vec<_> = source_ips
                    .iter()
                    .filter(|source| source.is_ipv4() == address.is_ipv4())
                    .map(|source| SocketAddr::new(*source, 0))
                    .collect();
                if sources.is_empty() && !source_ips.is_empty() {
                    return Err(Errno::AFNOSUPPORT);
                }
                Ok(ConnectAddress::Tcp { family: family(address.ip()), address: *address, sources })
            }
            Endpoint::Unix(path) => SocketAddrUnix::new(path.as_path()).map(ConnectAddress::Unix),
            Endpoint::Abstract(name) => SocketAddrUnix::new_abstract_name(name).map(ConnectAddress::Unix),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

fn stream(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

/// Binds to an address and leaves the port to `connect()`.
///
/// A plain bind would take a port at once, one that nobody else uses: with a connection a request, each source would be
/// out of ports after 28 000 in a minute, for as long as closed connections linger. `connect()` only asks that the pair of both
/// ends be new (ip(7), `IP_BIND_ADDRESS_NO_PORT`; for IPv6 sockets too).
fn bind_source(fd: &OwnedFd, source: &SocketAddr) -> Result<(), Errno> {
    // Where the kernel does not know it (before 4.2), the port is taken early.
    let _ = nix::sys::socket::setsockopt(fd, nix::sys::socket::sockopt::IpBindAddressNoPort, &true);
    bind(fd, source)
}

/// Whether one can connect from here, so that a mistake is found before the start.
pub(crate) fn try_source(address: IpAddr) -> Result<(), Errno> {
    bind_source(&stream(family(address))?, &SocketAddr::new(address, 0))
}

impl ConnectionDriver for SocketDriver {
    fn open(&mut self, slot: usize) -> Result<(), ConnectionError> {
        let fd = self.connect(slot).map_err(trouble)?;
        let socket = &mut self.slots[slot];
        socket.generation = socket.generation.wrapping_add(1);
        let data = u64::from(socket.generation) << 32 | slot as u64;
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        self.poller.add(&fd, data, interest).map_err(trouble)?;
        socket.fd = Some(fd);
        Ok(())
    }

    fn is_connected(&self, slot: usize) -> bool {
        self.fd(slot).is_ok_and(|fd| getpeername(fd).is_ok())
    }

    fn local_port(&self, slot: usize) -> Option<u16> {
        let address = getsockname(self.fd(slot).ok()?).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.port())
    }

    #[cold]
    fn has_unasked(&self, slot: usize) -> bool {
        self.fd(slot).is_ok_and(|fd| matches!(recv(fd, &mut [0; 1], RecvFlags::PEEK), Ok((1.., _))))
    }

    fn tcp_info(&self, slot: usize) -> Option<TcpInfo> {
        TcpInfo::of(self.fd(slot).ok()?)
    }

    #[inline(always)]
    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
        events.clear();
        self.poller.wait(at_most, &mut self.news);
        for event in &self.news {
            let (data, flags) = (event.data.u64(), event.flags);
            let slot = data as u32;
            if self.slots[slot as usize].generation != (data >> 32) as u32 {
                continue;
            }
            events.push(ConnectionEvent { slot, flags });
        }
    }

    #[inline(always)]
    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, ConnectionError> {
        let fd = self.slots[slot].fd.as_ref().ok_or(ConnectionError::Failed)?;
        match &mut self.stamps {
            Some(stamps) => stamps.receive(fd, buffer),
            None => recv(fd, buffer, RecvFlags::empty()).map(|(kept, _)| kept),
        }
        .map_err(trouble)
    }

    #[inline(always)]
    fn stamp(&self, _slot: usize) -> Option<Nanos> {
        // Whoever asks has just received.
        self.stamps.as_ref()?.last()
    }

    #[inline(always)]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, ConnectionError> {
        send(self.fd(slot)?, bytes, SendFlags::NOSIGNAL).map_err(trouble)
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.slots[slot];
        socket.fd = None;
        socket.generation = socket.generation.wrapping_add(1);
    }
}

fn trouble(errno: Errno) -> ConnectionError {
    match errno {
        Errno::AGAIN | Errno::INTR | Errno::INPROGRESS => ConnectionError::WouldBlock,
        Errno::CONNREFUSED => ConnectionError::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN | Errno::CONNABORTED => ConnectionError::Reset,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN => ConnectionError::NoRoute,
        Errno::TIMEDOUT => ConnectionError::TimedOut,
        Errno::ADDRNOTAVAIL => ConnectionError::NoPort,
        Errno::MFILE | Errno::NFILE => ConnectionError::NoDescriptor,
        Errno::NOBUFS | Errno::NOMEM => ConnectionError::NoMemory,
        _ => ConnectionError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_came_before_anything_was_sent_is_seen_and_stays() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut sockets = SocketDriver::new(&Transport::tcp(listener.local_addr().unwrap()), 0, 1).unwrap();
        sockets.open(0).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert!(!sockets.has_unasked(0));
        server.write_all(b"hello").unwrap();
        while !sockets.has_unasked(0) {
            std::thread::yield_now();
        }
        let mut buffer = [0; 8];
        assert_eq!((sockets.receive(0, &mut buffer), &buffer[..5]), (Ok(5), &b"hello"[..]));
        drop(server);
        sockets.close(0);
        assert!(!sockets.has_unasked(0), "an end is no answer");
    }

    #[test]
    fn why_no_connection_comes_about_is_told_by_name() {
        for (errno, told) in [
            (Errno::INPROGRESS, ConnectionError::WouldBlock),
            (Errno::CONNREFUSED, ConnectionError::Refused),
            (Errno::NETUNREACH, ConnectionError::NoRoute),
            (Errno::HOSTUNREACH, ConnectionError::NoRoute),
            (Errno::TIMEDOUT, ConnectionError::TimedOut),
            (Errno::ADDRNOTAVAIL, ConnectionError::NoPort),
            (Errno::MFILE, ConnectionError::NoDescriptor),
            (Errno::NFILE, ConnectionError::NoDescriptor),
            (Errno::NOMEM, ConnectionError::NoMemory),
            (Errno::PERM, ConnectionError::Failed),
        ] {
            assert_eq!(trouble(errno), told, "{errno}");
        }
    }
}
