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
