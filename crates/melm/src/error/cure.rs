//! What a user can do about an error.

use std::io::ErrorKind;

use super::Error;

impl Error {
    /// Returns what the user can do about an error whose message does not contain this advice.
    pub fn cure(&self) -> Option<String> {
        match self {
            Error::Read { source, .. } => match source.kind() {
                ErrorKind::NotFound => Some("check the path".into()),
                ErrorKind::IsADirectory => Some("pass a file in the folder".into()),
                ErrorKind::PermissionDenied => Some("check the permissions of the file".into()),
                ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                    Some("the file is truncated or damaged: download it again".into())
                }
                ErrorKind::OutOfMemory => {
                    Some("use a smaller file, or a machine with more memory".into())
                }
                ErrorKind::FileTooLarge => Some("use a smaller file".into()),
                ErrorKind::Unsupported => Some("use a plain file".into()),
                _ => None,
            },
            Error::Write { source, .. } if source.kind() == ErrorKind::NotFound => {
                Some("create the folder first".into())
            }
            Error::Write { source, .. } if source.kind() == ErrorKind::NotADirectory => {
                Some("choose another folder: this name, or a part of it, is that of a file".into())
            }
            Error::Write { .. } => {
                Some("check that the folder can be written to and the disk has room".into())
            }
            Error::Text(error) => error.cure(),
            Error::Shard(error) => Some(error.cure()),
            _ => None,
        }
    }
}
