//! The files that AWS's tools share: `~/.aws/credentials` and `~/.aws/config`.
//!
//! ```text
//!   credentials   [work]           config   [profile work]
//!                 aws_access_key_id = …     region = eu-west-1
//! ```
//! Variables may name other files (`AWS_SHARED_CREDENTIALS_FILE`, `AWS_CONFIG_FILE`) and the profile (`AWS_PROFILE`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The profile that is taken if none is named.
const DEFAULT: &str = "default";

/// Where profiles are looked for.
pub(crate) struct Surroundings<'a> {
    /// The process's environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file; `None` if there is none.
    pub(crate) read: &'a dyn Fn(&Path) -> Option<String>,
}

impl Surroundings<'static> {
    /// This process's.
    pub(crate) fn here() -> Self {
        Self {
            variable: &|name| std::env::var(name).ok().filter(|value| !value.is_empty()),
            read: &|path| std::fs::read_to_string(path).ok(),
        }
    }
}

/// What a profile says of S3.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct AwsProfile {
    pub(crate) keys: Option<AwsKeys>,
    /// A role that a token of the file lets its bearer take on.
    pub(crate) web_identity: Option<WebIdentity>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

#[derive(PartialEq, Eq)]
pub(crate) struct AwsKeys {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

#[derive(PartialEq, Eq)]
pub(crate) struct WebIdentity {
    pub(crate) role: String,
    pub(crate) token_file: String,
}

/// Reads the profile of that name, else the one that the environment names, else the default one. Only a profile that
/// was named has to be there.
pub(crate) fn profile(
    name: Option<&str>,
    around: &Surroundings<'_>,
) -> Result<Option<AwsProfile>, String> {
    let from_environment = (around.variable)("AWS_PROFILE");
    let named = name.or(from_environment.as_deref());
    let name = named.unwrap_or(DEFAULT);
    let file = |variable: &str, below_home: &str| {
        (around.variable)(variable).map(PathBuf::from).or_else(|| {
            let home = (around.variable)("HOME")?;
            Some(Path::new(&home).join(below_home))
        })
    };
    let files = [
        file("AWS_CONFIG_FILE", ".aws/config"),
        file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
    ];
    let mut values = BTreeMap::new();
    let mut found = false;
    // The file of credentials is read last: what it says goes before.
    for file in files.iter().flatten() {
        let Some(text) = (around.read)(file) else {
            continue;
        };
        if let Some(section) = section(&text, name) {
            found = true;
            values.extend(section);
        }
    }
    if !found {
        return match named {
            None => Ok(None),
            Some(_) => {
                let looked: Vec<String> = files
                    .iter()
                    .flatten()
                    .map(|file| format!("'{}'", file.display()))
                    .collect();
                Err(format!(
                    "there is no AWS profile '{name}' in {}",
                    looked.join(" or ")
                ))
            }
        };
    }
    of_values(name, values).map(Some)
}

fn of_values(name: &str, mut values: BTreeMap<String, String>) -> Result<AwsProfile, String> {
    let mut take = |key: &str| values.remove(key).filter(|value| !value.is_empty());
    let keys = match (take("aws_access_key_id"), take("aws_secret_access_key")) {
        (Some(id), Some(secret)) => Some(AwsKeys {
            id,
            secret,
            token: take("aws_session_token"),
        }),
        (None, None) => None,
        _ => {
            return Err(format!(
                "AWS profile '{name}' has only one of aws_access_key_id and aws_secret_access_key"
            ));
        }
    };
    let (role, token_file) = (take("role_arn"), take("web_identity_token_file"));
    let web_identity = match (&role, token_file) {
        (Some(role), Some(token_file)) => Some(WebIdentity {
            role: role.clone(),
            token_file,
        }),
        _ => None,
    };
    if keys.is_none() && web_identity.is_none() {
        let other = [
            "credential_process",
            "sso_session",
            "sso_start_url",
            "login_session",
        ];
        let other = role
            .map(|_| "role_arn")
            .or_else(|| other.into_iter().find(|key| values.contains_key(*key)));
        if let Some(key) = other {
            return Err(format!(
                "AWS profile '{name}' gets its credentials by '{key}', which is not supported; keys and web identities are"
            ));
        }
    }
    let mut take = |key: &str| values.remove(key).filter(|value| !value.is_empty());
    Ok(AwsProfile {
        keys,
        web_identity,
        region: take("region"),
        endpoint: take("endpoint_url"),
    })
}

/// The values of the section `[name]` or `[profile name]`. Lines that are indented belong to the value before them, and
/// none of those is of interest.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut values = None;
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with(['#', ';']) || line.trim().is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            let title = title.split(']').next().unwrap_or_default().trim();
            let title = title
                .strip_prefix("profile")
                .filter(|rest| rest.starts_with(char::is_whitespace))
                .unwrap_or(title);
            inside = title.trim().trim_matches(['"', '\'']) == name;
            if inside {
                values.get_or_insert_with(BTreeMap::new);
            }
        } else if inside
            && !line.starts_with(char::is_whitespace)
            && let Some((key, value)) = line.split_once('=')
            && let Some(values) = &mut values
        {
            values.insert(key.trim().to_ascii_lowercase(), value.trim().to_string());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# mine\n[default]\naws_access_key_id = D\naws_secret_access_key=ds=\n\n[work]\n\
        AWS_ACCESS_KEY_ID = W\naws_secret_access_key = ws\naws_session_token = wt\n[half]\naws_access_key_id = H\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  endpoint_url = http://inside\n\n[profile work]\n\
        region=us-east-2\nendpoint_url = http://minio:9000\n[profile pod]\nrole_arn = arn:pod\nweb_identity_token_file = /t\n\
        [profile sso]\nsso_session = x\n[profile role]\nrole_arn = arn:r\nsource_profile = work\n";

    /// `id secret token region endpoint`
    fn read(name: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            let home = [("HOME", "/home/me")];
            let found = variables.iter().chain(&home).find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        };
        let file = |path: &Path| match path.to_str()? {
            "/home/me/.aws/credentials" => Some(CREDENTIALS.to_string()),
            "/home/me/.aws/config" => Some(CONFIG.to_string()),
            "/other" => {
                Some("[default]\naws_access_key_id = O\naws_secret_access_key = os\n".to_string())
            }
            _ => None,
        };
        let around = Surroundings {
            variable: &variable,
            read: &file,
        };
        let shown = |profile: AwsProfile| {
            let keys = profile.keys.map_or("-".to_string(), |keys| {
                format!(
                    "{} {} {}",
                    keys.id,
                    keys.secret,
                    keys.token.unwrap_or("-".into())
                )
            });
            let region = profile.region.unwrap_or("-".into());
            let role = profile.web_identity.map_or("-".into(), |it| it.role);
            format!(
                "{keys} {region} {} {role}",
                profile.endpoint.unwrap_or("-".into())
            )
        };
        Ok(profile(name, &around)?.map(shown))
    }

    #[test]
    fn a_profile_is_read_from_both_files() {
        for (name, variables, expected) in [
            (None, vec![], "D ds= - eu-west-1 - -"),
            (
                Some("work"),
                vec![],
                "W ws wt us-east-2 http://minio:9000 -",
            ),
            (
                None,
                vec![("AWS_PROFILE", "work")],
                "W ws wt us-east-2 http://minio:9000 -",
            ),
            (
                Some("default"),
                vec![("AWS_PROFILE", "work")],
                "D ds= - eu-west-1 - -",
            ),
            (Some("pod"), vec![], "- - - arn:pod"),
            (
                None,
                vec![("AWS_SHARED_CREDENTIALS_FILE", "/other")],
                "O os - eu-west-1 - -",
            ),
        ] {
            assert_eq!(
                read(name, &variables),
                Ok(Some(expected.to_string())),
                "{name:?} {variables:?}"
            );
        }
        let nowhere = [
            ("AWS_SHARED_CREDENTIALS_FILE", "/no"),
            ("AWS_CONFIG_FILE", "/no"),
        ];
        assert_eq!(read(None, &nowhere), Ok(None));
    }

    #[test]
    fn what_a_profile_lacks_is_said() {
        for (name, said) in [
            (
                "wrok",
                "no AWS profile 'wrok' in '/home/me/.aws/config' or '/home/me/.aws/credentials'",
            ),
            ("half", "'half' has only one of"),
            ("sso", "by 'sso_session', which is not supported"),
            ("role", "by 'role_arn', which is not supported"),
        ] {
            let error = read(Some(name), &[]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
