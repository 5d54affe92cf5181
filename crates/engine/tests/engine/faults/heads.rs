//! Servers whose answer's head is none, has no end, or says what cannot be; and heads that are odd and right.

use std::io::{self, Write};
use std::net::TcpStream;

use engine::{LoadSpec, render};
use model::BadResponse::{LongHead, MalformedHead, NotHttp, StatusLine, SwitchedProtocol, TrailingBytes};
use model::Outcome;

use crate::kit::{
    ANSWER, Ending::Badly, Ending::In, GOOD, REQUESTS, all_end, always, answered_over, kinds, loads, once_and_wait,
    read_request, shown, until_closed,
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
fn a_head_is_one_of_http_1_1_that_ends_or_its_request_fails() {
    all_end(&[
        (endless_fields, Badly(LongHead)),
        (a_line_of_100_megabytes, Badly(LongHead)),
        (a_thousand_fields, Badly(LongHead)),
        (|stream| with_fields(stream, 200), In(GOOD)),
        (|stream| with_status(stream, "099 Low"), Badly(StatusLine)),
        (|stream| with_status(stream, "1000 High"), Badly(StatusLine)),
        // One that nobody knows is counted as it is.
        (|stream| with_status(stream, "999 Go Away"), In(Outcome::Answered(999))),
        (|stream| with_status(stream, "299"), In(Outcome::Answered(299))),
        (ssh, Badly(NotHttp)),
        (tls_alert, Badly(NotHttp)),
        (|stream| once_and_wait(stream, b"HTTP/2.0 200 OK\r\n\r\n"), Badly(NotHttp)),
        (|stream| once_and_wait(stream, b"\0\0\x12\x04\0\0\0\0\0"), Badly(NotHttp)),
        (|stream| once_and_wait(stream, b"HTTP/1.1 200 OK\r\nX-Split: one\r\nand two\r\n\r\n"), Badly(MalformedHead)),
        (|stream| once_and_wait(stream, b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), Badly(SwitchedProtocol)),
        // Without a body by its status, it may lie about its length, and has none.
        (|stream| always(stream, b"HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\n"), In(Outcome::Answered(204))),
        (|stream| always(stream, b"HTTP/1.1 304 X\r\nContent-Length: 5\r\n\r\n"), In(Outcome::Answered(304))),
        (|stream| always(stream, b"HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\nhello"), Badly(TrailingBytes)),
    ]);
}

const CLOSES: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const KEEPS: &[u8] = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello";
const INTERIM: [&[u8]; 2] = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"];

fn interim_in_pieces(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        read_request(stream)?;
        for part in INTERIM.into_iter().chain([ANSWER]) {
            stream.write_all(part)?;
        }
    }
}

#[test]
fn interim_responses_are_not_the_answer_and_http_1_0_closes_unless_it_says_that_it_does_not() {
    all_end(&[
        (|stream| always(stream, &[INTERIM[0], INTERIM[1], ANSWER].concat()), In(GOOD)),
        (interim_in_pieces, In(GOOD)),
        (|stream| once_and_wait(stream, CLOSES), In(GOOD)),
    ]);
    assert_eq!(answered_over(|stream| always(stream, CLOSES)), REQUESTS);
    assert_eq!(answered_over(|stream| always(stream, KEEPS)), 2);
}

#[test]
fn an_answer_to_head_has_no_body_and_keeps_its_length() {
    for (answer, outcome) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"[..], GOOD),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", GOOD),
        // One that has a body all the same.
        (ANSWER, Outcome::BadResponse),
    ] {
        let head = |shape: LoadSpec| LoadSpec { requests: [render("HEAD", "localhost", "/", &[], true)].into(), ..shape };
        for done in loads(false, move |stream| always(stream, answer), head) {
            assert_eq!(kinds(&done), [outcome], "{}", shown(&done));
            let reasons: Vec<_> = done.tally.bad_responses.iter().map(|(reason, _)| reason).collect();
            assert!(reasons.is_empty() || reasons == [TrailingBytes], "{reasons:?}");
        }
    }
}
