//! Finds the CUDA libraries: by name, or in the folders where toolkits and Python packages install them.

use crate::error::Error;
use cudarc::{cublaslt, driver, nvrtc};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The environment variable with the folders in which the system searches for libraries.
const SEARCH_PATH: &str = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };

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
                 (`pip install nvidia-cuda-nvrtc nvidia-cublas`) or add their folder to {SEARCH_PATH}"
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
                is_library(file, name)
            })
            .collect();
        files.sort();
        found.append(&mut files);
    }
    found
}

/// Returns true if a file has the name of the library `name` or of its `-builtins`: `libnvrtc.so.13` on Linux,
/// `nvrtc64_130_0.dll` on Windows. A machine has files of only one of the two kinds.
fn is_library(file: &str, name: &str) -> bool {
    let rest = |file: &str| file.strip_prefix(name).map(str::to_owned);
    let on_linux = file.strip_prefix("lib").and_then(rest);
    let on_windows = file.strip_suffix(".dll").and_then(rest);
    on_linux.is_some_and(|rest| rest.starts_with(".so") || rest.starts_with("-builtins"))
        || on_windows.is_some_and(|rest| rest.starts_with("64_") || rest.starts_with("-builtins"))
}

/// Returns the folders below a root that may contain libraries: the root itself, folders of a toolkit, folders of
/// Python packages.
fn folders(root: &Path) -> Vec<PathBuf> {
    // Toolkits have `lib64` on Linux, and `bin` or `bin/x64` on Windows.
    let mut folders = vec![root.to_path_buf()];
    folders.extend(["lib64", "lib", "bin", "bin/x64"].map(|folder| root.join(folder)));
    let mut pythons = entries(&root.join("lib"));
    pythons.retain(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with("python3"))
    });
    // On Windows, packages are directly in `Lib`.
    pythons.push(root.join("Lib"));
    for python in pythons {
        for packages in ["site-packages", "dist-packages"] {
            let packages = python.join(packages);
            folders.push(packages.join("torch/lib"));
            for package in entries(&packages.join("nvidia")) {
                folders.extend(["lib", "bin", "bin/x86_64"].map(|folder| package.join(folder)));
            }
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
    use super::{candidates, is_library};
    use std::fs;

    #[test]
    fn names_of_libraries_on_linux_and_windows_are_recognised() {
        for file in ["libnvrtc.so", "libnvrtc.so.13", "nvrtc64_130_0.dll"] {
            assert!(is_library(file, "nvrtc"), "{file}");
        }
        for file in ["libnvrtc-builtins.so.13.0", "nvrtc-builtins64_130.dll"] {
            assert!(is_library(file, "nvrtc"), "{file}");
        }
        assert!(is_library("cublasLt64_13.dll", "cublasLt"));
        for file in ["libnvrtc_static.a", "nvrtc.lib", "cublas64_13.dll", "libcublasLt.so", ""] {
            assert!(!is_library(file, "nvrtc"), "{file}");
        }
    }

    #[test]
    fn libraries_are_found_in_the_folders_of_windows() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "cuda/bin/x64/nvrtc64_130_0.dll",
            "venv/Lib/site-packages/nvidia/cu13/bin/x86_64/nvrtc64_130_0.dll",
        ];
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = candidates("nvrtc", &[dir.path().join("cuda"), dir.path().join("venv")]);
        assert_eq!(found, files.map(|file| dir.path().join(file)));
    }

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
