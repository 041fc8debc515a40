//! Who is there: checks a login, switching authentication plugins if the client began with another
//! one than this server can use.

use tarn_coordinator::{User, Users};

use crate::channel::Channel;
use crate::error::ConnectionError;
use crate::wire::auth::{AuthPlugin, Nonce, random_nonce};
use crate::wire::handshake::{Login, put_auth_switch, put_fast_auth_success};

/// What a login comes to.
pub(crate) enum Verdict {
    Welcome,
    /// Wrong user or password; whether the client has sent one.
    Denied {
        with_password: bool,
    },
}

/// Checks a login whose answer was made for `nonce`. `can_switch` says that the client knows plugins.
pub(crate) async fn authenticate(
    channel: &mut Channel,
    users: &Users,
    login: &Login,
    nonce: &Nonce,
    can_switch: bool,
) -> Result<Verdict, ConnectionError> {
    let user = users.get(&login.user);
    // A client that names no plugin speaks the oldest of them.
    let first = login
        .plugin
        .as_deref()
        .map_or(Some(AuthPlugin::Native), AuthPlugin::from_name);
    if let Some(plugin) = first {
        let verdict = check(user, plugin, nonce, &login.auth_answer);
        // caching_sha2 is the plugin of the greeting: its answer stands. Some clients begin with the
        // native plugin and an answer they have not computed yet; they are asked to compute it.
        let stands = plugin == AuthPlugin::CachingSha2 || !can_switch;
        if stands || matches!(verdict, Verdict::Welcome) {
            announce(channel, plugin, &login.auth_answer, &verdict);
            return Ok(verdict);
        }
    } else if !can_switch {
        return Ok(Verdict::Denied {
            with_password: !login.auth_answer.is_empty(),
        });
    }

    let plugin = match first {
        Some(AuthPlugin::Native) if knows_native(user) => AuthPlugin::Native,
        _ => AuthPlugin::CachingSha2,
    };
    let nonce = random_nonce();
    channel.put(|out| put_auth_switch(out, plugin, &nonce));
    channel.flush().await?;
    let answer = channel.read_answer().await?;
    let verdict = check(user, plugin, &nonce, &answer);
    announce(channel, plugin, &answer, &verdict);
    Ok(verdict)
}

/// Whether the native plugin can be used for a user. For a name that does not exist the answer is
/// that of most users, so that it tells nothing.
fn knows_native(user: Option<&User>) -> bool {
    user.is_none_or(|user| !user.has_password() || user.native_stage2().is_some())
}

fn check(user: Option<&User>, plugin: AuthPlugin, nonce: &Nonce, answer: &[u8]) -> Verdict {
    let empty = plugin.is_empty_password(answer);
    let answer = if empty { &[] } else { answer };
    let accepted = user.is_some_and(|user| match plugin {
        AuthPlugin::CachingSha2 => user.accepts_caching_sha2(nonce, answer),
        AuthPlugin::Native => user.accepts_native(nonce, answer),
    });
    if accepted {
        Verdict::Welcome
    } else {
        Verdict::Denied {
            with_password: !empty,
        }
    }
}

/// A caching_sha2 client that has sent a proof waits to hear that the fast path was enough.
fn announce(channel: &mut Channel, plugin: AuthPlugin, answer: &[u8], verdict: &Verdict) {
    if plugin == AuthPlugin::CachingSha2
        && matches!(verdict, Verdict::Welcome)
        && !plugin.is_empty_password(answer)
    {
        channel.put(put_fast_auth_success);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
    use tokio_util::sync::CancellationToken;

    /// 1, 2, … 20; the answers to it below were computed with Python's hashlib for the password
    /// "s3cret".
    const NONCE: Nonce = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    ];
    const SHA2_ANSWER: &str = "3f3a9a7786fd9be9a006eed686b4e6b76484fdc06dc15685df5f8793574b84fc";
    const NATIVE_ANSWER: &str = "f66fdd3ff855d9349a0ddb50c4a1a535fb412465";
    /// SHA256(SHA256("s3cret")).
    const SHA2_STORED: &str = "0ac1e49b32a8f7829e79b4ad9e9f3d35ef0aca0662c4835279619bf49249cd77";

    fn unhex(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex"))
            .collect()
    }

    fn users() -> Users {
        Users::new([
            User::without_password("root"),
            User::with_password("ann", "s3cret"),
            User::with_password_sha256("bob", SHA2_STORED).expect("a hash"),
        ])
    }

    fn channel() -> (Channel, DuplexStream) {
        let (server, client) = duplex(1 << 16);
        let (reader, writer) = split(server);
        let (time, shutdown) = (Duration::from_secs(60), CancellationToken::new());
        (
            Channel::new(reader, writer, 1000, 1000, time, shutdown),
            client,
        )
    }

    fn login(user: &str, plugin: Option<&str>, auth_answer: Vec<u8>) -> Login {
        Login {
            user: user.into(),
            auth_answer,
            database: None,
            plugin: plugin.map(|name| name.as_bytes().to_vec()),
        }
    }

    const SHA2: Option<&str> = Some("caching_sha2_password");
    const NATIVE: Option<&str> = Some("mysql_native_password");

    /// The verdict on a login that needs no switch: welcome or not, and what is sent before it.
    async fn verdict(user: &str, plugin: Option<&str>, answer: Vec<u8>) -> (bool, Vec<u8>) {
        let (mut channel, _client) = channel();
        let login = login(user, plugin, answer);
        let verdict = authenticate(&mut channel, &users(), &login, &NONCE, plugin.is_some())
            .await
            .expect("no switch");
        (
            matches!(verdict, Verdict::Welcome),
            channel.packets().bytes().to_vec(),
        )
    }

    #[tokio::test]
    async fn caching_sha2_takes_the_fast_path() {
        let fast = vec![2, 0, 0, 0, 1, 3];
        for user in ["ann", "bob"] {
            assert_eq!(
                verdict(user, SHA2, unhex(SHA2_ANSWER)).await,
                (true, fast.clone())
            );
        }
        let mut wrong = unhex(SHA2_ANSWER);
        wrong[31] ^= 1;
        assert_eq!(verdict("ann", SHA2, wrong).await, (false, vec![]));
        assert_eq!(verdict("ann", SHA2, vec![]).await, (false, vec![]));
        assert_eq!(
            verdict("zed", SHA2, unhex(SHA2_ANSWER)).await,
            (false, vec![])
        );
    }

    #[tokio::test]
    async fn without_a_password_only_an_empty_answer_is_welcome() {
        assert_eq!(verdict("root", SHA2, vec![]).await, (true, vec![]));
        assert_eq!(verdict("root", SHA2, vec![0]).await, (true, vec![]));
        assert_eq!(verdict("root", NATIVE, vec![]).await, (true, vec![]));
        assert_eq!(verdict("root", SHA2, vec![7; 32]).await, (false, vec![]));
    }

    #[tokio::test]
    async fn the_native_plugin_is_accepted_as_it_comes() {
        assert!(verdict("ann", NATIVE, unhex(NATIVE_ANSWER)).await.0);
        // A client so old that it names no plugin.
        assert!(verdict("ann", None, unhex(NATIVE_ANSWER)).await.0);
        assert!(!verdict("bob", None, unhex(NATIVE_ANSWER)).await.0);
    }

    /// What the client is switched to, given its first plugin.
    async fn switched_to(user: &'static str, plugin: Option<&'static str>) -> String {
        let (mut channel, mut client) = channel();
        let server = tokio::spawn(async move {
            let login = login(user, plugin, vec![]);
            authenticate(&mut channel, &users(), &login, &NONCE, true).await
        });
        let mut header = [0; 5];
        client.read_exact(&mut header).await.expect("a switch");
        assert_eq!(header[4], 0xfe);
        let mut rest = vec![0; usize::from(header[0]) - 1];
        client.read_exact(&mut rest).await.expect("its payload");
        // A wrong answer is the end of it.
        client
            .write_all(&[3, 0, 0, 1, b'b', b'a', b'd'])
            .await
            .expect("sent");
        let verdict = server.await.expect("no panic").expect("a verdict");
        assert!(matches!(
            verdict,
            Verdict::Denied {
                with_password: true
            }
        ));
        let end = rest.iter().position(|byte| *byte == 0).expect("a name");
        assert_eq!(rest.len(), end + 1 + 20 + 1, "a nonce and its zero byte");
        String::from_utf8(rest[..end].to_vec()).expect("ASCII")
    }

    #[tokio::test]
    async fn other_clients_are_switched_to_what_can_be_checked() {
        assert_eq!(switched_to("ann", NATIVE).await, "mysql_native_password");
        assert_eq!(switched_to("bob", NATIVE).await, "caching_sha2_password");
        assert_eq!(switched_to("zed", NATIVE).await, "mysql_native_password");
        assert_eq!(
            switched_to("ann", Some("dialog")).await,
            "caching_sha2_password"
        );
    }
}
