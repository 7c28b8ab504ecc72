//! The number of cores of this machine.

use std::collections::BTreeSet;
use std::path::Path;

/// Returns the number of physical cores that this process may use. Two threads on one core would share its vector units,
/// which one thread already keeps busy.
///
/// Where physical cores are not known, it is the number of threads that the machine runs at a time.
pub fn n_cores() -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let cores = physical_cores(Path::new("/sys/devices/system/cpu"), &status);
    cores.map_or(available, |n| n.min(available))
}

/// Counts the cores of the logical CPUs that a process may use. `folder` is that of Linux with one folder for each logical
/// CPU, which names all logical CPUs of its core. `status` is the content of the process's `/proc/self/status`.
fn physical_cores(folder: &Path, status: &str) -> Option<usize> {
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let siblings = |cpu: usize| {
        let topology = folder.join(format!("cpu{cpu}/topology"));
        let names = ["core_cpus_list", "thread_siblings_list"];
        names.iter().find_map(|name| std::fs::read_to_string(topology.join(name)).ok())
    };
    let cores: BTreeSet<String> = parse_cpus(allowed)?.into_iter().filter_map(siblings).collect();
    (!cores.is_empty()).then_some(cores.len())
}

/// Parses a list of CPUs such as `0-3,8`.
fn parse_cpus(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (start, end) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(start.parse().ok()?..=end.parse::<usize>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::{n_cores, parse_cpus, physical_cores};

    #[test]
    fn threads_of_one_core_are_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let cores =
            |allowed| physical_cores(folder.path(), &format!("Name:\tmelm\n{allowed}\nMems:\t1"));
        assert_eq!(cores("Cpus_allowed_list:\t0-3"), None);
        for (cpu, siblings) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            let topology = folder.path().join(format!("cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            std::fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        assert_eq!(cores("Cpus_allowed_list:\t0-3"), Some(2));
        assert_eq!(cores("Cpus_allowed_list:\t0,2"), Some(1));
        assert_eq!(cores("Cpus_allowed_list:\t1"), Some(1));
        assert_eq!(cores("Cpus_allowed_list:\tx"), None);
        assert_eq!(cores("Cpus_allowed:\t3"), None);
        assert!(n_cores() <= std::thread::available_parallelism().unwrap().get());
    }

    #[test]
    fn lists_of_cpus_have_ranges() {
        assert_eq!(parse_cpus("\t0-2,7\n"), Some(vec![0, 1, 2, 7]));
        assert_eq!(parse_cpus("1-"), None);
    }
}
