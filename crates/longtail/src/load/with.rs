//! A load that another generator makes (`--with wrk`): from the same flags to its run and what it claims.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Endpoint;
use model::study::SCHEMA;
use model::{ClaimedLoadStudy, ClaimedRun, Nanos, Objective};
use requests::Target;
use sweep::Host;

use crate::args::LoadArgs;
use crate::clock::SystemClock;
use crate::generators::{Driver, End, Errand, Found, Generator, Known};
use crate::load::prepare::{Prepared, prepare, template};
use crate::mistake::Mistake;

/// Another generator's load, with nothing left to decide.
pub(crate) struct Ordered {
    driver: Driver,
    errand: Errand,
    prepared: Prepared,
}

/// Makes it of the flags. Resolves names; sends nothing.
///
/// # Errors
/// Where a flag is wrong, the generator cannot do it or is not there, or the address is not of this machine.
pub(crate) fn order(args: &LoadArgs, generator: Generator, clock: SystemClock) -> Result<Ordered, Mistake> {
    let name = generator.name();
    if generator == Generator::Longtail {
        return Err(wrong("--with longtail: it is longtail that makes the load anyway; leave it out"));
    }
    if let Some(flag) = args.own_flag() {
        return Err(wrong(&format!("--with {name}: {flag} is of longtail's own generator: leave out one of the two")));
    }
    args.output.check_claimed_load()?;
    if let Some(line) = args.fail_if.iter().find_map(|objective| generator.unjudged(objective)) {
        return Err(wrong(&line));
    }
    let prepared = prepare(args, &clock)?;
    let errand = errand(args, &prepared, name)?;
    if let Some(line) = generator.refusal(&errand) {
        return Err(wrong(&line));
    }
    let driver = Driver::new(Found::on_path(generator)?, clock)?;
    let body = template(args)?.body.map(|body| driver.keep_body(&body)).transpose()?;
    Ok(Ordered { driver, errand: Errand { body, ..errand }, prepared })
}

fn errand(args: &LoadArgs, prepared: &Prepared, name: &str) -> Result<Errand, Mistake> {
    let plan = &prepared.plan;
    let target = Target::parse(args.url.as_deref().unwrap_or_default())?;
    if target.tls && !args.insecure {
        return Err(wrong(&format!(
            "--with {name}: it is run so that it takes any certificate: say so with --insecure"
        )));
    }
    // To the very address that was found to be of this machine: a name may lead elsewhere the next time.
    let Some(Endpoint::Tcp(address)) = prepared.shape.transport.endpoints.first() else {
        return Err(wrong(&format!("--with {name}: it needs a TCP address")));
    };
    let scheme = if target.tls { "https" } else { "http" };
    let template = template(args)?;
    let own_host = template.headers.iter().find(|header| header.is("host")).and_then(requests::Header::value);
    let named = target.host.parse::<IpAddr>().is_err().then(|| target.authority.clone());
    let host = own_host.map(|host| String::from_utf8_lossy(host).into_owned()).or(named);
    if let Some(header) = template.headers.iter().find(|header| header.value().is_none()) {
        let header = header.name();
        return Err(wrong(&format!("--with {name}: it cannot leave out a header: take away -H '{header}:'")));
    }
    let line = |header: &requests::Header| {
        format!("{}: {}", header.name(), String::from_utf8_lossy(header.value().unwrap_or_default()))
    };
    let (rate, rate_per_connection) = args.rates();
    let end = match (plan.length, plan.requests_total) {
        (Some(_), Some(_)) => {
            return Err(wrong(&format!("--with {name}: give --for or -n: what comes first ends only our own runs")));
        }
        (Some(length), None) => End::After(length),
        (None, Some(total)) => End::Requests(total),
        (None, None) => return Err(wrong("say when the run ends: --for or -n")),
    };
    let credentials = target.credentials.as_ref().map(requests::Header::basic_auth).transpose()?;
    let own = template.headers.iter().filter(|header| !header.is("host")).map(line);
    Ok(Errand {
        url: format!("{scheme}://{address}{}", target.path),
        host,
        connections: plan.connections,
        threads: plan.lanes,
        end,
        warm_up: plan.warm_up,
        rate,
        rate_per_connection,
        keep_alive: plan.keep_alive,
        timeout: plan.timeout,
        method: template.method.to_string(),
        headers: own.chain(credentials.as_ref().map(line)).collect(),
        body: template.body.is_some().then(|| "body".into()),
    })
}

impl Ordered {
    /// Runs it. `Ok(None)` where the user ended it: what another generator has not finished has no figures.
    ///
    /// # Errors
    /// Where the generator fails, or what it prints is not understood.
    pub(crate) fn conduct(
        self,
        (started_at, command_line): (String, String),
        interrupt: &AtomicBool,
    ) -> Result<Option<ClaimedLoadStudy>, Mistake> {
        let Ordered { driver, errand, prepared } = self;
        let before = Host::now();
        let ended = || interrupt.load(Ordering::Relaxed);
        let failed = |why| wrong(&format!("--with {}: {why}", driver.name()));
        let Some(mut run) = driver.run(&errand, Known::default(), &ended).map_err(failed)? else { return Ok(None) };
        let after = Host::now();
        run.steal = after.steal_since(&before);
        run.listen_overflows = after.listen_overflows_since(&before);
        without_secrets(&mut run, &errand);
        let missed = missed(&run, &prepared.plan.fail_if);
        Ok(Some(ClaimedLoadStudy {
            schema: SCHEMA,
            started_at,
            command_line,
            plan: prepared.plan,
            environment: sweep::environment(env!("CARGO_PKG_VERSION")),
            run,
            missed,
        }))
    }

    /// How long it takes, warm-up included; `None` where a count ends it.
    pub(crate) fn length(&self) -> Option<Nanos> {
        self.errand.time().map(|time| time + self.errand.warm_up)
    }
}

/// Takes credentials and cookies out of the command line: it goes into reports.
fn without_secrets(run: &mut ClaimedRun, errand: &Errand) {
    for header in &errand.headers {
        let name = header.split(':').next().unwrap_or_default();
        if ["authorization", "cookie", "proxy-authorization"].iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            let shown = model::plan::quoted(header);
            run.command_line = run.command_line.replace(&shown, "'(secret)'");
        }
    }
}

/// The objectives that are missed, each with the figure that misses it. One whose figure was not printed after all cannot
/// have been met.
fn missed(run: &ClaimedRun, objectives: &[Objective]) -> Vec<String> {
    let misses = objectives.iter().filter_map(|objective| match run.claim.figure(objective.figure) {
        Some(value) => objective.is_missed_by(value).then(|| format!("{objective}: it is {}", objective.shown(value))),
        None => Some(format!("{objective}: {} did not print it", run.by)),
    });
    misses.collect()
}

fn wrong(text: &str) -> Mistake {
    Mistake::Flags(text.to_owned())
}
