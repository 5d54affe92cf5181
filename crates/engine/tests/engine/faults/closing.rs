//! Servers that close or reset a connection: before, in, and after an answer.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use engine::{LoadSpec, RunProgress};
use model::{Nanos, Outcome};
use rustix::net::{SendFlags, send};

use crate::kit::{
    ANSWER, Ending::In, Ending::InOneOf, GOOD, REQUESTS, Server, all_end, answered_over, driven, driven_until, kinds,
    once, pause, read_request, reset, shape, shown, until_closed,
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

fn with_the_body(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, b"HTTP/1.1 200 OK\r\n\r\nhello")
}

fn reset_with_the_body(stream: &mut TcpStream) -> io::Result<()> {
    with_the_body(stream)?;
    reset(stream)
}

#[test]
fn a_connection_that_ends_before_its_answer_is_whole_was_closed_or_reset() {
    use Outcome::{Closed, Reset};
    all_end(&[
        (before_the_head, In(Closed)),
        (in_the_head, In(Closed)),
        (behind_the_head, In(Closed)),
        (in_the_body, In(Closed)),
        (half_before_the_answer, In(Closed)),
        (reset_at_once, In(Reset)),
        (reset_in_the_body, In(Reset)),
        (with_the_request_unread, InOneOf(&[Closed, Reset])),
        // A body that ends with the connection is whole only if the end is one.
        (with_the_body, In(GOOD)),
        (reset_with_the_body, In(Reset)),
        // An end that comes with the answer costs no request.
        (with_the_answer, In(GOOD)),
    ]);
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
