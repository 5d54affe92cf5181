//! The servers under load: our load sink and nginx, each with its own count of what it received.

use std::cell::Cell;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use launch::{Addresses, free_address};
use launch::{Server, TlsPair};
use model::{Clock as _, Endpoint, Nanos, Socket};
use probe::control;
use probe::http::{self, LONGEST_EXCHANGE, NEVER};
use serde::Serialize;
use sink::SinkLedger;

use crate::lab::{Lab, Order};

/// The longest wait for a server to answer, or to become idle.
const PATIENCE: Nanos = Nanos::from_secs(10);
const STEP: Nanos = Nanos::from_millis(10);

/// The server of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// `longtail sink` with responses of this many bytes.
    Sink {
        /// Content of a response.
        bytes: u64,
        /// Delay of each response; the sink then spins all the time.
        delay: Option<Nanos>,
    },
    /// nginx with `return 200`.
    Nginx,
}

/// A running server.
pub(crate) struct Running {
    server: Server,
    kind: Kind,
    /// How often nginx was asked for its count, which it also counts.
    asked: Cell<u64>,
    /// Its addresses for `http://` and `https://`.
    plain: SocketAddr,
    tls: Option<SocketAddr>,
}

/// A server's counts since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Requests received.
    pub(crate) requests: u64,
    /// Responses completely sent.
    pub(crate) answers: u64,
    /// Bytes of the requests; 0 if it does not count them.
    pub(crate) received_bytes: u64,
    /// Whether no client is connected and nothing is in flight.
    pub(crate) is_idle: bool,
}

impl Running {
    /// Starts the server on its CPU and waits until it answers.
    ///
    /// # Errors
    /// Why it does not start, in one line.
    pub(crate) fn start(kind: &Kind, with_tls: bool, lab: &Lab<'_>) -> Result<Running, String> {
        let free = || {
            free_address(Socket::Tcp4, None, &Addresses::default()).map_err(|why| why.to_string())
        };
        let plain = free()?;
        let tls = if with_tls { Some(free()?) } else { None };
        let folder = lab.folder.join("server");
        fs::create_dir_all(&folder).map_err(|why| why.to_string())?;
        let argv = match kind {
            Kind::Sink { bytes, delay } => sink(lab, (plain, tls), *bytes, *delay),
            Kind::Nginx => nginx(lab, (plain, tls), &folder)?,
        };
        let order = Order { cpu: lab.cpus.map(|(_, server)| server), becomes: true, folder };
        let server = lab
            .start(&order, argv, &[])
            .map_err(|why| format!("{} does not start: {why}", kind.name()))?;
        let running = Running { server, kind: kind.clone(), asked: Cell::new(0), plain, tls };
        let begun = lab.clock.now();
        while running.count().is_none() {
            let gone = running.server.exited();
            if gone.is_some() || lab.clock.now() - begun > PATIENCE || lab.interrupted() {
                let how = gone.map_or_else(|| "no response".to_owned(), |exit| exit.to_string());
                let printed = fs::read_to_string(order.folder.join("stderr")).unwrap_or_default();
                let line = printed.lines().next_back().unwrap_or_default();
                return Err(format!("{} does not start ({how}): {line}", kind.name()));
            }
            lab.clock.sleep(STEP);
        }
        Ok(running)
    }

    /// Where the load goes.
    pub(crate) fn url(&self, tls: bool) -> String {
        match self.tls.filter(|_| tls) {
            Some(address) => format!("https://{address}/"),
            None => format!("http://{}/", self.plain),
        }
    }

    /// Its counts, without the requests that asked for them.
    pub(crate) fn count(&self) -> Option<Count> {
        match self.kind {
            Kind::Sink { .. } => {
                let ledger = self.ledger()?;
                Some(Count {
                    requests: ledger.requests,
                    answers: ledger.answers,
                    received_bytes: ledger.received_bytes,
                    is_idle: ledger.open_connections == 0 && ledger.unfinished() == 0,
                })
            }
            Kind::Nginx => {
                let count = of_stub_status(&self.status_page()?)?;
                self.asked.set(self.asked.get() + 1);
                let requests = count.requests.checked_sub(self.asked.get())?;
                Some(Count { requests, answers: requests, ..count })
            }
        }
    }

    /// What nginx counts.
    fn status_page(&self) -> Option<String> {
        let answer =
            http::get(&Endpoint::Tcp(self.plain), STATUS, LONGEST_EXCHANGE, &NEVER).ok()?;
        answer.is_ok().then(|| String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// The sink's ledger.
    pub(crate) fn ledger(&self) -> Option<SinkLedger> {
        control::sink_ledger(self.plain).ok()
    }

    /// Its count when no client is connected any more; `None` if one stays, or the server does not
    /// answer.
    pub(crate) fn at_rest(&self, lab: &Lab<'_>) -> Option<Count> {
        let begun = lab.clock.now();
        loop {
            let count = self.count()?;
            if count.is_idle {
                return Some(count);
            }
            if lab.clock.now() - begun > PATIENCE || lab.interrupted() {
                return None;
            }
            lab.clock.sleep(STEP);
        }
    }

    /// CPU time of all its threads: the first field of each `schedstat`, ns (Linux, sched-stats).
    pub(crate) fn cpu(&self) -> Option<Nanos> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.server.pid())).ok()?;
        let of = |task: fs::DirEntry| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        Some(Nanos(tasks.flatten().filter_map(of).sum()))
    }
}

impl Kind {
    /// Its name in messages.
    fn name(&self) -> &'static str {
        match self {
            Kind::Sink { .. } => "longtail sink",
            Kind::Nginx => "nginx",
        }
    }
}

/// The headers that nginx sends in each response besides type and length (RFC 9110, sections 6.6.1,
/// 7.6.1 and 10.2.4): parsing them costs time, so a sink without them would flatter generators.
const HEAD: [&str; 3] =
    ["server: nginx/1.22.1", "date: Sat, 21 Nov 2026 18:41:00 GMT", "connection: keep-alive"];

fn sink(
    lab: &Lab<'_>,
    (plain, tls): (SocketAddr, Option<SocketAddr>),
    bytes: u64,
    delay: Option<Nanos>,
) -> Vec<OsString> {
    // The kernel limits the backlog to somaxconn.
    let mut line = format!("sink --listen={plain} --body={bytes} --backlog=65535");
    if let Some(tls) = tls {
        let _ = write!(line, " --listen=tls://{tls}");
    }
    if let Some(delay) = delay {
        let _ = write!(line, " --delay={delay} --spin={delay}");
    }
    let words = line.split_ascii_whitespace().map(OsString::from);
    let heads = HEAD.iter().flat_map(|field| ["--header", field]).map(OsString::from);
    std::iter::once(lab.longtail.clone().into()).chain(words).chain(heads).collect()
}

const STATUS: &str = "longtail-bench-status";

fn nginx(
    lab: &Lab<'_>,
    (plain, tls): (SocketAddr, Option<SocketAddr>),
    folder: &Path,
) -> Result<Vec<OsString>, String> {
    let program = lab.find("nginx").ok_or("nginx is not on PATH (package nginx-light)")?;
    let file = folder.join("nginx.conf");
    let mut listeners = format!("listen {plain} backlog=4096;");
    if let Some(address) = tls {
        let certified = folder.join(address.port().to_string());
        let made =
            fs::create_dir_all(&certified).and_then(|()| TlsPair::make(&certified, address.ip()));
        let pair = made.map_err(|why| why.to_string())?;
        let certificate = pair.certificate.display();
        let key = pair.key.display();
        let _ = write!(
            listeners,
            " listen {address} ssl backlog=4096; ssl_certificate {certificate}; \
             ssl_certificate_key {key};"
        );
    }
    fs::write(&file, nginx_conf(&listeners, folder)).map_err(|why| why.to_string())?;
    let words = [
        OsString::from("-p"),
        folder.into(),
        "-e".into(),
        "stderr".into(),
        "-c".into(),
        file.into(),
    ];
    Ok(std::iter::once(program.into()).chain(words).collect())
}

/// One process that serves in the foreground, logs nothing and closes no connection.
fn nginx_conf(listeners: &str, folder: &Path) -> String {
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String =
        temporary.map(|what| format!("    {what}_temp_path {folder}/{what};\n")).concat();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}    access_log off;\n    keepalive_requests 1000000000;\n    server {{\n        \
         {listeners}\n        location / {{ return 200 \"{}\"; }}\n        \
         location = /{STATUS} {{ stub_status; }}\n    }}\n}}\n",
        "x".repeat(64)
    )
}

/// The counts of `stub_status` (`ngx_http_stub_status_module`): connections open now, then
/// accepted, handled and requests since the start. The request for this page is included.
fn of_stub_status(text: &str) -> Option<Count> {
    let number = |line: &str| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok();
    let mut lines = text.lines();
    let open: u64 = lines.next()?.strip_prefix("Active connections:")?.trim().parse().ok()?;
    let requests = number(lines.nth(1)?)?;
    Some(Count { requests, answers: requests, received_bytes: 0, is_idle: open <= 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUB: &str = "Active connections: 1 \nserver accepts handled requests\n 12 12 3456 \
         \nReading: 0 Writing: 1 Waiting: 0 \n";

    #[test]
    fn nginx_is_read() {
        let count = of_stub_status(STUB).unwrap();
        assert_eq!((count.requests, count.is_idle), (3456, true));
        assert!(
            !of_stub_status(&STUB.replace("connections: 1", "connections: 5")).unwrap().is_idle
        );
        assert_eq!(of_stub_status("<html>404</html>"), None);
    }

    #[test]
    fn nginx_writes_nowhere_but_into_its_folder() {
        let conf = nginx_conf("listen 127.0.0.1:1;", Path::new("/f"));
        let paths: Vec<&str> = conf
            .split(|c: char| c.is_whitespace() || c == ';')
            .filter(|w| w.starts_with('/'))
            .collect();
        assert!(paths.iter().filter(|path| path.starts_with("/f/")).count() == 6, "{conf}");
        assert!(conf.contains("daemon off;") && conf.contains("access_log off;"));
    }
}
