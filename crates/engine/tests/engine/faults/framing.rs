//! Servers that lie about where the body ends.

use std::io::{self, Write};
use std::net::TcpStream;

use engine::LoadSpec;
use model::BadResponse::{self, ChunkedBody, ContentLength, TrailingBytes};
use model::{Nanos, Outcome, WrongLengths};

use crate::kit::{
    ANSWER, Ending::Badly, Ending::In, GOOD, REQUESTS, Serve, Server, all_end, always, driven, once, once_and_wait,
    read_request, shape, until_closed,
};

const GZIP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";

pub(crate) fn more_than_it_says(stream: &mut TcpStream) -> io::Result<()> {
    always(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello")
}

pub(crate) fn less_than_it_says(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello")
}

pub(crate) fn less_than_it_says_and_waits(stream: &mut TcpStream) -> io::Result<()> {
    once_and_wait(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello")
}

fn chunked(stream: &mut TcpStream, body: &str) -> io::Result<()> {
    always(stream, format!("{CHUNKED}{body}").as_bytes())
}

pub(crate) fn a_chunk_that_overflows(stream: &mut TcpStream) -> io::Result<()> {
    chunked(stream, "fffffffffffffffff\r\nhello\r\n0\r\n\r\n")
}

pub(crate) fn garbage_for_a_chunk(stream: &mut TcpStream) -> io::Result<()> {
    chunked(stream, "hello, this is no chunk\r\n")
}

pub(crate) fn no_last_chunk(stream: &mut TcpStream) -> io::Result<()> {
    once(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
}

pub(crate) fn good_chunks(stream: &mut TcpStream) -> io::Result<()> {
    chunked(stream, "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n")
}

pub(crate) fn garbage_behind_the_answer(stream: &mut TcpStream) -> io::Result<()> {
    always(stream, &[ANSWER, b"and what is this?"].concat())
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Answers one request with a body of this length, by its own word, and waits.
fn of_length(stream: &mut TcpStream, length: &str) -> io::Result<()> {
    once_and_wait(stream, format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello").as_bytes())
}

#[test]
fn a_body_is_as_long_as_its_head_and_its_chunks_say_or_its_request_fails() {
    all_end(&[
        (more_than_it_says, Badly(TrailingBytes)),
        (less_than_it_says, In(Outcome::Closed)),
        (less_than_it_says_and_waits, In(Outcome::TimedOut)),
        (|stream| of_length(stream, "18446744073709551615"), In(Outcome::TimedOut)),
        (|stream| of_length(stream, "18446744073709551616"), Badly(ContentLength)),
        (a_chunk_that_overflows, Badly(ChunkedBody)),
        (garbage_for_a_chunk, Badly(ChunkedBody)),
        (|stream| chunked(stream, "5\r\nhello, longer\r\n0\r\n\r\n"), Badly(ChunkedBody)),
        (|stream| chunked(stream, "-5\r\nhello\r\n0\r\n\r\n"), Badly(ChunkedBody)),
        (no_last_chunk, In(Outcome::Closed)),
        (|stream| once_and_wait(stream, format!("{CHUNKED}5\r\nhello\r\n").as_bytes()), In(Outcome::TimedOut)),
        (good_chunks, In(GOOD)),
        (garbage_behind_the_answer, Badly(TrailingBytes)),
        (|stream| always(stream, &[ANSWER, ANSWER].concat()), Badly(TrailingBytes)),
        // A coded body is taken as it is: an empty file of gzip's, and not a byte of it is looked at.
        (|stream| always(stream, GZIP), In(GOOD)),
    ]);
}

#[test]
fn an_answer_of_another_length_than_expected_is_distinguished_from_a_good_one() {
    let kinds: [(Serve, u64); 3] = [
        (|stream| always(stream, ANSWER), 5),
        (good_chunks, 11),
        (|stream| once(stream, b"HTTP/1.1 200 OK\r\n\r\nuntil the end"), 13),
    ];
    for (serve, bytes) in kinds {
        for (expected, outcome) in [(bytes, GOOD), (bytes + 1, Outcome::WrongLength), (0, Outcome::WrongLength)] {
            let server = Server::start(move |stream, _| serve(stream));
            let done = driven(&LoadSpec { body_bytes: Some(expected), ..shape(server.address) });
            server.stop();
            assert_eq!(done.tally.counts.of(outcome), REQUESTS, "{expected} bytes: {:?}", done.tally.counts);
            assert_eq!(done.tally.all_answers(), done.tally.all_requests(), "it is a whole answer all the same");
            assert_eq!(done.tally.body_bytes, bytes * done.tally.all_requests());
            let wrong = (expected != bytes).then(|| WrongLengths::of(expected, bytes));
            assert_eq!(done.tally.wrong_lengths, wrong);
        }
    }
}

#[test]
fn the_length_of_a_failure_is_nobodys_business() {
    let server = Server::start(|stream, _| always(stream, b"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\nno"));
    let done = driven(&LoadSpec { body_bytes: Some(9), ..shape(server.address) });
    server.stop();
    assert_eq!(done.tally.counts.of(Outcome::Answered(503)), REQUESTS);
}

#[test]
fn several_reasons_are_counted_apart_and_only_of_measured_requests() {
    let server = Server::start(|stream, number| match number {
        0..3 => once_and_wait(stream, b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n"),
        _ => garbage_behind_the_answer(stream),
    });
    let load = LoadSpec { connections: 1, lanes: 1, ..shape(server.address) };
    let done = driven(&load);
    let reasons = [(BadResponse::ContentLength, 3), (BadResponse::TrailingBytes, REQUESTS - 3)];
    assert_eq!(done.tally.bad_responses.iter().collect::<Vec<_>>(), reasons);
    // A window that never begins: nothing is measured, and there is no reason to tell.
    let unmeasured = LoadSpec {
        requests_total: None,
        requests_per_connection: None,
        warm_up: Nanos::from_millis(50),
        measured: Some(Nanos::ZERO),
        ..load
    };
    let done = driven(&unmeasured);
    assert!(done.tally.unmeasured.of(Outcome::BadResponse) > 0);
    assert_eq!((done.tally.counts.total(), done.tally.bad_responses.total()), (0, 0));
    server.stop();
}

#[test]
fn what_is_out_behind_a_bad_response_is_as_bad() {
    let server = Server::start(|stream, _| {
        for _ in 0..4 {
            read_request(stream)?;
        }
        stream.write_all(b"this is no answer\r\n\r\n")?;
        until_closed(stream)
    });
    let load = LoadSpec { connections: 1, lanes: 1, pipeline: 4, requests_total: Some(8), ..shape(server.address) };
    let done = driven(&load);
    assert_eq!(done.tally.bad_responses.iter().collect::<Vec<_>>(), [(BadResponse::NotHttp, 8)]);
    server.stop();
}
