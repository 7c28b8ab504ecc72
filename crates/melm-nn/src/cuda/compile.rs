//! Compiles kernels with NVRTC and caches the machine code in a folder.
#![expect(unsafe_code, reason = "the compiler is a C library")]

use super::program::{KernelConfig, Program};
use crate::error::Error;
use crate::files::UnfinishedFile;
use cudarc::nvrtc::{result, sys};
use std::ffi::CString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Returns the machine code of a program. Reads the code from the folder `cache`, or compiles the program and writes
/// the code there.
pub(super) fn load_or_compile(
    program: &Program,
    config: KernelConfig,
    architecture: &str,
    cache: Option<&Path>,
) -> Result<Vec<u8>, Error> {
    let text = program.text();
    let mut options = vec![format!("--gpu-architecture={architecture}"), "--std=c++17".to_owned()];
    options.extend(config.definitions());
    let path = cache.map(|cache| cache.join(file_name(&text, &options)));
    if let Some(image) = path.as_ref().and_then(|path| read_cached(path)) {
        return Ok(image);
    }
    let image = compile(program.name, &text, &options)?;
    if let Some(path) = path {
        write_cached(&path, &image);
    }
    Ok(image)
}

/// Returns the cache file name, a hash of the source, the options and the compiler version.
fn file_name(text: &str, options: &[String]) -> String {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers point to variables of the right type.
    unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    let all = format!("{major}.{minor} {options:?} {text}");
    let mut name = String::new();
    for seed in 0..2 {
        let _ = write!(name, "{:016x}", hash(seed, all.as_bytes()));
    }
    name + ".cubin"
}

/// Reads a file written by [`write_cached`]. Returns `None` if the file is missing or damaged. This check is needed
/// because the driver does not validate the code that it loads.
fn read_cached(path: &Path) -> Option<Vec<u8>> {
    let mut image = std::fs::read(path).ok()?;
    let end = image.len().checked_sub(size_of::<u64>())?;
    let sum = image.split_off(end);
    (!image.is_empty() && sum == hash(0, &image).to_le_bytes()).then_some(image)
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let start = crate::dropout::mix(seed);
    bytes.iter().fold(start, |key, byte| crate::dropout::mix(key ^ u64::from(*byte)))
}

/// Writes machine code to the cache. Errors are ignored, because without the file the next run compiles again.
fn write_cached(path: &Path, image: &[u8]) {
    let write = || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let mut file = UnfinishedFile::create_shared(path)?;
        file.write_all(&[image, &hash(0, image).to_le_bytes()].concat())?;
        file.finish()
    };
    let _: std::io::Result<()> = write();
}

fn compile(name: &str, text: &str, options: &[String]) -> Result<Vec<u8>, Error> {
    let c_string = |text: &str| CString::new(text).expect("sources have no zeros");
    let failed = |reason: String| Error::Cuda { what: "a kernel's compilation", reason };
    let program = result::create_program(&c_string(text), Some(&c_string(name)))
        .map_err(|error| failed(format!("{error:?}")))?;
    // SAFETY: the program was created here, and is destroyed once below.
    unsafe {
        let compiled = result::compile_program(program, options);
        let image = match compiled {
            Ok(()) => image_of(program).map_err(|error| failed(format!("{error:?}"))),
            Err(error) => {
                let log = result::get_program_log(program).unwrap_or_default();
                // A C character is signed on some platforms and unsigned on others.
                let log: Vec<u8> = log.iter().map(|c| c.to_ne_bytes()[0]).collect();
                let log = String::from_utf8_lossy(&log);
                Err(failed(format!("{error:?}\n{}", log.trim_end_matches('\0'))))
            }
        };
        let _ = result::destroy_program(program);
        image
    }
}

/// Returns the machine code of a compiled program.
///
/// # Safety
/// The program is compiled.
unsafe fn image_of(program: sys::nvrtcProgram) -> Result<Vec<u8>, result::NvrtcError> {
    let mut len = 0;
    // SAFETY: the first call writes the size of the code. The second call writes that many bytes.
    unsafe {
        sys::nvrtcGetCUBINSize(program, &raw mut len).result()?;
        let mut image = vec![0_u8; len];
        sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()).result()?;
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use super::{read_cached, write_cached};

    #[test]
    fn a_cached_image_is_read_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kernels/one.cubin");
        write_cached(&path, b"machine code");
        assert_eq!(read_cached(&path).unwrap(), b"machine code");
        let whole = std::fs::read(&path).unwrap();
        let mut changed = whole.clone();
        changed[3] ^= 1;
        for damaged in [&whole[..whole.len() - 1], &whole[..4], b"", &changed] {
            std::fs::write(&path, damaged).unwrap();
            assert!(read_cached(&path).is_none());
        }
    }
}
