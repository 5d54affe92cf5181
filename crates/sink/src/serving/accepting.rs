//! How connections come to a loop, and how they go.

use std::sync::Arc;

use model::Clock;
use poller::EventFlags;
use rustix::fd::OwnedFd;
use rustls::{ServerConfig, ServerConnection};

use super::{ACCEPTS, Listening, MOST_LISTENERS, Serving, WAKE, watched};
use crate::SinkError;
use crate::connection::{Booking, Connection, Phase, Says};
use crate::connections::Key;
use crate::listener::{Accepted, Listener};
use crate::wire::Wire;

impl<C: Clock + Clone> Serving<C> {
    /// Takes a listener in.
    pub(super) fn listen(&mut self, listener: Listener, tls: Option<&Arc<ServerConfig>>) -> Result<(), SinkError> {
        let mut flags = EventFlags::IN | EventFlags::ET;
        if listener.is_shared() {
            flags |= EventFlags::EXCLUSIVE;
        }
        let place = self.listeners.len() as u64;
        assert!(place < MOST_LISTENERS - 1, "as many listeners as descriptors, and those are fewer");
        self.poller.add(&listener, WAKE - 1 - place, flags).map_err(SinkError::of("wait for connections"))?;
        self.listeners.push(Listening { listener, may_accept: true, tls: tls.cloned() });
        Ok(())
    }

    /// Whether a listener may have a connection that the loop would take, now or by the rate.
    pub(super) fn may_accept(&self) -> bool {
        !self.cannot_accept && self.listeners.iter().any(|listening| listening.may_accept) && self.pool.has_room()
    }

    /// Accepts what is there, up to a limit.
    pub(super) fn accept(&mut self) {
        self.cannot_accept = false;
        for _ in 0..ACCEPTS {
            if self.next_accept > self.now || !self.may_accept() {
                return;
            }
            // One of each in its turn, so that none waits behind a busy one.
            let places = self.listeners.len();
            let turn = (0..places).map(|step| (self.next_listener + step) % places);
            let Some(place) = turn.into_iter().find(|place| self.listeners[*place].may_accept) else { return };
            self.next_listener = (place + 1) % places;
            let listening = &mut self.listeners[place];
            match listening.listener.accept() {
                Accepted::Connection(socket) => {
                    let tls = listening.tls.clone();
                    // By the schedule and not by now, as a late turn must not lower the rate; but no time is saved up.
                    let earliest = self.now.saturating_sub(self.accept_gap);
                    self.next_accept = self.next_accept.max(earliest) + self.accept_gap;
                    self.take_in(socket, tls);
                }
                Accepted::Nobody => listening.may_accept = false,
                Accepted::Failed => {
                    self.ledger.accept_failures += 1;
                    self.cannot_accept = true;
                    return;
                }
            }
        }
    }

    fn take_in(&mut self, socket: OwnedFd, tls: Option<Arc<ServerConfig>>) {
        let data = self.connections.next_key().number();
        // Where TLS cannot be had there is no memory.
        let tls = tls.map(ServerConnection::new).transpose();
        let (Ok(tls), Ok(())) = (tls, self.poller.add(&socket, data, watched())) else {
            self.ledger.accept_failures += 1;
            return;
        };
        let key = self.connections.insert(Connection::new(Wire::new(socket, tls)));
        self.ledger.connections += 1;
        self.ledger.open_connections += 1;
        self.pool.open(key);
        if self.pool.limits_accepts() {
            // Its request may be there, and take the slot that would let the next connection in.
            if let Some(connection) = self.connections.at(key) {
                connection.note_readable(false);
            }
            self.advance(key, true);
        }
    }

    /// Whether somebody waits to be accepted.
    pub(super) fn has_pending_clients(&self) -> bool {
        self.listeners.iter().any(|listening| listening.listener.has_pending())
    }

    /// Forgets a connection. A request of it that is in the pool stays there.
    pub(super) fn close(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(key) else { return };
        self.pool.close(self.now, key);
        self.ledger.open_connections -= u64::from(connection.booking != Booking::Onlooker);
        if let Phase::Writing { says: Says::Answer, .. } = connection.phase {
            self.ledger.abandoned += 1;
        }
    }
}
