//! The command line by which each generator does an errand (`--with`).

use std::ffi::{OsStr, OsString};
use std::path::Path;

use model::Nanos;

use crate::generators::{End, Errand, Generator, Words};

impl Generator {
    /// This load, for as long as `end` says. To be asked only where it is not refused. `folder` is for its files.
    pub(crate) fn errand(self, program: &OsStr, errand: &Errand, end: End, folder: &Path) -> Words {
        let mut line = Line::of(program);
        match end {
            End::After(time) => self.how_much(&mut line, errand, (Some(seconds(time)), None)),
            End::Requests(number) => self.how_much(&mut line, errand, (None, Some(number))),
        }
        if self == Generator::Vegeta {
            for (flag, file) in [("-output=", "vegeta.bin"), ("-targets=", "targets")] {
                let mut word = OsString::from(flag);
                word.push(folder.join(file));
                line.0.push(word);
            }
        }
        self.what(&mut line, errand);
        let threads = match self {
            Generator::Oha => Some("TOKIO_WORKER_THREADS"),
            Generator::Bombardier => Some("GOMAXPROCS"),
            _ => None,
        };
        let env = threads.map(|name| (name, errand.even_threads().to_string().into())).into_iter().collect();
        let report = [program.to_owned(), "report".into(), folder.join("vegeta.bin").into()];
        let report = (self == Generator::Vegeta).then(|| report.to_vec());
        Words { argv: line.0, env, report }
    }

    /// Connections, threads, time or number, rate, and how connections are kept.
    fn how_much(self, line: &mut Line, errand: &Errand, (time, number): (Option<u64>, Option<u64>)) {
        let (connections, threads) = (errand.connections, errand.even_threads());
        let timeout = seconds(errand.timeout);
        let rate = errand.rate.or(errand.rate_per_connection).map(|rate| rate.per_second().to_string());
        let with_unit = time.map(|time| format!("{time}s"));
        let number = number.map(|n| n.to_string());
        match self {
            Generator::Longtail => {}
            Generator::Wrk | Generator::Wrk2 => {
                line.words(&format!("-t{threads} -c{connections} --latency --timeout {timeout}s"));
                line.option("-d", with_unit);
                line.option("-R", rate);
                line.flag(!errand.keep_alive, "-H", "Connection: close");
            }
            Generator::Hey => {
                line.words(&format!("-cpus {threads} -c {connections} -t {timeout} -disable-redirects"));
                line.option("-z", with_unit);
                line.option("-n", number);
                line.option("-q", rate);
                line.option("-m", (errand.method != "GET").then(|| errand.method.clone()));
                if !errand.keep_alive {
                    line.words("-disable-keepalive");
                }
            }
            Generator::Oha => {
                line.words(&format!(
                    "--no-tui -c {connections} -t {timeout}s --redirect 0 --insecure -m {}",
                    errand.method
                ));
                line.option("-z", with_unit);
                line.option("-n", number);
                line.option("-q", rate);
                if !errand.keep_alive {
                    line.words("--disable-keepalive");
                }
            }
            Generator::Ab => {
                // Without -l an answer of another length than the first is a failed one; see above for -n.
                line.words(&format!("-q -l -c {connections} -s {timeout}"));
                if errand.keep_alive {
                    line.words("-k");
                }
                if let Some(time) = time {
                    let enough = (2_000_000 * time).clamp(u64::from(connections), 50_000_000);
                    line.words(&format!("-t {time} -n {enough}"));
                }
                line.option("-n", number);
                let own_method = errand.method != "GET" && errand.body.is_none();
                line.option("-m", own_method.then(|| errand.method.clone()));
            }
            Generator::H2load => {
                line.words(&format!("--h1 -t{threads} -c{connections} -N {timeout}s"));
                line.option("-D", with_unit);
                line.option("-n", number);
            }
            Generator::Bombardier => {
                line.words(&format!("-l -p r -k -c {connections} -t {timeout}s -m {}", errand.method));
                line.option("-d", with_unit);
                line.option("-n", number);
                line.option("-r", rate);
                if !errand.keep_alive {
                    line.words("-a");
                }
            }
            Generator::Vegeta => {
                line.words(&format!(
                    "-cpus={threads} attack -max-workers={connections} -connections={connections} \
                     -max-connections={connections} -redirects=-1 -insecure -timeout={timeout}s"
                ));
                line.words(&format!("-keepalive={}", errand.keep_alive));
                line.words(&format!("-rate={}/s", rate.unwrap_or_default()));
                line.words(&format!("-duration={}s", time.unwrap_or_default()));
            }
        }
    }

    /// Headers, body, and where to.
    fn what(self, line: &mut Line, errand: &Errand) {
        let header = if self == Generator::Vegeta { "-header" } else { "-H" };
        match &errand.host {
            // hey takes a Host header by no other way.
            Some(host) if self == Generator::Hey => line.flag(true, "-host", host),
            Some(host) => line.flag(true, header, &format!("Host: {host}")),
            None => {}
        }
        for one in &errand.headers {
            line.flag(true, header, one);
        }
        if let Some(body) = &errand.body {
            let flag = match self {
                Generator::Ab => "-p",
                Generator::H2load => "-d",
                Generator::Bombardier => "-f",
                Generator::Vegeta => "-body",
                _ => "-D",
            };
            line.0.extend([OsString::from(flag), body.clone().into_os_string()]);
        }
        if self != Generator::Vegeta {
            line.0.push(OsString::from(&errand.url));
        }
    }
}

fn seconds(time: Nanos) -> u64 {
    time.0 / 1_000_000_000
}

/// A command line in the making.
struct Line(Vec<OsString>);

impl Line {
    fn of(program: &OsStr) -> Line {
        Line(vec![program.to_owned()])
    }

    /// Words split at blanks.
    fn words(&mut self, words: &str) {
        self.0.extend(words.split_ascii_whitespace().map(OsString::from));
    }

    /// A flag with its value, where there is one; as two words.
    fn option(&mut self, flag: &str, value: Option<String>) {
        if let Some(value) = value {
            self.flag(true, flag, &value);
        }
    }

    fn flag(&mut self, is_given: bool, flag: &str, value: &str) {
        if is_given {
            self.0.extend([flag, value].map(OsString::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::samples;

    fn line(generator: Generator, change: impl Fn(&mut Errand)) -> String {
        let mut errand = Errand { url: "http://127.0.0.1:1/x".to_owned(), ..samples::errand() };
        change(&mut errand);
        let end = errand.end;
        let words = generator.errand(OsStr::new("it"), &errand, end, Path::new("/f"));
        words.argv.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn time_connections_and_timeout_are_those_that_were_asked_for() {
        let plain = |generator| line(generator, |_| {});
        // Ten connections on four threads would be eight: two threads share them evenly.
        assert_eq!(plain(Generator::Wrk), "it -t2 -c10 --latency --timeout 30s -d 2s http://127.0.0.1:1/x");
        assert_eq!(plain(Generator::Hey), "it -cpus 2 -c 10 -t 30 -disable-redirects -z 2s http://127.0.0.1:1/x");
        assert_eq!(plain(Generator::Ab), "it -q -l -c 10 -s 30 -k -t 2 -n 4000000 http://127.0.0.1:1/x");
        assert_eq!(plain(Generator::H2load), "it --h1 -t2 -c10 -N 30s -D 2s http://127.0.0.1:1/x");
    }

    #[test]
    fn a_count_takes_the_place_of_the_time() {
        let counted = |generator| line(generator, |errand| errand.end = End::Requests(1000));
        assert_eq!(counted(Generator::Hey), "it -cpus 2 -c 10 -t 30 -disable-redirects -n 1000 http://127.0.0.1:1/x");
        assert_eq!(counted(Generator::Ab), "it -q -l -c 10 -s 30 -k -n 1000 http://127.0.0.1:1/x");
    }

    #[test]
    fn no_generator_is_given_leave_to_go_elsewhere() {
        let follow = [
            (Generator::Hey, "-disable-redirects"),
            (Generator::Oha, "--redirect 0"),
            (Generator::Vegeta, "-redirects=-1"),
        ];
        for (generator, words) in follow {
            let line = line(generator, |errand| errand.rate = Some("5".parse().unwrap()));
            assert!(line.contains(words), "{line}");
        }
    }

    #[test]
    fn what_is_sent_is_what_ours_would_send() {
        let change = |errand: &mut Errand| {
            errand.keep_alive = false;
            errand.host = Some("app.test".to_owned());
            errand.headers = vec!["X-A: 1".to_owned()];
        };
        let sent = line(Generator::Wrk, change);
        assert!(sent.contains(" -H Connection: close -H Host: app.test -H X-A: 1 http"), "{sent}");
        let sent = line(Generator::Hey, change);
        assert!(sent.contains(" -disable-keepalive -host app.test -H X-A: 1 http"), "{sent}");
        let post = |errand: &mut Errand| {
            errand.method = "POST".to_owned();
            errand.body = Some("/f/body".into());
        };
        assert!(line(Generator::Hey, post).contains(" -m POST -D /f/body http"));
        assert!(line(Generator::Ab, post).contains(" -p /f/body http") && !line(Generator::Ab, post).contains("-m"));
        assert!(line(Generator::H2load, post).contains(" -d /f/body http"));
    }
}
