//! Sockets over epoll, edge triggered: each is registered once and never touched by `epoll_ctl` again.
//!
//! TCP over IPv4 and IPv6, and Unix sockets. The wait is to the nanosecond (crate `poller`), and the lane's
//! timer slack is 1 ns (the default of 50 000 ns would make each send that late). What goes over the sockets is not looked at.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use model::{Nanos, Timestamps};
use poller::{EventFlags, Poller};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, connect, getpeername, recv, send, sockopt};

use crate::connect::{ConnectAddress, bind_source, own_address};
use crate::stamps::{self, ArrivalStamps};
use crate::tcp_info::TcpInfo;
use crate::transport::Transport;
use crate::wire::{ConnectionDriver, ConnectionEvent};

/// Events taken from the kernel in one wait.
const EVENTS: usize = 1024;

/// The connections of one lane.
pub struct SocketDriver {
    first_connection: usize,
    addresses: Vec<ConnectAddress>,
    poller: Poller,
    /// What the last wait brought.
    news: Vec<poller::Event>,
    slots: Vec<SlotSocket>,
    /// What the kernel says of when bytes came, where it is asked.
    stamps: Option<ArrivalStamps>,
}

/// A slot's socket. The generation tells the events of a closed socket from those of its successor.
struct SlotSocket {
    fd: Option<OwnedFd>,
    generation: u32,
}

impl SocketDriver {
    /// No connection yet, room for `slots`, of which the first has the number `first_connection` in the run. Sets the
    /// calling thread's timer slack: call it on the lane's own thread.
    ///
    /// # Errors
    /// Where the kernel gives no epoll instance (out of descriptors) or no stamps, or the transport has not passed [`Transport::check`].
    ///
    /// # Panics
    /// Where the transport has no endpoint: our bug.
    pub fn new(
        transport: &Transport,
        first_connection: u32,
        slots: usize,
        timestamps: Timestamps,
    ) -> Result<SocketDriver, Errno> {
        assert!(!transport.endpoints.is_empty(), "a transport has an endpoint");
        let addresses = transport.endpoints.iter().map(|e| ConnectAddress::new(e, &transport.source_ips));
        let addresses = addresses.collect::<Result<_, Errno>>()?;
        // A failure leaves the default slack, which the recorded send lag shows.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(SocketDriver {
            first_connection: first_connection as usize,
            addresses,
            poller: Poller::new()?,
            news: Vec::with_capacity(EVENTS),
            slots: (0..slots).map(|_| SlotSocket { fd: None, generation: 0 }).collect(),
            stamps: if timestamps == Timestamps::Kernel { Some(ArrivalStamps::new()?) } else { None },
        })
    }

    /// How many connections there is room for.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    fn fd(&self, slot: usize) -> Result<&OwnedFd, Errno> {
        self.slots[slot].fd.as_ref().ok_or(Errno::NOTCONN)
    }

    /// A socket that connects, or is connected.
    fn connect(&self, slot: usize) -> Result<OwnedFd, Errno> {
        let number = self.first_connection + slot;
        let to = &self.addresses[number % self.addresses.len()];
        let fd = to.socket(SocketFlags::NONBLOCK)?;
        if !to.is_unix() {
            sockopt::set_tcp_nodelay(&fd, true)?;
            if self.stamps.is_some() {
                stamps::ask(&fd)?;
            }
            if !to.sources.is_empty() {
                bind_source(&fd, &to.sources[number / self.addresses.len() % to.sources.len()])?;
            }
        }
        match connect(&fd, &to.address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(fd),
            // The listener's accept queue is full (unix(7); net/unix/af_unix.c, unix_stream_connect). Unlike TCP,
            // where the kernel tries again by itself, nothing is under way and no event would ever come. It is the
            // server's side that did not take us: refused.
            Err(Errno::AGAIN) if to.is_unix() => Err(Errno::CONNREFUSED),
            Err(errno) => Err(errno),
        }
    }
}

impl ConnectionDriver for SocketDriver {
    fn open(&mut self, slot: usize) -> Result<(), Errno> {
        let fd = self.connect(slot)?;
        let socket = &mut self.slots[slot];
        socket.generation = socket.generation.wrapping_add(1);
        let data = u64::from(socket.generation) << 32 | slot as u64;
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        self.poller.add(&fd, data, interest)?;
        socket.fd = Some(fd);
        Ok(())
    }

    fn is_connected(&self, slot: usize) -> bool {
        self.fd(slot).is_ok_and(|fd| getpeername(fd).is_ok())
    }

    fn local_port(&self, slot: usize) -> Option<u16> {
        own_address(self.fd(slot).ok()?).map(|address| address.port())
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
    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.slots[slot].fd.as_ref().ok_or(Errno::NOTCONN)?;
        match &mut self.stamps {
            Some(stamps) => stamps.receive(fd, buffer),
            None => recv(fd, buffer, RecvFlags::empty()).map(|(kept, _)| kept),
        }
    }

    #[inline(always)]
    fn stamp(&self, _slot: usize) -> Option<Nanos> {
        // Whoever asks has just received.
        self.stamps.as_ref()?.last()
    }

    #[inline(always)]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        send(self.fd(slot)?, bytes, SendFlags::NOSIGNAL)
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.slots[slot];
        socket.fd = None;
        socket.generation = socket.generation.wrapping_add(1);
    }
}
