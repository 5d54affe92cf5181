//! Mistakes that a user can make, in every command: one line names the mistake, the exit code is 2,
//! and no request is sent.

use std::net::UdpSocket;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use testkit::http::Receiver;
use testkit::{claimed, study};

use crate::lab::{LONGTAIL, Lab, end, free_port, settings_and_words};

/// A script of k6 whose options are all plain literals.
const OPEN_K6_SCRIPT: &str = "import http from 'k6/http';
import { check, sleep } from 'k6';
export const options = {
  scenarios: {
    open: { executor: 'constant-arrival-rate', rate: 100, timeUnit: '1s', duration: '2s', preAllocatedVUs: 20, maxVUs: 50 },
  },
  thresholds: { http_req_duration: ['p(95)<200'], http_req_failed: ['rate<0.01'] },
};
export default function () {
  const response = http.get('http://127.0.0.1:1/posts');
  check(response, { ok: (r) => r.status === 200 });
  sleep(0.1);
}
";

/// Creates the files that the table names.
fn files(lab: &Lab) {
    let newer =
        report::json::write(&study::tiny().into()).replacen("\"schema\": 1,", "\"schema\": 99,", 1);
    let study = report::json::write(&claimed::hey_sweep().into());
    for (name, text) in [
        ("app.ru", "run lambda { |_| [200, {}, ['ok']] }\n"),
        ("x.study.json", &study),
        ("newer.json", &newer),
        ("text.json", "no longer json"),
        ("braces.json", "{}"),
        ("schema.json", "{\"schema\": 1}"),
        ("empty", ""),
        ("there.json", ""),
        ("remark", "# only a remark\n"),
        ("get", "GET\n"),
        ("brace", "{\n"),
        ("elsewhere", "http://127.0.0.1:1/elsewhere\n"),
        ("no-host", "/no-host\n"),
        ("token", "hunter2\n"),
        ("lines", "a=1\nb=2\n"),
        ("line", "a=1"),
        ("targets", "GET http://127.0.0.1:1/\n"),
        ("plain.js", "export const options = { vus: 7, duration: '20s' };\n"),
        ("staged.js", "export const options = { stages: [{ duration: '1m', target: 9 }] };\n"),
        ("two-hosts", "GET http://127.0.0.1:1/a\n\nGET http://127.0.0.1:2/b\n"),
        ("once.js", "export default function () { http.get('http://127.0.0.1:1/'); }\n"),
        (
            "ramps.js",
            "export const options = { scenarios: { a: { executor: 'ramping-arrival-rate', startRate: 10, stages: [{ duration: '2s', target: 100 }, { duration: '5s', target: 100 }] } } };\nexport default function () { http.get('http://127.0.0.1:1/'); }\n",
        ),
        ("rate.js", OPEN_K6_SCRIPT),
        (
            "two.js",
            "export const options = { scenarios: { a: { executor: 'per-vu-iterations', vus: 4, iterations: 25 } }, maxRedirects: 0 };\nexport default function () {\n  http.get('http://127.0.0.1:1/a', { timeout: '5s' });\n  http.post('http://127.0.0.1:1/b', JSON.stringify({ c: 1 }), { timeout: '5s' });\n}\n",
        ),
        (
            "computed.js",
            "export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: R, duration: '2s' } } };\nexport default () => { http.post(BASE, JSON.stringify(x)); }\n",
        ),
        (
            "loop.js",
            "export const options = { vus: 5, iterations: 50 };\nexport default function () {\n  for (let i = 0; i < 3; i++) { http.get('http://127.0.0.1:1/'); }\n}\n",
        ),
        (
            "sleeps.js",
            "export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: __ENV.RATE || 50, duration: '2s', preAllocatedVUs: 20 } } };\nexport default function () { http.get('http://127.0.0.1:1/'); sleep(1); }\n",
        ),
        (
            "environment.js",
            "export const options = { vus: 5, duration: '10s' };\nconst BASE = __ENV.BASE || 'http://localhost:1';\nexport default function () { http.get(`${BASE}/a/${__ENV.ID}`); }\n",
        ),
        (
            "reports.js",
            "import { Trend } from 'k6/metrics';\nconst waiting = new Trend('waiting');\nexport default function () { check(http.get('http://127.0.0.1:1/'), { ok: (r) => r.status === 200 }); }\nexport function handleSummary() { return {}; }\n",
        ),
        (
            "post.lua",
            "wrk.method = \"POST\"\nwrk.body = \"a=1\"\nwrk.headers[\"Content-Type\"] = \"text/x\"\n",
        ),
        (
            "half.lua",
            "wrk.path = \"/half\"\nwrk.method = \"PUT\"\nwrk.body = 'a=' .. n\nwrk.headers['A'] = os.time()\n",
        ),
        ("text.lua", "request = function() return 'GET / HTTP/1.1' end\n"),
        ("function.lua", "wrk.method = \"POST\"\nrequest = function() return wrk.format() end\n"),
        ("outside", "GET /x\n@/etc/hostname\n"),
        ("through-link", "GET /x\n@hosts\n"),
    ] {
        lab.write(name, text);
    }
    std::os::unix::fs::symlink("there.json", lab.path("link")).unwrap();
    std::os::unix::fs::symlink("/etc/hosts", lab.path("hosts")).unwrap();
    std::os::unix::fs::symlink("gone", lab.path("dangling")).unwrap();
    std::os::unix::fs::symlink("circle", lab.path("circle")).unwrap();
    mknodat(CWD, lab.path("pipe.json"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    drop(UnixListener::bind(lab.path("dead.sock")).unwrap());
}

#[test]
fn a_mistake_is_one_line_that_names_it_before_any_load() {
    refuse_all(include_str!("mistakes.txt"));
}

/// The rows are what users of other tools type.
#[test]
fn a_line_of_another_tool_is_answered_with_the_whole_line_of_ours() {
    let table = include_str!("signposts.txt");
    assert!(table.matches(" => ").count() >= 150);
    refuse_all(table);
}

/// Checks that each row of a table is refused, in one line but for lines to paste, that all parts
/// that stand behind the row's arrow are said, and that no request is sent.
fn refuse_all(table: &str) {
    let receiver = Receiver::start();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = receiver.url();
    let https = receiver.url().replace("http", "https");
    let taken = receiver.address.port().to_string();
    let free = free_port().to_string();
    let udp = udp.local_addr().unwrap().to_string();
    let cpus = launch::affinity::ours().expect("Linux tells").to_string();
    let places = [
        ("{url}", &*url),
        ("{https}", &https),
        ("{taken}", &taken),
        ("{free}", &free),
        ("{udp}", &udp),
        ("{cpus}", &cpus),
        ("{longtail}", LONGTAIL),
    ];
    let lab = Lab::new();
    files(&lab);
    let mut faults = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let line = places
            .into_iter()
            .fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
        let (words, parts) = line.split_once(" =>").unwrap();
        let (settings, words) = settings_and_words(words);
        let ended = end(lab.program(LONGTAIL).args(words).envs(settings));
        let has_all = parts.trim_start().split(" & ").all(|part| ended.is_refusal(part));
        if !has_all || !ended.stderr.starts_with("longtail: ") {
            faults.push(format!("{line}\n  {ended:?}"));
        }
        assert!(lab.living().is_empty() && lab.studies().is_empty(), "{line}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(receiver.requests().is_empty(), "no request was sent");
}
