//! The service time to predict with: as it was given, or as a sweep measured it.

use model::theory::ServiceTime;
use model::{DelayLaw, Nanos, number};

/// The law of the service time, and how well it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedService {
    /// The law.
    pub law: DelayLaw,
    /// CPU time in it, if a sweep measured that.
    pub cpu: Option<Nanos>,
    /// What a reader has to know about it, a sentence each.
    pub notes: Vec<String>,
}

impl PredictedService {
    /// The service time as the user gave it.
    pub fn given(law: DelayLaw) -> PredictedService {
        PredictedService { law, cpu: None, notes: Vec::new() }
    }

    /// What a sweep measured of a request that was alone. Mean and variation are kept; if the times
    /// vary, a log-normal law has both.
    pub fn measured(service: &ServiceTime) -> PredictedService {
        let mut notes = Vec::new();
        let law = match service.log_normal() {
            None => DelayLaw::Constant(service.mean),
            Some(law) => {
                notes.push(
                    "only the mean and the variation of the sweep's service times are used: \
                     percentiles are those of a log-normal distribution with both"
                        .to_owned(),
                );
                DelayLaw::LogNormal { median: law.median, sigma: law.sigma }
            }
        };
        if !service.is_well_known() {
            let high = if service.high == Nanos::MAX {
                "more".to_owned()
            } else {
                number::time(service.high)
            };
            notes.push(format!(
                "the sweep knows its mean service time roughly, {} to {high} (95 %): all rates \
                 are as uncertain",
                number::time(service.low)
            ));
        }
        PredictedService { law, cpu: service.cpu, notes }
    }
}
