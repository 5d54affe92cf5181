//! The command line by which each generator makes the load that it is asked for.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use model::Nanos;

use crate::generators::{Generator, LoadEnd, LoadOrder};

/// What to run for one load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratorCommand {
    /// Program and arguments.
    pub(crate) argv: Vec<OsString>,
    /// Variables set beside ours.
    pub(crate) env: Vec<(&'static str, OsString)>,
    /// What prints the report, of those that only write a file while they make load. Not measured.
    pub(crate) report: Option<Vec<OsString>>,
}

impl Generator {
    /// This load, for as long as `end` says. `folder` is for its files. One without a closed loop is given a rate that
    /// nothing reaches, or none: all its connections are busy then too.
    pub(crate) fn command(self, program: &OsStr, order: &LoadOrder, end: LoadEnd, folder: &Path) -> GeneratorCommand {
        let mut line = CommandLine(vec![program.to_owned()]);
        self.how_much(&mut line, order, end);
        if self == Generator::Vegeta {
            for (flag, file) in [("-output=", "vegeta.bin"), ("-targets=", "targets")] {
                let mut word = OsString::from(flag);
                word.push(folder.join(file));
                line.0.push(word);
            }
        }
        self.what(&mut line, order);
        let threads = || order.even_threads().to_string().into();
        let env = match self {
            // Its studies are none that the user made.
            Generator::Longtail => vec![("XDG_DATA_HOME", folder.into())],
            Generator::Oha => vec![("TOKIO_WORKER_THREADS", threads())],
            Generator::Bombardier => vec![("GOMAXPROCS", threads())],
            _ => Vec::new(),
        };
        let report = [program.to_owned(), "report".into(), folder.join("vegeta.bin").into()];
        GeneratorCommand { argv: line.0, env, report: (self == Generator::Vegeta).then(|| report.to_vec()) }
    }

    /// Connections, threads, time or number, rate, and how connections are kept.
    fn how_much(self, line: &mut CommandLine, order: &LoadOrder, end: LoadEnd) {
        let (time, number) = match end {
            LoadEnd::After(time) => (Some(seconds(time)), None),
            LoadEnd::Requests(number) => (None, Some(number)),
        };
        let (connections, threads) = (order.connections, order.even_threads());
        let (timeout, method, closes) = (seconds(order.timeout), &order.method, !order.keep_alive);
        let rate = order.rate.or(order.rate_per_connection).map(|rate| rate.per_second().to_string());
        let with_unit = time.map(|time| format!("{time}s"));
        let number = number.map(|n| n.to_string());
        match self {
            Generator::Longtail => {
                line.words(&format!(
                    "load --format study --no-calibrate --generator-threads {threads} -c {connections}"
                ));
                line.option("--for", with_unit);
            }
            Generator::Wrk | Generator::Wrk2 => {
                line.words(&format!("-t{threads} -c{connections} --latency --timeout {timeout}s"));
                line.option("-d", with_unit);
                line.option("-R", rate.or_else(|| (self == Generator::Wrk2).then(|| "10000000".to_owned())));
                line.option("-H", closes.then(|| "Connection: close".to_owned()));
            }
            Generator::Hey => {
                line.words(&format!("-cpus {threads} -c {connections} -t {timeout} -disable-redirects"));
                line.option("-z", with_unit);
                line.option("-n", number);
                line.option("-q", rate);
                line.option("-m", (method != "GET").then(|| method.clone()));
                line.words(if closes { "-disable-keepalive" } else { "" });
            }
            Generator::Oha => {
                line.words(&format!("--no-tui -c {connections} -t {timeout}s --redirect 0 --insecure -m {method}"));
                line.option("-z", with_unit);
                line.option("-n", number);
                line.option("-q", rate);
                line.words(if closes { "--disable-keepalive" } else { "" });
            }
            Generator::Ab => {
                // Without -l an answer of another length than the first is a failed one.
                line.words(&format!("-q -l -c {connections} -s {timeout}{}", if closes { "" } else { " -k" }));
                if let Some(time) = time {
                    // -t alone ends it after 50 000 requests. What -n allows is more than one thread of it makes in that
                    // time, and costs 32 bytes each: not more than 1.6 GB.
                    let enough = (2_000_000 * time).clamp(u64::from(connections), 50_000_000);
                    line.words(&format!("-t {time} -n {enough}"));
                }
                line.option("-n", number);
                line.option("-m", (method != "GET" && order.body.is_none()).then(|| method.clone()));
            }
            Generator::H2load => {
                line.words(&format!("--h1 -t{threads} -c{connections} -N {timeout}s"));
                line.option("-D", with_unit);
                line.option("-n", number);
            }
            Generator::Bombardier => {
                line.words(&format!("-l -p r -k -c {connections} -t {timeout}s -m {method}"));
                line.option("-d", with_unit);
                line.option("-n", number);
                line.option("-r", rate);
                line.words(if closes { "-a" } else { "" });
            }
            Generator::Vegeta => {
                line.words(&format!(
                    "-cpus={threads} attack -max-workers={connections} -connections={connections} \
                     -max-connections={connections} -redirects=-1 -insecure -timeout={timeout}s -keepalive={}",
                    order.keep_alive
                ));
                line.words(&match rate {
                    Some(rate) => format!("-rate={rate}/s"),
                    None => format!("-rate=0 -workers={connections}"),
                });
                line.words(&format!("-duration={}s", time.unwrap_or_default()));
            }
        }
    }

    /// Headers, body, and where to.
    fn what(self, line: &mut CommandLine, order: &LoadOrder) {
        let header = if self == Generator::Vegeta { "-header" } else { "-H" };
        match &order.host {
            // hey takes a Host header by no other way.
            Some(host) if self == Generator::Hey => line.option("-host", Some(host.clone())),
            host => line.option(header, host.as_ref().map(|host| format!("Host: {host}"))),
        }
        for one in &order.headers {
            line.option(header, Some(one.clone()));
        }
        if let Some(body) = &order.body {
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
            line.0.push(OsString::from(&order.url));
        }
    }
}

fn seconds(time: Nanos) -> u64 {
    time.0 / 1_000_000_000
}

/// A command line in the making.
struct CommandLine(Vec<OsString>);

impl CommandLine {
    /// Words split at blanks.
    fn words(&mut self, words: &str) {
        self.0.extend(words.split_ascii_whitespace().map(OsString::from));
    }

    /// A flag with its value, where there is one; as two words.
    fn option(&mut self, flag: &str, value: Option<String>) {
        self.0.extend(value.into_iter().flat_map(|value| [OsString::from(flag), OsString::from(value)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    fn line(generator: Generator, change: impl Fn(&mut LoadOrder)) -> String {
        let end = LoadEnd::After(Nanos::from_secs(2));
        let mut order = LoadOrder::closed_loop("http://127.0.0.1:1/x", 10, 4, end);
        change(&mut order);
        let command = generator.command(OsStr::new("it"), &order, order.end, Path::new("/f"));
        command.argv.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn each_is_asked_for_the_same_load() {
        for generator in Generator::value_variants() {
            let line = line(*generator, |order| order.connections = 37);
            assert!(line.starts_with("it ") && line.contains("37") && line.contains('2'), "{line}");
            assert!(line.ends_with(" http://127.0.0.1:1/x") || *generator == Generator::Vegeta, "{line}");
        }
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
        let counted = |generator| line(generator, |order| order.end = LoadEnd::Requests(1000));
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
            let line = line(generator, |order| order.rate = Some("5".parse().unwrap()));
            assert!(line.contains(words), "{line}");
        }
    }

    #[test]
    fn what_is_sent_is_what_ours_would_send() {
        let change = |order: &mut LoadOrder| {
            order.keep_alive = false;
            order.host = Some("app.test".to_owned());
            order.headers = vec!["X-A: 1".to_owned()];
        };
        let sent = line(Generator::Wrk, change);
        assert!(sent.contains(" -H Connection: close -H Host: app.test -H X-A: 1 http"), "{sent}");
        let sent = line(Generator::Hey, change);
        assert!(sent.contains(" -disable-keepalive -host app.test -H X-A: 1 http"), "{sent}");
        let post = |order: &mut LoadOrder| {
            order.method = "POST".to_owned();
            order.body = Some("/f/body".into());
        };
        assert!(line(Generator::Hey, post).contains(" -m POST -D /f/body http"));
        assert!(line(Generator::Ab, post).contains(" -p /f/body http") && !line(Generator::Ab, post).contains("-m"));
        assert!(line(Generator::H2load, post).contains(" -d /f/body http"));
    }
}
