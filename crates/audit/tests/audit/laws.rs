//! What must hold of any text: nothing panics, and no honest run is called impossible.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::tools::{claims_of, fixtures, read};

/// One run of hey with connections that are never idle, printed as hey prints.
fn hey_report(times: &[Vec<f64>]) -> String {
    let total = times.iter().map(|each| each.iter().sum::<f64>()).fold(0.0, f64::max);
    let mut all: Vec<f64> = times.concat();
    all.sort_by(f64::total_cmp);
    let n = all.len();
    let mean = all.iter().sum::<f64>() / n as f64;
    let mut text =
        format!("hey -c {} -z 1s http://x/\n\nSummary:\n  Total:\t{total:.4} secs\n", times.len());
    _ = writeln!(text, "  Slowest:\t{:.4} secs\n  Fastest:\t{:.4} secs", all[n - 1], all[0]);
    _ = writeln!(text, "  Average:\t{mean:.4} secs\n  Requests/sec:\t{:.4}\n", n as f64 / total);
    _ = writeln!(
        text,
        "  Total data:\t{} bytes\n  Size/request:\t{} bytes\n",
        33 * n + n / 2,
        (33 * n + n / 2) / n
    );
    text += "Response time histogram:\n";
    let mark = |bin: usize| {
        if bin == 10 { all[n - 1] } else { all[0] + (all[n - 1] - all[0]) / 10.0 * bin as f64 }
    };
    let mut below = 0;
    for bin in 0..=10 {
        let upto = all.partition_point(|time| *time <= mark(bin));
        _ = writeln!(text, "  {:.3} [{}]\t|", mark(bin), upto - below);
        below = upto;
    }
    text += "\n\nLatency distribution:\n";
    for percent in [10, 25, 50, 75, 90, 95, 99] {
        // hey's own rank: the first whose place, in whole percent, has reached it.
        if let Some(at) = (0..n).find(|at| at * 100 / n >= percent) {
            _ = writeln!(text, "  {percent}% in {:.4} secs", all[at]);
        }
    }
    _ = writeln!(text, "\nStatus code distribution:\n  [200]\t{n} responses\n");
    text
}

#[test]
fn the_wrong_encoding_and_windows_line_ends_change_no_figure() {
    for file in fixtures() {
        let text = read(&file);
        // Every byte taken for a Latin-1 character.
        let latin1: String = text.bytes().map(char::from).collect();
        let verdicts =
            |text: &str| claims_of(text).into_iter().map(|found| found.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&latin1), verdicts(&text), "{file}");
        let windows = text.replace('\n', "\r\n");
        assert_eq!(claims_of(&windows), claims_of(&text), "{file}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_no_reason_to_panic(text in "\\PC*") {
        _ = audit::text(&claims_of(&text), report::Width::ANY);
    }

    #[test]
    fn mutated_reports_are_no_reason_to_panic(
        file in proptest::sample::select(fixtures()),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..4, 0_usize..40), 0..60),
        digits in proptest::collection::vec(proptest::sample::select(&b"0123456789."[..]), 0..500),
    ) {
        let mut bytes = read(&file).into_bytes();
        // Replaces every digit, if there are replacements.
        let mut next = digits.iter().copied().cycle();
        bytes.iter_mut().filter(|byte| byte.is_ascii_digit()).for_each(|byte| *byte = next.next().unwrap_or(*byte));
        for (at, byte, kind, length) in edits {
            if bytes.is_empty() { break; }
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.drain(at..end)),
                2 => { let copy = bytes[at..end].to_vec(); bytes.splice(at..at, copy); }
                _ => { bytes.splice(at..end, b"99999999999999999999".iter().copied()); }
            }
        }
        let found = claims_of(&String::from_utf8_lossy(&bytes));
        _ = audit::text(&found, report::Width::ANY);
        _ = serde_json::to_string(&found).unwrap();
    }

    #[test]
    fn no_honest_run_is_called_impossible(
        times in proptest::collection::vec(proptest::collection::vec(0.0001_f64..2.0, 1..60), 1..12),
    ) {
        let text = hey_report(&times);
        let found = claims_of(&text);
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].verdict.is != model::Believable::Impossible, "{}\n{}", audit::text(&found, report::Width::ANY), text);
    }
}
