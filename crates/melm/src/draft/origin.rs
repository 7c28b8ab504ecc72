//! The kind of a line of `drafts.jsonl`.

use serde::{Deserialize, Serialize};

/// The kind of a line: a draft of a gold sentence, a sentence of unlabelled text, or a sentence that a named source
/// labelled, written `silver:NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) enum Origin {
    /// Also the kind of a line that does not name its kind.
    #[default]
    Draft,
    Text,
    Silver(String),
}

impl TryFrom<String> for Origin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.strip_prefix("silver:")) {
            ("draft", _) => Ok(Self::Draft),
            ("text", _) => Ok(Self::Text),
            (_, Some(name)) => Ok(Self::Silver(name.to_owned())),
            _ => Err(format!("unknown origin `{text}`")),
        }
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Draft => "draft".to_owned(),
            Origin::Text => "text".to_owned(),
            Origin::Silver(name) => format!("silver:{name}"),
        }
    }
}
