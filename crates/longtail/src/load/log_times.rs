//! The times of the requests in a log that is replayed (`--replay`).

use jiff::Timestamp;
use model::{LONGEST_TIME, LoadSettings, Nanos, Pace};
use report::number;

use crate::exit::{Mistake, refuse_if};
use crate::ui;

/// A replay that takes longer says so before it starts.
const LONG: Nanos = Nanos::from_secs(60);

/// Times since the log's own beginning, as the crate `requests` read them.
pub(crate) struct LogTimes {
    /// Of each request, in order.
    pub(crate) times: Vec<Nanos>,
    /// When the log begins: with its first request, or with that one's second where the times are
    /// spread.
    pub(crate) start: Nanos,
}

impl LogTimes {
    /// Says how long the replay takes if nobody said so (`length` is how long it runs).
    ///
    /// # Errors
    /// If it takes longer than a run may last.
    pub(super) fn say_how_long(
        &self,
        load: &LoadSettings,
        length: Option<Nanos>,
    ) -> Result<(), Mistake> {
        let Pace::Open { profile, .. } = &load.pace else { return Ok(()) };
        let Some(length) = length.filter(|length| Some(*length) == profile.length()) else {
            return Ok(());
        };
        let last = self.times.last().copied().unwrap_or_default();
        refuse_if(
            length > LONGEST_TIME,
            format!(
                "--replay: the log goes from {} to {}, and a run lasts 30 days at most: use a part \
                 of it, or give --for or a higher --speed",
                date(self.start),
                date(last)
            ),
        )?;
        if length > LONG {
            let takes = number::minutes(length);
            ui::note(&format!("the replay takes {takes} (--for and --speed make it shorter)"));
        }
        Ok(())
    }
}

/// The date of a log's time, which counts from 1970.
fn date(time: Nanos) -> String {
    let known = Timestamp::from_nanosecond(time.0.into()).ok();
    number::or_none(known, |time| time.strftime("%F").to_string())
}
