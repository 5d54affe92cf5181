//! All open connections, each by a key that is never given to another: an event or an answer that comes after its
//! connection was closed finds nobody, and not the next one.

use crate::connection::Connection;

/// A connection's name: its place, and how often the place was taken before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

impl Key {
    /// As a number for the kernel to keep.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The key of that number.
    pub(crate) fn of(number: u64) -> Key {
        Key(number)
    }

    fn new(place: usize, taking: u32) -> Key {
        Key(u64::from(taking) << 32 | place as u64)
    }

    fn place(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }

    fn taking(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[derive(Debug, Default)]
struct ConnectionCell {
    taking: u32,
    connection: Option<Connection>,
}

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    places: Vec<ConnectionCell>,
    free: Vec<usize>,
}

impl Connections {
    /// The key that [`Connections::insert`] will give next.
    pub(crate) fn next_key(&self) -> Key {
        match self.free.last() {
            Some(place) => Key::new(*place, self.places[*place].taking),
            None => Key::new(self.places.len(), 0),
        }
    }

    /// Takes a connection in.
    pub(crate) fn insert(&mut self, connection: Connection) -> Key {
        let key = self.next_key();
        if self.free.pop().is_none() {
            self.places.push(ConnectionCell::default());
        }
        self.places[key.place()].connection = Some(connection);
        key
    }

    /// The connection, if it is still open.
    pub(crate) fn at(&mut self, key: Key) -> Option<&mut Connection> {
        let place = self.places.get_mut(key.place())?;
        if place.taking == key.taking() { place.connection.as_mut() } else { None }
    }

    /// Takes a connection out; dropping it closes it.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Connection> {
        self.at(key)?;
        let place = &mut self.places[key.place()];
        place.taking = place.taking.wrapping_add(1);
        self.free.push(key.place());
        place.connection.take()
    }

    /// All that are open.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &Connection)> {
        let key = |(number, place): (usize, &ConnectionCell)| Key::new(number, place.taking);
        self.places.iter().enumerate().filter_map(move |(number, place)| {
            place.connection.as_ref().map(|connection| (key((number, place)), connection))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;
    use rustix::event::{EventfdFlags, eventfd};

    fn connection() -> Connection {
        Connection::new(Wire::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap(), None))
    }

    #[test]
    fn an_old_key_finds_nobody() {
        let mut connections = Connections::default();
        let first = connections.insert(connection());
        let second = connections.insert(connection());
        assert!(connections.remove(first).is_some());
        assert!(connections.remove(first).is_none());
        assert_eq!(connections.iter().map(|(key, _)| key).collect::<Vec<_>>(), [second]);
        let third = connections.insert(connection());
        assert_ne!(first, third);
        assert_eq!(first.place(), third.place());
        assert!(connections.at(first).is_none());
        assert!(connections.at(third).is_some());
        assert_eq!(Key::of(third.number()), third);
    }
}
