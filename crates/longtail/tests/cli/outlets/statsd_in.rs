//! `--statsd-listen`: each packet that an app sends during a run is in its figures, or counted where it is not.

use std::net::UdpSocket;

use model::{MetricKind, StatsdFigures, StatsdReport};
use testkit::http::Receiver;

use super::{packets, udp};
use crate::lab::{Lab, end, free_port, has};
use crate::load::{load, study};

/// A server that sends these lines before each of its answers.
fn chatty(statsd: String, lines: &'static str) -> Receiver {
    Receiver::by(move |_| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(lines.as_bytes(), &statsd).unwrap();
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
    })
}

fn figures(statsd: &StatsdReport, metric: &str) -> StatsdFigures {
    statsd.of(metric).and_then(|series| series.figures).unwrap_or_else(|| panic!("no {metric}: {statsd:?}"))
}

const LINES: &str = "app.requests:1|c|#route:root\napp.jobs:1|c|@0.5\napp.rack:20:40|ms\napp.depth:3|g\n\
                     what is this?\n_sc|up|0\n";

#[test]
fn every_packet_of_a_load_is_counted_once() {
    let (lab, statsd) = (Lab::new(), format!("127.0.0.1:{}", free_port()));
    let server = chatty(statsd.clone(), LINES);
    let ended = load(&lab, &format!("-n 60 -c 3 --statsd-listen {statsd} {}", server.url())).with_code(0);
    assert!(ended.stderr.contains(&format!("listening to statsd at {statsd}\n")), "{}", ended.stderr);
    let study = study(&lab);
    assert_eq!(study.plan.statsd_listen, statsd.parse().ok());
    let statsd = study.run.statsd.as_ref().unwrap();
    let n = server.kept().len() as u64;
    // The window is the whole run, and each packet left before its answer did.
    assert_eq!((study.run.tally.counts.good(), n), (60, 60));
    assert_eq!((statsd.packets, statsd.lines, statsd.malformed, statsd.no_metrics), (n, 4 * n, n, n));
    assert_eq!((statsd.before, statsd.left_out, statsd.dropped_by_kernel), (0, 0, Some(0)));
    assert_eq!(statsd.first_malformed.as_deref(), Some("what is this?"));
    let exactly = |figures: StatsdFigures, [sum, mean, last, min, max]: [f64; 5]| {
        assert_eq!(figures, StatsdFigures { sum, mean, last, min, max });
    };
    exactly(figures(statsd, "app.requests"), [60.0, 1.0, 1.0, 1.0, 1.0]);
    exactly(figures(statsd, "app.jobs"), [120.0, 1.0, 1.0, 1.0, 1.0]);
    exactly(figures(statsd, "app.rack"), [3600.0, 30.0, 40.0, 20.0, 40.0]);
    exactly(figures(statsd, "app.depth"), [180.0, 3.0, 3.0, 3.0, 3.0]);
    let requests = statsd.of("app.requests").unwrap();
    assert_eq!(
        (requests.kind, requests.values, requests.tags.as_slice()),
        (MetricKind::Counter, 60, &["route:root".to_owned()][..])
    );
    // The report says so.
    assert!(ended.stdout.contains("received over statsd in the window"), "{}", ended.stdout);
    assert!(ended.stdout.contains("60 lines without statsd, the first 'what is this?'"), "{}", ended.stdout);
}

const APP: &str = "require 'socket'\nUDP = UDPSocket.new\n\
    run(lambda { |env|\n  UDP.send(\"app.requests:1|c\", 0, ENV.fetch('STATSD_HOST'), ENV.fetch('STATSD_PORT').to_i)\n  \
    [200, {}, ['ok']]\n})\n";

#[test]
fn what_the_user_has_set_stays() {
    if !has("puma") {
        return;
    }
    let (lab, own) = (Lab::new(), udp());
    let app = lab.write("app.ru", APP);
    let mut sweep =
        lab.longtail("sweep -w1 -t1:1 -d0.001 -R5 --multiples 1 --no-calibrate --path / --statsd-listen [::1]:0");
    sweep.arg("-r").arg(&app);
    sweep.env("STATSD_HOST", "127.0.0.1").env("STATSD_PORT", own.local_addr().unwrap().port().to_string());
    let ended = end(&mut sweep).with_code(0);
    assert!(ended.stderr.contains("STATSD_HOST is set already"), "{}", ended.stderr);
    let statsd = lab.study().runs[0].statsd.clone().unwrap();
    assert_eq!((statsd.packets, statsd.before, statsd.lines), (0, 0, 0));
    assert!(ended.stdout.contains("1x  nothing came"), "{}", ended.stdout);
    assert!(packets(&own).len() > 5);
}
