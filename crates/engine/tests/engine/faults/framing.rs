//! Servers that lie about where the body ends.

use std::io::{self, Write};
use std::net::TcpStream;

use engine::LoadSpec;
use model::{BadResponse, Nanos, Outcome, WrongLengths};

use super::kit::{
    ANSWER, GOOD, REQUESTS, Serve, Server, always, driven, ends_badly, ends_in, once, once_and_wait, read_request,
    shape, until_closed,
};

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
    always(stream, format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").as_bytes())
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

#[test]
fn a_body_longer_than_its_length_is_refused() {
    ends_badly(BadResponse::TrailingBytes, more_than_it_says);
}

#[test]
fn a_body_shorter_than_its_length_is_cut_or_awaited() {
    ends_in(Outcome::Closed, less_than_it_says);
    ends_in(Outcome::TimedOut, less_than_it_says_and_waits);
}

#[test]
fn a_length_that_no_body_has_is_awaited_or_refused() {
    let answer = |length: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello").into_bytes();
    let longest = answer("18446744073709551615");
    ends_in(Outcome::TimedOut, move |stream| once_and_wait(stream, &longest));
    for length in ["18446744073709551616", "five", "5\r\nContent-Length: 6"] {
        let answer = answer(length);
        ends_badly(BadResponse::ContentLength, move |stream| once_and_wait(stream, &answer));
    }
}

#[test]
fn a_chunk_that_is_none_is_refused() {
    ends_badly(BadResponse::ChunkedBody, a_chunk_that_overflows);
    ends_badly(BadResponse::ChunkedBody, garbage_for_a_chunk);
    for body in ["5\r\nhello, longer\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n"] {
        ends_badly(BadResponse::ChunkedBody, move |stream| chunked(stream, body));
    }
}

#[test]
fn a_last_chunk_that_is_missing_is_awaited_until_the_end() {
    ends_in(Outcome::Closed, no_last_chunk);
    ends_in(Outcome::TimedOut, |stream| {
        once_and_wait(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    });
}

#[test]
fn chunks_with_extensions_and_trailers_are_whole() {
    ends_in(GOOD, good_chunks);
}

#[test]
fn what_nobody_asked_for_behind_an_answer_spoils_it() {
    ends_badly(BadResponse::TrailingBytes, garbage_behind_the_answer);
    ends_badly(BadResponse::TrailingBytes, |stream| always(stream, &[ANSWER, ANSWER].concat()));
}

#[test]
fn a_coded_body_is_taken_as_it_is() {
    // An empty file of gzip's, and not a byte of it is looked at.
    let body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer = [head.as_bytes(), body].concat();
    ends_in(GOOD, move |stream| always(stream, &answer));
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
