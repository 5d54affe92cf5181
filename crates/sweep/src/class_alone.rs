//! Measures how long a request of each class takes when it is the only one, one class after the
//! other and one request at a time.

use model::theory::ClassAlone;
use model::{Nanos, RequestMix, Tally};

/// The longest time spent on one class, apart from a request in flight at its end.
const LONGEST: Nanos = Nanos::from_millis(500);
/// The longest time spent on all classes together.
pub(crate) const LONGEST_OF_ALL: Nanos = Nanos::from_secs(10);

/// Measures each class of a mix by up to `most` responses. The first request of a class is left
/// out, because the app may have to load something for it. `visit` sends up to the given number of
/// requests over a new connection, for at most the given time; `None` ends the measurement.
pub(crate) fn measure<E>(
    mix: &RequestMix,
    most: u64,
    mut visit: impl FnMut(RequestMix, u64, Nanos) -> Result<Option<Tally>, E>,
) -> Result<Vec<ClassAlone>, E> {
    let names = mix.classes();
    let longest = LONGEST.min(Nanos(LONGEST_OF_ALL.0 / names.len().max(1) as u64));
    let mut classes = Vec::new();
    for (class, name) in (0..).zip(names) {
        let requests = mix.of_class(class);
        let Some(first) = visit(requests.clone(), 1, longest)? else { break };
        let Some(tally) = visit(requests, most, longest)? else { break };
        classes.push(ClassAlone {
            name: name.clone(),
            requests: first.all_requests() + tally.all_requests(),
            responses: tally.service_time.count(),
            mean: tally.service_time.mean(),
        });
    }
    Ok(classes)
}
