//! `--statsd-to`: what arrives is each figure of the study, and nobody who does not listen disturbs the run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;

use export::statsd::StatsdValues;
use export::{MetricFamily, text_formats};
use sink::SinkBody;
use testkit::clock::eventually;

use super::{packets, udp};
use crate::lab::{Lab, PATIENCE, Running, free_port, has};
use crate::load::{load, sink, study, url};

/// The lines of the runs' figures that came.
fn arrived(packets: &[String]) -> BTreeSet<String> {
    assert!(packets.iter().all(|packet| packet.len() <= text_formats::LONGEST_PACKET));
    let lines = packets.iter().flat_map(|packet| packet.lines());
    lines.filter(|line| line.starts_with("longtail.run.")).map(str::to_owned).collect()
}

/// The lines of these figures.
fn expected(families: &[MetricFamily]) -> BTreeSet<String> {
    text_formats::lines(families).iter().map(ToString::to_string).collect()
}

#[test]
fn each_figure_of_a_load_arrives() {
    let (lab, sink, agent) = (Lab::new(), sink(SinkBody::default()), udp());
    let to = agent.local_addr().unwrap();
    let ended = load(&lab, &format!("-n 300 -c 4 --statsd-to {to} {}", url(&sink))).with_code(0);
    assert!(!ended.stderr.contains("--statsd-to"), "{}", ended.stderr);
    let arrived = arrived(&packets(&agent));
    assert_eq!(arrived, expected(&export::of_load(&study(&lab))));
    assert!(arrived.contains("longtail.run.planned_requests:300|g|#command:load,connections:4,outcome:200,run:1"));
}

#[test]
fn each_figure_of_a_sweep_arrives_and_how_things_stand_too() {
    let (lab, agent) = (Lab::new(), udp());
    let words = "sweep --server builtin -w2 -t2:2 -d0.01 --for 1500ms --warm-up 100ms --multiples 1,2 --no-calibrate";
    let ended = lab.run(&format!("{words} --statsd-to {}", agent.local_addr().unwrap()));
    let _ = ended.measured(&lab.kept());
    let (packets, study) = (packets(&agent), lab.study());
    // What the server counted is put beside the runs when all are over: here it agrees.
    let families = study.runs.iter().zip(1..).flat_map(|(run, number)| export::of_sweep(&study, run, number));
    let arrived = arrived(&packets);
    assert_eq!(arrived, expected(&families.collect::<Vec<_>>()));
    assert!(arrived.iter().any(|line| line.contains("multiple:2,") && line.contains("threads:2,workers:2")));
    // Three seconds of runs have at least one whole second in them.
    assert!(packets.iter().any(|packet| packet.contains("longtail.requests_ended_total:")), "{packets:?}");
}

#[test]
fn nothing_is_told_of_a_sweep_before_the_servers_own_count_is_compared() {
    if !has("puma") {
        return;
    }
    // Its answers name the wrong worker: what looked like a measurement is found INVALID when the server's count is read.
    let (lab, agent) = (Lab::new(), udp());
    lab.write("app.ru", "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => '1'}, ['ok']] }\n");
    let words = format!(
        "sweep -r app.ru -w2 -t2:2 --for 1s --warm-up 0 --multiples 1,2 --no-calibrate --inspect none --statsd-to {}",
        agent.local_addr().unwrap()
    );
    lab.start_at(free_port(), &words).end().with_code(3);
    let packets = packets(&agent);
    let verdicts: BTreeSet<&str> = packets
        .iter()
        .flat_map(|packet| packet.lines())
        .filter(|line| line.starts_with("longtail.run.verdict:"))
        .filter_map(|line| line.split("verdict:").nth(2)?.split(',').next())
        .collect();
    assert_eq!(verdicts, BTreeSet::from(["invalid"]), "{packets:?}");
}

#[test]
fn the_bridge_to_prometheus_takes_it() {
    if !has("statsd_exporter") {
        return;
    }
    let (lab, sink, web, statsd) = (Lab::new(), sink(SinkBody::default()), free_port(), free_port());
    let mut bridge = lab.program("statsd_exporter");
    bridge.arg(format!("--statsd.listen-udp=127.0.0.1:{statsd}")).arg("--statsd.listen-tcp=");
    bridge.arg(format!("--web.listen-address=127.0.0.1:{web}"));
    let _bridge = Running::start(&mut bridge);
    eventually(PATIENCE, || "no bridge".to_owned(), || TcpStream::connect(("127.0.0.1", web)).ok());
    load(&lab, &format!("-n 300 -c 4 --statsd-to 127.0.0.1:{statsd} {}", url(&sink))).with_code(0);
    let study = study(&lab);
    let scraped = || super::scraped::get(web, "/metrics").unwrap_or_default();
    // Every line is a series there, but for those of how things stand, of which the last counts.
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
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let name = format!("{}{{{}}}", line.name.replace('.', "_"), labels.join(","));
        assert_eq!(arrived.get(&name), values.first(), "{name}");
    }
}
