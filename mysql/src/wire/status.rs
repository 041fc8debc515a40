//! Server status flags, sent with every OK and EOF.

/// A set of status flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Status(pub u16);

impl Status {
    pub const AUTOCOMMIT: Self = Self(0x0002);
    pub const MORE_RESULTS: Self = Self(0x0008);
    pub const CURSOR_EXISTS: Self = Self(0x0040);
    pub const LAST_ROW_SENT: Self = Self(0x0080);

    pub const fn with(self, flag: Self) -> Self {
        Self(self.0 | flag.0)
    }
}
