//! Tokens and the tilde in values.
//!
//! Invariant: a value with anything that is not expanded here is a fault, never taken as it stands.

use std::path::PathBuf;

use super::{ConfigFault, Owner, Place};

/// What tokens stand for.
pub(super) struct Tokens<'a> {
    pub(super) alias: &'a str,
    pub(super) address: &'a str,
    pub(super) port: u16,
    /// The remote user.
    pub(super) user: Option<&'a str>,
    pub(super) owner: Owner<'a>,
}

impl Tokens<'_> {
    /// An absolute path.
    pub(super) fn path(&self, text: &str, place: &Place) -> Result<PathBuf, ConfigFault> {
        if text.contains("${") {
            let what = format!("{text:?} names a variable of the environment, which is not read");
            return Err(place.fault(what, "write what it stands for"));
        }
        let text = expand(text, place, |token| match token {
            'h' => Some(self.address.to_owned()),
            'n' => Some(self.alias.to_owned()),
            'p' => Some(self.port.to_string()),
            'r' => self.user.map(str::to_owned),
            'u' => self.owner.user.map(str::to_owned),
            'd' => self.owner.home.to_str().map(str::to_owned),
            _ => None,
        })?;
        tilde(&text, self.owner, place)
    }
}

/// A `HostName`, in which `%h` is the alias.
pub(super) fn host_name(text: &str, alias: &str, place: &Place) -> Result<String, ConfigFault> {
    expand(text, place, |token| (token == 'h').then(|| alias.to_owned()))
}

/// A path as it is written: `~` is the owner's home.
pub(super) fn tilde(text: &str, owner: Owner<'_>, place: &Place) -> Result<PathBuf, ConfigFault> {
    let path = match text.strip_prefix('~') {
        Some("") => owner.home.to_owned(),
        Some(rest) if rest.starts_with('/') => owner.home.join(rest.trim_start_matches('/')),
        Some(_) => {
            let what = format!("{text:?} is in the home of another user");
            return Err(place.fault(what, "name an absolute path"));
        }
        None => PathBuf::from(text),
    };
    if path.is_absolute() {
        Ok(path)
    } else {
        let what = format!("{text:?} is no absolute path, so it depends on where ssh is started");
        Err(place.fault(what, "begin it with / or ~/"))
    }
}

fn expand(
    text: &str,
    place: &Place,
    stands_for: impl Fn(char) -> Option<String>,
) -> Result<String, ConfigFault> {
    let mut expanded = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            expanded.push(character);
            continue;
        }
        let token = characters.next();
        let value = match token {
            Some('%') => Some("%".to_owned()),
            Some(token) => stands_for(token),
            None => None,
        };
        let Some(value) = value else {
            let token = token.map(String::from).unwrap_or_default();
            let what = format!("{text:?} has the token %{token}, which is not expanded here");
            return Err(place.fault(what, "write what it stands for"));
        };
        expanded.push_str(&value);
    }
    Ok(expanded)
}
