//! Servers whose answer's head is none, has no end, or says what cannot be; and heads that are odd and right.

use std::io::{self, Write};
use std::net::TcpStream;

use engine::{LoadSpec, render};
use model::{BadResponse, Outcome};

use super::kit::{
    ANSWER, GOOD, REQUESTS, always, answered_over, ends_badly, ends_in, kinds, loads, once_and_wait, read_request,
    shown, until_closed,
};

fn with_status(stream: &mut TcpStream, status: &str) -> io::Result<()> {
    always(stream, format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes())
}

pub(crate) fn endless_fields(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
    loop {
        stream.write_all(&b"X-More: and more\r\n".repeat(100))?;
    }
}

pub(crate) fn a_line_of_100_megabytes(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ")?;
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        stream.write_all(&megabyte)?;
    }
    stream.write_all(b"\r\nContent-Length: 5\r\n\r\nhello")
}

fn with_fields(stream: &mut TcpStream, fields: usize) -> io::Result<()> {
    let fields = "X-Field: 1\r\n".repeat(fields);
    always(stream, format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{fields}\r\nhello").as_bytes())
}

pub(crate) fn a_thousand_fields(stream: &mut TcpStream) -> io::Result<()> {
    with_fields(stream, 1000)
}

pub(crate) fn ssh(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")?;
    until_closed(stream)
}

pub(crate) fn tls_alert(stream: &mut TcpStream) -> io::Result<()> {
    once_and_wait(stream, b"\x15\x03\x01\x00\x02\x02\x16")
}

#[test]
fn a_head_without_an_end_is_refused() {
    ends_badly(BadResponse::LongHead, endless_fields);
    ends_badly(BadResponse::LongHead, a_line_of_100_megabytes);
}

#[test]
fn a_thousand_fields_are_refused_and_two_hundred_are_not() {
    ends_badly(BadResponse::LongHead, a_thousand_fields);
    ends_in(GOOD, |stream| with_fields(stream, 200));
}

#[test]
fn a_status_that_is_none_is_refused_and_one_that_nobody_knows_is_counted_as_it_is() {
    for status in ["99 Low", "099 Low", "1000 High", "abc Word", "-200 OK"] {
        ends_badly(BadResponse::StatusLine, move |stream| with_status(stream, status));
    }
    ends_in(Outcome::Answered(999), |stream| with_status(stream, "999 Go Away"));
    ends_in(Outcome::Answered(299), |stream| with_status(stream, "299"));
}

#[test]
fn what_is_no_answer_in_http_1_is_refused() {
    ends_badly(BadResponse::NotHttp, ssh);
    ends_badly(BadResponse::NotHttp, tls_alert);
    for (reason, bytes) in [
        (BadResponse::NotHttp, &b"HTTP/2.0 200 OK\r\n\r\n"[..]),
        (BadResponse::NotHttp, b"\0\0\x12\x04\0\0\0\0\0"),
        (BadResponse::MalformedHead, b"HTTP/1.1 200 OK\r\nX-Split: one\r\nand two\r\nContent-Length: 5\r\n\r\nhello"),
        (BadResponse::SwitchedProtocol, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
    ] {
        ends_badly(reason, move |stream| once_and_wait(stream, bytes));
    }
}

#[test]
fn interim_responses_are_not_the_answer() {
    ends_in(GOOD, |stream| {
        always(
            stream,
            &[b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", ANSWER].concat(),
        )
    });
    // In pieces of their own too.
    ends_in(GOOD, |stream| {
        loop {
            read_request(stream)?;
            stream.set_nodelay(true)?;
            for part in [&b"HTTP/1.1 100 Continue\r\n\r\n"[..], b"HTTP/1.1 103 Early Hints\r\n\r\n", ANSWER] {
                stream.write_all(part)?;
            }
        }
    });
}

#[test]
fn http_1_0_closes_unless_it_says_that_it_does_not() {
    const CLOSES: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const KEEPS: &[u8] = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello";
    ends_in(GOOD, |stream| once_and_wait(stream, CLOSES));
    assert_eq!(answered_over(|stream| always(stream, CLOSES)), REQUESTS);
    assert_eq!(answered_over(|stream| always(stream, KEEPS)), 2);
}

#[test]
fn an_answer_without_a_body_may_lie_about_its_length() {
    for (status, answer) in [
        (204, &b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"[..]),
        (304, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    ] {
        ends_in(Outcome::Answered(status), move |stream| always(stream, answer));
    }
    ends_badly(BadResponse::TrailingBytes, |stream| {
        always(stream, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")
    });
}

#[test]
fn an_answer_to_head_has_no_body_and_keeps_its_length() {
    for (answer, outcome) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"[..], GOOD),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", GOOD),
        // One that has a body all the same.
        (ANSWER, Outcome::BadResponse),
    ] {
        let head = |shape: LoadSpec| LoadSpec { requests: [render("HEAD", "localhost", "/", true)].into(), ..shape };
        for done in loads(false, move |stream| always(stream, answer), head) {
            assert_eq!(kinds(&done), [outcome], "{}", shown(&done));
            let reasons: Vec<_> = done.tally.bad_responses.iter().map(|(reason, _)| reason).collect();
            assert!(reasons.is_empty() || reasons == [BadResponse::TrailingBytes], "{reasons:?}");
        }
    }
}
