//! Figures in and out: what comes in by statsd, and what arrives at receivers of statsd, OTLP and Prometheus. Every figure that
//! arrives is one of the study, and every packet that was sent is in exactly one place.

mod otlp;
mod scraped;
mod statsd_in;
mod statsd_out;

use std::net::UdpSocket;
use std::time::Duration;

/// A socket that waits a moment for packets.
fn udp() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket
}

/// All packets that the socket has got, once the sender is gone.
fn packets(socket: &UdpSocket) -> Vec<String> {
    let mut buffer = vec![0; 65_536];
    let next = || socket.recv(&mut buffer).ok().map(|n| String::from_utf8(buffer[..n].to_vec()).unwrap());
    std::iter::from_fn(next).collect()
}
