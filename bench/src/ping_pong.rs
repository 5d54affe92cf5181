//! The floor: what the same bytes cost over the same sockets without parsing them.
//!
//! One thread with epoll sends a fixed request, and the next one when it has received as many bytes
//! as the first response had. It parses only the head of the first response, times no request,
//! counts only responses, and never polls actively. A load generator with sockets and epoll can be
//! cheaper only if a system call serves several requests.
//!
//!   ping-pong ADDRESS:PORT CONNECTIONS NANOSECONDS keep|close|RATE
//!
//! With a rate it is the floor of an open loop: it sends this many requests per second, each on
//! time on the connection that has been free longest, and reads what has arrived before it sends.
//!
//! The request is the one that longtail sends to the same URL. It prints the number of complete
//! responses. Any trouble ends it with exit code 1, because its bytes would not be comparable.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use model::{Clock as _, Nanos};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use testkit::clock::REAL_CLOCK;

/// As large as a lane's buffer.
const BUFFER: usize = 64 * 1024;
const EVENTS: usize = 1024;
/// How early it wakes before a request is due, because sleeps end late on a virtual machine.
const EARLY: Nanos = Nanos::from_micros(20);

/// A fault, in one line.
type Fault = String;

struct Floor {
    address: SocketAddr,
    keep: bool,
    request: Vec<u8>,
    /// The length of a response, head included.
    answer_bytes: usize,
    epoll: OwnedFd,
    sockets: Vec<Socket>,
    buffer: Vec<u8>,
    answers: u64,
    outstanding: usize,
}

/// A connection.
struct Socket {
    stream: TcpStream,
    /// Bytes of the response received so far.
    received: usize,
    /// Whether its events no longer matter.
    is_over: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(answers) => {
            let _ = writeln!(std::io::stdout(), "{answers}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            let _ = writeln!(std::io::stderr(), "ping-pong: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<u64, Fault> {
    let [address, connections, time, keep] = words else {
        return Err(
            "usage: ping-pong ADDRESS:PORT CONNECTIONS NANOSECONDS keep|close|RATE".to_owned()
        );
    };
    let address: SocketAddr =
        address.parse().map_err(|_| format!("'{address}' is not an address"))?;
    if !address.ip().is_loopback() {
        return Err(format!("{address} is not this machine"));
    }
    let connections: usize =
        connections.parse().map_err(|_| format!("'{connections}' is not a number"))?;
    let time = Nanos(time.parse().map_err(|_| format!("'{time}' is not a number"))?);
    let mut floor = Floor::new(address, keep != "close")?;
    match keep.parse() {
        Ok(rate @ 1..) => floor.pace(connections, time, rate)?,
        Err(_) if ["keep", "close"].contains(&keep.as_str()) => floor.drive(connections, time)?,
        _ => return Err(format!("'{keep}' is neither keep nor close nor a rate")),
    }
    Ok(floor.answers)
}

impl Floor {
    /// Sends one request to learn the length of a response; it counts.
    fn new(address: SocketAddr, keep: bool) -> Result<Floor, Fault> {
        let close = if keep { "" } else { "connection: close\r\n" };
        let request = format!(
            "GET / HTTP/1.1\r\nhost: {address}\r\nuser-agent: longtail/0.1.0\r\naccept: \
             */*\r\n{close}\r\n"
        );
        let answer_bytes =
            length_of_an_answer(address, request.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Floor {
            address,
            keep,
            request: request.into_bytes(),
            answer_bytes,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failure_of("epoll"))?,
            sockets: Vec::new(),
            buffer: vec![0; BUFFER],
            answers: 1,
            outstanding: 0,
        })
    }

    /// Keeps all connections busy for this time, then waits for the responses in flight.
    fn drive(&mut self, connections: usize, time: Nanos) -> Result<(), Fault> {
        let clock = REAL_CLOCK;
        for slot in 0..connections {
            let mut socket = self.connect(slot)?;
            socket.ask(&self.request)?;
            self.sockets.push(socket);
        }
        self.outstanding = connections;
        let until = clock.now() + time;
        let mut events = Vec::with_capacity(EVENTS);
        let mut ready = VecDeque::with_capacity(EVENTS);
        let mut is_over = false;
        while self.outstanding > 0 {
            // Read all responses of a wait, then send all requests: waking the server for each of
            // them would cost more.
            self.receive(&mut events, None, is_over, &mut ready)?;
            for slot in ready.drain(..) {
                self.sockets[slot].ask(&self.request)?;
            }
            // Check the time once per wait: either all its responses are followed by requests, or
            // none.
            is_over = clock.now() >= until;
        }
        Ok(())
    }

    /// Sends `rate` requests per second for this time, then waits for the responses in flight.
    fn pace(&mut self, connections: usize, time: Nanos, rate: u64) -> Result<(), Fault> {
        let clock = REAL_CLOCK;
        // Like the lanes; with the default timer slack each sleep would end 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        for slot in 0..connections {
            let socket = self.connect(slot)?;
            self.sockets.push(socket);
        }
        let begun = clock.now();
        let gap = Nanos(1_000_000_000 / rate);
        let mut events = Vec::with_capacity(EVENTS);
        let mut free: VecDeque<usize> = (0..connections).collect();
        for number in 0..time.0 / gap.0 {
            let due = begun + gap * number;
            clock.sleep(due.saturating_sub(clock.now() + EARLY));
            self.receive(&mut events, Some(&Timespec::default()), false, &mut free)?;
            while clock.now() < due {}
            while free.is_empty() {
                self.receive(&mut events, None, false, &mut free)?;
            }
            if let Some(slot) = free.pop_front() {
                self.sockets[slot].ask(&self.request)?;
            }
        }
        while free.len() < connections {
            self.receive(&mut events, None, false, &mut free)?;
        }
        Ok(())
    }

    /// Waits, reads what has arrived, and adds the connections that can send again to `ready`.
    fn receive(
        &mut self,
        events: &mut Vec<epoll::Event>,
        at_most: Option<&Timespec>,
        is_over: bool,
        ready: &mut VecDeque<usize>,
    ) -> Result<(), Fault> {
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), at_most) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failure_of("epoll_wait")(errno)),
        }
        for event in events.iter() {
            let slot = event.data.u64() as usize;
            if self.serve(slot, event.flags, is_over)? {
                ready.push_back(slot);
            }
        }
        Ok(())
    }

    /// A new connection.
    fn connect(&self, slot: usize) -> Result<Socket, Fault> {
        let connected = TcpStream::connect(self.address).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        let stream = connected.map_err(|error| format!("connect: {error}"))?;
        let interest = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(slot as u64), interest)
            .map_err(failure_of("epoll_ctl"))?;
        Ok(Socket { stream, received: 0, is_over: false })
    }

    /// Reads what has arrived. Returns whether the next request can be sent.
    fn serve(&mut self, slot: usize, flags: EventFlags, is_over: bool) -> Result<bool, Fault> {
        let socket = &mut self.sockets[slot];
        if socket.is_over {
            return Ok(false);
        }
        // Edge-triggered: read until nothing is left. A read shorter than the buffer has taken
        // everything except an end.
        let is_ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        loop {
            let n = match recv(&socket.stream, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((n, _)) => n,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(errno) => return Err(failure_of("recv")(errno)),
            };
            socket.received += n;
            if n == 0 && (self.keep || socket.received < self.answer_bytes) {
                return Err("the server has closed a connection".to_owned());
            }
            if socket.received > self.answer_bytes {
                return Err(format!(
                    "a response is longer than the first, {} bytes",
                    self.answer_bytes
                ));
            }
            let is_whole = socket.received == self.answer_bytes;
            if is_whole && self.keep || n == 0 {
                self.answers += 1;
                socket.is_over = is_over;
                self.outstanding -= usize::from(is_over);
                if !self.keep && !is_over {
                    // The old socket is closed, which removes it from epoll.
                    self.sockets[slot] = self.connect(slot)?;
                    self.sockets[slot].ask(&self.request)?;
                }
                return Ok(self.keep && !is_over);
            }
            if n < BUFFER && !is_ending {
                return Ok(false);
            }
        }
    }
}

impl Socket {
    /// Sends the whole request, which is shorter than any socket's buffer.
    fn ask(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.received = 0;
        match send(&self.stream, bytes, SendFlags::NOSIGNAL) {
            Ok(n) if n == bytes.len() => Ok(()),
            Ok(_) => Err("a request did not fit into the socket's buffer".to_owned()),
            Err(errno) => Err(failure_of("send")(errno)),
        }
    }
}

fn length_of_an_answer(address: SocketAddr, request: &[u8]) -> std::io::Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let whole = loop {
        if let Some(whole) = whole_length(&bytes) {
            break whole;
        }
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::Error::other("its response has no Content-Length")),
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    };
    // Read all of it, so that the server has completely sent what it counts.
    let rest = u64::try_from(whole.saturating_sub(bytes.len())).unwrap_or_default();
    std::io::copy(&mut stream.take(rest), &mut std::io::sink())?;
    Ok(whole)
}

/// The length of a response, by its Content-Length, if its head is complete.
fn whole_length(bytes: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(bytes);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    };
    Some(head.len() + 4 + head.lines().find_map(field)?)
}

fn failure_of(what: &'static str) -> impl Fn(Errno) -> Fault {
    move |errno| format!("{what}: {errno}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_response_includes_its_head() {
        assert_eq!(whole_length(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\nxx"), Some(39 + 64));
        assert_eq!(whole_length(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n"), None);
        assert_eq!(whole_length(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }

    #[test]
    fn no_request_goes_to_another_machine() {
        let words = ["192.0.2.1:80", "1", "1", "keep"].map(str::to_owned);
        assert_eq!(run(&words), Err("192.0.2.1:80 is not this machine".to_owned()));
    }
}
