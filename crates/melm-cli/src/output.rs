//! Writes files whole or not at all, and never over another without being told to.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::interrupt;

/// An output under way: a file beside the one asked for, or a stream.
pub(crate) struct Output {
    to: Target,
    name: String,
}

enum Target {
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A device or a pipe: there is nothing to put in its place.
    Stream(BufWriter<File>),
    File {
        out: BufWriter<File>,
        unfinished: PathBuf,
        path: PathBuf,
    },
}

/// Large enough that a write costs nothing beside what is written.
const BUFFER: usize = 1 << 18;

/// `path` with `suffix` behind its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes a record to standard output, if that was asked for.
pub(crate) fn print_if(is_asked: bool, record: Option<&serde_json::Value>) -> Result<(), Failure> {
    let Some(record) = record.filter(|_| is_asked) else { return Ok(()) };
    print(&format!("{record:#}\n"))
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = Output::create("-".as_ref(), false)?;
    out.write_all(text.as_bytes()).map_err(|error| Output::failed("standard output", error))?;
    out.finish()
}

/// Whether `path` is standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether what is written there is gone at once: standard output, a pipe, a device.
pub(crate) fn is_final(path: &Path) -> bool {
    is_stdout(path) || is_stream(path)
}

/// Refuses a file that exists, unless `force`. Called before any work is done.
pub(crate) fn require_free(path: &Path, force: bool) -> Result<(), Failure> {
    let exists = fs::symlink_metadata(path).is_ok();
    if !is_stdout(path) && !force && exists && !is_stream(path) {
        return Err(Failure::Exists(path.display().to_string()));
    }
    Ok(())
}

impl Output {
    /// Starts writing to `path`, or to standard output for `-`.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        require_free(path, force)?;
        let name = path.display().to_string();
        if is_stdout(path) {
            let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
            return Ok(Self { to: Target::Stdout(out), name: "standard output".into() });
        }
        let to = Self::open(path).map_err(|source| Self::failed(&name, source))?;
        Ok(Self { to, name })
    }

    fn open(path: &Path) -> io::Result<Target> {
        if is_stream(path) {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(Target::Stream(BufWriter::with_capacity(BUFFER, file)));
        }
        // A link stays a link: what it points to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut hidden = OsString::from(".");
        hidden.push(path.file_name().unwrap_or_default());
        hidden.push(format!(".{}.unfinished", std::process::id()));
        let unfinished = path.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
        interrupt::begin(&unfinished);
        if let Ok(old) = fs::metadata(&path) {
            file.set_permissions(old.permissions())?;
        }
        let out = BufWriter::with_capacity(BUFFER, file);
        Ok(Target::File { out, unfinished, path })
    }

    /// The failure for an error that came up while writing here.
    pub(crate) fn failed(name: &str, source: io::Error) -> Failure {
        Failure::Write { name: name.to_owned(), source }
    }

    /// Its name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Everything is written: the file takes its place.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.flush();
        let done = match &self.to {
            Target::File { unfinished, path, .. } => {
                flushed.and_then(|()| fs::rename(unfinished, path))
            }
            _ => flushed,
        };
        done.map_err(|source| Self::failed(&self.name, source))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Target::File { unfinished, .. } = &self.to {
            // After `finish` it is gone already.
            let _ = fs::remove_file(unfinished);
            interrupt::end(unfinished);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::Stdout(out) => out.write(bytes),
            Target::Stream(out) | Target::File { out, .. } => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Stdout(out) => out.flush(),
            Target::Stream(out) | Target::File { out, .. } => out.flush(),
        }
    }
}
