//! A server that records each request and responds as the test wants.

use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A request as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRequest {
    /// The head, including the final empty line.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl KeptRequest {
    /// Reads one request with its body.
    ///
    /// # Errors
    /// If the client leaves, or the head is not text.
    pub fn read(stream: &mut impl Read) -> io::Result<KeptRequest> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let mut request = KeptRequest {
            head: String::from_utf8(head).map_err(io::Error::other)?,
            body: Vec::new(),
        };
        let length =
            request.field("content-length").map_or(Ok(0), str::parse).map_err(io::Error::other)?;
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body)?;
        let coding = request.field("transfer-encoding").unwrap_or_default();
        if coding.eq_ignore_ascii_case("chunked") {
            // Keep the chunked body as received. No test's chunk contains this end.
            while !request.body.ends_with(b"0\r\n\r\n") {
                stream.read_exact(&mut byte)?;
                request.body.push(byte[0]);
            }
        }
        Ok(request)
    }

    /// The value of a header, whatever the case of its name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find_map(|(its, value)| its.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// The recording server. Its threads end with the test's process.
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<KeptRequest>>>,
}

impl Receiver {
    /// A server with the same response for every request.
    pub fn answering(answer: &'static str) -> Receiver {
        Receiver::by(move |_| answer.into())
    }

    /// A server that responds with what `answer` returns for a request, and closes the connection
    /// if asked to.
    ///
    /// # Panics
    /// If no port is free.
    pub fn by(answer: impl Fn(&KeptRequest) -> Vec<u8> + Send + Sync + 'static) -> Receiver {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let requests = Arc::default();
        let answer = Arc::new(answer);
        let receiver = Receiver { address, requests: Arc::clone(&requests) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = Arc::clone(&requests);
                let answer = Arc::clone(&answer);
                thread::spawn(move || serve(stream, &requests, &*answer));
            }
        });
        receiver
    }

    /// A server that responds with "hello".
    pub fn start() -> Receiver {
        Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    }

    /// The URL of its root.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// All requests so far.
    pub fn kept(&self) -> Vec<KeptRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All requests, head and body, as text.
    pub fn requests(&self) -> Vec<String> {
        self.kept()
            .into_iter()
            .map(|kept| kept.head + &String::from_utf8_lossy(&kept.body))
            .collect()
    }

    /// The targets of all requests.
    pub fn targets(&self) -> Vec<String> {
        self.kept()
            .iter()
            .filter_map(|kept| Some(kept.head.split(' ').nth(1)?.to_owned()))
            .collect()
    }
}

fn serve(
    mut stream: TcpStream,
    requests: &Mutex<Vec<KeptRequest>>,
    answer: &dyn Fn(&KeptRequest) -> Vec<u8>,
) -> io::Result<()> {
    loop {
        let request = KeptRequest::read(&mut stream)?;
        let answer = answer(&request);
        let closes = request.field("connection") == Some("close");
        // Record it before responding, so that a client with a response finds its request here.
        requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        stream.write_all(&answer)?;
        if closes {
            return Ok(());
        }
    }
}
