//! `vegeta report` and `vegeta plot`, which read a result: ours is `longtail report`.

use std::path::Path;

use model::plan::quoted;

/// What to type for `vegeta report`, `plot` and `encode`, whose name is `command`.
pub(crate) fn of_vegetas_result(command: &str, words: &[String]) -> String {
    let found = VegetasReport::of(words);
    let ours = found.line_of_ours(command);
    let meant = found.what_to_type(&ours);
    match found.buckets() {
        Some(buckets) if command == "report" => {
            format!("{meant}; not taken: the buckets {buckets}, since longtail chooses its own")
        }
        _ => meant,
    }
}

impl VegetasReport<'_> {
    /// What to type, given our line of it.
    fn what_to_type(&self, ours: &str) -> String {
        match self.file {
            Some(file) if file.ends_with(".study.json") => {
                format!("type longtail {ours} {}", quoted(file))
            }
            Some(file) => {
                let is_there = Path::new(file).exists();
                let file = quoted(file);
                let what = if is_there {
                    format!("{file} is no run of longtail, which")
                } else {
                    format!("there is no file {file}, and longtail")
                };
                format!(
                    "{what} reads only what vegeta report prints: type vegeta report {file} | longtail audit -, or longtail {ours} for the last run of longtail itself"
                )
            }
            None => format!(
                "longtail audit FILE checks what vegeta report prints; for the last run of longtail itself, type longtail {ours}"
            ),
        }
    }

    /// The bounds of a histogram: `hist[0,100ms]`, or those of `-buckets`.
    fn buckets(&self) -> Option<&str> {
        self.buckets.or(self.format.strip_prefix("hist").filter(|buckets| !buckets.is_empty()))
    }
}

/// What `vegeta report`, `plot` or `encode` are told.
#[derive(Default)]
struct VegetasReport<'w> {
    /// `-type` of report, `-to` of encode.
    format: &'w str,
    output: Option<&'w str>,
    /// `-buckets`.
    buckets: Option<&'w str>,
    /// The first file of results.
    file: Option<&'w str>,
}

impl<'w> VegetasReport<'w> {
    pub(super) fn of(words: &'w [String]) -> VegetasReport<'w> {
        /// Flags that take a value.
        const FLAGS: [&str; 9] =
            ["type", "to", "output", "o", "every", "buckets", "title", "threshold", "cpus"];
        let mut found = VegetasReport::default();
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
                found.file = found.file.or(Some(word));
                continue;
            };
            let flag = flag.trim_start_matches('-');
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if FLAGS.contains(&flag) => (flag, rest.next()),
                None => (flag, None),
            };
            match name {
                "type" | "to" => found.format = value.unwrap_or_default(),
                "output" | "o" => found.output = value,
                "buckets" => found.buckets = value,
                _ => {}
            }
        }
        found
    }

    /// Our words for the same.
    fn line_of_ours(&self, command: &str) -> String {
        match (command, self.format) {
            ("plot", _) => "report --html report.html".to_owned(),
            ("encode" | "dump", "csv") => "report --csv".to_owned(),
            ("encode" | "dump", _) | (_, "json") => "report --json".to_owned(),
            (_, format) if format.starts_with("hist") => "report --style hey".to_owned(),
            (_, "hdrplot") => "report -o FILE.hdr".to_owned(),
            _ => match self.output {
                Some(file) => format!("report -o {}", quoted(file)),
                None => "report".to_owned(),
            },
        }
    }
}

/// Whether these words behind `report` are vegeta's, and not ours.
pub(crate) fn are_vegetas_report(words: &[String]) -> bool {
    let flags = ["type", "every", "buckets", "output"];
    words.iter().any(|word| {
        let name = word.split('=').next().unwrap_or(word);
        let bare = name.trim_start_matches('-');
        name.starts_with('-')
            && flags.contains(&bare)
            && (bare != "output" || !name.starts_with("--"))
    })
}
