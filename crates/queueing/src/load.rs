//! An open loop's load on a number of slots, and whether they can carry it.

use crate::{Invalid, check};

/// `c` slots, arrivals at rate `λ`, each holding a slot for `s` on average, in one unit of time. A load may be more than
/// the slots can do; the formulas that need a steady state refuse it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    slots: u32,
    rate: f64,
    service: f64,
}

impl Load {
    /// A load of `rate` arrivals per unit of time of `service` each, on `slots` slots.
    ///
    /// # Errors
    /// Without a slot, or where the rate or the service time is not a number above 0.
    pub fn new(slots: u32, rate: f64, service: f64) -> Result<Load, Invalid> {
        check::some("slot", slots)?;
        check::positive("the rate", rate)?;
        check::positive("the service time", service)?;
        check::positive("the offered work", rate * service)?;
        Ok(Load { slots, rate, service })
    }

    /// The load that keeps `slots` slots busy for the share `utilisation` of the time, in units of the service time.
    ///
    /// # Errors
    /// As [`Load::new`].
    pub fn of_utilisation(slots: u32, utilisation: f64) -> Result<Load, Invalid> {
        check::positive("the utilisation", utilisation)?;
        Load::new(slots, utilisation * f64::from(slots), 1.0)
    }

    /// `c`.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// `λ`, arrivals per unit of time.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// `s`.
    pub fn service(&self) -> f64 {
        self.service
    }

    /// Offered work `a = λ·s`, in slots (Erlangs).
    pub fn work(&self) -> f64 {
        self.rate * self.service
    }

    /// `ρ = a / c`: the share of the time a slot is busy, where that is below 1.
    pub fn utilisation(&self) -> f64 {
        self.work() / f64::from(self.slots)
    }

    /// The same load where it can be carried for ever.
    ///
    /// # Errors
    /// Where the utilisation is 1 or more.
    pub fn steady(self) -> Result<Load, Invalid> {
        let utilisation = self.utilisation();
        if utilisation < 1.0 { Ok(self) } else { Err(Invalid::NoSteadyState { utilisation }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_load_is_refused() {
        assert_eq!(Load::new(0, 1.0, 1.0), Err(Invalid::None("slot")));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Load::new(1, bad, 1.0), Err(Invalid::NotPositive { .. })));
            assert!(matches!(Load::new(1, 1.0, bad), Err(Invalid::NotPositive { .. })));
        }
        // The product of two small numbers may be none.
        assert!(Load::new(1, 1e-200, 1e-200).is_err());
    }

    #[test]
    fn as_much_work_as_slots_is_too_much() {
        assert_eq!(Load::new(5, 5.0, 1.0).unwrap().steady(), Err(Invalid::NoSteadyState { utilisation: 1.0 }));
        assert!(Load::new(5, 4.999, 1.0).unwrap().steady().is_ok());
    }
}
