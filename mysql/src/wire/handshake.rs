//! The connection phase: greeting, the client's answer, and a switch of authentication plugins.

use super::auth::{AuthPlugin, Nonce};
use super::capabilities::Capabilities;
use super::column::UTF8MB4;
use super::parser::{Malformed, Parser};
use super::status::Status;

/// What the server says first (protocol version 10).
#[derive(Debug)]
pub(crate) struct Greeting<'a> {
    pub server_version: &'a str,
    pub connection_id: u32,
    pub nonce: &'a Nonce,
    pub capabilities: Capabilities,
}

impl Greeting<'_> {
    pub fn put(&self, out: &mut Vec<u8>) {
        let capabilities = self.capabilities.0.to_le_bytes();
        out.push(10);
        out.extend_from_slice(self.server_version.as_bytes());
        out.push(0);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(&self.nonce[..8]);
        out.push(0);
        out.extend_from_slice(&capabilities[..2]);
        out.push(UTF8MB4 as u8);
        out.extend_from_slice(&Status::AUTOCOMMIT.0.to_le_bytes());
        out.extend_from_slice(&capabilities[2..]);
        out.push(self.nonce.len() as u8 + 1);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&self.nonce[8..]);
        out.push(0);
        out.extend_from_slice(AuthPlugin::CachingSha2.name().as_bytes());
        out.push(0);
    }
}

/// What a client says about itself: in its answer to the greeting, and in COM_CHANGE_USER.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub user: String,
    pub auth_answer: Vec<u8>,
    pub database: Option<String>,
    /// The plugin that `auth_answer` was made for; none from a client that knows no plugins.
    pub plugin: Option<Vec<u8>>,
}

/// The client's first packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FirstAnswer {
    /// What both sides can do.
    pub capabilities: Capabilities,
    pub login: Login,
}

impl FirstAnswer {
    /// `offered` are the capabilities of the greeting.
    pub fn parse(payload: &[u8], offered: Capabilities) -> Result<Self, Malformed> {
        let mut parser = Parser::new(payload);
        let asked = Capabilities(parser.u32()?);
        if !asked.has(Capabilities::PROTOCOL_41) {
            return Err(Malformed("the client speaks a protocol older than 4.1"));
        }
        parser.u32()?; // the client's own limit of a packet: what it cannot take it says itself
        parser.u8()?; // its character set: everything is utf8mb4
        parser.bytes(23)?;
        if asked.has(Capabilities::SSL) && parser.is_empty() {
            return Err(Malformed("the client asks for TLS, which is not offered"));
        }
        let user = text(parser.nul_terminated())?;
        let auth_answer = if asked.has(Capabilities::PLUGIN_AUTH_LENENC) {
            parser.lenenc_bytes()?
        } else if asked.has(Capabilities::SECURE_CONNECTION) {
            let length = parser.u8()?;
            parser.bytes(usize::from(length))?
        } else {
            parser.nul_terminated()
        }
        .to_vec();
        let database = if asked.has(Capabilities::CONNECT_WITH_DB) {
            non_empty(parser.nul_terminated())?
        } else {
            None
        };
        let plugin = (asked.has(Capabilities::PLUGIN_AUTH) && !parser.is_empty())
            .then(|| parser.nul_terminated().to_vec());
        // Connection attributes may follow; nothing here depends on them.
        Ok(Self {
            capabilities: asked.both(offered),
            login: Login {
                user,
                auth_answer,
                database,
                plugin,
            },
        })
    }
}

impl Login {
    /// Parses COM_CHANGE_USER after its command byte.
    pub fn parse_change_user(payload: &[u8], client: Capabilities) -> Result<Self, Malformed> {
        let mut parser = Parser::new(payload);
        let user = text(parser.nul_terminated())?;
        let auth_answer = if client.has(Capabilities::SECURE_CONNECTION) {
            let length = parser.u8()?;
            parser.bytes(usize::from(length))?
        } else {
            parser.nul_terminated()
        }
        .to_vec();
        let database = non_empty(parser.nul_terminated())?;
        let mut plugin = None;
        if !parser.is_empty() {
            parser.u16()?; // character set
            if client.has(Capabilities::PLUGIN_AUTH) && !parser.is_empty() {
                plugin = Some(parser.nul_terminated().to_vec());
            }
        }
        Ok(Self {
            user,
            auth_answer,
            database,
            plugin,
        })
    }
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed("a name that is not UTF-8"))
}

fn non_empty(bytes: &[u8]) -> Result<Option<String>, Malformed> {
    Ok(Some(text(bytes)?).filter(|name| !name.is_empty()))
}

/// Asks the client to answer a new nonce by another plugin.
pub(crate) fn put_auth_switch(out: &mut Vec<u8>, plugin: AuthPlugin, nonce: &Nonce) {
    out.push(0xfe);
    out.extend_from_slice(plugin.name().as_bytes());
    out.push(0);
    out.extend_from_slice(nonce);
    out.push(0);
}

/// caching_sha2: the fast path has succeeded, an OK follows.
pub(crate) fn put_fast_auth_success(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x01, 0x03]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = *b"abcdefghijklmnopqrst";

    #[test]
    fn a_greeting_byte_by_byte() {
        let mut out = vec![];
        Greeting {
            server_version: "8.0.36",
            connection_id: 9,
            nonce: &NONCE,
            capabilities: Capabilities(0x0123_4567),
        }
        .put(&mut out);
        let expected = b"\x0a8.0.36\0\x09\0\0\0abcdefgh\0\x67\x45\x2d\x02\x00\x23\x01\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0caching_sha2_password\0";
        assert_eq!(out, expected);
    }

    fn first_answer(capabilities: u32, tail: &[u8]) -> Vec<u8> {
        let mut bytes = capabilities.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 1, 45]);
        bytes.extend_from_slice(&[0; 23]);
        bytes.extend_from_slice(tail);
        bytes
    }

    #[test]
    fn a_modern_client_logs_in() {
        let asked = Capabilities::OFFERED.with(Capabilities(1 << 7)); // and LOCAL_FILES, not offered
        let bytes = first_answer(
            asked.0,
            b"root\0\x04\x01\x02\x00\x03lake.default\0caching_sha2_password\0\x07\x03_os\x02me",
        );
        assert_eq!(
            FirstAnswer::parse(&bytes, Capabilities::OFFERED),
            Ok(FirstAnswer {
                capabilities: Capabilities::OFFERED,
                login: Login {
                    user: "root".into(),
                    auth_answer: vec![1, 2, 0, 3],
                    database: Some("lake.default".into()),
                    plugin: Some(b"caching_sha2_password".to_vec()),
                },
            })
        );
    }

    #[test]
    fn a_client_without_plugins_logs_in() {
        let asked = Capabilities::PROTOCOL_41.with(Capabilities::SECURE_CONNECTION);
        let bytes = first_answer(asked.0, b"ann\0\x00");
        assert_eq!(
            FirstAnswer::parse(&bytes, Capabilities::OFFERED),
            Ok(FirstAnswer {
                capabilities: asked,
                login: Login {
                    user: "ann".into(),
                    auth_answer: vec![],
                    database: None,
                    plugin: None
                },
            })
        );
    }

    #[test]
    fn tls_is_refused() {
        let bytes = first_answer(Capabilities::PROTOCOL_41.with(Capabilities::SSL).0, b"");
        assert!(FirstAnswer::parse(&bytes, Capabilities::OFFERED).is_err());
    }

    #[test]
    fn garbage_is_refused_and_never_panics() {
        assert!(
            FirstAnswer::parse(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Capabilities::OFFERED)
                .is_err()
        );
        let whole = first_answer(Capabilities::OFFERED.0, b"root\0\x20abc");
        for length in 0..whole.len() {
            // Cut anywhere: an error or a login without what is missing, no panic.
            let _ = FirstAnswer::parse(&whole[..length], Capabilities::OFFERED);
        }
        assert!(FirstAnswer::parse(&whole, Capabilities::OFFERED).is_err());
    }

    #[test]
    fn change_user() {
        let login = Login::parse_change_user(
            b"ann\0\x02xysales\0\x2d\x00mysql_native_password\0",
            Capabilities::OFFERED,
        );
        assert_eq!(
            login,
            Ok(Login {
                user: "ann".into(),
                auth_answer: b"xy".to_vec(),
                database: Some("sales".into()),
                plugin: Some(b"mysql_native_password".to_vec()),
            })
        );
    }
}
