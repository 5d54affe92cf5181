//! Other machines: network namespaces, linked by a wire that delays and loses packets
//! (`testkit::network`). Skipped, with the reason, if none can be made. The scenarios with them are
//! in `scenarios/far.txt`.

use std::process::Command;

use sink::PemPair;
use testkit::network::{Capture, Host, Packet, Way, Wire};

use crate::lab::{LONGTAIL, Lab, Running, THIS_MACHINE, can, end, split};

const HOSTS: &str = "127.0.0.1 localhost\n10.77.0.2 app.test\n10.77.0.9 silent.test\n10.78.0.1 no-route.test\n\
    10.77.0.2 both.test\n203.0.113.7 both.test\n10.77.0.3 several.test\n10.77.0.2 several.test";

/// The files by which a machine resolves names; `resolver` is its resolv.conf.
fn names(resolver: &str) -> [(&str, &str); 3] {
    [
        ("/etc/hosts", HOSTS),
        ("/etc/resolv.conf", resolver),
        ("/etc/nsswitch.conf", "hosts: files dns"),
    ]
}

/// A machine with longtail, and one with servers.
pub(crate) struct Machines {
    pub(crate) here: Host,
    pub(crate) there: Host,
    pub(crate) wire: Wire,
}

impl Machines {
    pub(crate) fn joined(way: Way) -> Option<Machines> {
        let files = names("nameserver 127.0.0.1");
        let here = host(&files)?;
        let there = host(&files)?;
        let ours: &[&str] = &["10.77.0.1/24", "fd77::1/64"];
        let theirs: &[&str] = &["10.77.0.2/24", "fd77::2/64", "203.0.113.7/32"];
        let wire = Wire::between((&here, ours), (&there, theirs), way, way);
        here.ip("route add 203.0.113.7 dev wire0");
        here.ip("route add unreachable 10.78.0.0/24");
        Some(Machines { here, there, wire })
    }
}

/// A machine with these files; `None`, with a message, if none can be made here.
pub(crate) fn host(files: &[(&str, &str)]) -> Option<Host> {
    let made = Host::new(files);
    can(made.is_ok(), made.as_ref().err().map_or("", String::as_str));
    made.ok()
}

/// A program on a host, where longtail may also connect to the other host.
pub(crate) fn on(lab: &Lab, host: &Host, program: &str) -> Command {
    let inner = host.command(program, &lab.path(""));
    let mut command = lab.program(&inner.get_program().to_string_lossy());
    command.args(inner.get_args());
    command
        .env("LONGTAIL_ALLOW_NET", format!("{THIS_MACHINE},10.77.0.0/24,10.78.0.0/24,fd77::/64"));
    command
}

/// A certificate for this name.
pub(crate) fn certificate(lab: &Lab, name: &str) -> PemPair {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = lab.write("certificate.pem", &made.cert.pem());
    PemPair { certificate, key: lab.write("key.pem", &made.signing_key.serialize_pem()) }
}

/// With --allow-net nothing leaves the machine, whatever is typed: neither a packet of a load nor a
/// name lookup. The machine's only way out is captured by this test.
#[test]
fn with_allowed_networks_nothing_leaves_the_machine() {
    let Some(host) = host(&names("nameserver 203.0.113.53")) else { return };
    let lab = Lab::new();
    let capture = Capture::of(&host);
    lab.write("far.state", "control_url: tcp://203.0.113.7:9293\ncontrol_auth_token: none\n");
    let listening = Host::enter(&host, || std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let near = listening.local_addr().unwrap();
    let run = |words: &str, networks: Option<&str>| {
        let mut command = on(&lab, &host, LONGTAIL);
        match networks {
            Some(networks) => command.env("LONGTAIL_ALLOW_NET", networks),
            None => command.env_remove("LONGTAIL_ALLOW_NET"),
        };
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
        "attack --target-throughput 1 -n 1 --url http://elsewhere.test/".to_owned(),
        format!("load -n1 -c1 --statsd-to elsewhere.test:8125 http://{near}/"),
        format!("load -n1 -c1 --statsd-to 203.0.113.7:8125 http://{near}/"),
        format!("load -n1 -c1 --otlp http://elsewhere.test http://{near}/"),
        "sweep --slots 1 --url http://elsewhere.test/ -- sleep 60".to_owned(),
        format!("watch :{} --control-url tcp://elsewhere.test:9293 --for 1s", near.port()),
        format!("watch :{} --state far.state --for 1s", near.port()),
    ] {
        run(&words, Some(THIS_MACHINE)).refused("outside the allowed networks");
    }
    assert_eq!(capture.packets(), [], "nothing has left");
    // The capture works: without --allow-net, both would have left.
    run("load -n1 -c1 http://203.0.113.7/", None).with_code(2);
    let syn = Packet { to: "203.0.113.7".parse().unwrap(), protocol: 6, port: 80 };
    assert!(capture.packets().contains(&syn), "{:?}", capture.packets());
    let mut asks = Running::start(
        on(&lab, &host, LONGTAIL)
            .env_remove("LONGTAIL_ALLOW_NET")
            .args(split("load -n1 http://elsewhere.test/")),
    );
    let question = Packet { to: "203.0.113.53".parse().unwrap(), protocol: 17, port: 53 };
    asks.until(|_| capture.packets().contains(&question));
}
