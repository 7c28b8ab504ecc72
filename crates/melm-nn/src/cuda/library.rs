//! Finds the CUDA libraries: by name, or in the folders where toolkits and Python packages install them.

use crate::error::Error;
use cudarc::{cublaslt, driver, nvrtc};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Loads the driver and the libraries on the first call. `roots` are additional folders to search.
pub(super) fn load(roots: &[PathBuf]) -> Result<(), Error> {
    static LOADED: OnceLock<()> = OnceLock::new();
    if LOADED.get().is_none() {
        find_all(roots).map_err(|reason| Error::NoCuda { reason })?;
        let _ = LOADED.set(());
    }
    Ok(())
}

#[expect(unsafe_code, reason = "loading a library runs its initialisation code")]
fn find_all(roots: &[PathBuf]) -> Result<(), String> {
    // SAFETY: the initialisation code of NVIDIA's libraries may run in any program.
    let has_driver = unsafe { driver::sys::is_culib_present() };
    if !has_driver {
        return Err("no NVIDIA driver is installed".into());
    }
    for (name, is_present) in [
        // SAFETY: the initialisation code of NVIDIA's libraries may run in any program.
        ("nvrtc", (|| unsafe { nvrtc::sys::is_culib_present() }) as fn() -> bool),
        // SAFETY: the initialisation code of NVIDIA's libraries may run in any program.
        ("cublasLt", || unsafe { cublaslt::sys::is_culib_present() }),
    ] {
        if !is_present() {
            for path in candidates(name, roots) {
                load_permanently(&path);
                if is_present() {
                    break;
                }
            }
        }
        if !is_present() {
            return Err(format!(
                "the driver is installed, but lib{name} was not found; install CUDA's runtime libraries \
                 (`pip install nvidia-cuda-nvrtc nvidia-cublas`) or add their folder to LD_LIBRARY_PATH"
            ));
        }
    }
    Ok(())
}

/// Loads a library and never unloads it, so that later calls find the library by name.
#[expect(unsafe_code, reason = "loading a library runs its initialisation code")]
fn load_permanently(path: &Path) {
    #[cfg(unix)]
    {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        // SAFETY: the initialisation code of NVIDIA's libraries may run in any program.
        if let Ok(library) = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) } {
            std::mem::forget(library);
        }
    }
    #[cfg(not(unix))]
    // SAFETY: the initialisation code of NVIDIA's libraries may run in any program.
    if let Ok(library) = unsafe { libloading::Library::new(path) } {
        std::mem::forget(library);
    }
}

/// Returns the files below each root whose name matches the library. A library's `-builtins` file comes before the
/// library, which needs it.
fn candidates(name: &str, roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in roots.iter().flat_map(|root| folders(root)) {
        let mut files: Vec<_> = entries(&folder)
            .into_iter()
            .filter(|path| {
                let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                file.strip_prefix("lib")
                    .and_then(|file| file.strip_prefix(name))
                    .is_some_and(|rest| rest.starts_with(".so") || rest.starts_with("-builtins"))
            })
            .collect();
        files.sort();
        found.append(&mut files);
    }
    found
}

/// Returns the folders below a root that may contain libraries: the root itself, folders of a toolkit, folders of
/// Python packages.
fn folders(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_path_buf(), root.join("lib64"), root.join("lib")];
    let pythons = entries(&root.join("lib")).into_iter().filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with("python3"))
    });
    for python in pythons {
        for packages in ["site-packages", "dist-packages"] {
            let packages = python.join(packages);
            folders.push(packages.join("torch/lib"));
            folders.extend(entries(&packages.join("nvidia")).into_iter().map(|p| p.join("lib")));
        }
    }
    folders
}

/// Returns the sorted paths in a folder; empty if the folder cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::candidates;
    use std::fs;

    #[test]
    fn libraries_are_found_in_python_packages_and_in_a_toolkit() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("venv/lib/python3.12/site-packages");
        for file in ["nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0"]
        {
            let path = packages.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let toolkit = dir.path().join("cuda/lib64");
        fs::create_dir_all(&toolkit).unwrap();
        fs::write(toolkit.join("libcublasLt.so.12"), "").unwrap();
        let roots = [dir.path().join("venv"), dir.path().join("cuda"), dir.path().join("none")];
        let names = |name| {
            let found = candidates(name, &roots);
            found
                .iter()
                .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("nvrtc"), ["libnvrtc-builtins.so.13.0", "libnvrtc.so.13"]);
        assert_eq!(names("cublasLt"), ["libcublasLt.so.12"]);
    }
}
