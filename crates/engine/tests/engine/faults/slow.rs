//! Servers that take their time: never answer, answer drop by drop, or never stop.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Outcome;

use super::early::large;
use crate::kit::{
    ANSWER, Ending::In, GOOD, REQUESTS, Server, all_end, open, pause, read_request, shape, timed_out, until_closed,
    wait_for,
};

pub(crate) fn never_answers(stream: &mut TcpStream) -> io::Result<()> {
    until_closed(stream)
}

pub(crate) fn a_byte_a_second(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    stream.set_nodelay(true)?;
    for byte in ANSWER {
        stream.write_all(&[*byte])?;
        pause(1000);
    }
    Ok(())
}

pub(crate) fn byte_by_byte(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        read_request(stream)?;
        for byte in ANSWER {
            stream.write_all(&[*byte])?;
        }
    }
}

pub(crate) fn endless_body(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let piece = vec![b'x'; 1 << 20];
    loop {
        stream.write_all(&piece)?;
    }
}

pub(crate) fn endless_interim_responses(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    let piece = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
    loop {
        stream.write_all(&piece)?;
    }
}

#[test]
fn whoever_does_not_end_his_answer_in_time_times_out_however_alive_he_looks() {
    all_end(&[
        (never_answers, In(Outcome::TimedOut)),
        (a_byte_a_second, In(Outcome::TimedOut)),
        (endless_body, In(Outcome::TimedOut)),
        (endless_interim_responses, In(Outcome::TimedOut)),
        // A byte at a time is an answer all the same.
        (byte_by_byte, In(GOOD)),
    ]);
}

#[test]
fn a_request_that_nobody_takes_times_out_half_sent() {
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let server = Server::start(move |_, _| {
        wait_for(&is_over);
        Ok(())
    });
    let closed = large(shape(server.address));
    let length = closed.requests[0].bytes.len() as u64;
    let mut opened = 0;
    for shape in [open(&closed), closed] {
        let all = timed_out(&shape);
        let sent_bytes = all.last().unwrap().tally.sent_bytes;
        assert!((1..length * REQUESTS).contains(&sent_bytes), "{sent_bytes}");
        opened += all.iter().map(|done| done.tally.connections_opened).sum::<u64>();
    }
    over.store(true, Ordering::Relaxed);
    assert_eq!(server.stop(), opened);
}
