//! What the kernel's tracepoints report of a server and its clients, both in this process: counts,
//! order, and that the kernel's sums agree with its single records. Where BPF is missing, the tests
//! that need it say so and do nothing.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use model::kernel::{ProcessWaits, bucket_of, top_of};
use model::{Nanos, Waits};
use probe::bpf::{TracedResponse, Tracepoints, TracingPlan, possible};
use rustix::time::{ClockId, clock_gettime};

/// Traces the server behind this listener; `None`, with the reason printed, where BPF is missing.
fn follow(listener: &TcpListener, processes: &[u32], events: bool) -> Option<Tracepoints> {
    if let Err(missing) = possible() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no BPF here: {missing}");
        return None;
    }
    let port = listener.local_addr().unwrap().port();
    Some(Tracepoints::attach(&TracingPlan { port, processes, requests: true, events }).unwrap())
}

fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned())
}

/// Responds `b"!!"` to every byte except `.`, until the client is gone.
fn serve(stream: TcpStream) {
    let mut stream = stream;
    let mut byte = [0];
    while let Ok(1) = stream.read(&mut byte) {
        if byte[0] != b'.' {
            stream.write_all(b"!!").unwrap();
        }
    }
}

/// These times in the buckets that the kernel would put them in.
fn counted(times: impl Iterator<Item = Nanos>) -> Waits {
    let mut sum = Nanos::ZERO;
    let mut buckets = BTreeMap::new();
    for time in times {
        sum += time;
        *buckets.entry(bucket_of(time)).or_insert(0) += 1;
    }
    Waits::of_buckets(sum, &buckets)
}

fn add_up_to(waits: &[Waits], whole: &Waits) -> bool {
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for (top, n) in waits.iter().flat_map(|waits| &waits.buckets) {
        *buckets.entry(*top).or_insert(0) += n;
    }
    waits.iter().map(|waits| waits.sum).sum::<Nanos>() == whole.sum
        && buckets.into_iter().eq(whole.buckets.iter().copied())
}

/// Clients of one server, each of which sends three requests on its connection.
struct ThreeRequests {
    clients: Vec<TcpStream>,
    ports: Vec<u16>,
}

impl ThreeRequests {
    /// Connects five clients and sends their first requests, before anybody accepts.
    fn connect(host: &str, port: u16) -> ThreeRequests {
        let mut clients: Vec<TcpStream> =
            (0..5).map(|_| TcpStream::connect((host, port)).unwrap()).collect();
        let ports = clients.iter().map(|client| client.local_addr().unwrap().port()).collect();
        for client in &mut clients {
            client.set_nodelay(true).unwrap();
            client.write_all(b"?").unwrap();
        }
        ThreeRequests { clients, ports }
    }

    /// Accepts and serves them; the second request of each comes in two segments.
    fn exchange(&mut self, listener: &TcpListener) {
        let servers: Vec<_> = self.clients.iter().map(|_| listener.accept().unwrap().0).collect();
        let threads: Vec<_> =
            servers.into_iter().map(|stream| std::thread::spawn(|| serve(stream))).collect();
        let mut response = [0; 2];
        for client in &mut self.clients {
            client.read_exact(&mut response).unwrap();
            client.write_all(b".").unwrap();
            client.write_all(b"?").unwrap();
            client.read_exact(&mut response).unwrap();
            client.write_all(b"?").unwrap();
            client.read_exact(&mut response).unwrap();
        }
        self.clients.clear();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

/// The stamps of one connection's requests are in the order in which things happen.
fn assert_ordered(responses: &[&TracedResponse], before: Nanos, after: Nanos) {
    let mut last = before;
    for response in responses {
        let s = response.stamps;
        let accepted = s.accepted.unwrap();
        let arrived = s.arrived.unwrap();
        assert!(before <= s.established && s.established <= accepted, "{response:?}");
        assert!(accepted.max(arrived) <= s.read && s.read <= s.answered, "{response:?}");
        assert!(s.answered <= after, "{response:?}");
        assert!(s.established <= arrived && last <= arrived, "{response:?}");
        last = s.answered;
    }
    // The first request was written before anybody accepted.
    assert!(responses[0].stamps.arrived < responses[0].stamps.accepted);
}

/// The kernel's sums for a process agree with its single records.
fn assert_sums(process: &ProcessWaits, events: &[TracedResponse], address: &str) {
    let accept = events
        .iter()
        .filter(|event| event.number == 0)
        .map(|event| event.stamps.accepted.unwrap() - event.stamps.established);
    assert_eq!(process.accept_queue, counted(accept), "{address}");
    let received = events.iter().map(|event| {
        let s = event.stamps;
        s.read - s.arrived.unwrap().max(s.accepted.unwrap())
    });
    let received = counted(received);
    assert!(add_up_to(std::slice::from_ref(&process.receive_queue), &received), "{address}");
    let in_server = counted(events.iter().map(|event| event.stamps.answered - event.stamps.read));
    assert!(add_up_to(std::slice::from_ref(&process.in_server), &in_server), "{address}");
    assert!(process.run_queue.count > 0, "threads slept until their clients woke them");
    let tops = process.run_queue.buckets.iter().map(|(top, _)| *top);
    for top in tops {
        assert_eq!(top_of(bucket_of(Nanos(top))), top);
    }
}

#[test]
fn sums_in_the_kernel_agree_with_its_records() {
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let Ok(listener) = TcpListener::bind(address) else { continue };
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id();
        let Some(mut tracepoints) = follow(&listener, &[me], true) else { return };
        tracepoints.count_from(Nanos::ZERO).unwrap();
        let host = if address.starts_with("[::1]") { "::1" } else { "127.0.0.1" };
        let before = now();
        let mut requests = ThreeRequests::connect(host, port);
        requests.exchange(&listener);
        let after = now();
        let events: Vec<TracedResponse> = std::iter::from_fn(|| tracepoints.next_event()).collect();
        let view = tracepoints.view().unwrap();
        assert_eq!((view.unfollowed, view.lost, events.len()), (0, 0, 15), "{address} {view:?}");
        assert_eq!(
            (view.processes.len(), view.processes[0].pid, view.answers()),
            (1, me, 15),
            "{address}"
        );
        for port in &requests.ports {
            let own: Vec<&TracedResponse> =
                events.iter().filter(|event| event.port == *port).collect();
            assert_eq!(own.iter().map(|event| event.number).collect::<Vec<_>>(), [0, 1, 2]);
            assert_ordered(&own, before, after);
        }
        assert_sums(&view.processes[0], &events, address);
    }
}

#[test]
fn outside_the_window_only_answers_are_counted_and_other_servers_never() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let Some(tracepoints) = follow(&listener, &[], false) else { return };
    for listener in [&listener, &other] {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let thread = std::thread::spawn(|| serve(server));
        client.write_all(b"?").unwrap();
        client.read_exact(&mut [0; 2]).unwrap();
        drop(client);
        thread.join().unwrap();
    }
    let view = tracepoints.view().unwrap();
    assert_eq!((view.processes.len(), view.answers(), view.unfollowed), (1, 1, 0), "{view:?}");
    let process = &view.processes[0];
    let waits =
        [&process.accept_queue, &process.receive_queue, &process.in_server, &process.run_queue];
    assert!(waits.iter().all(|waits| waits.count == 0), "{process:?}");
}

#[test]
fn a_server_that_hangs_up_has_not_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let Some(mut tracepoints) = follow(&listener, &[], true) else { return };
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    client.write_all(b"?").unwrap();
    server.read_exact(&mut [0]).unwrap();
    drop(server);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!((tracepoints.next_event(), tracepoints.view().unwrap().answers()), (None, 0));
}
