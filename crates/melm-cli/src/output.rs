//! Writes output files completely or not at all. An existing file is replaced only with `--force`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use melm::card::CardState;
use melm_nn::files::UnfinishedFile;
use melm_text::{Format, Loss, WrittenFile, describe_losses, escaped};

use crate::failure::Failure;
use crate::interrupt;
use crate::terminal::Terminal;

/// An output that is being written: a temporary file in the folder of the final file, or a stream.
pub(crate) struct Output {
    to: Target,
    name: String,
}

enum Target {
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A device or a pipe. It is written to directly, because it cannot be replaced by a file.
    Stream(BufWriter<File>),
    /// `out` is declared first, so that it is dropped first: the file is removed before the Ctrl-C handler stops
    /// tracking it.
    File {
        out: BufWriter<UnfinishedFile>,
        _removal: RemovalOnInterrupt,
    },
}

/// True if standard output was closed when the program was started.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Notes whether standard output is closed: `/dev/fd` lists the open files of this process, and has no `1`.
#[cfg(unix)]
pub(crate) fn find_closed() {
    let is_listed = |path: &str| fs::symlink_metadata(path).is_ok();
    // The folder itself is missing on some systems.
    let has_list = fs::metadata("/dev/fd").is_ok_and(|found| found.is_dir());
    let is_closed = has_list && !is_listed("/dev/fd/1");
    IS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Fails with this reason if standard output is closed.
fn refuse_closed(reason: &str) -> Result<(), Failure> {
    if IS_CLOSED.load(Ordering::Relaxed) {
        return Err(Output::failed(STDOUT, io::Error::other(reason)));
    }
    Ok(())
}

/// Fails if standard output is closed. Call this before long work whose result is printed.
pub(crate) fn require_stdout() -> Result<(), Failure> {
    refuse_closed("it is closed")
}

/// Fails if `input` is the folder `out` or one of the files in it that `is_result` accepts. A command that replaces the content
/// of `out` with `--force` would destroy its own input.
pub(crate) fn refuse_replaced_input(
    input: &Path,
    out: &Path,
    is_result: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    let (Ok(path), Ok(folder)) = (fs::canonicalize(input), fs::canonicalize(out)) else {
        return Ok(());
    };
    let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    if path != folder && (path.parent() != Some(&folder) || !is_result(&name)) {
        return Ok(());
    }
    Err(Failure::Usage {
        message: format!("`--force` would replace `{}`, which this command reads", input.display()),
        hint: "choose another folder with `-o`",
    })
}

/// Prints the help or the version to standard output.
pub(crate) fn print_help(help: &clap::Error) -> Result<(), Failure> {
    require_stdout()?;
    help.print().map_err(|source| Output::failed(STDOUT, source))
}

/// The name of standard output in messages.
const STDOUT: &str = "standard output";
/// Why nothing can be written to a closed standard output, and what to do.
const CLOSED: &str = "it is closed; pass `-o FILE`, or do not close it";

/// The size of the buffer in bytes. It is large, so that few system calls are needed.
const BUFFER: usize = 1 << 18;

/// Returns `path` with `suffix` appended to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes a record to standard output if `--json` is given.
pub(crate) fn print_json(
    is_wanted: bool,
    record: Option<&serde_json::Value>,
) -> Result<(), Failure> {
    let Some(record) = record.filter(|_| is_wanted) else { return Ok(()) };
    print(&format!("{record:#}\n"))
}

/// Writes lines that contain names of a file to standard output. Control characters and invisible characters are escaped.
pub(crate) fn print_escaped(text: &str) -> Result<(), Failure> {
    print(&text.lines().map(|line| escaped(line) + "\n").collect::<String>())
}

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    Output::create("-".as_ref(), false)?.write_and_finish(text)
}

/// Writes a file. Fails if it exists and `force` is false.
pub(crate) fn write(path: &Path, force: bool, text: &str) -> Result<(), Failure> {
    Output::create(path, force)?.write_and_finish(text)
}

/// Writes the files of a format. A single file is `path`. Several files have the same name with their own endings, which
/// are added if `path` does not have one of them. Fails if one of them exists and `force` is false, or if there are
/// several and `path` is a stream.
pub(crate) fn write_files(path: &Path, force: bool, files: &[WrittenFile]) -> Result<(), Failure> {
    let extensions: Vec<_> = files.iter().map(|file| file.extension).collect();
    let paths = file_paths(path, &extensions)?;
    paths.iter().try_for_each(|path| refuse_existing(path, force))?;
    for (path, file) in paths.iter().zip(files) {
        Output::create(path, force)?.write_and_finish(&file.bytes)?;
    }
    Ok(())
}

/// Returns the paths of the files of a format that [`write_files`] writes. Fails if there are several and `path` is a stream.
fn file_paths(path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    if extensions.len() > 1 && is_stream_output(path) {
        return Err(Failure::Usage {
            message: "the format has several files, which cannot be written to a stream".into(),
            hint: "pass the output file with `-o FILE`",
        });
    }
    let has_ending =
        extensions.iter().any(|&extension| path.extension() == Some(extension.as_ref()));
    let path_of = |extension: &&str| match extensions.len() {
        1 => path.to_path_buf(),
        _ if has_ending => path.with_extension(extension),
        _ => path.with_added_extension(extension),
    };
    Ok(extensions.iter().map(path_of).collect())
}

/// Fails if the files of a format could not be written to `path`: see [`check_output`] and [`write_files`]. Commands call
/// this before they start their work.
pub(crate) fn check_files(path: &Path, force: bool, format: Format) -> Result<(), Failure> {
    let paths = file_paths(path, format.written_extensions())?;
    paths.iter().try_for_each(|path| check_output(path, force))
}

/// Says what a format cannot store.
pub(crate) fn report_losses(losses: &[Loss], format: Format, terminal: &Terminal) {
    terminal.info_all(describe_losses(losses, format));
}

/// Returns the output format: `to` if it is given, or else the format with the ending of `path`, or that of the input if
/// `path` is a stream or has no ending. Fails if no format or several formats have this ending.
pub(crate) fn choose_format(
    to: Option<Format>,
    path: &Path,
    input: Format,
) -> Result<Format, Failure> {
    if let Some(to) = to {
        return Ok(to);
    }
    let Some(ending) = path.extension().filter(|_| !is_stream_output(path)) else {
        return Ok(input);
    };
    let (name, ending) = (path.to_string_lossy(), ending.to_string_lossy());
    let formats = Format::with_extension(&name);
    let usual = formats.iter().copied().find(|&format| format == Format::JSONL);
    match formats.as_slice() {
        _ if formats.contains(&input) => Ok(input),
        [only] => Ok(*only),
        [] => Err(Failure::Usage {
            message: format!("no format has the ending `.{ending}` of `{name}`"),
            hint: "set the output format with `--to`, for example `--to conll`",
        }),
        several => usual.ok_or_else(|| {
            let names: Vec<_> = several.iter().map(|format| format.name()).collect();
            Failure::Usage {
                message: format!(
                    "several formats have the ending `.{ending}`: {}",
                    names.join(", ")
                ),
                hint: "set the output format with `--to`",
            }
        }),
    }
}

/// Says that a card was not written, because the folder has one that somebody wrote or changed.
pub(crate) fn print_card(card: CardState, terminal: &Terminal) {
    if card == CardState::Kept {
        terminal.info("kept your `README.md`: it is not the card that melm wrote; delete it to get a new card");
    }
}

/// Returns true if `path` is `-`, which is standard input or output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Returns true for standard output, a pipe or a device, where written bytes cannot be removed again.
pub(crate) fn is_stream_output(path: &Path) -> bool {
    is_stdout(path) || is_stream(path)
}

/// Fails if an output could not be written: the file exists and `force` is false, it is a folder, its folder is missing, or
/// standard output is closed. Commands call this before they start their work.
pub(crate) fn check_output(path: &Path, force: bool) -> Result<(), Failure> {
    refuse_existing(path, force)?;
    if is_stdout(path) {
        return refuse_closed(CLOSED);
    }
    let failed = |source| Err(Output::failed(&path.display().to_string(), source));
    if path.is_dir() {
        return failed(io::ErrorKind::IsADirectory.into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.map(fs::metadata) {
        Some(Err(source)) => failed(source),
        Some(Ok(found)) if !found.is_dir() => failed(io::ErrorKind::NotADirectory.into()),
        _ => Ok(()),
    }
}

/// Fails if a second output of a command, which `option` sets, is the same file as the output, or if both are standard output.
pub(crate) fn refuse_same_output(out: &Path, option: &str, second: &Path) -> Result<(), Failure> {
    let is_device = is_stream(out) && !is_stdout(out);
    if is_device || resolved(out) != resolved(second) {
        return Ok(());
    }
    let name = if is_stdout(out) { STDOUT.to_owned() } else { format!("`{}`", out.display()) };
    Err(Failure::Usage {
        message: format!("`-o` and `{option}` both write to {name}"),
        hint: "choose another file for one of them",
    })
}

/// Returns the path without links, `.` and `..`, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = || fs::canonicalize(folder.unwrap_or(Path::new(".")));
    fs::canonicalize(path)
        .or_else(|_| folder().map(|folder| folder.join(name)))
        .unwrap_or_else(|_| path.to_path_buf())
}

/// Fails if the ending of an output name is that of other formats than `format`, in which the command writes. Other endings
/// are free.
pub(crate) fn refuse_other_ending(path: &Path, format: Format) -> Result<(), Failure> {
    let name = path.to_string_lossy();
    let formats = Format::with_extension(&name);
    if is_stream_output(path) || formats.is_empty() || formats.contains(&format) {
        return Ok(());
    }
    let own = format.name();
    Err(Failure::Usage {
        message: format!(
            "`{name}` would be written as {own}, but has the ending of another format"
        ),
        hint: "use an ending that fits, and convert the file afterwards: `melm convert FILE -o OUT`",
    })
}

/// Fails if the file exists and `force` is false. Commands call this before they start their work.
pub(crate) fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    let exists = fs::symlink_metadata(path).is_ok();
    if !is_stdout(path) && !force && exists && !is_stream(path) {
        return Err(Failure::Exists(path.display().to_string()));
    }
    Ok(())
}

impl Output {
    /// Starts writing to `path`, or to standard output for `-`. Fails if the file exists and `force` is false.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        refuse_existing(path, force)?;
        let name = path.display().to_string();
        if is_stdout(path) {
            refuse_closed(CLOSED)?;
            let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
            return Ok(Self { to: Target::Stdout(out), name: STDOUT.into() });
        }
        let to = Self::open(path).map_err(|source| Self::failed(&name, source))?;
        Ok(Self { to, name })
    }

    fn open(path: &Path) -> io::Result<Target> {
        if is_stream(path) {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(Target::Stream(BufWriter::with_capacity(BUFFER, file)));
        }
        // Replace the target of a symbolic link, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut hidden = OsString::from(".");
        hidden.push(path.file_name().unwrap_or_default());
        hidden.push(format!(".{}.unfinished", std::process::id()));
        let unfinished = path.with_file_name(hidden);
        let create = || UnfinishedFile::create_at(&path, unfinished.clone());
        let file = interrupt::create_tracked(&unfinished, create)?;
        let removal = RemovalOnInterrupt(unfinished);
        if let Ok(old) = fs::metadata(&path) {
            file.set_permissions(old.permissions())?;
        }
        let out = BufWriter::with_capacity(BUFFER, file);
        Ok(Target::File { out, _removal: removal })
    }

    /// Converts an I/O error of the output called `name`.
    pub(crate) fn failed(name: &str, source: io::Error) -> Failure {
        Failure::Write { name: name.to_owned(), source }
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes the whole text, and gives a file its final name.
    pub(crate) fn write_and_finish(mut self, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.write_all(text.as_ref()).map_err(|source| Self::failed(&self.name, source))?;
        self.finish()
    }

    /// Writes the buffered bytes, and gives a file its final name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let finished = match self.to {
            Target::Stdout(mut out) => out.flush(),
            Target::Stream(mut out) => out.flush(),
            Target::File { out, _removal } => out
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
                .and_then(UnfinishedFile::finish),
        };
        finished.map_err(|source| Self::failed(&self.name, source))
    }
}

/// While a value of this type exists, its file is removed if the command is interrupted.
struct RemovalOnInterrupt(PathBuf);

impl Drop for RemovalOnInterrupt {
    fn drop(&mut self) {
        interrupt::untrack(&self.0);
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::Stdout(out) => out.write(bytes),
            Target::Stream(out) => out.write(bytes),
            Target::File { out, .. } => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Stdout(out) => out.flush(),
            Target::Stream(out) => out.flush(),
            Target::File { out, .. } => out.flush(),
        }
    }
}
