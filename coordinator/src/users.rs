//! Who may log in.

use std::collections::BTreeMap;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};

/// A user as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name clients log in with.
    pub name: String,
    password: Secret,
}

/// What is kept of a password: never the password itself.
#[derive(Clone, PartialEq, Eq)]
enum Secret {
    /// Anyone may log in under this name.
    None,
    Hashed {
        /// SHA256(SHA256(password)), what `caching_sha2_password` compares with.
        sha256_stage2: [u8; 32],
        /// SHA1(SHA1(password)), what `mysql_native_password` compares with; only known when the
        /// configuration held the plain password.
        native_stage2: Option<[u8; 20]>,
    },
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Hashed { .. } => "***",
        })
    }
}

impl User {
    /// A user that needs no password.
    pub fn without_password(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            password: Secret::None,
        }
    }

    /// A user with a password that the configuration gives in plain text. An empty password is no
    /// password, as in MySQL.
    pub fn with_password(name: impl Into<String>, password: &str) -> Self {
        if password.is_empty() {
            return Self::without_password(name);
        }
        Self {
            name: name.into(),
            password: Secret::Hashed {
                sha256_stage2: sha256_stage2(password),
                native_stage2: Some(native_stage2(password)),
            },
        }
    }

    /// A user whose password is configured as the 64 hexadecimal digits of
    /// SHA256(SHA256(password)). Such a user cannot log in by `mysql_native_password`.
    ///
    /// # Errors
    /// `hex` is not 64 hexadecimal digits.
    pub fn with_password_sha256(name: impl Into<String>, hex: &str) -> Result<Self> {
        let name = name.into();
        let Some(sha256_stage2) = decode_hex_32(hex) else {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "password_sha256 of user '{name}' is not the 64 hexadecimal digits of SHA256(SHA256(password))"
                ),
            ));
        };
        Ok(Self {
            name,
            password: Secret::Hashed {
                sha256_stage2,
                native_stage2: None,
            },
        })
    }

    /// Whether a client needs a password for this name.
    pub fn has_password(&self) -> bool {
        self.password != Secret::None
    }

    /// SHA256(SHA256(password)), for `caching_sha2_password`; `None` for a user without password.
    pub fn sha256_stage2(&self) -> Option<&[u8; 32]> {
        match &self.password {
            Secret::Hashed { sha256_stage2, .. } => Some(sha256_stage2),
            Secret::None => None,
        }
    }

    /// SHA1(SHA1(password)), for `mysql_native_password`; `None` for a user without password, or
    /// whose plain password is not known.
    pub fn native_stage2(&self) -> Option<&[u8; 20]> {
        match &self.password {
            Secret::Hashed { native_stage2, .. } => native_stage2.as_ref(),
            Secret::None => None,
        }
    }

    /// Whether `password` is this user's.
    pub fn accepts(&self, password: &str) -> bool {
        match &self.password {
            Secret::None => password.is_empty(),
            Secret::Hashed {
                sha256_stage2: expected,
                ..
            } => same_bytes(expected, &sha256_stage2(password)),
        }
    }

    /// Checks the 32-byte answer of `caching_sha2_password` to `nonce`:
    /// `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)`.
    pub fn accepts_caching_sha2(&self, nonce: &[u8], answer: &[u8]) -> bool {
        match &self.password {
            Secret::None => answer.is_empty(),
            Secret::Hashed { sha256_stage2, .. } => {
                if answer.len() != 32 {
                    return false;
                }
                let mask = Sha256::new()
                    .chain_update(sha256_stage2)
                    .chain_update(nonce);
                let stage1: Vec<u8> = xor(answer, &mask.finalize());
                same_bytes(&Sha256::digest(stage1), sha256_stage2)
            }
        }
    }

    /// Checks the 20-byte answer of `mysql_native_password` to `nonce`:
    /// `SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))`.
    pub fn accepts_native(&self, nonce: &[u8], answer: &[u8]) -> bool {
        match &self.password {
            Secret::None => answer.is_empty(),
            Secret::Hashed {
                native_stage2: Some(stage2),
                ..
            } => {
                if answer.len() != 20 {
                    return false;
                }
                let mask = Sha1::new().chain_update(nonce).chain_update(stage2);
                let stage1: Vec<u8> = xor(answer, &mask.finalize());
                same_bytes(&Sha1::digest(stage1), stage2)
            }
            Secret::Hashed { .. } => false,
        }
    }
}

/// All users of this coordinator.
#[derive(Debug, Clone)]
pub struct Users {
    users: BTreeMap<String, User>,
}

impl Default for Users {
    fn default() -> Self {
        Self::new([])
    }
}

impl Users {
    /// The name that may do everything.
    pub const ROOT: &'static str = "root";

    /// The given users; without any, `root` without a password.
    pub fn new(users: impl IntoIterator<Item = User>) -> Self {
        let mut users: BTreeMap<String, User> = users
            .into_iter()
            .map(|user| (user.name.clone(), user))
            .collect();
        if users.is_empty() {
            users.insert(Self::ROOT.into(), User::without_password(Self::ROOT));
        }
        Self { users }
    }

    /// The user called `name`; names are case sensitive, as in MySQL.
    pub fn get(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// All users, by name.
    pub fn iter(&self) -> impl Iterator<Item = &User> {
        self.users.values()
    }

    /// Checks a password that came in plain text (Flight SQL's basic authentication).
    ///
    /// # Errors
    /// Access denied, in the same words whether the name or the password is wrong.
    pub fn verify_plain(&self, name: &str, password: &str) -> Result<()> {
        // An unknown name costs the same hashing as a known one.
        let accepted = match self.get(name) {
            Some(user) => user.accepts(password),
            None => {
                let _ = sha256_stage2(password);
                false
            }
        };
        if accepted {
            Ok(())
        } else {
            Err(Self::access_denied(name, "", !password.is_empty()))
        }
    }

    /// The error of a login that failed, in MySQL's words. `client` is the client's host, if known.
    pub fn access_denied(name: &str, client: &str, with_password: bool) -> Error {
        let at = if client.is_empty() {
            String::new()
        } else {
            format!("@'{client}'")
        };
        let using = if with_password { "YES" } else { "NO" };
        Error::new(
            ErrorKind::AccessDenied,
            format!("Access denied for user '{name}'{at} (using password: {using})"),
        )
    }
}

fn sha256_stage2(password: &str) -> [u8; 32] {
    Sha256::digest(Sha256::digest(password.as_bytes())).into()
}

fn native_stage2(password: &str) -> [u8; 20] {
    Sha1::digest(Sha1::digest(password.as_bytes())).into()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Compares in a time that does not depend on where the first difference is.
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .fold(0, |different, (a, b)| different | (a ^ b))
            == 0
}

fn decode_hex_32(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// printf secret | sha256sum, twice over bytes.
    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn out_of_the_box_root_needs_no_password_and_nobody_else_exists() {
        let users = Users::default();
        assert!(users.verify_plain("root", "").is_ok());
        assert!(users.verify_plain("root", "guess").is_err());
        let error = users.verify_plain("eve", "").expect_err("no such user");
        assert_eq!(error.kind, ErrorKind::AccessDenied);
    }

    #[test]
    fn a_hashed_password_is_as_good_as_the_plain_one() {
        let plain = User::with_password("ann", "secret");
        let digest = hex(plain.sha256_stage2().expect("has one"));
        let hashed = User::with_password_sha256("ann", &digest).expect("hex");
        assert!(plain.accepts("secret") && hashed.accepts("secret"));
        assert!(!plain.accepts("Secret") && !hashed.accepts(""));
        assert!(plain.native_stage2().is_some() && hashed.native_stage2().is_none());
        assert!(User::with_password_sha256("ann", "abc").is_err());
        assert!(User::with_password_sha256("ann", &"ü".repeat(32)).is_err());
    }

    #[test]
    fn both_challenges_are_answered_as_mysql_clients_answer_them() {
        let user = User::with_password("ann", "secret");
        let nonce = b"12345678901234567890";
        let stage1 = Sha256::digest(b"secret");
        let mask = Sha256::new()
            .chain_update(Sha256::digest(stage1))
            .chain_update(nonce)
            .finalize();
        let answer = xor(&stage1, &mask);
        assert!(user.accepts_caching_sha2(nonce, &answer));
        assert!(!user.accepts_caching_sha2(b"another nonce 123456", &answer));
        assert!(!user.accepts_caching_sha2(nonce, &[]));

        let stage1 = Sha1::digest(b"secret");
        let mask = Sha1::new()
            .chain_update(nonce)
            .chain_update(Sha1::digest(stage1))
            .finalize();
        let answer = xor(&stage1, &mask);
        assert!(user.accepts_native(nonce, &answer));
        assert!(!user.accepts_native(nonce, &answer[..19]));
    }

    #[test]
    fn a_password_is_never_printed() {
        let shown = format!("{:?}", User::with_password("ann", "secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
