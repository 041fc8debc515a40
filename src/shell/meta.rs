//! Commands of the shell itself, which begin with a backslash.

use super::format::Format;

/// A command of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meta {
    Help,
    Quit,
    /// On or off; without a word, the other one.
    Timing(Option<bool>),
    /// Without a name, the current one is told.
    Format(Option<Format>),
    /// Results go to this file; without one, to the terminal again.
    Output(Option<String>),
    /// Most rows shown; 0 is all.
    Limit(Option<u64>),
    /// The tables, or the columns of one.
    Describe(Option<String>),
    Databases,
    /// Changes to a database, or forgets the names for completion.
    Connect(Option<String>),
}

/// What `\?` prints.
pub const HELP: &str = "\
A statement ends with ; or, for a line per value, with \\G.

  \\?              this help
  \\d [TABLE]      tables of the database, or columns of a table
  \\l              databases
  \\c [DATABASE]   change the database (database or catalog.database); learn names anew
  \\format [NAME]  table, vertical, csv, json or markdown
  \\limit [ROWS]   most rows shown of a table or vertical result; 0 for all
  \\o [FILE]       write results to a file; without one, to the terminal again
  \\timing [on|off]
  \\q              leave (so does Ctrl-D)

Ctrl-C stops the running query; Tab completes keywords and names; up and down walk the history.
";

/// Reads a line that is a command; `None` if it is SQL.
pub fn parse(line: &str) -> Option<Result<Meta, String>> {
    let line = line.trim();
    match line
        .trim_end_matches(';')
        .trim()
        .to_ascii_lowercase()
        .as_str()
    {
        "quit" | "exit" => return Some(Ok(Meta::Quit)),
        "help" => return Some(Ok(Meta::Help)),
        _ => {}
    }
    let command = line.strip_prefix('\\')?.trim_end_matches(';');
    if command.starts_with(['G', 'g']) {
        return None;
    }
    let (name, argument) = match command.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, Some(argument.trim()).filter(|a| !a.is_empty())),
        None => (command, None),
    };
    let text = argument.map(str::to_string);
    Some(match name {
        "?" | "h" | "help" => Ok(Meta::Help),
        "q" | "quit" => Ok(Meta::Quit),
        "timing" => match argument {
            None => Ok(Meta::Timing(None)),
            Some("on") => Ok(Meta::Timing(Some(true))),
            Some("off") => Ok(Meta::Timing(Some(false))),
            Some(other) => Err(format!("\\timing takes on or off, not `{other}`")),
        },
        "format" => match argument {
            None => Ok(Meta::Format(None)),
            Some(name) => match Format::parse(name) {
                Some(format) => Ok(Meta::Format(Some(format))),
                None => Err(format!(
                    "`{name}` is not one of {}",
                    Format::NAMES.join(", ")
                )),
            },
        },
        "limit" => match argument.map(str::parse) {
            None => Ok(Meta::Limit(None)),
            Some(Ok(rows)) => Ok(Meta::Limit(Some(rows))),
            Some(Err(_)) => Err("\\limit takes a number of rows".to_string()),
        },
        "o" => Ok(Meta::Output(text)),
        "d" | "dt" => Ok(Meta::Describe(text)),
        "l" => Ok(Meta::Databases),
        "c" => Ok(Meta::Connect(text)),
        other => Err(format!("there is no command \\{other}; \\? lists them")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        for (line, expected) in [
            ("\\q", Meta::Quit),
            ("exit;", Meta::Quit),
            (" \\? ", Meta::Help),
            ("\\timing", Meta::Timing(None)),
            ("\\timing off", Meta::Timing(Some(false))),
            ("\\format csv", Meta::Format(Some(Format::Csv))),
            (
                "\\o /tmp/a b.csv",
                Meta::Output(Some("/tmp/a b.csv".to_string())),
            ),
            ("\\o", Meta::Output(None)),
            (
                "\\d lake.d.t;",
                Meta::Describe(Some("lake.d.t".to_string())),
            ),
            ("\\c tpch", Meta::Connect(Some("tpch".to_string()))),
            ("\\limit 0", Meta::Limit(Some(0))),
        ] {
            assert_eq!(parse(line), Some(Ok(expected)), "{line}");
        }
        assert!(matches!(parse("\\frob"), Some(Err(_))));
        assert!(matches!(parse("\\format xml"), Some(Err(_))));
        assert_eq!(parse("SELECT 1"), None);
        assert_eq!(parse("\\G"), None);
    }
}
