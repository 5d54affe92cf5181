//! `longtail overhead`: the older name of a comparison whose arms are instruments. Its words become
//! those of `longtail compare`.

use crate::exit::{Mistake, wrong};

/// The instruments by their old names, and the arm that each is now.
const INSTRUMENTS: [(&str, &str); 7] = [
    ("proc", "proc=--inspect=proc"),
    ("stamps", "stamps=--timestamps=kernel"),
    ("anatomy", "app=--inspect=app"),
    ("app", "app=--inspect=app"),
    ("kernel", "kernel=--inspect=kernel"),
    ("bpf", "kernel=--inspect=kernel"),
    // servers/sleep.ru sends a packet for each request, whether or not somebody listens.
    ("statsd", "statsd=--env LONGTAIL_STATSD=127.0.0.1:8125"),
];

/// What is measured if no instrument is named, besides the tracepoints, which need privileges.
const DEFAULT: [&str; 3] = ["proc", "stamps", "app"];

/// Its defaults. What is typed stands behind them, and so overrides them.
const COMMON: [&str; 5] =
    ["--path=/", "--for=1s", "--warm-up=500ms", "--timestamps=user", "--metric=cpu"];

/// The words of `compare` for those of `overhead`; `None` where it is another command.
///
/// # Errors
/// If there is no such instrument.
pub(crate) fn as_comparison(words: &[String]) -> Result<Option<Vec<String>>, Mistake> {
    if words.first().is_none_or(|word| word != "overhead") {
        return Ok(None);
    }
    let mut arms = vec!["bare=".to_owned()];
    let mut rest = Vec::new();
    let mut typed = words[1..].iter();
    while let Some(word) = typed.next() {
        let (flag, glued) =
            word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        let mut value =
            || glued.map(str::to_owned).or_else(|| typed.next().cloned()).unwrap_or_default();
        match flag {
            "--arms" => {
                arms.extend(value().split(',').map(instrument).collect::<Result<Vec<_>, _>>()?);
            }
            "--env" => arms.push(format!("--env {}", model::plan::quoted(&value()))),
            _ => rest.push(word.clone()),
        }
    }
    if arms.len() == 1 {
        let tracepoints = probe::bpf::possible().is_ok().then_some("kernel");
        arms.extend(
            DEFAULT
                .into_iter()
                .chain(tracepoints)
                .map(instrument)
                .collect::<Result<Vec<_>, _>>()?,
        );
    }
    let common = std::iter::once("compare").chain(COMMON).map(str::to_owned);
    Ok(Some(common.chain(rest).chain(arms.into_iter().map(|arm| format!("--arm={arm}"))).collect()))
}

fn instrument(name: &str) -> Result<String, Mistake> {
    let known = INSTRUMENTS.iter().find(|(known, _)| *known == name);
    let names = || INSTRUMENTS.map(|(name, _)| name).join(", ");
    known
        .map(|(_, arm)| (*arm).to_owned())
        .ok_or_else(|| wrong(format!("--arms '{name}': choose among {}", names())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_command_is_a_comparison_of_instruments() {
        let words = |typed: &str| -> Vec<String> { typed.split(' ').map(str::to_owned).collect() };
        let arms = |typed: &str| -> Vec<String> {
            let words = as_comparison(&words(typed)).unwrap().unwrap();
            words.iter().filter_map(|word| word.strip_prefix("--arm=")).map(str::to_owned).collect()
        };
        assert_eq!(
            arms("overhead -w2 --arms proc,statsd --rounds 12"),
            ["bare=", "proc=--inspect=proc", "statsd=--env LONGTAIL_STATSD=127.0.0.1:8125"]
        );
        assert_eq!(arms("overhead --env=A=b --env C=d"), ["bare=", "--env A=b", "--env C=d"]);
        assert!(arms("overhead").len() >= 4);
        assert!(
            as_comparison(&words("overhead --arms dtrace"))
                .unwrap_err()
                .to_string()
                .contains("choose among")
        );
        assert_eq!(as_comparison(&words("sweep -w2")).unwrap(), None);
    }
}
