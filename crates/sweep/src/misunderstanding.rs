//! Looks once at a server that answered no request well: does it speak another protocol than it was
//! sent?

use std::time::Duration;

use engine::Transport;
use model::{LoadStudy, Outcome, Run};

/// How long each step of that look may take.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// Why no request had a good response, if one look at the server tells: it speaks TLS and not plain
/// HTTP, or the reverse; its certificate is not trusted; or it asks for a client certificate.
/// During the load the lanes only counted such failures.
pub fn misunderstanding(transport: &Transport, load: &LoadStudy) -> Option<String> {
    let LoadStudy { run: Run { tally, claim, .. }, plan, .. } = load;
    let counts = &tally.counts;
    if claim.is_some() || counts.attempted() == 0 || counts.good() > 0 {
        return None;
    }
    let endpoint = transport.endpoints.first()?;
    // A server that is spoken to in the wrong protocol answers 400, or nothing.
    if counts.of(Outcome::Answered(400)) != counts.answered() {
        return None;
    }
    let Some(tls) = &transport.tls else {
        let is_cut_off = counts.answered() > 0
            || [Outcome::Closed, Outcome::Reset, Outcome::TimedOut, Outcome::BadResponse]
                .iter()
                .any(|outcome| counts.of(*outcome) > 0);
        if !is_cut_off || !engine::speaks_tls(endpoint, LONGEST_LOOK) {
            return None;
        }
        let https = plan.url.replacen("http://", "https://", 1);
        return Some(format!(
            "{endpoint} speaks TLS, and was sent plain HTTP: \
             type {https} (--insecure accepts any certificate)"
        ));
    };
    let found = tls.shake_hands(endpoint, LONGEST_LOOK);
    let wants_certificate =
        found.asks_for_certificate && !tls.has_certificate() && counts.answered() > 0;
    if found.failure.is_some() || !wants_certificate {
        return found.failure;
    }
    Some(format!(
        "{endpoint} asks for a client certificate, had none, and answers 400: \
         give it with --cert FILE and --key FILE"
    ))
}
