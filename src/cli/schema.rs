//! `schema`: the JSON Schema of `config.json`.

use super::{Exit, print};

/// Prints the schema.
pub(super) fn run() -> Exit {
    print::line(&format!("{:#}", crate::policy::schema::schema()))
}
