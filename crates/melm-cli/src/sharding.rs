//! The outputs of commands with `--shard`.

use std::path::{Path, PathBuf};

use melm::shard::{Shard, ShardHeader};

use crate::output::{is_stream_output, with_suffix};
use crate::terminal::{Terminal, count};

/// Returns the file that the shard of an output is written to: `OUT.shard-3-of-8`. Without a shard, and for a stream, this
/// is the output itself.
pub(crate) fn shard_path(out: &Path, shard: Option<Shard>) -> PathBuf {
    match shard {
        Some(shard) if !is_stream_output(out) => {
            with_suffix(out, &format!(".shard-{}-of-{}", shard.number(), shard.count()))
        }
        _ => out.to_path_buf(),
    }
}

/// Says which part of the input a shard contains, and how shards are joined.
pub(crate) fn report_shard(header: &ShardHeader, out: &Path, terminal: &Terminal) {
    let Some(shard) = header.shard() else { return };
    let range = shard.range(header.input.n);
    let all = count(header.input.n, header.input.unit.name());
    let part = match range.len() {
        0 => format!("none of {all}"),
        1 => format!("{} of {all}", range.end),
        _ => format!("{} to {} of {all}", range.start + 1, range.end),
    };
    let join = if is_stream_output(out) {
        "`melm merge`".to_owned()
    } else {
        let (out, count) = (out.display(), shard.count());
        format!("`melm merge {out}.shard-*-of-{count} -o {out}`")
    };
    terminal.info(&format!("wrote shard {shard}: {part}; join all shards with {join}"));
}
