//! TCP over epoll, edge triggered: each socket is registered once and never touched by `epoll_ctl` again.
//!
//! The wait has nanosecond timeouts (`epoll_pwait2`, Linux 5.11) and the lane's timer slack is 1 ns (the default of
//! 50 000 ns would make each send that late).

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use model::Nanos;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, ipproto, recv, send, socket_with, sockopt,
};

use crate::transport::{Endpoint, Transport};
use crate::wire::{Event, Trouble, Wire};

/// Events taken from the kernel in one wait.
const EVENTS: usize = 1024;

/// The connections of one lane to one address.
pub struct Sockets {
    address: SocketAddr,
    epoll: OwnedFd,
    sockets: Vec<Socket>,
    raw: Vec<epoll::Event>,
}

/// A slot's socket. The generation tells the events of a closed socket from those of its successor.
struct Socket {
    fd: Option<OwnedFd>,
    generation: u32,
}

impl Sockets {
    /// No connection yet, room for `slots`. Sets the calling thread's timer slack: call it on the lane's own thread.
    ///
    /// # Errors
    /// Where the kernel gives no epoll instance (out of descriptors).
    pub fn new(transport: &Transport, _first_connection: u32, slots: usize) -> Result<Sockets, Errno> {
        let Endpoint::Tcp(address) = transport.endpoints[0] else { return Err(Errno::NOTSUP) };
        // A failure leaves the default slack, which the recorded send lag shows.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let sockets = (0..slots).map(|_| Socket { fd: None, generation: 0 }).collect();
        Ok(Sockets { address, epoll, sockets, raw: Vec::with_capacity(EVENTS) })
    }

    fn fd(&self, slot: usize) -> Result<&OwnedFd, Trouble> {
        self.sockets[slot].fd.as_ref().ok_or(Trouble::Failed)
    }
}

impl Wire for Sockets {
    fn open(&mut self, slot: usize) -> Result<(), Trouble> {
        let family = if self.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).map_err(trouble)?;
        sockopt::set_tcp_nodelay(&fd, true).map_err(trouble)?;
        match connect(&fd, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(trouble(errno)),
        }
        let socket = &mut self.sockets[slot];
        socket.generation = socket.generation.wrapping_add(1);
        let data = epoll::EventData::new_u64(u64::from(socket.generation) << 32 | slot as u64);
        let interest =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &fd, data, interest).map_err(trouble)?;
        socket.fd = Some(fd);
        Ok(())
    }

    fn is_connected(&self, _slot: usize) -> bool {
        true
    }

    fn wait(&mut self, at_most: Nanos, events: &mut Vec<Event>) {
        events.clear();
        self.raw.clear();
        let timeout = Timespec {
            tv_sec: (at_most.0 / 1_000_000_000).min(3600).cast_signed(),
            tv_nsec: (at_most.0 % 1_000_000_000).cast_signed(),
        };
        // An interrupted wait is a wait without news.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.raw), Some(&timeout));
        for event in &self.raw {
            let (flags, data) = (event.flags, event.data.u64());
            let slot = data as u32;
            if self.sockets[slot as usize].generation != (data >> 32) as u32 {
                continue;
            }
            let closing = flags.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            let readable = closing || flags.contains(epoll::EventFlags::IN);
            let writable = flags.intersects(epoll::EventFlags::OUT | epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            events.push(Event { slot, readable, writable, closing });
        }
    }

    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Trouble> {
        recv(self.fd(slot)?, buffer, RecvFlags::empty()).map(|(kept, _)| kept).map_err(trouble)
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Trouble> {
        send(self.fd(slot)?, bytes, SendFlags::NOSIGNAL).map_err(trouble)
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.sockets[slot];
        socket.fd = None;
        socket.generation = socket.generation.wrapping_add(1);
    }
}

fn trouble(errno: Errno) -> Trouble {
    match errno {
        Errno::AGAIN | Errno::INTR | Errno::INPROGRESS => Trouble::WouldBlock,
        Errno::CONNREFUSED => Trouble::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN | Errno::CONNABORTED => Trouble::Reset,
        _ => Trouble::Failed,
    }
}
