//! A load that another generator makes (`--generator wrk`): from the same flags to its run and what it claims.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Endpoint, Resolver};
use launch::CpuRestriction;
use model::claimed::{Believable, FindingGrade};
use model::objective::ObjectiveFigure;
use model::study::SCHEMA;
use model::{ClaimedLoadStudy, ClaimedRun, Nanos, Objective};
use requests::TargetUrl;
use sweep::HostCounters;

use crate::args::LoadArgs;
use crate::clock::SystemClock;
use crate::generators::{Generator, GeneratorDriver, InstalledGenerator, KnownServer, LoadEnd, LoadOrder};
use crate::load::prepare::{Prepared, prepare, template};
use crate::mistake::{Mistake, wrong};

/// Another generator's load, with nothing left to decide.
pub(crate) struct OrderedLoad {
    driver: GeneratorDriver,
    order: LoadOrder,
    prepared: Prepared,
}

/// Makes it of the flags, as [`prepare`] does.
///
/// # Errors
/// Where a flag is wrong, the generator cannot do it or is not there, or nobody takes connections where it would go.
pub(crate) fn order_load(
    args: &LoadArgs,
    resolver: &Resolver,
    generator: Generator,
    clock: SystemClock,
) -> Result<OrderedLoad, Mistake> {
    let name = generator.name();
    if generator == Generator::Longtail {
        return Err(wrong("--generator longtail: it is longtail that makes the load anyway; leave it out"));
    }
    if let Some(flag) = args.own_flag() {
        return Err(wrong(format!(
            "--generator {name}: {flag} is of longtail's own generator: leave out one of the two"
        )));
    }
    if let Some(line) = args.fail_if.iter().find_map(|objective| generator.unjudged(objective)) {
        return Err(wrong(line));
    }
    let prepared = prepare(args, resolver, &clock)?;
    let order = load_order(args, resolver, &prepared, name)?;
    if let Some(line) = generator.refusal(&order) {
        return Err(wrong(line));
    }
    let driver = GeneratorDriver::new(InstalledGenerator::on_path(generator)?, clock)?;
    let body = template(args)?.body.map(|body| driver.keep_body(&body)).transpose()?;
    Ok(OrderedLoad { driver, order: LoadOrder { body, ..order }, prepared })
}

/// What it is to do, but for where its body is.
fn load_order(args: &LoadArgs, resolver: &Resolver, prepared: &Prepared, name: &str) -> Result<LoadOrder, Mistake> {
    let (plan, endpoints) = (&prepared.plan, &prepared.shape.transport.endpoints);
    if endpoints.iter().any(|endpoint| !matches!(endpoint, Endpoint::Tcp(_))) {
        return Err(wrong(format!("--generator {name}: it needs a TCP address")));
    }
    let target = TargetUrl::parse(args.url.as_deref().unwrap_or_default())?;
    if target.tls && !args.insecure {
        return Err(wrong(format!(
            "--generator {name}: it is run so that it takes any certificate: say so with --insecure"
        )));
    }
    let template = template(args)?;
    let own_host = template.headers.iter().find(|header| header.is("host")).and_then(requests::RequestHeader::value);
    // The other generator is given the name, by which it asks for a certificate; or the very address that was checked
    // where only some may be connected to, or was chosen.
    let gives_name = resolver.allowed.is_none() && resolver.version.is_none() && !args.chooses_address();
    let scheme = if target.tls { "https" } else { "http" };
    let url = if gives_name { target.to_string() } else { format!("{scheme}://{}{}", endpoints[0], target.path) };
    let is_name = target.host.parse::<IpAddr>().is_err() && !gives_name;
    let named = is_name.then(|| target.authority.clone());
    let host = own_host.map(|host| String::from_utf8_lossy(host).into_owned()).or(named);
    if let Some(header) = template.headers.iter().find(|header| header.value().is_none()) {
        let header = header.name();
        return Err(wrong(format!("--generator {name}: it cannot leave out a header: take away -H '{header}:'")));
    }
    let line = |header: &requests::RequestHeader| {
        format!("{}: {}", header.name(), String::from_utf8_lossy(header.value().unwrap_or_default()))
    };
    let (rate, rate_per_connection) = args.rates();
    let end = match (plan.length, plan.requests_total) {
        (Some(_), Some(_)) => {
            return Err(wrong(format!(
                "--generator {name}: give --for or -n: what comes first ends only our own runs"
            )));
        }
        (Some(length), None) => LoadEnd::After(length),
        (None, Some(total)) => LoadEnd::Requests(total),
        (None, None) => return Err(wrong("say when the run ends: --for or -n")),
    };
    let credentials = target.credentials.as_ref().map(requests::RequestHeader::basic_auth).transpose()?;
    let own = template.headers.iter().filter(|header| !header.is("host")).map(line);
    Ok(LoadOrder {
        host,
        warm_up: plan.warm_up,
        rate,
        rate_per_connection,
        keep_alive: plan.keep_alive,
        timeout: plan.timeout,
        method: template.method.to_string(),
        headers: own.chain(credentials.as_ref().map(line)).collect(),
        body: template.body.is_some().then(|| "body".into()),
        ..LoadOrder::closed_loop(&url, plan.connections, plan.lanes, end)
    })
}

impl OrderedLoad {
    /// Runs it. `Ok(None)` where the user ended it: what another generator has not finished has no figures.
    ///
    /// # Errors
    /// Where the generator fails, or what it prints is not understood.
    pub(crate) fn conduct(
        self,
        (started_at, command_line): (String, String),
        interrupt: &AtomicBool,
    ) -> Result<Option<ClaimedLoadStudy>, Mistake> {
        let OrderedLoad { driver, order, prepared } = self;
        // Before this thread is kept to some of its processors, as then the generator is too.
        let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
        let kept = CpuRestriction::off_the_server(prepared.placement.as_ref());
        let before = HostCounters::now();
        let ended = || interrupt.load(Ordering::Relaxed);
        let failed = |why| wrong(format!("--generator {}: {why}", driver.name()));
        let Some(mut run) = driver.run(&order, KnownServer::default(), &ended).map_err(failed)? else {
            return Ok(None);
        };
        let after = HostCounters::now();
        drop(kept);
        run.steal = after.steal_since(&before);
        run.listen_overflows = after.listen_overflows_since(&before).filter(|_| prepared.server.is_here());
        without_secrets(&mut run, &order);
        let missed = missed(&run, &prepared.plan.fail_if);
        Ok(Some(ClaimedLoadStudy {
            schema: SCHEMA,
            started_at,
            command_line,
            plan: prepared.plan,
            environment,
            placement: prepared.placement,
            run,
            missed,
        }))
    }

    /// The same load as ours would be.
    pub(crate) fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// How long it takes, warm-up included; `None` where a count ends it.
    pub(crate) fn length(&self) -> Option<Nanos> {
        self.order.time().map(|time| time + self.order.warm_up)
    }
}

/// Takes credentials and cookies out of the command line: it goes into reports.
fn without_secrets(run: &mut ClaimedRun, order: &LoadOrder) {
    for header in &order.headers {
        let name = header.split(':').next().unwrap_or_default();
        if ["authorization", "cookie", "proxy-authorization"].iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            let shown = model::plan::quoted(header);
            run.command_line = run.command_line.replace(&shown, "'(secret)'");
        }
    }
}

/// The objectives that are missed, each with the figure that misses it. One whose figure was not printed after all, or
/// that a claim which cannot be would have met, is not known to have been met.
fn missed(run: &ClaimedRun, objectives: &[Objective]) -> Vec<String> {
    let misses = objectives.iter().filter_map(|objective| match run.claim.figure(objective.figure) {
        Some(value) if objective.is_missed_by(value) => Some(format!("{objective}: it is {}", objective.shown(value))),
        Some(_) if is_spoiled(run, objective.figure) => {
            Some(format!("{objective}: not known, for what {} claims cannot be", run.by))
        }
        Some(_) => None,
        None => Some(format!("{objective}: {} did not print it", run.by)),
    });
    misses.collect()
}

/// Whether an impossible claim leaves nothing of this figure: of its times always, of its rate unless it is known that the
/// times alone are wrong, of its count of errors nothing is lost.
fn is_spoiled(run: &ClaimedRun, figure: ObjectiveFigure) -> bool {
    let is_explained = run.findings.iter().any(|finding| finding.is == FindingGrade::Explains);
    let touches = match figure {
        ObjectiveFigure::Errors | ObjectiveFigure::ErrorShare => false,
        ObjectiveFigure::Completed => !is_explained,
        _ => true,
    };
    run.audit == Believable::Impossible && touches
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::claimed::{ClaimFinding, ClaimedFigures, ClaimedPercentile};

    fn run(audit: Believable, findings: Vec<ClaimFinding>) -> ClaimedRun {
        ClaimedRun {
            by: "wrk".to_owned(),
            version: None,
            command_line: "wrk -H 'Cookie: a=b c' http://127.0.0.1/".to_owned(),
            connections: 1,
            claim: ClaimedFigures {
                requests: Some(100),
                failed: Some(0),
                rate_per_s: Some(50.0),
                percentiles: vec![ClaimedPercentile { quantile: 0.5, time: Nanos::from_millis(3) }],
                ..ClaimedFigures::default()
            },
            output: String::new(),
            warm_up_requests: None,
            audit,
            findings,
            cpu: None,
            elapsed: Nanos::from_secs(2),
            steal: None,
            listen_overflows: None,
            warnings: Vec::new(),
        }
    }

    fn missed_by(run: &ClaimedRun, text: &str) -> Vec<String> {
        missed(run, &[text.parse().unwrap()])
    }

    #[test]
    fn an_objective_that_an_impossible_claim_would_meet_is_not_met() {
        let possible = run(Believable::Possible, Vec::new());
        let impossible = run(Believable::Impossible, Vec::new());
        assert_eq!(missed_by(&possible, "p50 > 1s"), Vec::<String>::new());
        assert_eq!(missed_by(&possible, "p50 > 1ms"), ["p50 > 1ms: it is 3ms"]);
        assert_eq!(missed_by(&impossible, "p50 > 1s"), ["p50 > 1s: not known, for what wrk claims cannot be"]);
        assert_eq!(missed_by(&impossible, "completed < 1/s").len(), 1);
        assert_eq!(missed_by(&impossible, "errors > 1"), Vec::<String>::new());
        let why = ClaimFinding { check: "x".to_owned(), is: FindingGrade::Explains, text: String::new() };
        let explained = run(Believable::Impossible, vec![why]);
        assert_eq!(missed_by(&explained, "completed < 1/s"), Vec::<String>::new());
        assert_eq!(missed_by(&possible, "max > 1s"), ["max > 1s: wrk did not print it"]);
    }
}
