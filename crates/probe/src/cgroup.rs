//! How much CPU a control group leaves to a process (`Documentation/admin-guide/cgroup-v2.rst`, and v1's `cpu` controller).

use std::path::Path;

/// The folders of the control groups that may give a process a quota, by its `/proc/PID/cgroup`.
pub(crate) fn cpu_groups(list: &str) -> Vec<String> {
    let folder = |line: &str| {
        // hierarchy:controllers:path (cgroups(7)); the one of v2 names no controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_end_matches('/'));
        let is_v2 = controllers.is_empty();
        let root = if is_v2 { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" };
        (is_v2 || controllers.split(',').any(|one| one == "cpu")).then(|| format!("{root}{path}"))
    };
    list.lines().filter_map(folder).collect()
}

/// The tightest quota of these groups and of those above them, in CPUs, with the folder that has it; `None` where there is none.
pub(crate) fn tightest_quota(groups: &[String], read: &dyn Fn(&str) -> Option<String>) -> Option<(f64, String)> {
    let of = |folder: &Path| {
        let text = |file: &str| read(folder.join(file).to_str()?);
        let v1 = || Some(format!("{} {}", text("cpu.cfs_quota_us")?.trim(), text("cpu.cfs_period_us")?.trim()));
        let quota = quota(&text("cpu.max").or_else(v1)?)?;
        Some((quota, folder.to_string_lossy().into_owned()))
    };
    let folders = groups.iter().flat_map(|folder| Path::new(folder).ancestors());
    folders.filter_map(of).min_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// `50000 100000` is half a CPU; `max` and `-1` are no quota.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_read_as_the_kernel_writes_it() {
        let read = ["50000 100000\n", "max 100000", "-1 100000", "", "150000 100000"].map(quota);
        assert_eq!(read, [Some(0.5), None, None, None, Some(1.5)]);
    }
}
