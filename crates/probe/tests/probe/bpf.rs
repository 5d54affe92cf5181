//! What the kernel's tracepoints tell of a server and a client of our own: counts, order, and that
//! the kernel's sums are those of its single records. Where BPF cannot be had, the tests that need
//! it say so and do nothing.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use model::kernel::{bucket_of, top_of};
use model::{Nanos, Waits};
use probe::bpf::{TracedResponse, Tracepoints, TracingPlan, possible};
use rustix::time::{ClockId, clock_gettime};

/// Follows the server at this port; `None`, and why, where BPF cannot be had.
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

/// Responses `b"!"` to every byte that is no `.`, from a thread of its own, until the client is
/// gone.
fn serve(stream: TcpStream) {
    let mut stream = stream;
    let mut byte = [0];
    while let Ok(1) = stream.read(&mut byte) {
        if byte[0] != b'.' {
            stream.write_all(b"!!").unwrap();
        }
    }
}

/// The kernel's own buckets, of single times.
fn counted(times: impl Iterator<Item = Nanos>) -> Waits {
    let (mut sum, mut buckets) = (Nanos::ZERO, BTreeMap::new());
    for time in times {
        sum += time;
        *buckets.entry(bucket_of(time)).or_insert(0) += 1;
    }
    Waits::of_buckets(sum, &buckets)
}

fn is_merged(waits: &[Waits], whole: &Waits) -> bool {
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for (top, n) in waits.iter().flat_map(|waits| &waits.buckets) {
        *buckets.entry(*top).or_insert(0) += n;
    }
    waits.iter().map(|waits| waits.sum).sum::<Nanos>() == whole.sum
        && buckets.into_iter().eq(whole.buckets.iter().copied())
}

#[test]
fn what_is_summed_up_in_the_kernel_is_what_its_records_say() {
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let Ok(listener) = TcpListener::bind(address) else { continue };
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id();
        let Some(mut tracepoints) = follow(&listener, &[me], true) else { return };
        tracepoints.count_from(Nanos::ZERO).unwrap();
        let host = if address.starts_with("[::1]") { "::1" } else { "127.0.0.1" };
        let before = now();
        // Connections that wait, then are accepted; each asks three times, the second time in two
        // segments.
        let mut clients: Vec<TcpStream> =
            (0..5).map(|_| TcpStream::connect((host, port)).unwrap()).collect();
        let ports: Vec<u16> =
            clients.iter().map(|client| client.local_addr().unwrap().port()).collect();
        for client in &mut clients {
            client.set_nodelay(true).unwrap();
            client.write_all(b"?").unwrap();
        }
        let servers: Vec<_> = clients.iter().map(|_| listener.accept().unwrap().0).collect();
        let threads: Vec<_> =
            servers.into_iter().map(|stream| std::thread::spawn(|| serve(stream))).collect();
        let mut answer = [0; 2];
        for client in &mut clients {
            client.read_exact(&mut answer).unwrap();
            client.write_all(b".").unwrap();
            client.write_all(b"?").unwrap();
            client.read_exact(&mut answer).unwrap();
            client.write_all(b"?").unwrap();
            client.read_exact(&mut answer).unwrap();
        }
        let after = now();
        drop(clients);
        for thread in threads {
            thread.join().unwrap();
        }
        let events: Vec<TracedResponse> = std::iter::from_fn(|| tracepoints.next_event()).collect();
        let view = tracepoints.view().unwrap();
        assert_eq!((view.unfollowed, view.lost, events.len()), (0, 0, 15), "{address} {view:?}");
        assert_eq!(
            (view.processes.len(), view.processes[0].pid, view.answers()),
            (1, me, 15),
            "{address}"
        );
        for port in &ports {
            let own: Vec<&TracedResponse> =
                events.iter().filter(|event| event.port == *port).collect();
            assert_eq!(own.iter().map(|event| event.number).collect::<Vec<_>>(), [0, 1, 2]);
            let mut last = before;
            for (event, s) in own.iter().map(|event| (event, event.stamps)) {
                let (accepted, arrived) = (s.accepted.unwrap(), s.arrived.unwrap());
                assert!(before <= s.established && s.established <= accepted, "{event:?}");
                assert!(
                    accepted.max(arrived) <= s.read && s.read <= s.answered && s.answered <= after,
                    "{event:?}"
                );
                assert!(s.established <= arrived && last <= arrived, "{event:?}");
                last = s.answered;
            }
            // The first was written before anybody accepted.
            assert!(own[0].stamps.arrived < own[0].stamps.accepted);
        }
        let process = &view.processes[0];
        let first = |event: &&TracedResponse| event.number == 0;
        let accept = events
            .iter()
            .filter(first)
            .map(|event| event.stamps.accepted.unwrap() - event.stamps.established);
        assert_eq!(process.accept_queue, counted(accept), "{address}");
        let received = events.iter().map(|event| {
            let s = event.stamps;
            s.read - s.arrived.unwrap().max(s.accepted.unwrap())
        });
        assert!(
            is_merged(std::slice::from_ref(&process.receive_queue), &counted(received)),
            "{address}"
        );
        let in_server = events.iter().map(|event| event.stamps.answered - event.stamps.read);
        assert!(
            is_merged(std::slice::from_ref(&process.in_server), &counted(in_server)),
            "{address}"
        );
        assert!(process.run_queue.count > 0, "threads that sleep for their client are woken");
        assert!(
            process.run_queue.buckets.iter().all(|(top, _)| top_of(bucket_of(Nanos(*top))) == *top)
        );
    }
}

#[test]
fn outside_of_the_window_answers_are_counted_alone_and_strangers_never() {
    let (listener, other) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
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
