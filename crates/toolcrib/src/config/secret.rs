//! A value that never prints, and the rule of thumb for which names carry one.
//!
//! It hides values from logs, errors and `config show`. It does not encrypt, and it does not wipe memory.

use std::fmt;

use serde::{Serialize, Serializer};

/// Text that shows as `***` wherever it is printed or serialised. Ask for it with [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself; the one way out, so that uses can be searched for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

const CREDENTIAL_WORDS: &[&str] = &[
    "TOKEN",
    "TOKENS",
    "KEY",
    "KEYS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "AUTH",
    "AUTHORIZATION",
    "CREDENTIAL",
    "CREDENTIALS",
    "COOKIE",
    "BEARER",
    "PAT",
    "DSN",
];

const CREDENTIAL_ENDINGS: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "APIKEY", "ACCESSKEY"];

/// Whether a key such as `GITHUB_TOKEN`, `X-Api-Key` or `clientSecret` names a credential.
///
/// Judged word by word, so that `GIT_AUTHOR_NAME` and `KEYBOARD` stay readable.
pub fn names_a_credential(name: &str) -> bool {
    let snake = super::spelling::snake(name).to_ascii_uppercase();
    snake.split('_').any(|word| {
        CREDENTIAL_WORDS.contains(&word) || CREDENTIAL_ENDINGS.iter().any(|end| word.ends_with(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars_everywhere() {
        let secret = Secret::new("hunter2hunter2hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.expose(), "hunter2hunter2hunter2");
    }

    #[test]
    fn credentials_are_known_by_their_names() {
        for name in
            ["GITHUB_TOKEN", "X-Api-Key", "clientSecret", "Authorization", "OPENAI_APIKEY", "db_password"]
        {
            assert!(names_a_credential(name), "{name}");
        }
        for name in ["GIT_AUTHOR_NAME", "KEYBOARD", "PATH", "LOG_LEVEL", "NODE_ENV", "MONKEY"] {
            assert!(!names_a_credential(name), "{name}");
        }
    }
}
