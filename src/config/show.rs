//! `tarn config`: the settings in force, and the reference that is docs/configuration.md.

use tarn_catalog::{PROPERTIES, shown_value};

use super::entries::UserPassword;
use super::load::Settings;
use super::table::{SECTIONS, SETTINGS};
use super::value::Kind;

/// The settings in force, aligned for people.
pub fn print(settings: &Settings) -> String {
    let mut all = vec![["setting", "value", "unit", "source"].map(String::from)];
    all.extend(rows(settings));
    align(&all)
}

/// The settings in force: name, value, unit, source; `-` where there is none. Secrets are masked.
pub(super) fn rows(settings: &Settings) -> Vec<[String; 4]> {
    let mut rows = Vec::new();
    for s in SETTINGS {
        let (value, source) = settings.entry(s);
        let value = match (&s.kind, value.show()) {
            (Kind::PathInside(_), _) => settings.path(&s.name()).display().to_string(),
            (_, empty) if empty.is_empty() => "-".to_string(),
            (_, value) => value,
        };
        let unit = if s.kind.unit().is_empty() {
            "-"
        } else {
            s.kind.unit()
        };
        rows.push([s.name(), value, unit.to_string(), source.to_string()]);
    }
    let catalogs = settings.catalogs.iter().map(|catalog| {
        let section = format!("catalog.{}", catalog.name);
        (section, &catalog.properties, &catalog.place)
    });
    let storage = &settings.storage;
    let storage = [("storage".to_string(), &storage.properties, &storage.place)];
    for (section, properties, place) in catalogs.chain(storage) {
        for (property, value) in properties {
            let value = if hides(property, value) { "***" } else { value };
            rows.push([
                format!("{section}.{property}"),
                value.to_string(),
                "-".to_string(),
                place.clone(),
            ]);
        }
    }
    for user in settings.users.iter().flatten() {
        let password = match &user.password {
            UserPassword::None => "no password",
            UserPassword::Plain(_) => "password ***",
            UserPassword::Sha256(_) => "password_sha256 ***",
        };
        rows.push([
            format!("users.{}", user.name),
            password.to_string(),
            "-".to_string(),
            user.place.clone(),
        ]);
    }
    if settings.users.is_none() {
        let row = ["users.root", "no password", "-", "default"];
        rows.push(row.map(String::from));
    }
    rows
}

/// Whether a property of a catalog must not be shown.
fn hides(property: &str, value: &str) -> bool {
    shown_value(property, value) != value
}

fn align(rows: &[[String; 4]]) -> String {
    let mut widths = [0; 4];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let line: String = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}  "))
            .collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The whole of docs/configuration.md.
pub fn markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    for (section, about) in SECTIONS {
        if section.is_empty() {
            out.push_str("\n## Top of the file\n\n");
        } else {
            out.push_str(&format!("\n## [{section}]\n\n"));
        }
        out.push_str(&format!(
            "{about}\n\n| setting | type | default | unit | variable | what it does |\n"
        ));
        out.push_str("|---|---|---|---|---|---|\n");
        for s in SETTINGS.iter().filter(|s| s.section == *section) {
            let default = match s.default {
                "" => "(empty)".to_string(),
                text => format!("`{text}`"),
            };
            out.push_str(&format!(
                "| `{}` | {} | {default} | {} | `{}` | {} |\n",
                s.name(),
                s.kind.describe(),
                s.kind.unit(),
                s.variable(),
                s.doc
            ));
        }
    }
    out.push_str(CATALOGS);
    for group in PROPERTIES {
        out.push_str(&format!("\n### {}\n\n", group.title));
        if !group.about.is_empty() {
            out.push_str(&format!("{}\n\n", group.about));
        }
        out.push_str("| property | default | what it does |\n|---|---|---|\n");
        for property in group.properties {
            out.push_str(&format!(
                "| `{}` | {} | {} |\n",
                property.key, property.default, property.doc
            ));
        }
    }
    out.push_str(USERS);
    out
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `tarn config --markdown > docs/configuration.md`; change src/config/table.rs, then write it again. -->

Nothing has to be configured: with no file at all, Tarn keeps its data in `~/.tarn`, listens on loopback only, and lets
`root` in without a password (and says both in its log). Who opens it to a network sets the listen addresses and
`[[users]]`.

There is one file, in TOML: the one named by `--config`, else by the variable `TARN_CONFIG`, else `tarn.toml` in the
working directory if it is there. Each setting can be overridden by an environment variable, and a few by a flag. The last one
wins: default, file, environment, flag; then, where [the SQL reference](sql.md) says so, `SET` in a session. `tarn config` prints the
settings in force with the place each came from. A key that is not known or a value that cannot be read stops the start
with an error that names it and its line.

Sizes are written `64MiB`, `2GiB` (powers of 1024), `500MB` (powers of 1000) or as bytes; durations `500ms`, `30s`, `5m`,
`8h`, `1d`. `~/` in a path is the home directory. The column *unit* is the one that `tarn config` prints.

```toml
data_dir = \"/srv/tarn\"

[coordinator]
mysql_listen = \"0.0.0.0:9030\"

[worker]
coordinator = \"http://coordinator:8030\"
memory = \"24GiB\"

[[users]]
name = \"ann\"
password = \"${ANN_PASSWORD}\"

[catalog.prod]
type = \"rest\"
uri = \"https://catalog.example.com\"
```
";

const CATALOGS: &str = "
## [catalog.&lt;name&gt;]

One table for each catalog, beside the embedded one, which is called `lake`; `[catalog.lake]` takes its place. The keys are the properties that
`CREATE CATALOG … PROPERTIES` takes, listed [below](#properties-of-catalogs-and-storage). `${NAME}` in a value is replaced by the
environment variable of that name, so that secrets need not be in the file; `tarn config` masks them.

```toml
[catalog.prod]
type = \"rest\"
uri = \"https://catalog.example.com\"
warehouse = \"prod\"
\"s3.endpoint\" = \"https://s3.example.com\"
\"s3.region\" = \"eu-west-1\"
\"s3.access-key-id\" = \"${S3_KEY_ID}\"
\"s3.secret-access-key\" = \"${S3_SECRET}\"
```

## [storage]

How tables are reached that are read by `iceberg_scan('location')` and that no catalog holds: storage properties, as below.
Options of the call go before them. `${NAME}` is replaced here, too.

```toml
[storage]
\"s3.endpoint\" = \"http://minio:9000\"
\"s3.access-key-id\" = \"${S3_KEY_ID}\"
\"s3.secret-access-key\" = \"${S3_SECRET}\"
```

## Properties of catalogs and storage

A catalog takes those of its kind and those of the stores that its tables are in. A property that is not listed is refused, but
for a few of other engines that would change nothing here (`io-impl`, `cache-enabled`, …).
";

const USERS: &str = "
## [[users]]

One table for each user. Without any, `root` may log in without a password; with at least one, only those listed may log
in. There is no authorization beyond that: whoever is in may read and change everything that Tarn's own credentials for
catalogs and stores allow. Only `root` may `SET GLOBAL`, stop other users' statements and see them in `SHOW PROCESSLIST`
(everyone may, where there is no user `root`). Connections are not encrypted: TLS is left to what stands in front.

| key | type | what it does |
|---|---|---|
| `name` | text | The name to log in with. |
| `password` | text | The password; `${NAME}` is replaced by that environment variable. Empty or left out: no password is needed. |
| `password_sha256` | text | Instead of `password`: the 64 hexadecimal digits of SHA256(SHA256(password)). Such a user cannot log in by `mysql_native_password`, only by `caching_sha2_password`. |

## Other variables

| variable | what it does |
|---|---|
| `TARN_CONFIG` | The configuration file, if there is no `--config`. |
| `TARN_PASSWORD` | The password of `tarn sql`, if there is no `--password`. |
";

#[cfg(test)]
mod tests {
    use super::super::load;
    use super::*;

    const DOCUMENT: &str = include_str!("../../docs/configuration.md");

    #[test]
    fn the_reference_is_what_the_table_says() {
        assert!(
            DOCUMENT == markdown(),
            "docs/configuration.md is out of date: tarn config --markdown > docs/configuration.md"
        );
    }

    #[test]
    fn the_reference_lists_each_setting_exactly_once() {
        for s in SETTINGS {
            let row = format!("| `{}` |", s.name());
            assert_eq!(DOCUMENT.matches(&row).count(), 1, "{}", s.name());
        }
    }

    #[test]
    fn a_catalog_that_cannot_be_opened_is_refused_and_nothing_of_it_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tarn.toml");
        for (properties, named) in [
            ("uri = \"http://c\"\ntokne = \"hunter2\"", "tokne"),
            ("type = \"rest\"\ntoken = \"hunter2\"", "uri"),
            ("type = \"rset\"\nuri = \"http://c\"", "rset"),
        ] {
            std::fs::write(&file, format!("\n[catalog.prod]\n{properties}\n")).unwrap();
            let error = load(Some(&file), &Vec::new()).unwrap_err().to_string();
            assert!(
                error.contains(named) && error.contains("tarn.toml:2"),
                "{error}"
            );
            assert!(!error.contains("hunter"), "{error}");
        }
    }

    #[test]
    fn secrets_are_masked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tarn.toml");
        let text = "[catalog.prod]\nuri = \"http://c\"\ntoken = \"hunter2\"\n\n[[users]]\nname = \"ann\"\npassword = \"hunter3\"\n";
        std::fs::write(&file, text).unwrap();
        let shown = print(&load(Some(&file), &Vec::new()).unwrap());
        assert!(!shown.contains("hunter"), "{shown}");
        let line = |start: &str| {
            shown
                .lines()
                .find(|l| l.starts_with(start))
                .map(str::to_string)
        };
        let token = line("catalog.prod.token").unwrap();
        assert!(
            token.contains("***") && token.ends_with("tarn.toml:1"),
            "{token}"
        );
        assert!(line("catalog.prod.uri").unwrap().contains("http://c"));
        assert!(line("users.ann").unwrap().contains("password ***"));
        assert!(line("cache.block ").unwrap().contains("1048576  ") && shown.contains("bytes"));
    }
}
