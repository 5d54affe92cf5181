//! `--metrics`: what a scrape is answered with, while a load goes on and after it; by `promtool`, and by a real Prometheus.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use export::text_formats;
use model::Outcome;
use rustix::process::Signal;
use serde_json::Value;
use sink::SinkBody;
use testkit::clock::eventually;

use crate::lab::{Lab, PATIENCE, Running, free_port, has};
use crate::load::{sink, study, url};

/// The body of an answer of 200.
pub(super) fn get(port: u16, target: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(format!("GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200")
        .then(|| body.to_owned())
        .or_else(|| head.starts_with("HTTP/1.0 200").then(|| body.to_owned()))
}

/// The value of a series without labels.
fn value(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn scrape(port: u16) -> String {
    eventually(PATIENCE, || "no metrics".to_owned(), || get(port, "/metrics"))
}

/// What promtool says of it, where there is one.
fn check(lab: &Lab, text: &str) {
    if !has("promtool") {
        return;
    }
    let mut promtool = lab.program("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = promtool.wait_with_output().unwrap();
    assert!(said.status.success() && said.stdout.is_empty() && said.stderr.is_empty(), "{said:?}\n{text}");
}

#[test]
fn a_scrape_tells_how_a_load_stands_and_then_its_figures() {
    let (lab, sink, port) = (Lab::new(), sink(SinkBody::default()), free_port());
    let words =
        format!("load --no-calibrate -c 3 --for 600s --metrics 127.0.0.1:{port} --metrics-linger 600s {}", url(&sink));
    let load = lab.start(&words);
    let ended = |text: &str| value(text, "longtail_requests_ended_total").unwrap();
    let text = eventually(PATIENCE, || scrape(port), || Some(scrape(port)).filter(|text| ended(text) > 0.0));
    assert_eq!(value(&text, "longtail_runs_done_total"), Some(0.0));
    assert!(text.contains("longtail_now_connections{run=\"1\"} 3\n"), "{text}");
    check(&lab, &text);
    let later =
        eventually(PATIENCE, || scrape(port), || Some(scrape(port)).filter(|later| ended(later) > ended(&text)));
    assert!(ended(&later) > ended(&text), "it only rises");
    // Whatever else is asked for is not there, and does no harm.
    assert_eq!(get(port, "/"), None);
    TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"\x00\xff").unwrap();
    // An interrupted load does not linger.
    load.send(Signal::INT);
    load.end().with_code(130);
    assert!(get(port, "/metrics").is_none());
}

#[test]
fn the_figures_of_a_finished_load_stay_to_be_scraped() {
    let (lab, sink, port) = (Lab::new(), sink(SinkBody::default()), free_port());
    let words =
        format!("load --no-calibrate -c 3 -n 500 --metrics 127.0.0.1:{port} --metrics-linger 600s {}", url(&sink));
    let mut load = lab.start(&words);
    load.until(|said| said.contains("total time"));
    let text = scrape(port);
    check(&lab, &text);
    assert_eq!(value(&text, "longtail_runs_done_total"), Some(1.0));
    let study = study(&lab);
    assert_eq!(value(&text, "longtail_requests_ended_total"), Some(study.run.tally.all_requests() as f64));
    assert!(text.ends_with(&text_formats::exposition(&export::of_load(&study))), "{text}");
    assert!(!text.contains("longtail_now_"));
    load.send(Signal::INT);
    load.end().with_code(0);
}

#[test]
fn a_sweep_is_scraped_by_a_real_prometheus() {
    if !has("prometheus") {
        return;
    }
    let (lab, port, web) = (Lab::new(), free_port(), free_port());
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: longtail\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
    );
    let config = lab.write("prometheus.yml", &config);
    let mut prometheus = lab.program("prometheus");
    prometheus.arg(format!("--config.file={}", config.display())).arg(format!("--web.listen-address=127.0.0.1:{web}"));
    prometheus.arg(format!("--storage.tsdb.path={}", lab.path("tsdb").display())).arg("--log.level=warn");
    let prometheus = Running::start(&mut prometheus);
    let words = format!(
        "sweep --server builtin -w2 -t2:2 -d0.005 --for 1s --warm-up 0s --multiples 1,3 --no-calibrate \
         --metrics 127.0.0.1:{port} --metrics-linger 600s"
    );
    let mut sweep = lab.start(&words);
    sweep.until(|said| said.contains("total time"));
    // Both runs, as Prometheus has them. (A machine that spoils a run would hide its times.)
    let query = "/api/v1/query?query=longtail_run_planned_requests%7Boutcome%3D%22200%22%7D";
    let asked = || get(web, query).unwrap_or_default();
    let of = |text: &str| -> Option<Vec<(String, String)>> {
        let answer: Value = serde_json::from_str(text).ok()?;
        let result = answer["data"]["result"].as_array()?;
        let one = |it: &Value| Some((it["metric"]["run"].as_str()?.to_owned(), it["value"][1].as_str()?.to_owned()));
        result.iter().map(one).collect::<Option<Vec<_>>>().filter(|all| all.len() == 2)
    };
    let mut scraped = eventually(PATIENCE, asked, || of(&asked()));
    scraped.sort();
    let study = lab.study();
    let expected: Vec<(String, String)> = study
        .runs
        .iter()
        .zip(1..)
        .map(|(run, number)| (number.to_string(), run.tally.counts.of(Outcome::Answered(200)).to_string()))
        .collect();
    assert_eq!(scraped, expected);
    sweep.send(Signal::INT);
    sweep.end().with_code(0);
    prometheus.send(Signal::TERM);
    prometheus.end();
}
