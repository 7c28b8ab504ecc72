//! What can be wrong with shards.

/// A set of shards that cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The file does not begin with the header of a shard.
    #[error("`{name}` is not a shard: {what}")]
    NotAShard {
        /// The file.
        name: String,
        /// What is wrong with its first line.
        what: String,
    },
    /// The content of a shard was changed or cut after it was written.
    #[error("`{name}` is damaged: its content does not fit its checksum")]
    Damaged {
        /// The file.
        name: String,
        /// The command that makes the shard.
        command: String,
    },
    /// The content of a shard has the right checksum but cannot be read.
    #[error("`{name}`, line {line} of the content: {what}")]
    Content {
        /// The file.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// No shards were given.
    #[error("there are no shards to merge")]
    Empty,
    /// Two files contain the same shard.
    #[error("`{first}` and `{second}` are both shard {number} of {count}")]
    Doubled {
        /// A file.
        first: String,
        /// Another file.
        second: String,
        /// The number of the shard.
        number: usize,
        /// The number of shards.
        count: usize,
    },
    /// Two shards are not of the same output.
    #[error("`{first}` and `{second}` do not belong together: they differ in the {what}")]
    Different {
        /// A file.
        first: String,
        /// Another file.
        second: String,
        /// What differs.
        what: String,
    },
    /// Shards are missing.
    #[error("{} of {count} {} missing", list(.numbers), if .numbers.len() == 1 { "is" } else { "are" })]
    Missing {
        /// The numbers of the missing shards.
        numbers: Vec<usize>,
        /// The number of shards.
        count: usize,
        /// The command that makes the first of them.
        command: String,
    },
}

/// The number of missing shards that a message names.
const MAX_NAMED: usize = 10;

fn list(numbers: &[usize]) -> String {
    let named: Vec<_> = numbers.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let noun = if numbers.len() == 1 { "shard" } else { "shards" };
    let rest = match numbers.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{noun} {}{rest}", named.join(", "))
}

impl ShardError {
    /// Returns what the user can do about the error.
    pub fn cure(&self) -> String {
        match self {
            Self::NotAShard { .. } => {
                "pass the files that `melm tag --shard` or `melm generate --shard` wrote".into()
            }
            Self::Damaged { command, .. } if command.contains(" --force") => {
                format!("make it again: `{command}`")
            }
            Self::Damaged { command, .. } => format!("make it again: `{command} --force`"),
            Self::Content { .. } => "make the shard again with this version of melm".into(),
            Self::Empty => "pass the files of all shards".into(),
            Self::Doubled { .. } => "pass each shard once".into(),
            Self::Different { .. } => {
                "pass the shards of one input, made with one model and the same options".into()
            }
            Self::Missing { numbers, command, .. } if numbers.len() == 1 => {
                format!("make it: `{command}`")
            }
            Self::Missing { command, .. } => format!("make the first of them: `{command}`"),
        }
    }
}
