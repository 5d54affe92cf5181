//! The last looks at server and kernel, for whoever wants to show them while a run goes on.
//!
//! Written by the threads that look and read by whoever shows; no lane knows of it. It lives as long as its run.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The last value of each quantity, by name and whom it is of.
#[derive(Debug, Default)]
pub struct Looks(Mutex<BTreeMap<(&'static str, String), u64>>);

impl Looks {
    /// What was seen of a quantity; `None` takes away what was seen before.
    pub fn show(&self, name: &'static str, of: &str, value: Option<u64>) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match value {
            Some(value) => looks.insert((name, of.to_owned()), value),
            None => looks.remove(&(name, of.to_owned())),
        };
    }

    /// All of them: name, whom it is of, value.
    pub fn seen(&self) -> Vec<(&'static str, String, u64)> {
        let looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.iter().map(|((name, of), value)| (*name, of.clone(), *value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_any_more_is_gone() {
        let looks = Looks::default();
        looks.show("accept_queue", "", Some(3));
        looks.show("backlog", "71", Some(1));
        looks.show("accept_queue", "", None);
        assert_eq!(looks.seen(), [("backlog", "71".to_owned(), 1)]);
    }
}
