//! Writes files whole or not at all, and never over another without being told to.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::interrupt;

/// An output under way: a file beside the one asked for, or standard output.
pub(crate) struct Output {
    to: Target,
    name: String,
}

enum Target {
    /// Kept until it is known to be whole: what is piped on cannot be taken back.
    Stdout(Vec<u8>),
    File {
        out: BufWriter<File>,
        unfinished: PathBuf,
        path: PathBuf,
    },
}

/// Large enough that a write costs nothing beside what is written.
const BUFFER: usize = 1 << 18;

/// Refuses a file that exists, unless `force`. Called before any work is done.
pub(crate) fn require_free(path: &Path, force: bool) -> Result<(), Failure> {
    if path != Path::new("-") && !force && path.exists() {
        return Err(Failure::Exists(path.display().to_string()));
    }
    Ok(())
}

impl Output {
    /// Starts writing to `path`, or to standard output for `-`.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        require_free(path, force)?;
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Ok(Self { to: Target::Stdout(Vec::new()), name: "standard output".into() });
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let file = File::create(&unfinished)
            .map_err(|source| Failure::Write { name: name.clone(), source })?;
        interrupt::begin(&unfinished);
        let out = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { to: Target::File { out, unfinished, path: path.to_owned() }, name })
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
        let done = match &mut self.to {
            Target::Stdout(out) => print(out),
            Target::File { out, unfinished, path } => {
                out.flush().and_then(|()| fs::rename(&*unfinished, &*path))
            }
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
            Target::File { out, .. } => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Stdout(out) => print(out),
            Target::File { out, .. } => out.flush(),
        }
    }
}

fn print(out: &mut Vec<u8>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(out)?;
    out.clear();
    stdout.flush()
}
