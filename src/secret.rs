//! Secret bytes that cannot be shown by accident.

use zeroize::Zeroize;

/// A credential's value.
///
/// Invariant: it has no `Debug`, `Display`, `Clone` or `Serialize`, and it is wiped when dropped.
///
/// ```compile_fail
/// let secret = keyward::secret::Secret::new(b"value".to_vec());
/// format!("{secret:?}");
/// ```
///
/// ```compile_fail
/// let secret = keyward::secret::Secret::new(b"value".to_vec());
/// let copy = secret.clone();
/// ```
///
/// ```
/// let secret = keyward::secret::Secret::new(b"value".to_vec());
/// assert_eq!(secret.expose(), b"value");
/// ```
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The value itself, for the one place that sends it.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
