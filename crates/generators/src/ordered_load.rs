//! A load by another generator against a server that is already running (`longtail load
//! --generator wrk`).

use std::sync::atomic::Ordering;

use launch::CpuRestriction;
use model::{LoadStudy, Run};
use sweep::{ClaimedRun, Context, OtherGenerator as _, PreparedLoad, SweepError};

use crate::{GeneratorDriver, LoadOrder};

/// A load that another generator makes, ready to run.
pub struct OrderedLoad {
    driver: GeneratorDriver,
    order: LoadOrder,
}

impl OrderedLoad {
    /// The load that `order` describes, made by this generator.
    pub fn new(driver: GeneratorDriver, order: LoadOrder) -> OrderedLoad {
        OrderedLoad { driver, order }
    }

    /// The generator's name.
    pub fn name(&self) -> &'static str {
        self.driver.name()
    }

    /// ` for 10s`, warm-up included; nothing if a count of requests ends the load.
    pub fn length_in_words(&self) -> String {
        let time = self.order.time.map(|time| time + self.order.load.warm_up);
        time.map(|time| format!(" for {time}")).unwrap_or_default()
    }

    /// Runs the load; `Ok(None)` if the user ended it: a generator that was stopped has no figures.
    ///
    /// # Errors
    /// If the generator fails, or what it prints is not understood.
    pub fn conduct(
        &self,
        prepared: PreparedLoad,
        context: &Context<'_>,
    ) -> Result<Option<LoadStudy>, SweepError> {
        // Read first: it has the CPUs that this process may use, which are restricted below.
        let environment = sweep::environment(context.version);
        // The generator inherits the restriction of this thread.
        let restriction = CpuRestriction::off_the_server(prepared.placement.as_ref());
        let has_ended = || context.interrupt.load(Ordering::Relaxed);
        let is_here = prepared.server.is_here();
        let done = sweep::observe_claimed(is_here, || self.driver.run(&self.order, &has_ended));
        drop(restriction);
        let done = done
            .map_err(|why| SweepError::Unusable(format!("--generator {}: {why}", self.name())))?;
        let Some((claimed, generator)) = done else { return Ok(None) };
        let ClaimedRun { claim, elapsed, found: warnings } = claimed;
        let run = Run {
            generator,
            warnings,
            ..Run::claimed(prepared.plan.load.connections, claim, elapsed)
        };
        Ok(Some(LoadStudy { name_resolution: None, ..prepared.study(run, environment, context) }))
    }
}
