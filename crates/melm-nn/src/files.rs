//! Files that are written completely or not at all, and files that are read with a bound.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The maximum size of a model's `config.json` or of the index of its shards. Published ones have less than 1 MB.
pub const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// Opens a regular file for reading. Refuses anything else, because a named pipe or a device may never end.
///
/// # Errors
/// If the path is not a regular file, or cannot be opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        let message = "it is a pipe or a device, not a regular file";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    File::open(path)
}

/// Reads a regular file of UTF-8 text that has at most `max_bytes`.
///
/// # Errors
/// If the path is not a regular file, the file is larger, cannot be read, does not fit into memory, or is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    to_text(read_bytes(path, max_bytes)?)
}

/// Reads a file of UTF-8 text as [`read_text`] does. The file may also be a pipe, because the user has named it.
///
/// # Errors
/// If the file is larger, cannot be read, does not fit into memory, or is not UTF-8.
pub fn read_text_or_pipe(path: &Path, max_bytes: u64) -> io::Result<String> {
    to_text(read_stream(File::open(path)?, max_bytes)?)
}

/// Reads a regular file that has at most `max_bytes`.
///
/// # Errors
/// If the path is not a regular file, the file is larger, cannot be read, or does not fit into memory.
pub fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_bytes_from(path, 0, max_bytes)
}

/// Reads a regular file from the byte `start` to its end, at most `max_bytes`.
///
/// # Errors
/// If the path is not a regular file, the rest of the file is larger, cannot be read, or does not fit into memory.
pub fn read_bytes_from(path: &Path, start: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    // A file that is too large is refused before it is read.
    if file.metadata()?.len().saturating_sub(start) > max_bytes {
        return Err(too_large(max_bytes));
    }
    file.seek(SeekFrom::Start(start))?;
    read_stream(file, max_bytes)
}

/// The number of bytes of a stream that are read at a time.
const CHUNK: usize = 1 << 20;

/// Reads a stream to its end. If memory runs out, this is an error, and the process is not aborted.
///
/// # Errors
/// If the stream has more than `max_bytes`, cannot be read, or does not fit into memory.
pub fn read_stream(from: impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut from = from.take(max_bytes.saturating_add(1));
    let mut bytes = Vec::new();
    loop {
        // `read_to_end` aborts if the buffer is full and cannot grow. This buffer is never full.
        let n_wanted = bytes.len().clamp(CHUNK >> 6, CHUNK);
        bytes.try_reserve(2 * n_wanted).or_else(|_| bytes.try_reserve_exact(2 * n_wanted))?;
        if from.by_ref().take(n_wanted as u64).read_to_end(&mut bytes)? == 0 {
            break;
        }
    }
    if bytes.len() as u64 > max_bytes { Err(too_large(max_bytes)) } else { Ok(bytes) }
}

fn to_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("it is not UTF-8: the byte at index {at} is invalid");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn too_large(max_bytes: u64) -> io::Error {
    let size = match max_bytes {
        n if n >= 1 << 20 => format!("{} MiB", n >> 20),
        n => format!("{n} bytes"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {size}"))
}

/// A file that is written under a temporary name in its final folder. [`Self::finish`] renames it, so that a reader
/// never sees an incomplete file. If the value is dropped without `finish`, the temporary file is removed.
///
/// Writes are not buffered. Wrap the file in a [`BufWriter`](io::BufWriter) for small writes.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    is_finished: bool,
}

impl UnfinishedFile {
    /// Creates a file that no other process writes at the same time. The temporary name is always the same, so that a
    /// new run replaces the temporary file of a killed run. A link with this name is removed, and its target is not
    /// changed.
    ///
    /// # Errors
    /// If the temporary file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let temporary = with_suffix(path, ".part");
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Self::create_at(path, temporary),
        }
    }

    /// Creates a file that several processes may write at the same time, also from several machines. The process that
    /// finishes last determines the content, and none of them fails. If a run is killed, its temporary file stays on
    /// the disk.
    ///
    /// # Errors
    /// If the temporary file cannot be created.
    pub fn create_shared(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        loop {
            let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            match Self::create_at(path, with_suffix(path, &format!(".{process}-{count}.part"))) {
                // A process on another machine can have the same process id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created,
            }
        }
    }

    /// Creates a file that is written under the path `temporary`, which must be in the folder of `path`.
    ///
    /// # Errors
    /// If the temporary file exists or cannot be created.
    pub fn create_at(path: &Path, temporary: PathBuf) -> io::Result<Self> {
        let file = File::create_new(&temporary)?;
        Ok(Self { file, temporary, path: path.to_path_buf(), is_finished: false })
    }

    /// Sets the permissions that the finished file will have.
    ///
    /// # Errors
    /// If the permissions cannot be set.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    /// Waits until the content is on the disk. [`Self::finish`] does this too.
    ///
    /// # Errors
    /// If the content cannot be written.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Waits until the content is on the disk, renames the file to its final name, and waits until the new name is on
    /// the disk. After a power failure, either the old file or the complete new one exists. Replaces an existing file.
    ///
    /// # Errors
    /// If the content cannot be written, or the file cannot be renamed. The temporary file is then removed.
    pub fn finish(mut self) -> io::Result<()> {
        self.sync()?;
        replace(&self.temporary, &self.path)?;
        self.is_finished = true;
        sync_folder(self.path.parent())
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // Errors are ignored here, because they would hide the error that caused the drop.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Creates a folder and its missing parents, and waits until their names are on the disk.
///
/// # Errors
/// If a folder cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(path)?;
    missing.iter().rev().try_for_each(|folder| sync_folder(folder.parent()))
}

/// Waits until the names of new files in a folder are on the disk. Only Unix can and must do this. File systems that
/// cannot sync a folder are ignored.
fn sync_folder(folder: Option<&Path>) -> io::Result<()> {
    let Some(folder) = folder.filter(|_| cfg!(unix)) else { return Ok(()) };
    let here = Path::new(".");
    let folder = if folder.as_os_str().is_empty() { here } else { folder };
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// Renames a file, and replaces a file that has the new name.
///
/// Windows refuses this while another process has the old file open, such as a virus scanner or a reader. Such a process
/// is usually done soon, so the call is repeated.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    for pause_ms in [10, 50, 200, 500] {
        match fs::rename(from, to) {
            Err(error) if cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied => {
                std::thread::sleep(Duration::from_millis(pause_ms));
            }
            done => return done,
        }
    }
    fs::rename(from, to)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_the_bound_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "äbc").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "äbc");
        assert_eq!(read_text(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_text(&path, 1).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let folder = read_text(dir.path(), 9).unwrap_err();
        assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_stream_is_read_to_its_end_or_its_bound() {
        for n in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 7] {
            let whole: Vec<u8> = (0..=250).cycle().take(n).collect();
            assert_eq!(read_stream(&whole[..], n as u64).unwrap(), whole);
            assert_eq!(read_stream(&whole[..], u64::MAX).unwrap(), whole);
        }
        let error = read_stream(io::repeat(0), 2 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it has more than 2 MiB");
    }

    #[test]
    fn a_dropped_file_leaves_the_old_one_and_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut first = UnfinishedFile::create(&path).unwrap();
        first.write_all(b"first").unwrap();
        assert!(!path.exists());
        first.finish().unwrap();
        for create in [UnfinishedFile::create, UnfinishedFile::create_shared] {
            let mut second = create(&path).unwrap();
            second.write_all(b"second").unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
            drop(second);
            assert_eq!(fs::read(&path).unwrap(), b"first");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_with_the_temporary_name_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("other"));
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, dir.path().join("a.part")).unwrap();
        let mut file = UnfinishedFile::create(&path).unwrap();
        file.write_all(b"ours").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
        assert_eq!(fs::read(&path).unwrap(), b"ours");
    }

    #[test]
    fn a_temporary_file_of_another_process_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let (path, temporary) = (dir.path().join("a"), dir.path().join(".a.1.unfinished"));
        fs::write(&temporary, "theirs").unwrap();
        let error = UnfinishedFile::create_at(&path, temporary.clone()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&temporary).unwrap(), b"theirs");
    }
}
