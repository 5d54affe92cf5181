//! The engine against servers that misbehave, over real sockets: each fault is a counted outcome,
//! never a hang, a panic, or a request that is counted twice or not at all.
//!
//! No duration and no rate is looked at. What servers do is in `servers.txt`. Each load is driven
//! closed and open, and each server says at its end how many connections it took, which must be as
//! many as the client says it opened.

mod chaos;
mod connecting;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine::{LaneOutcome, LoadSpec, RunProgress, render};
use model::{BadResponse, Nanos, Outcome, Request, RequestMix, WrongLengths};
use rustix::net::{SendFlags, send};

use crate::kit::{
    ANSWER, GOOD, REQUESTS, Server, driven, driven_until, kinds, open, pause, read_head,
    read_request, shape, shown, timed_out, until_closed, wait_for,
};

const SERVERS: &str = include_str!("servers.txt");

/// The rows below a headline of [`SERVERS`], or all of them: what stands before the colon, and the
/// steps.
fn servers(headline: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = SERVERS.lines().skip_while(move |line| !line.starts_with(headline)).skip(1);
    let rows = rows
        .take_while(move |line| headline.is_empty() || !line.starts_with("=="))
        .filter(|line| !line.is_empty());
    rows.filter(|line| !line.starts_with(['#', '=']))
        .map(|row| row.split_once(": ").expect("an ending and steps"))
}

/// Treats a connection as the steps say, which are explained in [`SERVERS`].
fn play(stream: &mut TcpStream, steps: &str) -> io::Result<()> {
    loop {
        for step in steps.split("; ") {
            match step.split_once(' ').unwrap_or((step, "")) {
                ("read", _) => read_request(stream)?,
                ("nodelay", _) => stream.set_nodelay(true)?,
                ("wait", _) => until_closed(stream)?,
                ("half", _) => stream.shutdown(Shutdown::Write)?,
                ("reset", _) => {
                    rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO))?;
                }
                // Held back until the close, which then goes into the same segment (tcp_send_fin in
                // net/ipv4/tcp_output.c).
                ("held", text) => drop(send(&*stream, &bytes(text), SendFlags::MORE)?),
                ("drip", rest) => {
                    let (millis, text) = rest.split_once(' ').expect("drip MS BYTES");
                    for byte in bytes(text) {
                        stream.write_all(&[byte])?;
                        pause(millis.parse().expect("milliseconds"));
                    }
                }
                ("again", _) => {}
                _ => write_often(stream, step)?,
            }
        }
        if !steps.ends_with("; again") {
            return Ok(());
        }
    }
}

/// Writes `BYTES`, or `BYTES * N`, or `BYTES * forever`.
fn write_often(stream: &mut TcpStream, step: &str) -> io::Result<()> {
    let (text, times) = step.rsplit_once(" * ").unwrap_or((step, "1"));
    let bytes = bytes(text);
    let mut left = times.parse().unwrap_or(usize::MAX);
    let piece = bytes.repeat(left.min(1 + (1 << 20) / bytes.len()));
    while left > 0 {
        let n = left.min(piece.len() / bytes.len());
        stream.write_all(&piece[..n * bytes.len()])?;
        left -= n;
    }
    Ok(())
}

/// Text with `\r`, `\n` and `\xNN` in it, and `{answer}` for [`ANSWER`].
fn bytes(text: &str) -> Vec<u8> {
    let answer = str::from_utf8(ANSWER).unwrap();
    let text = text.replace("{answer}", answer).replace("\\r", "\r").replace("\\n", "\n");
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two hexadecimal digits"));
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

/// A server that plays these steps on each connection.
fn playing(steps: &'static str) -> Server {
    Server::start(move |stream, _| play(stream, steps))
}

/// How the requests ended, each kind once: outcomes, and of bad responses the reason.
fn endings(done: &LaneOutcome) -> Vec<String> {
    let good = kinds(done)
        .into_iter()
        .filter(|kind| *kind != Outcome::BadResponse)
        .map(|kind| format!("{kind:?}"));
    good.chain(done.tally.bad_responses.iter().map(|(reason, _)| format!("{reason:?}"))).collect()
}

/// Every request to each server below this headline ends as it is said there, in a closed loop and
/// in an open one.
fn all_end(headline: &str) {
    let mut rows = 0;
    for (said, steps) in servers(headline) {
        rows += 1;
        let said = said.strip_prefix("chaos ").unwrap_or(said);
        let (method, said) =
            said.strip_prefix("head ").map_or(("GET", said), |said| ("HEAD", said));
        let (allowed, connections) = said.split_once(" over ").unwrap_or((said, ""));
        let server = playing(steps);
        let request = render(method, "localhost", "/", &[], true);
        let closed =
            LoadSpec { requests: RequestMix::of_one(request).into(), ..shape(server.address) };
        let mut opened = 0;
        for shape in [open(&closed), closed] {
            let all = if allowed == "TimedOut" { timed_out(&shape) } else { vec![driven(&shape)] };
            opened += all.iter().map(|done| done.tally.connections_opened).sum::<u64>();
            let done = all.last().expect("one at least");
            let found = endings(done);
            assert!(
                found.iter().all(|one| allowed.split(" or ").any(|may| one == may)),
                "{said}: {steps}: {found:?}"
            );
            if let (false, Ok(connections)) =
                (shape.load.pace.is_open(), connections.parse::<u64>())
            {
                assert_eq!(done.tally.connections_opened, connections, "{said}: {steps}");
            }
        }
        assert_eq!(server.stop(), opened, "{said}: {steps}");
    }
    assert!(rows > 0, "no servers below '{headline}'");
}

#[test]
fn a_connection_that_ends_before_its_response_is_whole_was_closed_or_reset() {
    all_end("== a connection that ends");
}

#[test]
fn a_body_is_as_long_as_its_head_and_its_chunks_say_or_its_request_fails() {
    all_end("== a body is as long");
}

#[test]
fn a_head_that_is_not_http_1_1_or_does_not_end_fails_its_request() {
    all_end("== a head is one of HTTP/1.1");
}

#[test]
fn a_response_that_does_not_end_in_time_times_out_even_while_bytes_come() {
    all_end("== who does not end");
}

#[test]
fn a_close_after_a_response_fails_at_most_the_request_that_crossed_it() {
    for steps in ["read; {answer}", "read; {answer}; half; wait"] {
        let server = playing(steps);
        let done = driven(&shape(server.address));
        // A connection's first request is answered; its next one either finds it closed or crosses
        // the close.
        let connections = server.stop();
        assert_eq!(
            (done.tally.connections_opened, done.tally.counts.good()),
            (connections, connections)
        );
    }
}

#[test]
fn unasked_bytes_close_an_idle_connection_and_fail_no_request() {
    let progress = Arc::new(RunProgress::new(1));
    let seen = Arc::clone(&progress);
    let server = Server::start(move |stream, connection| {
        play(stream, "read; {answer}")?;
        // Waits until the response was read: bytes that come with it are its trailing bytes.
        while seen.ended() <= connection {
            pause(5);
        }
        play(stream, r"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n; wait")
    });
    let shape = shape(server.address).with(|load| {
        load.lanes = 1;
        load.connections = 1;
        load.think = Nanos::from_secs(4);
    });
    let done = driven_until(&shape, Arc::default(), progress);
    assert_eq!(done.tally.counts.good(), REQUESTS, "{}", shown(&done));
    // The connection is not used again after its last response.
    let closed = (done.tally.closed_by_server, done.tally.closed_for_unasked);
    assert!(closed == (0, REQUESTS) || closed == (0, REQUESTS - 1), "{closed:?}");
    assert_eq!(server.stop(), REQUESTS);
}

#[test]
fn connections_that_are_closed_while_idle_are_opened_anew_and_cost_nothing() {
    let server = playing("read; {answer}");
    // The close comes while the user thinks, however busy the machine is: the server's thread does
    // nothing else meanwhile.
    let done = driven(&shape(server.address).with(|load| load.think = Nanos::from_secs(4)));
    assert_eq!(done.tally.counts.good(), REQUESTS, "{}", shown(&done));
    assert_eq!(done.tally.connections_opened, REQUESTS);
    // Two connections are not used again after their last response.
    assert!(
        (REQUESTS - 2..=REQUESTS).contains(&done.tally.closed_by_server),
        "{}",
        done.tally.closed_by_server
    );
    assert_eq!(server.stop(), REQUESTS);
}

#[test]
fn a_response_of_another_length_than_expected_is_distinguished_from_a_good_one() {
    let chunked = r"read; HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n; again";
    for (steps, bytes) in [
        ("read; {answer}; again", 5),
        (chunked, 11),
        (r"read; HTTP/1.1 200 OK\r\n\r\nuntil the end", 13),
    ] {
        for (expected, outcome) in
            [(bytes, GOOD), (bytes + 1, Outcome::WrongLength), (0, Outcome::WrongLength)]
        {
            let server = playing(steps);
            let done = driven(&LoadSpec { body_bytes: Some(expected), ..shape(server.address) });
            server.stop();
            assert_eq!(
                done.tally.counts.of(outcome),
                REQUESTS,
                "{expected} bytes: {}",
                shown(&done)
            );
            assert_eq!(
                done.tally.all_responses(),
                done.tally.all_requests(),
                "it is a whole response all the same"
            );
            assert_eq!(done.tally.body_bytes, bytes * done.tally.all_requests());
            let wrong = (expected != bytes).then(|| WrongLengths::of(expected, bytes));
            assert_eq!(done.tally.wrong_lengths, wrong);
        }
    }
    // The length of an error response is not checked.
    let server = playing(r"read; HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\nno; again");
    let done = driven(&LoadSpec { body_bytes: Some(9), ..shape(server.address) });
    server.stop();
    assert_eq!(done.tally.counts.of(Outcome::Answered(503)), REQUESTS);
}

#[test]
fn several_reasons_are_counted_apart_and_only_of_measured_requests() {
    let server = Server::start(|stream, number| match number {
        0..3 => play(stream, r"read; HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n; wait"),
        _ => play(stream, "read; {answer}and what is this?; again"),
    });
    let load = shape(server.address).with(|load| {
        load.connections = 1;
        load.lanes = 1;
    });
    let done = driven(&load);
    let reasons = [(BadResponse::ContentLength, 3), (BadResponse::TrailingBytes, REQUESTS - 3)];
    assert_eq!(done.tally.bad_responses.iter().collect::<Vec<_>>(), reasons);
    // A window that never begins: nothing is measured, so no reason is counted either.
    let warm_up = Nanos::from_millis(50);
    let measured = Some(Nanos::ZERO);
    let done = driven(&LoadSpec {
        measured,
        ..load.with(|load| {
            load.requests_total = None;
            load.warm_up = warm_up;
        })
    });
    assert!(done.tally.unmeasured.of(Outcome::BadResponse) > 0);
    assert_eq!((done.tally.counts.total(), done.tally.bad_responses.total()), (0, 0));
    server.stop();
}

const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";

/// Bytes of a body that is more than the buffers on both sides hold.
const LARGE: usize = 32 << 20;

/// Posts a [`LARGE`] body.
fn large(shape: LoadSpec) -> LoadSpec {
    let mut bytes =
        format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {LARGE}\r\n\r\n")
            .into_bytes();
    bytes.resize(bytes.len() + LARGE, b'x');
    let request = Request::new(bytes, false);
    LoadSpec { requests: RequestMix::of_one(request).into(), ..shape }
}

/// Answers when it has read a megabyte of the request.
fn answers_half_a_request(stream: &mut TcpStream) -> io::Result<()> {
    read_head(stream)?;
    stream.read_exact(&mut vec![0; 1 << 20])?;
    stream.write_all(TOO_LARGE)
}

/// Sends a closed and an open load of [`large`] requests to a server that treats each connection as
/// `serve` does, and keeps it open until the load is over; `look` checks the last outcome of each.
fn on_a_server_that_stays(
    serve: impl Fn(&mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    loads: impl Fn(&LoadSpec) -> Vec<LaneOutcome>,
    look: impl Fn(&LaneOutcome),
) {
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let server = Server::start(move |stream, _| {
        serve(stream)?;
        wait_for(&is_over);
        Ok(())
    });
    let closed = large(shape(server.address));
    let mut opened = 0;
    for shape in [open(&closed), closed] {
        let all = loads(&shape);
        look(all.last().unwrap());
        opened += all.iter().map(|done| done.tally.connections_opened).sum::<u64>();
    }
    over.store(true, Ordering::Relaxed);
    assert_eq!(server.stop(), opened);
}

#[test]
fn a_response_to_half_a_request_is_counted_and_ends_the_connection() {
    // The server leaves the rest of the request unread until the load is over: the client must not
    // wait for it.
    on_a_server_that_stays(
        answers_half_a_request,
        |shape| vec![driven(shape)],
        |done| {
            assert_eq!(kinds(done), [Outcome::Answered(413)], "{}", shown(done));
            assert_eq!(
                done.tally.connections_opened,
                done.tally.counts.total(),
                "none of them can be used again"
            );
        },
    );
}

#[test]
fn a_request_that_the_server_does_not_read_times_out_half_sent() {
    on_a_server_that_stays(
        |_| Ok(()),
        timed_out,
        |done| {
            let sent = done.tally.sent_bytes;
            assert!((1..LARGE as u64 * REQUESTS).contains(&sent), "{sent}");
        },
    );
}

/// A server that answers, closes and does not linger resets the connection. One that answers each
/// head at once and reads on may have read all of the request by the time the client sees the
/// response: then the connection can be used again, and otherwise not, as the server would take the
/// rest for the next request.
#[test]
fn an_early_response_counts_and_keeps_the_connection_only_if_the_request_was_sent_whole() {
    let heads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&heads);
    let reads_on = Server::start(move |stream, _| {
        loop {
            let head = read_head(stream)?;
            assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head:?}");
            counted.fetch_add(1, Ordering::Relaxed);
            stream.write_all(TOO_LARGE)?;
            io::copy(&mut stream.take(LARGE as u64), &mut io::sink())?;
        }
    });
    for server in [Server::start(|stream, _| answers_half_a_request(stream)), reads_on] {
        let done = driven(&large(shape(server.address)));
        assert_eq!(kinds(&done), [Outcome::Answered(413)], "{}", shown(&done));
        assert_eq!(server.stop(), done.tally.connections_opened);
    }
    assert_eq!(heads.load(Ordering::Relaxed), REQUESTS);
}
