//! What this thread has used of the CPU, by the kernel's account. Read before the first and after the last request.

use model::{LaneFacts, Nanos};

/// The account of the calling thread: `/proc/thread-self/schedstat` (Linux, Documentation/scheduler/sched-stats.rst):
/// ns on a CPU, ns waiting on a run queue, time slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadCpuTime(Option<(Nanos, Nanos)>);

impl ThreadCpuTime {
    /// Up to now; unknown where the kernel does not tell.
    pub(crate) fn now() -> ThreadCpuTime {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        ThreadCpuTime(parse(&text))
    }

    /// What was used since `before`, in `elapsed`, of which `spun` was without work.
    pub(crate) fn since(self, before: ThreadCpuTime, elapsed: Nanos, spun: Nanos) -> Option<LaneFacts> {
        let ((cpu, run_queue), (cpu_before, run_queue_before)) = (self.0?, before.0?);
        Some(LaneFacts {
            cpu: cpu.saturating_sub(cpu_before),
            run_queue: run_queue.saturating_sub(run_queue_before),
            elapsed,
            spun,
            ..LaneFacts::default()
        })
    }
}

fn parse(text: &str) -> Option<(Nanos, Nanos)> {
    let mut figures = text.split_ascii_whitespace().map(|word| word.parse().ok().map(Nanos));
    Some((figures.next()??, figures.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_understood() {
        assert_eq!(parse("3237661 28790 12\n"), Some((Nanos(3_237_661), Nanos(28_790))));
        assert_eq!(parse(""), None);
    }
}
