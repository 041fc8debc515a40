//! The two ways to prove a password without sending it.
//!
//! | plugin | the client sends | the server keeps |
//! |---|---|---|
//! | `caching_sha2_password` | `SHA256(pw) XOR SHA256(SHA256(SHA256(pw)) + nonce)` | `SHA256(SHA256(pw))` |
//! | `mysql_native_password` | `SHA1(pw) XOR SHA1(nonce + SHA1(SHA1(pw)))` | `SHA1(SHA1(pw))` |
//!
//! The answers are checked by [`tarn_coordinator::User`], which knows the hashes. The "full
//! authentication" of caching_sha2 (which needs TLS or RSA) exists for servers that keep a salted hash;
//! this one keeps the hash that the fast path needs, so it is never asked for.

use rand::Rng;

/// A nonce: new for each connection and each switch of plugins.
pub(crate) type Nonce = [u8; 20];

/// The plugins this server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthPlugin {
    CachingSha2,
    Native,
}

impl AuthPlugin {
    pub const fn name(self) -> &'static str {
        match self {
            Self::CachingSha2 => "caching_sha2_password",
            Self::Native => "mysql_native_password",
        }
    }

    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::CachingSha2, Self::Native]
            .into_iter()
            .find(|plugin| plugin.name().as_bytes() == name)
    }

    /// Whether `answer` is what a client without a password sends. caching_sha2 clients send the
    /// password's terminating zero byte, or nothing.
    pub fn is_empty_password(self, answer: &[u8]) -> bool {
        answer.is_empty() || (self == Self::CachingSha2 && answer == [0])
    }
}

/// A random nonce without zero bytes (it travels as a C string) and without `$` (a separator to some
/// clients).
pub(crate) fn random_nonce() -> Nonce {
    let mut rng = rand::rng();
    std::array::from_fn(|_| {
        loop {
            let byte = rng.random_range(1..=127u8);
            if byte != b'$' {
                return byte;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_differ_and_hold_no_forbidden_byte() {
        let nonces: Vec<Nonce> = (0..200).map(|_| random_nonce()).collect();
        assert_ne!(nonces[0], nonces[1]);
        assert!(
            nonces
                .iter()
                .flatten()
                .all(|byte| (1..=127).contains(byte) && *byte != b'$')
        );
    }

    #[test]
    fn plugins_by_name() {
        assert_eq!(
            AuthPlugin::from_name(b"mysql_native_password"),
            Some(AuthPlugin::Native)
        );
        assert_eq!(AuthPlugin::from_name(b"mysql_clear_password"), None);
        assert!(AuthPlugin::CachingSha2.is_empty_password(b"\0"));
        assert!(!AuthPlugin::Native.is_empty_password(b"\0"));
    }
}
