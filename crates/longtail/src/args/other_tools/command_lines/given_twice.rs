//! What another tool's line gives twice where ours, like a request, has one: which of them counts.

use clap::{ArgAction, Command};
use judge::words::listed;

use super::k6_settings::value_typed;
use super::translation::Translation;
use crate::args::other_tools::flags::{Counterpart, OtherTool, with_value};
use crate::args::other_tools::synonyms;

/// Headers that a request has once.
const ONCE: [&str; 5] = ["Content-Type", "Accept", "Host", "Authorization", "User-Agent"];

/// Flags of ours for a body.
const BODIES: [&str; 3] = ["-d", "--data-raw", "-D"];

/// A flag of ours with its value, if it takes one.
struct OurFlag<'w>(&'w [String]);

impl<'w> OurFlag<'w> {
    /// Those of a line.
    fn all_in(load: &Command, words: &'w [String]) -> Vec<OurFlag<'w>> {
        let mut all = Vec::new();
        let mut rest = words;
        while let Some(word) = rest.first() {
            let takes_value = load
                .get_arguments()
                .any(|arg| synonyms::is_called(arg, word) && arg.get_action().takes_values());
            let (flag, behind) = rest.split_at(rest.len().min(1 + usize::from(takes_value)));
            all.push(OurFlag(flag));
            rest = behind;
        }
        all
    }

    fn name(&self) -> &'w str {
        &self.0[0]
    }

    fn value(&self) -> &'w str {
        self.0.get(1).map_or("", String::as_str)
    }

    /// The header that it says, in the spelling of [`ONCE`] if it is one of these.
    fn header(&self) -> Option<&'w str> {
        let name = match self.name() {
            "-T" => "Content-Type",
            "-A" => "Accept",
            "--host" => "Host",
            "-a" => "Authorization",
            "-H" => self.value().split(':').next()?,
            _ => return None,
        };
        let name = name.trim();
        Some(ONCE.into_iter().find(|once| once.eq_ignore_ascii_case(name)).unwrap_or(name))
    }

    /// What it says, of which a line of ours may have one; empty if it may have several.
    fn place(&self, tool: &OtherTool, load: &Command) -> String {
        let name = self.name();
        if let Some(header) = self.header() {
            // hey sends the last one of any name.
            let is_one = tool.name == "hey" || ONCE.contains(&header);
            return if is_one { header.to_owned() } else { String::new() };
        }
        if BODIES.contains(&name) {
            // curl joins them.
            return if tool.name == "curl" { String::new() } else { "its body".to_owned() };
        }
        if name == "-m" {
            return "its method".to_owned();
        }
        let is_one = load.get_arguments().any(|arg| {
            synonyms::is_called(arg, name) && !matches!(arg.get_action(), ArgAction::Append)
        });
        if is_one { name.to_owned() } else { String::new() }
    }

    /// Which of several counts: the highest, and the last of these.
    fn rank(&self, tool: &'static OtherTool, words: &[String]) -> u8 {
        let is_own = OurFlag::of_own_flags(tool, words).iter().any(|own| own[..] == *self.0);
        match (tool.name, self.name()) {
            // Its -host, -A and -U count, its -T and -a do not.
            ("hey", "-H") if is_own => 2,
            ("hey", "--host" | "-A" | "-D") => 2,
            (_, "-H") if is_own => 0,
            (_, "-H") => 1,
            // A method that is said, and not one that comes with a file.
            (_, "-m") => u8::from(is_own),
            _ => 0,
        }
    }

    /// Whether the tool's flag for it differs as it is said here.
    fn is_cause_of(&self, tool: &OtherTool, said: &str) -> bool {
        tool.flags.iter().any(|flag| match &flag.ours {
            Counterpart::WordsBut([ours, ..], difference) => {
                *ours == self.name() && said.ends_with(difference)
            }
            _ => false,
        })
    }

    /// Our words for a method and a header that flags of the tool have for them.
    fn of_own_flags(tool: &'static OtherTool, words: &[String]) -> Vec<[String; 2]> {
        let mut all = Vec::new();
        for flag in tool.flags {
            let (Counterpart::Words(parts) | Counterpart::WordsBut(parts, _)) = &flag.ours else {
                continue;
            };
            let name = flag.shown_name(tool.spelling);
            let Some(value) = value_typed(tool, words, name.trim_start_matches('-')) else {
                continue;
            };
            for pair in parts.windows(2) {
                let is_header = pair[0] == "-H" && pair[1] != "{}";
                if is_header || pair == ["-m", "{}"] {
                    let [ours, said] = &with_value(pair, &value)[..] else { continue };
                    all.push([ours.clone(), said.clone()]);
                }
            }
        }
        all
    }
}

impl Translation {
    /// Leaves out what does not count beside another one, so that our line can be typed. `words` is
    /// the line of the tool.
    pub(super) fn leave_out_second(
        &mut self,
        tool: &'static OtherTool,
        load: &Command,
        words: &[String],
    ) {
        let all = OurFlag::all_in(load, &self.flags);
        let places: Vec<String> = all.iter().map(|flag| flag.place(tool, load)).collect();
        let ranks: Vec<u8> = all.iter().map(|flag| flag.rank(tool, words)).collect();
        let mut left = Vec::new();
        let mut twice: Vec<String> = Vec::new();
        for (at, flag) in all.iter().enumerate() {
            let place = &places[at];
            // Go takes the host from the URL or from -host alone.
            if tool.name == "hey" && flag.name() == "-H" && place == "Host" {
                self.harmless.push("hey sends no Host of -H, only that of -host".to_owned());
                continue;
            }
            let is_same = |other: &String| !place.is_empty() && other.eq_ignore_ascii_case(place);
            let counts_more = |other: usize| (ranks[other], other) > (ranks[at], at);
            if !(0..all.len()).any(|other| is_same(&places[other]) && counts_more(other)) {
                left.extend_from_slice(flag.0);
                continue;
            }
            self.differs.retain(|said| !flag.is_cause_of(tool, said));
            if !twice.iter().any(is_same) {
                twice.push(place.clone());
            }
        }
        self.flags = left;
        if !twice.is_empty() {
            let each = if twice.len() > 1 { "each" } else { "them" };
            self.harmless.push(format!(
                "{} is told {} twice: one of {each} is left out",
                tool.name,
                listed(&twice)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_of;
    use super::super::translation::translate;
    use super::super::typed_flags::UnknownFlags;
    use crate::args::other_tools::flags::OtherTool;
    use crate::commands::definition;

    #[test]
    fn one_of_two_words_for_the_same_is_left() {
        let whole = definition();
        for (tool, theirs, ours) in [
            ("hey", "-H Content-Type:c -T a/b", "-H Content-Type:c"),
            ("hey", "-host a -H Host:b", "--host a"),
            ("hey", "-A a -H accept:b", "-A a"),
            ("hey", "-U a -H User-Agent:b", "-H User-Agent: a hey/0.0.1"),
            ("hey", "-H Authorization:b -a u:p", "-H Authorization:b"),
            ("hey", "-H X-A:1 -H x-a:2", "-H x-a:2"),
            ("hey", "-n 1 -n 2 -D f -d a", "-n 2 -D f"),
            ("curl", "-H User-Agent:b -A a", "-H User-Agent:b"),
            ("curl", "-H X-A:1 -H X-A:2", "-H X-A:1 -H X-A:2"),
            ("curl", "-X POST -H Content-Type:x -T f", "-m POST -H Content-Type:x -D f"),
            ("ab", "-H Content-Type:c -T a/b -k", "-H Content-Type:c"),
            ("vegeta", "-rate 1 -rate 2 -header A:1 -header A:2", "--rate 2 -H A:1 -H A:2"),
        ] {
            let words: Vec<String> = theirs.split(' ').map(str::to_owned).collect();
            let tool = OtherTool::of(tool).unwrap();
            let found = translate(tool, load_of(&whole), &words, UnknownFlags::Refused);
            let found = found.unwrap_or_else(|why| panic!("{theirs}: {why}"));
            assert_eq!(found.flags.join(" "), ours, "{theirs}");
            assert!(!found.differs.iter().any(|said| said.contains("-a")), "{:?}", found.differs);
        }
    }
}
