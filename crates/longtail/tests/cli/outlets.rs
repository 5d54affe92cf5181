//! A scrape during a load, and the bridge from statsd to Prometheus. Other metrics are in
//! `scenarios/outlets.txt`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Stdio;

use export::statsd::StatsdValues;
use export::text_formats;
use rustix::process::Signal;
use sink::SinkBody;
use testkit::clock::eventually;

use crate::lab::{Lab, PATIENCE, Running, free_port, get_body, has};
use crate::load::{load, sink, study, url};

/// The value of a series without labels.
fn value(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn scrape(port: u16) -> String {
    eventually(PATIENCE, || "no metrics".to_owned(), || get_body(port, "/metrics"))
}

/// Checks the text with promtool, if it is installed.
fn check(lab: &Lab, text: &str) {
    if !has("promtool") {
        return;
    }
    let mut promtool = lab.program("promtool");
    promtool
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = promtool.spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}\n{text}"
    );
}

#[test]
fn a_scrape_has_live_figures_and_then_the_final_ones() {
    let lab = Lab::new();
    let sink = sink(SinkBody::default());
    let port = free_port();
    let words = format!(
        "load --no-calibrate -c 3 --for 600s --metrics 127.0.0.1:{port} --metrics-linger 600s {}",
        url(&sink)
    );
    let load = lab.start(&words);
    let ended = |text: &str| value(text, "longtail_requests_ended_total").unwrap();
    let text = eventually(
        PATIENCE,
        || scrape(port),
        || Some(scrape(port)).filter(|text| ended(text) > 0.0),
    );
    assert_eq!(value(&text, "longtail_runs_done_total"), Some(0.0));
    assert!(text.contains("longtail_now_connections{run=\"1\"} 3\n"), "{text}");
    check(&lab, &text);
    let later = eventually(
        PATIENCE,
        || scrape(port),
        || Some(scrape(port)).filter(|later| ended(later) > ended(&text)),
    );
    assert!(ended(&later) > ended(&text), "it only rises");
    // Other requests get no data and do no harm.
    assert_eq!(get_body(port, "/"), None);
    TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"\x00\xff").unwrap();
    // An interrupted load does not linger.
    load.send(Signal::INT);
    load.end().with_code(130);
    assert!(get_body(port, "/metrics").is_none());
}

#[test]
fn the_statsd_bridge_to_prometheus_accepts_every_line() {
    if !has("statsd_exporter") {
        return;
    }
    let lab = Lab::new();
    let sink = sink(SinkBody::default());
    let web = free_port();
    let statsd = free_port();
    let mut bridge = lab.program("statsd_exporter");
    bridge.arg(format!("--statsd.listen-udp=127.0.0.1:{statsd}")).arg("--statsd.listen-tcp=");
    bridge.arg(format!("--web.listen-address=127.0.0.1:{web}"));
    let _bridge = Running::start(&mut bridge);
    eventually(PATIENCE, || "no bridge".to_owned(), || TcpStream::connect(("127.0.0.1", web)).ok());
    load(&lab, &format!("-n 300 -c 4 --statsd-to 127.0.0.1:{statsd} {}", url(&sink))).with_code(0);
    let study = study(&lab);
    let scraped = || get_body(web, "/metrics").unwrap_or_default();
    // Every line is a series there. Of the live figures only the last value counts.
    let lines = text_formats::lines(&export::of_load(&study));
    let series = |text: &str| -> BTreeMap<String, f64> {
        let lines = text.lines().filter(|line| line.starts_with("longtail_run_"));
        lines
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(name, n)| (name.to_owned(), n.parse().unwrap()))
            .collect()
    };
    let seen = || Some(series(&scraped())).filter(|series| series.len() == lines.len());
    let arrived = eventually(PATIENCE, scraped, seen);
    for line in lines {
        let StatsdValues::Numbers(values) = &line.values else { panic!("{line}") };
        let labels = line.tags.iter().map(|tag| tag.split_once(':').unwrap());
        let labels: Vec<String> =
            labels.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let name = format!("{}{{{}}}", line.name.replace('.', "_"), labels.join(","));
        assert_eq!(arrived.get(&name), values.first(), "{name}");
    }
}
