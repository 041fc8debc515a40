//! Colours, where there is somebody to see them.

use std::io::IsTerminal;

/// How the demo's own words look.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    colours: bool,
}

impl Paint {
    /// Colours if standard output is a terminal and `NO_COLOR` is not set.
    pub fn detect() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            colours: std::io::stdout().is_terminal() && !unwanted,
        }
    }

    pub fn title(self, text: &str) -> String {
        self.wrap("1;36", text)
    }

    pub fn sql(self, text: &str) -> String {
        self.wrap("33", text)
    }

    pub fn note(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_string()
        }
    }
}
