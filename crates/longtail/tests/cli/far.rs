//! Servers on other machines: network namespaces, joined by a wire that delays and loses packets (`testkit::network`). Skipped, with
//! the reason, where none can be made.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use model::{Nanos, ServerLocation};
use sink::{Listen, PemPair, Sink, SinkBody, SinkSettings};
use testkit::clock::REAL_CLOCK;
use testkit::network::{Capture, Host, Packet, Way, Wire};

use crate::lab::{Ended, LONGTAIL, Lab, Running, THIS_MACHINE, can, end, free_port, full_report, has, split};
use crate::load::{assert_answered, study};

/// Each way of a wire; a round trip is twice as long.
const DELAY: Duration = Duration::from_millis(20);
const ROUND_TRIP: Nanos = Nanos::from_millis(40);

const HOSTS: &str = "127.0.0.1 localhost\n10.77.0.2 app.test\n10.77.0.9 silent.test\n10.78.0.1 no-route.test\n\
    10.77.0.2 both.test\n203.0.113.7 both.test\n10.77.0.3 several.test\n10.77.0.2 several.test";

/// The files by which a machine knows names.
fn names(server: &str) -> [(&str, &str); 3] {
    [("/etc/hosts", HOSTS), ("/etc/resolv.conf", server), ("/etc/nsswitch.conf", "hosts: files dns")]
}

/// A machine with longtail, and one with a server.
pub(crate) struct Machines {
    pub(crate) lab: Lab,
    pub(crate) here: Host,
    there: Host,
    pub(crate) wire: Wire,
}

impl Machines {
    pub(crate) fn joined(there: Way, back: Way) -> Option<Machines> {
        let files = names("nameserver 127.0.0.1");
        let (here, remote) = (host(&files)?, host(&files)?);
        let ours: &[&str] = &["10.77.0.1/24", "fd77::1/64"];
        let theirs: &[&str] = &["10.77.0.2/24", "fd77::2/64", "203.0.113.7/32"];
        let wire = Wire::between((&here, ours), (&remote, theirs), there, back);
        here.ip("route add 203.0.113.7 dev wire0");
        Some(Machines { lab: Lab::new(), here, there: remote, wire })
    }

    pub(crate) fn sink(&self, address: &str, settings: SinkSettings) -> (Sink, SocketAddr) {
        let listen: Listen = address.parse().unwrap();
        let sink =
            self.there.enter(|| Sink::start(SinkSettings { listen: vec![listen], ..settings }, REAL_CLOCK).unwrap());
        let address = sink.address();
        (sink, address)
    }

    /// longtail here, which may also connect to the other machine.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = on(&self.lab, &self.here, &format!("{THIS_MACHINE},10.77.0.0/24,10.78.0.0/24,fd77::/64"));
        command.args(full_report(words));
        command
    }

    /// longtail on the machine that has the server.
    pub(crate) fn there_command(&self, words: &str) -> Command {
        let mut command = on(&self.lab, &self.there, &format!("{THIS_MACHINE},10.77.0.0/24"));
        command.args(full_report(words));
        command
    }

    pub(crate) fn load(&self, words: &str) -> Ended {
        end(&mut self.command(&format!("load --no-calibrate {words}")))
    }
}

pub(crate) fn host(files: &[(&str, &str)]) -> Option<Host> {
    let made = Host::new(files);
    can(made.is_ok(), made.as_ref().err().map_or("", String::as_str));
    made.ok()
}

/// longtail on a host, allowed to connect to these networks.
pub(crate) fn on(lab: &Lab, host: &Host, networks: &str) -> Command {
    let inner = host.command(LONGTAIL, &lab.path(""));
    let mut command = lab.program(&inner.get_program().to_string_lossy());
    command.args(inner.get_args()).env("LONGTAIL_ALLOW_NET", networks);
    command
}

/// A certificate for this name.
fn certificate(lab: &Lab, name: &str) -> PemPair {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = lab.write("certificate.pem", &made.cert.pem());
    PemPair { certificate, key: lab.write("key.pem", &made.signing_key.serialize_pem()) }
}

#[test]
fn the_way_is_in_connect_and_response_times_and_in_nothing_else() {
    let way = Way { delay: DELAY, loses_every: 0 };
    let Some(machines) = Machines::joined(way, way) else { return };
    let pair = certificate(&machines.lab, "app.test");
    for (address, tls, host) in [
        ("10.77.0.2:0", false, "10.77.0.2"),
        ("[fd77::2]:0", false, "[fd77::2]"),
        ("10.77.0.2:0", true, "app.test"),
        ("[fd77::2]:0", true, "app.test"),
    ] {
        for keep_alive in [true, false] {
            let listen = if tls { format!("tls://{address}") } else { address.to_owned() };
            let pem = tls.then(|| pair.clone());
            let (sink, at) =
                machines.sink(&listen, SinkSettings { pem, body: SinkBody::Ok, ..SinkSettings::default() });
            let (scheme, port) = (if tls { "https" } else { "http" }, at.port());
            let given = if tls {
                format!("--cacert certificate.pem --resolve app.test:{port}:{}", at.ip())
            } else {
                String::new()
            };
            let words = format!("{given} {} -n 12 -c 4 -o x.study.json", if keep_alive { "" } else { "-k" });
            let ended = machines.load(&format!("{words} {scheme}://{host}:{port}/")).with_code(0);
            let study = crate::load::read(&machines.lab.path("x.study.json"));
            assert_answered(&study, sink);
            let tally = &study.run.tally;
            assert_eq!(study.server, ServerLocation::Elsewhere);
            assert!(
                study.placement.is_none() && study.run.generator.listen_overflows.is_none(),
                "nothing of another machine"
            );
            assert_eq!(tally.connections_opened, if keep_alive { 4 } else { 12 });
            assert_eq!(tally.network.round_trip.count, tally.connections_opened);
            for time in [
                tally.network.round_trip.min,
                tally.phases.connect.min,
                tally.response_time.min().unwrap(),
                tally.phases.first_byte.min,
            ] {
                assert!(time >= ROUND_TRIP, "{time} is less than the round trip: {listen} {words}");
            }
            assert_eq!(tally.network.retransmitted, 0);
            for said in [
                "the server's accept queue, CPU and processes are not seen",
                "network to the server, by TCP",
                "round trip",
            ] {
                assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
            }
            assert!(
                !ended.stdout.contains("server CPUs") && !ended.stdout.contains("accept queue, of all servers here")
            );
        }
    }
}

/// Each is one line, before any load: exit code 2 and what is wrong.
#[test]
fn what_cannot_be_reached_is_said_by_its_name() {
    let Some(machines) = Machines::joined(Way::default(), Way::default()) else { return };
    let pem = Some(certificate(&machines.lab, "other.test"));
    let (sink, at) = machines.sink("tls://10.77.0.2:0", SinkSettings { pem, ..SinkSettings::default() });
    let (tls, port) = (at.port(), free_port());
    machines.here.ip("route add unreachable 10.78.0.0/24");
    for (words, said) in [
        ("http://nowhere.test/".to_owned(), "cannot resolve nowhere.test"),
        (
            format!("http://app.test:{port}/"),
            &*format!("10.77.0.2:{port} refuses connections: start the server first, or correct the URL"),
        ),
        ("http://no-route.test/".to_owned(), "10.78.0.1:80 has no route to it"),
        ("http://silent.test/".to_owned(), "10.77.0.9:80 does not answer within 4 s"),
        (format!("--cacert certificate.pem https://app.test:{tls}/"), "not valid for name"),
        (format!("https://app.test:{tls}/"), "--cacert FILE, or any with --insecure"),
        (format!("-6 http://app.test:{port}/"), "app.test has no IPv6 address, only 10.77.0.2"),
        ("http://both.test/".to_owned(), "both.test is 203.0.113.7, outside the allowed networks"),
    ] {
        machines.load(&format!("-n 1 -c 1 {words}")).refused(said);
    }
    assert_eq!(sink.stop().requests, 0);
    assert!(machines.lab.studies().is_empty());
}

#[test]
fn of_several_addresses_the_one_that_is_used_is_said_and_a_public_one_announced() {
    let Some(machines) = Machines::joined(Way::default(), Way::default()) else { return };
    let (sink, at) = machines.sink("10.77.0.2:0", SinkSettings { body: SinkBody::Ok, ..SinkSettings::default() });
    let port = at.port();
    let ended = machines.load(&format!("-n 4 -c 2 http://several.test:{port}/")).with_code(0);
    assert!(
        ended.stderr.contains(&format!("several.test has 2 addresses; 10.77.0.2:{port} is used")),
        "{}",
        ended.stderr
    );
    assert_answered(&study(&machines.lab), sink);
    let (sink, at) = machines.sink("203.0.113.7:0", SinkSettings { body: SinkBody::Ok, ..SinkSettings::default() });
    let mut command = machines.command(&format!("load --no-calibrate --rate 500/s --for 200ms http://{at}/"));
    let ended = end(command.env_remove("LONGTAIL_ALLOW_NET")).with_code(0);
    let line = format!("Loading {at}: open loop, constant, 500 req/s for 200 ms");
    assert!(ended.stderr.contains(&line), "{}", ended.stderr);
    assert_eq!(sink.stop().requests, 100);
}

#[test]
fn another_generator_gets_the_name_unless_only_some_networks_are_allowed() {
    let Some(machines) = Machines::joined(Way::default(), Way::default()) else { return };
    if !has("wrk") {
        return;
    }
    let pem = Some(certificate(&machines.lab, "app.test"));
    let (_sink, at) =
        machines.sink("tls://10.77.0.2:0", SinkSettings { pem, body: SinkBody::Ok, ..SinkSettings::default() });
    let words = format!("load --generator wrk --insecure -c 2 --for 1s https://app.test:{}/", at.port());
    let by_address = end(&mut machines.command(&words)).with_code(0);
    assert!(by_address.stdout.contains(&format!("https://{at}/")), "{}", by_address.stdout);
    let by_name = end(machines.command(&words).env_remove("LONGTAIL_ALLOW_NET")).with_code(0);
    assert!(!by_name.stdout.contains(&format!("https://{at}/")), "{}", by_name.stdout);
}

/// A Puma on another machine tells of its threads by its control server, and a connect tells how far it is.
#[test]
fn a_puma_on_another_machine_is_watched_by_its_control_server() {
    let way = Way { delay: DELAY, loses_every: 0 };
    let Some(machines) = Machines::joined(way, way) else { return };
    if !has("puma") {
        return;
    }
    let (lab, port, control) = (&machines.lab, free_port(), free_port());
    lab.write("config.ru", "run ->(_) { [200, {}, ['ok']] }\n");
    let inner = machines.there.command("puma", &lab.path(""));
    let mut command = lab.program(&inner.get_program().to_string_lossy());
    command.args(inner.get_args()).args(["-w2", "-t3:3", "-b", &format!("tcp://10.77.0.2:{port}")]);
    command.args(["--control-url", &format!("tcp://10.77.0.2:{control}"), "--control-token", "t", "config.ru"]);
    let mut puma = Running::start(&mut command);
    puma.until(|said| said.contains("Worker 1") && said.contains("booted"));
    let url = format!("--control-url tcp://10.77.0.2:{control} --control-token t");
    let mut watched = machines.command(&format!("watch 10.77.0.2:{port} {url} --for 3s --full"));
    let text = end(&mut watched).with_code(0).stdout;
    assert!(text.starts_with(&format!("Puma on 10.77.0.2:{port} · 2 workers x 3 threads")), "{text}");
    for said in [
        "None of 6 threads is busy",
        "\n  connect time, ms",
        "\n  busy threads",
        "not visible   accept queue, connections, CPU and processes: the server is on another machine",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("\n  accept queue") && !text.contains("overflows"), "{text}");
    let connect = text.lines().find(|line| line.starts_with("  connect time")).unwrap();
    let least: f64 = connect.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(least >= 40.0, "{connect}");
    let alone = end(&mut machines.command(&format!("watch 10.77.0.2:{port}"))).with_code(2);
    assert!(
        alone.stderr.contains("is on another machine") && alone.stderr.contains("--control-url"),
        "{}",
        alone.stderr
    );
    puma.send(rustix::process::Signal::TERM);
}

/// What looks like a container's proxy: it takes connections, and answers what the other machine's server would.
pub(crate) const FORWARDER: &str = r#"
import socket, sys, threading
open("/proc/self/comm", "w").write("docker-proxy")
def carry(a, b):
    try:
        while (data := a.recv(65536)): b.sendall(data)
    except OSError: pass
    finally:
        for end in (a, b):
            try: end.shutdown(socket.SHUT_RDWR)
            except OSError: pass
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in ((near, far), (far, near)): threading.Thread(target=carry, args=pair, daemon=True).start()
"#;

#[test]
fn a_listener_that_only_passes_connections_on_is_not_taken_for_the_server() {
    if !has("python3") {
        return;
    }
    let (lab, sink, port) = (Lab::new(), crate::load::sink(SinkBody::Ok), free_port());
    let script = lab.write("forwarder.py", FORWARDER);
    let to = sink.address().port().to_string();
    let mut forwarder = Running::start(lab.program("python3").arg(script).arg(port.to_string()).arg(to));
    forwarder.until(|said| said.contains("ready"));
    let ended = crate::load::load(&lab, &format!("-n 20 -c 2 http://127.0.0.1:{port}/")).with_code(0);
    let study = study(&lab);
    assert_eq!(study.server, ServerLocation::Forwarded { by: Some("docker-proxy".to_owned()) });
    assert!(study.placement.is_none());
    assert!(ended.stdout.contains("forwarded by docker-proxy"), "{}", ended.stdout);
    assert_answered(&study, sink);
}

/// Whatever is typed, nothing leaves a machine whose connections are bounded: neither a packet of a load nor a name's look-up. The
/// machine's one way out is a file of this test.
#[test]
fn under_allowed_networks_nothing_leaves() {
    let Some(host) = host(&names("nameserver 203.0.113.53")) else { return };
    let (lab, capture) = (Lab::new(), Capture::of(&host));
    lab.write("far.state", "control_url: tcp://203.0.113.7:9293\ncontrol_auth_token: none\n");
    let listening = Host::enter(&host, || std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let near = listening.local_addr().unwrap();
    let run = |words: &str, networks: Option<&str>| {
        let mut command = on(&lab, &host, networks.unwrap_or_default());
        if networks.is_none() {
            command.env_remove("LONGTAIL_ALLOW_NET");
        }
        end(command.args(split(words)))
    };
    for words in [
        "load -n1 -c1 http://203.0.113.7/".to_owned(),
        "load -n1 -c1 https://[2001:db8::7]/".to_owned(),
        "load -n1 -c1 http://[::ffff:203.0.113.7]/".to_owned(),
        "load -n1 -c1 http://both.test/".to_owned(),
        "load -n1 -c1 http://elsewhere.test/".to_owned(),
        "load -n1 -c1 http://127.0.0.1.elsewhere.test/".to_owned(),
        "load -n1 -c1 --connect-to elsewhere.test:80 http://127.0.0.1/".to_owned(),
        "load -n1 -c1 --resolve app.test:80:203.0.113.7 http://app.test/".to_owned(),
        "load -n1 -c1 --generator wrk http://elsewhere.test/".to_owned(),
        "load --as hey -- -n 1 -c 1 http://elsewhere.test/".to_owned(),
        "attack --target-throughput 1 -n 1 --url http://elsewhere.test/".to_owned(),
        format!("load -n1 -c1 --statsd-to elsewhere.test:8125 http://{near}/"),
        format!("load -n1 -c1 --statsd-to 203.0.113.7:8125 http://{near}/"),
        format!("load -n1 -c1 --otlp http://elsewhere.test http://{near}/"),
        "sweep --slots 1 --url http://elsewhere.test/ -- sleep 60".to_owned(),
        format!("watch {} --control-url tcp://elsewhere.test:9293 --for 1s", near.port()),
        format!("watch {} --state far.state --for 1s", near.port()),
    ] {
        run(&words, Some(THIS_MACHINE)).refused("outside the allowed networks");
    }
    assert_eq!(capture.packets(), [], "nothing has left");
    // The capture is no blind one: where nothing is bounded, both would have.
    run("load -n1 -c1 http://203.0.113.7/", None).with_code(2);
    let syn = Packet { to: "203.0.113.7".parse().unwrap(), protocol: 6, port: 80 };
    assert!(capture.packets().contains(&syn), "{:?}", capture.packets());
    let mut asks = Running::start(
        on(&lab, &host, "").env_remove("LONGTAIL_ALLOW_NET").args(split("load -n1 http://elsewhere.test/")),
    );
    let question = Packet { to: "203.0.113.53".parse().unwrap(), protocol: 17, port: 53 };
    asks.until(|_| capture.packets().contains(&question));
}
