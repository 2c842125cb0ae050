//! The client, as it describes itself.

use crate::limits;
use crate::wire::json::Json;

/// Who a client says it is: at most `limits::CLIENT_CHARACTERS` of each.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Client {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
}

impl Client {
    /// What it says in its `clientInfo`.
    pub(super) fn read(info: Json<'_>) -> Self {
        let text = |name| {
            let text = info.member(name).and_then(Json::as_str)?;
            Some(text.chars().take(limits::CLIENT_CHARACTERS).collect())
        };
        Self { name: text("name"), version: text("version") }
    }
}
