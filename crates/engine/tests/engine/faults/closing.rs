//! Servers that close or reset a connection: before, in, and after an answer.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use engine::{LoadSpec, RunProgress};
use model::{Nanos, Outcome};
use rustix::net::{SendFlags, send};

use super::kit::{
    ANSWER, GOOD, REQUESTS, Serve, Server, answered_over, driven, driven_until, ends_in, ends_in_one_of, kinds, once,
    pause, read_request, reset, shape, shown, until_closed,
};

pub(crate) fn before_the_head(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)
}

pub(crate) fn in_the_head(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, b"HTTP/1.1 200 OK\r\nContent-Le")
}

pub(crate) fn behind_the_head(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
}

pub(crate) fn in_the_body(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
}

/// The last segment of the answer carries the end of the stream.
pub(crate) fn with_the_answer(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    // Held back until the close, which then goes into the same segment (tcp_send_fin in net/ipv4/tcp_output.c).
    send(&*stream, ANSWER, SendFlags::MORE)?;
    Ok(())
}

pub(crate) fn after_the_answer(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, ANSWER)
}

pub(crate) fn half_after_the_answer(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, ANSWER)?;
    stream.shutdown(Shutdown::Write)?;
    until_closed(stream)
}

pub(crate) fn half_before_the_answer(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    stream.shutdown(Shutdown::Write)?;
    until_closed(stream)
}

pub(crate) fn reset_at_once(stream: &mut TcpStream) -> io::Result<()> {
    reset(stream)
}

pub(crate) fn reset_in_the_body(stream: &mut TcpStream) -> io::Result<()> {
    in_the_body(stream)?;
    reset(stream)
}

/// Closing with a request unread is a reset too (RFC 1122 section 4.2.2.13), but the end of the stream may come before it.
pub(crate) fn with_the_request_unread(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)
}

#[test]
fn a_connection_that_ends_before_its_answer_is_whole_was_closed_or_reset() {
    let servers: [Serve; 5] = [before_the_head, in_the_head, behind_the_head, in_the_body, half_before_the_answer];
    for serve in servers {
        ends_in(Outcome::Closed, serve);
    }
    ends_in(Outcome::Reset, reset_at_once);
    ends_in(Outcome::Reset, reset_in_the_body);
    ends_in_one_of(&[Outcome::Closed, Outcome::Reset], with_the_request_unread);
}

#[test]
fn an_end_that_comes_with_the_answer_costs_no_request() {
    ends_in(GOOD, with_the_answer);
    assert_eq!(answered_over(with_the_answer), REQUESTS);
}

#[test]
fn a_close_behind_the_answer_costs_at_most_the_request_that_met_it() {
    for serve in [after_the_answer, half_after_the_answer] {
        let server = Server::start(move |stream, _| serve(stream));
        let done = driven(&shape(server.address));
        // A connection's first request is answered; its next one either finds it closed or crosses the close.
        let allowed = [GOOD, Outcome::Closed, Outcome::Reset];
        assert!(kinds(&done).iter().all(|kind| allowed.contains(kind)), "{}", shown(&done));
        let connections = server.stop();
        assert_eq!((done.tally.connections_opened, done.tally.counts.good()), (connections, connections));
    }
}

#[test]
fn what_nobody_asked_for_costs_an_idle_connection_and_no_request() {
    let progress = Arc::new(RunProgress::new(1));
    let seen = Arc::clone(&progress);
    let server = Server::start(move |stream, connection| {
        once(stream, ANSWER)?;
        // The answer is taken by itself: what comes with it would be its trailing bytes.
        while seen.ended() <= connection {
            pause(5);
        }
        stream.write_all(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")?;
        until_closed(stream)
    });
    let shape = LoadSpec { lanes: 1, connections: 1, think: Nanos::from_secs(4), ..shape(server.address) };
    let done = driven_until(&shape, Arc::default(), progress);
    assert_eq!(done.tally.counts.good(), REQUESTS, "{}", shown(&done));
    // The connection is not used again after its last answer.
    let closed = (done.tally.closed_by_server, done.tally.closed_for_unasked);
    assert!(closed == (0, REQUESTS) || closed == (0, REQUESTS - 1), "{closed:?}");
    assert_eq!(server.stop(), REQUESTS);
}

#[test]
fn connections_that_are_closed_while_idle_are_opened_anew_and_cost_nothing() {
    let server = Server::start(|stream, _| after_the_answer(stream));
    // The close comes while the user thinks, however busy the machine is: the server's thread does nothing else meanwhile.
    let done = driven(&LoadSpec { think: Nanos::from_secs(4), ..shape(server.address) });
    assert_eq!(done.tally.counts.good(), REQUESTS, "{}", shown(&done));
    assert_eq!(done.tally.connections_opened, REQUESTS);
    // Two connections are not used again after their last answer.
    assert!((REQUESTS - 2..=REQUESTS).contains(&done.tally.closed_by_server), "{}", done.tally.closed_by_server);
    assert_eq!(server.stop(), REQUESTS);
}

#[test]
fn a_body_that_ends_with_the_connection_is_whole_only_if_the_end_is_one() {
    fn ends(stream: &mut TcpStream) -> io::Result<()> {
        once(stream, b"HTTP/1.1 200 OK\r\n\r\nhello")
    }
    fn breaks(stream: &mut TcpStream) -> io::Result<()> {
        ends(stream)?;
        stream.flush()?;
        reset(stream)
    }
    ends_in(GOOD, ends);
    ends_in(Outcome::Reset, breaks);
}
