//! The packets that end an exchange: OK, ERR and EOF.

use super::capabilities::Capabilities;
use super::lenenc;
use super::status::Status;

/// What a statement without a result set reports.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Ok<'a> {
    pub affected_rows: u64,
    pub status: Status,
    pub warnings: u16,
    pub info: &'a str,
}

/// An OK packet.
pub(crate) fn put_ok(out: &mut Vec<u8>, ok: &Ok<'_>) {
    out.push(0x00);
    put_ok_body(out, ok);
}

/// The packet after the last row (or after column definitions): EOF, or for a client that has
/// agreed to do without EOF an OK packet that begins with 0xfe.
pub(crate) fn put_end(out: &mut Vec<u8>, client: Capabilities, status: Status, warnings: u16) {
    out.push(0xfe);
    if client.has(Capabilities::DEPRECATE_EOF) {
        put_ok_body(
            out,
            &Ok {
                affected_rows: 0,
                status,
                warnings,
                info: "",
            },
        );
    } else {
        out.extend_from_slice(&warnings.to_le_bytes());
        out.extend_from_slice(&status.0.to_le_bytes());
    }
}

fn put_ok_body(out: &mut Vec<u8>, ok: &Ok<'_>) {
    lenenc::put_int(out, ok.affected_rows);
    lenenc::put_int(out, 0); // last insert id: there are no such columns
    out.extend_from_slice(&ok.status.0.to_le_bytes());
    out.extend_from_slice(&ok.warnings.to_le_bytes());
    if !ok.info.is_empty() {
        lenenc::put_bytes(out, ok.info.as_bytes());
    }
}

/// The longest message that clients take whole.
const MAX_MESSAGE_BYTES: usize = 4096;

/// An ERR packet. `sqlstate` is left out of what is sent before the client has said who it is.
pub(crate) fn put_error(out: &mut Vec<u8>, code: u16, sqlstate: Option<&str>, message: &str) {
    out.push(0xff);
    out.extend_from_slice(&code.to_le_bytes());
    if let Some(sqlstate) = sqlstate {
        out.push(b'#');
        out.extend_from_slice(&sqlstate_bytes(sqlstate));
    }
    let mut end = message.len().min(MAX_MESSAGE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&message.as_bytes()[..end]);
}

fn sqlstate_bytes(sqlstate: &str) -> [u8; 5] {
    sqlstate.as_bytes().try_into().unwrap_or(*b"HY000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_with_and_without_info() {
        let mut out = vec![];
        put_ok(
            &mut out,
            &Ok {
                status: Status::AUTOCOMMIT,
                ..Ok::default()
            },
        );
        assert_eq!(out, [0, 0, 0, 2, 0, 0, 0]);
        out.clear();
        let ok = Ok {
            affected_rows: 300,
            status: Status::AUTOCOMMIT,
            warnings: 1,
            info: "hi",
        };
        put_ok(&mut out, &ok);
        assert_eq!(out, [0, 0xfc, 0x2c, 0x01, 0, 2, 0, 1, 0, 2, b'h', b'i']);
    }

    #[test]
    fn the_end_of_rows_in_both_styles() {
        let status = Status::AUTOCOMMIT.with(Status::MORE_RESULTS);
        let mut out = vec![];
        put_end(&mut out, Capabilities(0), status, 0);
        assert_eq!(out, [0xfe, 0, 0, 0x0a, 0]);
        out.clear();
        put_end(&mut out, Capabilities::DEPRECATE_EOF, status, 0);
        assert_eq!(out, [0xfe, 0, 0, 0x0a, 0, 0, 0]);
    }

    #[test]
    fn errors() {
        let mut out = vec![];
        put_error(&mut out, 1064, Some("42000"), "no");
        assert_eq!(out, b"\xff\x28\x04#42000no");
        out.clear();
        put_error(&mut out, 1040, None, "Too many connections");
        assert_eq!(out, b"\xff\x10\x04Too many connections");
        // A message is cut between characters.
        out.clear();
        put_error(&mut out, 1, Some("bad state"), &"é".repeat(3000));
        assert_eq!(&out[3..9], b"#HY000");
        assert!(std::str::from_utf8(&out[9..]).is_ok());
    }
}
