//! The configuration file, read into settings, catalogs and users with the line each came from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use tarn_catalog::{check_properties, is_storage_property, unknown_storage_property};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entries::{CatalogEntry, StorageEntry, UserEntry, UserPassword};
use super::error::{ConfigError, nearest};
use super::table::{SECTIONS, SETTINGS, Setting, find};
use super::value::{self, Value};

/// What a file says.
#[derive(Debug, Default)]
pub struct FileContent {
    /// A setting, its value, and the line it is on.
    pub values: Vec<(&'static Setting, Value, usize)>,
    pub catalogs: Vec<CatalogEntry>,
    pub storage: StorageEntry,
    /// `None` if the file has no `[[users]]`.
    pub users: Option<Vec<UserEntry>>,
}

/// Looks `${NAME}` up, as the process's environment does.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads the text of a file; `path` is for messages, `lookup` answers `${NAME}` in catalogs and passwords.
pub fn parse(path: &Path, text: &str, lookup: Lookup<'_>) -> Result<FileContent, ConfigError> {
    let reader = Reader { path, text, lookup };
    let root = DeTable::parse(text).map_err(|e| ConfigError::Syntax {
        place: reader.place(&e.span().unwrap_or(0..0)),
        message: e.message().to_string(),
    })?;
    let mut content = FileContent::default();
    for (key, value) in root.get_ref() {
        let name = key.get_ref().as_ref();
        match (name, value.get_ref()) {
            ("catalog", DeValue::Table(table)) => content.catalogs = reader.catalogs(table)?,
            ("storage", DeValue::Table(table)) => {
                content.storage = reader.storage(&key.span(), table)?;
            }
            ("users", DeValue::Array(users)) => {
                content.users = Some(reader.users(users)?);
            }
            ("catalog", _) => {
                return Err(reader.bad(&key.span(), name, "write it as [catalog.<name>] tables"));
            }
            ("users", _) => {
                return Err(reader.bad(&key.span(), name, "write it as [[users]] tables"));
            }
            (_, DeValue::Table(table)) => {
                if !SECTIONS
                    .iter()
                    .any(|(section, _)| !section.is_empty() && *section == name)
                {
                    return Err(reader.unknown(
                        &key.span(),
                        "section",
                        name.to_string(),
                        section_names(),
                    ));
                }
                for (key, value) in table {
                    let full = format!("{name}.{}", key.get_ref());
                    content
                        .values
                        .push(reader.setting(full, &key.span(), value)?);
                }
            }
            _ => content
                .values
                .push(reader.setting(name.to_string(), &key.span(), value)?),
        }
    }
    Ok(content)
}

fn section_names() -> Vec<String> {
    let sections = SECTIONS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.is_empty());
    sections
        .chain(["catalog", "storage", "users"])
        .map(String::from)
        .collect()
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    lookup: Lookup<'a>,
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let end = span.start.min(self.text.len());
        self.text.as_bytes()[..end]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1
    }

    fn place(&self, span: &Range<usize>) -> String {
        format!("{}:{}", self.path.display(), self.line(span))
    }

    fn bad(&self, span: &Range<usize>, name: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::BadValue {
            place: self.place(span),
            name: name.to_string(),
            problem: problem.into(),
        }
    }

    fn unknown(
        &self,
        span: &Range<usize>,
        what: &'static str,
        name: String,
        candidates: Vec<String>,
    ) -> ConfigError {
        ConfigError::Unknown {
            place: self.place(span),
            what,
            near: nearest(&name, candidates),
            name,
        }
    }

    fn setting(
        &self,
        name: String,
        key: &Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(&'static Setting, Value, usize), ConfigError> {
        let Some(setting) = find(&name) else {
            return Err(self.unknown(
                key,
                "setting",
                name,
                SETTINGS.iter().map(Setting::name).collect(),
            ));
        };
        let Some(text) = scalar(value.get_ref()) else {
            let problem = format!(
                "{} is not a {}",
                value.get_ref().type_str(),
                setting.kind.describe()
            );
            return Err(self.bad(&value.span(), &name, problem));
        };
        let parsed =
            value::parse(&setting.kind, &text).map_err(|p| self.bad(&value.span(), &name, p))?;
        Ok((setting, parsed, self.line(key)))
    }

    fn catalogs(&self, table: &DeTable<'_>) -> Result<Vec<CatalogEntry>, ConfigError> {
        table
            .iter()
            .map(|(name, value)| {
                let full = format!("catalog.{}", name.get_ref());
                let DeValue::Table(properties) = value.get_ref() else {
                    return Err(self.bad(&name.span(), &full, "write it as a table of properties"));
                };
                let mut entry = CatalogEntry {
                    name: name.get_ref().to_string(),
                    properties: BTreeMap::new(),
                    place: self.place(&name.span()),
                };
                self.properties(&full, "", properties, &mut entry.properties)?;
                check_properties(&entry.name, &entry.properties)
                    .map_err(|error| self.bad(&name.span(), &full, error.to_string()))?;
                Ok(entry)
            })
            .collect()
    }

    fn storage(
        &self,
        place: &Range<usize>,
        table: &DeTable<'_>,
    ) -> Result<StorageEntry, ConfigError> {
        let mut entry = StorageEntry {
            properties: BTreeMap::new(),
            place: self.place(place),
        };
        self.properties("storage", "", table, &mut entry.properties)?;
        match entry
            .properties
            .keys()
            .find(|key| !is_storage_property(key))
        {
            Some(key) => Err(self.bad(place, "storage", unknown_storage_property(key))),
            None => Ok(entry),
        }
    }

    /// `s3.endpoint = "…"` is a nested table to TOML; here both spellings are the property `s3.endpoint`.
    fn properties(
        &self,
        catalog: &str,
        prefix: &str,
        table: &DeTable<'_>,
        out: &mut BTreeMap<String, String>,
    ) -> Result<(), ConfigError> {
        for (key, value) in table {
            let property = format!("{prefix}{}", key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                self.properties(catalog, &format!("{property}."), inner, out)?;
                continue;
            }
            let name = format!("{catalog}.{property}");
            let Some(text) = scalar(value.get_ref()) else {
                return Err(self.bad(
                    &value.span(),
                    &name,
                    "a property is a text, a number or a boolean",
                ));
            };
            out.insert(property, self.expand(&value.span(), &name, &text)?);
        }
        Ok(())
    }

    fn users(&self, users: &[Spanned<DeValue<'_>>]) -> Result<Vec<UserEntry>, ConfigError> {
        let mut entries: Vec<UserEntry> = Vec::new();
        for value in users {
            let entry = self.user(value)?;
            if entries.iter().any(|other| other.name == entry.name) {
                let problem = format!("there are two users of the name `{}`", entry.name);
                return Err(self.bad(&value.span(), "users.name", problem));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn user(&self, value: &Spanned<DeValue<'_>>) -> Result<UserEntry, ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.bad(&value.span(), "users", "write it as [[users]] tables"));
        };
        let mut name = None;
        let mut password = UserPassword::None;
        for (key, value) in table {
            let key_name = key.get_ref().as_ref();
            let full = format!("users.{key_name}");
            let Some(text) = value.get_ref().as_str() else {
                return Err(self.bad(&value.span(), &full, "write it in quotes"));
            };
            let text = self.expand(&value.span(), &full, text)?;
            match key_name {
                "name" if text.is_empty() => {
                    return Err(self.bad(&value.span(), &full, "a user needs a name"));
                }
                "name" => name = Some(text),
                "password" | "password_sha256" if password != UserPassword::None => {
                    return Err(self.bad(
                        &value.span(),
                        &full,
                        "give either password or password_sha256",
                    ));
                }
                "password" => password = UserPassword::Plain(text),
                "password_sha256" => password = UserPassword::Sha256(text),
                _ => {
                    let known = ["users.name", "users.password", "users.password_sha256"];
                    return Err(self.unknown(
                        &key.span(),
                        "setting",
                        full,
                        known.map(String::from).to_vec(),
                    ));
                }
            }
        }
        let Some(name) = name else {
            return Err(self.bad(&value.span(), "users.name", "a user needs a name"));
        };
        Ok(UserEntry {
            name,
            password,
            place: self.place(&value.span()),
        })
    }

    /// Puts environment variables in for `${NAME}`, so that secrets need not be in the file.
    fn expand(&self, span: &Range<usize>, name: &str, text: &str) -> Result<String, ConfigError> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            out.push_str(&rest[..start]);
            let Some(length) = rest[start..].find('}') else {
                return Err(self.bad(span, name, "`${` without `}`"));
            };
            let variable = &rest[start + 2..start + length];
            match (self.lookup)(variable) {
                Some(value) => out.push_str(&value),
                None => {
                    return Err(self.bad(
                        span,
                        name,
                        format!("the environment variable {variable} is not set"),
                    ));
                }
            }
            rest = &rest[start + length + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// A text, number or boolean as it would be written in quotes.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(s) => Some(s.to_string()),
        DeValue::Integer(i) if i.radix() == 10 => Some(i.as_str().to_string()),
        DeValue::Float(f) => Some(f.as_str().to_string()),
        DeValue::Boolean(b) => Some(b.to_string()),
        _ => None,
    }
}
