//! What else the machine does: a second of `/proc/stat`, looked at from both ends while we sleep.

use std::collections::BTreeMap;
use std::fs;

use model::{Clock, Nanos};

use super::check::{Check, Group, Question};
use super::files::Files;
use super::processors;

const fn question(name: &'static str, spoils: &'static str) -> Question {
    Question { group: Group::Now, name, spoils }
}

/// How long the machine is looked at.
const SAMPLE: Nanos = Nanos::from_secs(1);
const STAT: &str = "/proc/stat";
const VMSTAT: &str = "/proc/vmstat";

/// What is counted, at one moment.
#[derive(Clone, Debug, Default)]
struct Moment {
    stat: Option<String>,
    vmstat: Option<String>,
    processes: BTreeMap<u32, Process>,
}

impl Moment {
    fn now(files: &Files) -> Moment {
        Moment { stat: files.text(STAT), vmstat: files.text(VMSTAT), processes: processes(files) }
    }
}

/// Sleeps for the sample, and answers.
pub(super) fn checks(files: &Files, clock: &impl Clock) -> Vec<Check> {
    let before = Moment::now(files);
    clock.sleep(SAMPLE);
    let after = Moment::now(files);
    vec![busy(&before, &after), steal(&before, &after), load(files), memory(files), swap(files, &before, &after)]
}

/// Ticks of all processors since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
    steal: u64,
}

/// The line `cpu` of `/proc/stat`: user nice system idle iowait irq softirq steal … (proc(5)); guest time is in user's.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, _, _, idle, iowait, _, _, steal] = ticks[..] else { return None };
    Some(Ticks { all: ticks.iter().sum(), idle: idle + iowait, steal })
}

/// The ticks that passed, if any did.
fn passed(before: &Moment, after: &Moment) -> Option<Ticks> {
    let (before, after) = (ticks(before.stat.as_deref()?)?, ticks(after.stat.as_deref()?)?);
    let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
    // The kernel's iowait may fall (proc(5)).
    let idle = after.idle.saturating_sub(before.idle).min(all);
    Some(Ticks { all, idle, steal: after.steal.saturating_sub(before.steal) })
}

fn busy(before: &Moment, after: &Moment) -> Check {
    const ASKED: Question = question("busy", "every number: server and lanes wait while others run");
    let Some(passed) = passed(before, after) else { return ASKED.unread(STAT) };
    let share = 1.0 - (passed.idle + passed.steal) as f64 / passed.all as f64;
    let names = busiest(&before.processes, &after.processes);
    let by = if names.is_empty() { String::new() } else { format!(", most by {}", names.join(", ")) };
    let seen = format!("{:.0} % of all processors in 1 s{by}", share * 100.0);
    ASKED.graded(share, 0.05, 0.30, seen, "end what runs, or wait for it: top -d 1").with("busy_share", share)
}

fn steal(before: &Moment, after: &Moment) -> Check {
    const ASKED: Question =
        question("stolen time", "every percentile: the hypervisor runs others, and all here stands still");
    let Some(passed) = passed(before, after) else { return ASKED.unread(STAT) };
    let share = passed.steal as f64 / passed.all as f64;
    let seen = format!("{:.1} % in 1 s", share * 100.0);
    let mend = "another host or another hour; of a cloud, an instance with processors of its own";
    ASKED.graded(share, 0.01, 0.05, seen, mend).with("steal_share", share)
}

fn load(files: &Files) -> Check {
    const ASKED: Question = question("load average", "the first runs: what was there a minute ago may come again");
    const LOADAVG: &str = "/proc/loadavg";
    let Some((averages, running)) = files.text(LOADAVG).as_deref().and_then(loadavg) else {
        return ASKED.unread(LOADAVG);
    };
    let Some(allowed) = processors::allowed(files) else { return ASKED.unread("/proc/self/status") };
    let [one, five, fifteen] = averages;
    // We run while we read it.
    let others = running.saturating_sub(1);
    let seen = format!("{one:.2} {five:.2} {fifteen:.2} over 1, 5, 15 min; {others} others want a processor now");
    let each = one / allowed.len() as f64;
    ASKED
        .graded(each, 0.5, f64::INFINITY, seen, "wait until it is quiet: watch uptime")
        .with("load_1_min", one)
        .with("running", others as f64)
}

/// `3.52 1.83 1.99 10/217 12024`: the averages, and how many threads want a processor.
fn loadavg(text: &str) -> Option<([f64; 3], u64)> {
    let mut words = text.split_ascii_whitespace();
    let mut average = || words.next()?.parse().ok();
    let averages = [average()?, average()?, average()?];
    Some((averages, words.next()?.split_once('/')?.0.parse().ok()?))
}

fn memory(files: &Files) -> Check {
    const ASKED: Question =
        question("memory", "tails: without free memory the kernel takes pages away while requests wait");
    const MEMINFO: &str = "/proc/meminfo";
    let bytes = |name| kilobytes(&files.field(MEMINFO, name)?);
    let (Some(total), Some(available)) = (bytes("MemTotal"), bytes("MemAvailable")) else {
        return ASKED.unread(MEMINFO);
    };
    let seen = format!("{} of {} available", gib(available), gib(total));
    // In MiB that are lacking: 512 are comfortable for a small server, below 128 it is about to be killed.
    let lacking = -((available >> 20) as f64);
    ASKED
        .graded(lacking, -512.0, -128.0, seen, "end what holds it: ps -e --sort=-rss -o rss,pid,comm | head")
        .with("available_bytes", available as f64)
        .with("total_bytes", total as f64)
}

fn swap(files: &Files, before: &Moment, after: &Moment) -> Check {
    const ASKED: Question = question("swap", "tails: a page that comes back from the disk costs milliseconds");
    let pages = |moment: &Moment| {
        let text = moment.vmstat.as_deref()?;
        Some(counter(text, "pswpin")? + counter(text, "pswpout")?)
    };
    let Some((before, after)) = pages(before).zip(pages(after)) else { return ASKED.unread(VMSTAT) };
    let bytes = |name| kilobytes(&files.field("/proc/meminfo", name)?);
    let (Some(total), Some(free)) = (bytes("SwapTotal"), bytes("SwapFree")) else {
        return ASKED.unread("/proc/meminfo");
    };
    let (used, moved) = (total.saturating_sub(free), after.saturating_sub(before));
    let seen = match (total, used) {
        (0, _) => "none".to_owned(),
        (_, 0) => format!("{}, not in use", gib(total)),
        _ => format!("{} of {} in use, {moved} pages moved in 1 s", gib(used), gib(total)),
    };
    ASKED
        .graded(moved as f64, 0.0, 1000.0, seen, "end what holds the memory, then sudo swapoff -a")
        .with("used_bytes", used as f64)
        .with("moved_pages_per_s", moved as f64)
}

/// `24684096 kB` in bytes.
fn kilobytes(text: &str) -> Option<u64> {
    Some(text.strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// A line `name value`.
fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// A process's name and its ticks on a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    name: String,
    ticks: u64,
}

/// All that can be seen, ours among them.
fn processes(files: &Files) -> BTreeMap<u32, Process> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, process(&files.text(&format!("/proc/{pid}/stat"))?)?))).collect()
}

/// `pid (name) state …`, user and system ticks in the fields 14 and 15 (proc(5)); the name may hold anything.
fn process(stat: &str) -> Option<Process> {
    let (start, rest) = stat.rsplit_once(')')?;
    let name = start.split_once('(')?.1.to_owned();
    let mut fields = rest.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Process { name, ticks: user + system })
}

/// The names of the three programs that ran the most, those that ran a twentieth of the sample at least.
fn busiest(before: &BTreeMap<u32, Process>, after: &BTreeMap<u32, Process>) -> Vec<String> {
    let least = rustix::param::clock_ticks_per_second() / 20;
    let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
    for (pid, process) in after {
        // One that was not there before has made all its ticks since.
        let ticks = process.ticks.saturating_sub(before.get(pid).map_or(0, |before| before.ticks));
        *ran.entry(&process.name).or_default() += ticks;
    }
    let mut ran: Vec<_> = ran.into_iter().filter(|(_, ticks)| *ticks >= least.max(1)).collect();
    ran.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
    ran.into_iter().take(3).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check::Grade;
    use super::super::files::given;
    use super::*;

    fn moment(stat: &str) -> Moment {
        Moment { stat: Some(stat.to_owned()), ..Moment::default() }
    }

    #[test]
    fn busy_is_neither_idle_nor_stolen() {
        let before = moment("cpu  100 0 100 800 0 0 0 0 0 0\n");
        let after = moment("cpu  140 0 120 920 10 0 0 10 0 0\n");
        let check = busy(&before, &after);
        assert_eq!((check.grade, check.figures["busy_share"]), (Grade::Bad, 1.0 - 140.0 / 200.0));
        assert_eq!(check.seen, "30 % of all processors in 1 s");
        let check = steal(&before, &after);
        assert_eq!((check.grade, check.figures["steal_share"]), (Grade::Warn, 0.05));
    }

    #[test]
    fn a_second_in_which_nothing_was_counted_says_nothing() {
        let still = moment("cpu  100 0 100 800 0 0 0 0 0 0\n");
        assert_eq!(busy(&still, &still).grade, Grade::Unknown);
        assert_eq!(steal(&still, &Moment::default()).grade, Grade::Unknown);
        assert_eq!(swap(&given(&[]), &still, &still).grade, Grade::Unknown);
    }

    #[test]
    fn the_load_is_of_the_processors_that_we_may_use() {
        let of = |loadavg, allowed: &str| {
            let status = format!("Cpus_allowed_list: {allowed}\n");
            load(&given(&[("/proc/loadavg", loadavg), ("/proc/self/status", &status)]))
        };
        let check = of("3.52 1.83 1.99 10/217 12024\n", "0-1");
        assert_eq!(check.grade, Grade::Warn);
        assert_eq!(check.seen, "3.52 1.83 1.99 over 1, 5, 15 min; 9 others want a processor now");
        assert_eq!(of("3.52 1.83 1.99 1/217 12024\n", "0-7").grade, Grade::Fine);
    }

    #[test]
    fn little_memory_is_a_doubt_and_hardly_any_is_bad() {
        let of = |available: u64| {
            memory(&given(&[("/proc/meminfo", &format!("MemTotal: 8388608 kB\nMemAvailable: {available} kB\n"))]))
        };
        assert_eq!([4 << 20, 400 << 10, 100 << 10].map(|kb| of(kb).grade), [Grade::Fine, Grade::Warn, Grade::Bad]);
        assert_eq!(of(4 << 20).seen, "4.0 GiB of 8.0 GiB available");
    }

    #[test]
    fn swap_matters_where_pages_move() {
        let files = given(&[("/proc/meminfo", "SwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n")]);
        let at = |pages: u64| Moment { vmstat: Some(format!("pswpin {pages}\npswpout 5\n")), ..Moment::default() };
        assert_eq!(swap(&files, &at(7), &at(7)).grade, Grade::Fine);
        let check = swap(&files, &at(7), &at(19));
        assert_eq!(
            (check.grade, check.seen.as_str()),
            (Grade::Warn, "1.0 GiB of 2.0 GiB in use, 12 pages moved in 1 s")
        );
    }

    #[test]
    fn a_name_with_blanks_and_brackets_is_a_name() {
        let line = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 60 40 0 0 20 0 1 0 99\n";
        assert_eq!(process(line), Some(Process { name: "a) b (c)".to_owned(), ticks: 100 }));
        assert_eq!(process("7 (a) S 1"), None);
    }

    #[test]
    fn the_busiest_are_named_with_all_their_processes() {
        let of = |all: &[(u32, &str, u64)]| -> BTreeMap<u32, Process> {
            all.iter().map(|(pid, name, ticks)| (*pid, Process { name: (*name).to_owned(), ticks: *ticks })).collect()
        };
        let before = of(&[(1, "ruby", 1000), (2, "rustc", 10), (3, "idle", 5)]);
        let after = of(&[(1, "ruby", 1040), (2, "rustc", 50), (4, "rustc", 30), (3, "idle", 6)]);
        assert_eq!(busiest(&before, &after), ["rustc", "ruby"]);
    }
}
