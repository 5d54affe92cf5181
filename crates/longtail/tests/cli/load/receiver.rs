//! A server that keeps each request it gets, as it came, in order.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What came, and where to send more. Its threads end with the test's process.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// A server that gives every request this answer.
    pub(crate) fn answering(answer: &'static str) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(stream, &kept, answer));
            }
        });
        Receiver { address, requests }
    }

    pub(crate) fn start() -> Receiver {
        Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Each request, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The target of each.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.requests().iter().map(|text| text.split(' ').nth(1).unwrap().to_owned()).collect()
    }
}

/// The client's leaving ends it.
fn serve(mut stream: TcpStream, kept: &Mutex<Vec<String>>, answer: &str) -> Option<()> {
    loop {
        let (mut request, mut byte) = (Vec::new(), [0]);
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).ok()?;
            request.push(byte[0]);
        }
        let head = String::from_utf8(request).unwrap();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        // Before the answer: a client that has it finds its request here.
        kept.lock().unwrap().push(head + &String::from_utf8(body).unwrap());
        stream.write_all(answer.as_bytes()).ok()?;
    }
}
