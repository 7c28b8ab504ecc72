//! The number of cores of this machine.

use std::collections::BTreeSet;
use std::path::Path;

/// Returns the number of physical cores that this process may use. Two threads on one core would share its vector units,
/// which one thread already keeps busy.
///
/// Where physical cores are not known, it is the number of threads that the machine runs at a time.
pub fn n_cores() -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    physical_cores(Path::new("/sys/devices/system/cpu")).map_or(available, |n| n.min(available))
}

/// Counts the cores in a folder of Linux with one folder for each logical CPU. Each names all logical CPUs of its core.
fn physical_cores(folder: &Path) -> Option<usize> {
    let entries = std::fs::read_dir(folder).ok()?;
    let siblings = |entry: std::fs::DirEntry| {
        let topology = entry.path().join("topology");
        let names = ["core_cpus_list", "thread_siblings_list"];
        names.iter().find_map(|name| std::fs::read_to_string(topology.join(name)).ok())
    };
    let cores: BTreeSet<String> = entries.flatten().filter_map(siblings).collect();
    (!cores.is_empty()).then_some(cores.len())
}

#[cfg(test)]
mod tests {
    use super::{n_cores, physical_cores};

    #[test]
    fn threads_of_one_core_are_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(physical_cores(folder.path()), None);
        for (cpu, siblings) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            let topology = folder.path().join(format!("cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            std::fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        std::fs::create_dir(folder.path().join("cpufreq")).unwrap();
        assert_eq!(physical_cores(folder.path()), Some(2));
        assert!(n_cores() >= 1);
    }
}
