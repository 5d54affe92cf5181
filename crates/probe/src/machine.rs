//! The machine that a study is made on.

use std::fs;

use model::Environment;

/// What is known of this machine; what is not stays empty or 0.
pub fn environment(longtail_version: &str) -> Environment {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Environment {
        longtail_version: longtail_version.to_owned(),
        os: field(&os_release, "PRETTY_NAME", '=').trim_matches('"').to_owned(),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        cpu: field(&cpu_info, "model name", ':').to_owned(),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: field(&memory, "MemTotal", ':').trim_end_matches(" kB").parse::<u64>().map_or(0, |kb| kb * 1024),
    }
}

/// The value of the first line `name<separator>value`, trimmed; empty where there is none.
fn field<'a>(text: &'a str, name: &str, separator: char) -> &'a str {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_surrounds_them() {
        assert_eq!(field("a: 1\nmodel name\t: AMD EPYC\n", "model name", ':'), "AMD EPYC");
        assert_eq!(field("", "model name", ':'), "");
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let here = environment("1.2.3");
        assert!(!here.kernel.is_empty() && here.cores > 0);
    }
}
