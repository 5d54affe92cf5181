//! How many requests a server has answered between two samples of its connections, by the kernel's
//! counts of segments with data: each request takes one or more, and so does each response.

use std::collections::{BTreeMap, BTreeSet};

use crate::sock_diag::{ClosedConnections, KernelSocket};

/// What the connections to a port did between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredSince {
    /// How many requests were answered, at most: a request and its response that are several segments
    /// each may count as several.
    pub requests: u32,
    /// How many connections were closed that had answered a request.
    pub closed: u32,
}

/// Follows the connections to one port.
#[derive(Debug)]
pub(crate) struct AnsweredRequests {
    closed: ClosedConnections,
    counts: AnswerCounts,
}

impl AnsweredRequests {
    /// `None` if the kernel does not tell of connections that close.
    pub(crate) fn at(port: u16) -> Option<AnsweredRequests> {
        let closed = ClosedConnections::at(port).ok()?;
        Some(AnsweredRequests { closed, counts: AnswerCounts::default() })
    }

    /// Takes in which connections were closed meanwhile: the kernel keeps only so much.
    pub(crate) fn note_closed(&mut self) {
        match self.closed.take() {
            Ok(closed) => self.counts.closed.extend(closed),
            Err(_) => self.counts.has_missed = true,
        }
    }

    /// What they did since the sample before. `sockets`: those of the port now. `None` at the first
    /// sample, or if the kernel did not tell of all connections.
    pub(crate) fn since(&mut self, sockets: &[KernelSocket]) -> Option<AnsweredSince> {
        self.note_closed();
        self.counts.since(sockets)
    }
}

#[derive(Debug, Default)]
struct AnswerCounts {
    /// What each connection had answered at the last sample that found it, by its cookie, until it is
    /// known to be closed; `None` before the first sample.
    before: Option<BTreeMap<u64, u32>>,
    /// Those that were closed since the last sample, and whether some of them are not known.
    closed: Vec<KernelSocket>,
    has_missed: bool,
}

impl AnswerCounts {
    fn since(&mut self, sockets: &[KernelSocket]) -> Option<AnsweredSince> {
        let is_first = self.before.is_none();
        let known = self.before.get_or_insert_default();
        let mut since = Some(0);
        let mut count = |socket: &KernelSocket| {
            // One that was opened since has answered all of its requests since.
            let before = known.get(&socket.cookie).copied().unwrap_or(0);
            let answered = socket.answered.map(|all| all.saturating_sub(before));
            since = since.zip(answered).map(|(sum, answered)| sum + answered);
            if let Some(all) = socket.answered {
                known.insert(socket.cookie, all);
            }
        };
        let closed = std::mem::take(&mut self.closed);
        let open = sockets.iter().filter(|socket| !socket.is_listener);
        open.chain(&closed).for_each(&mut count);
        let were_used = closed.iter().filter(|socket| socket.answered > Some(0)).count() as u32;
        for socket in &closed {
            known.remove(&socket.cookie);
        }
        if std::mem::take(&mut self.has_missed) {
            // Some that are not open any more will never be told.
            let open: BTreeSet<u64> = sockets.iter().map(|socket| socket.cookie).collect();
            known.retain(|cookie, _| open.contains(cookie));
            return None;
        }
        let requests = since.filter(|_| !is_first)?;
        Some(AnsweredSince { requests, closed: were_used })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use model::{Endpoint, Nanos};

    use super::*;
    use crate::sockets::ServerListener;

    fn socket(cookie: u64, answered: u32) -> KernelSocket {
        KernelSocket {
            place: Endpoint::Tcp(([127, 0, 0, 1], 3000).into()),
            is_listener: false,
            inode: cookie,
            queue: Some(0),
            limit: None,
            user: Some(0),
            is_v6_only: false,
            last_word: None,
            peer_port: Some(50_000),
            received: None,
            answered: Some(answered),
            cookie,
        }
    }

    #[test]
    fn what_each_connection_has_answered_since_the_sample_before_is_added_up() {
        let mut counts = AnswerCounts::default();
        let found = |requests, closed| Some(AnsweredSince { requests, closed });
        assert_eq!(counts.since(&[socket(7, 100), socket(8, 5)]), None);
        assert_eq!(counts.since(&[socket(7, 110), socket(8, 5)]), found(10, 0));
        // One is not listed any more, and one is new.
        assert_eq!(counts.since(&[socket(7, 115), socket(9, 20)]), found(25, 0));
        counts.closed = vec![socket(8, 8), socket(10, 1), socket(9, 21), socket(11, 0)];
        assert_eq!(
            counts.since(&[socket(7, 115)]),
            found(5, 3),
            "one came and went between the samples, and one was never used"
        );
        counts.has_missed = true;
        assert_eq!(counts.since(&[socket(7, 120)]), None);
        assert_eq!(counts.since(&[socket(7, 121)]), found(1, 0));
    }

    #[test]
    fn the_kernel_counts_answers_on_open_and_on_closed_connections() {
        const PATIENCE: Nanos = Nanos::from_secs(10);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let mut of_port = ServerListener::of_port(place.port());
        let Some(mut requests) = AnsweredRequests::at(place.port()) else { return };
        requests.since(&of_port.all_with_last_words().unwrap());
        let exchange = |client: &mut TcpStream, server: &mut TcpStream| {
            client.write_all(b"?").unwrap();
            server.read_exact(&mut [0]).unwrap();
            server.write_all(b"!").unwrap();
            client.read_exact(&mut [0]).unwrap();
        };
        let mut kept = TcpStream::connect(place).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        (0..3).for_each(|_| exchange(&mut kept, &mut server));
        for _ in 0..2 {
            let mut client = TcpStream::connect(place).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            exchange(&mut client, &mut server);
        }
        // The kernel tells of a closed connection a moment later.
        let mut sum = 0;
        let all = testkit::clock::eventually(
            PATIENCE,
            || "five answers".to_owned(),
            || {
                let since = requests.since(&of_port.all_with_last_words().unwrap());
                sum += since.unwrap().requests;
                Some(sum).filter(|sum| *sum >= 5)
            },
        );
        assert_eq!(all, 5);
    }
}
