//! The one table from a kind of error to what each protocol calls it.

use std::fmt;

/// What went wrong, in the terms that clients test for.
///
/// [`ErrorKind::codes`] is the one place where a kind becomes a MySQL error number, an SQLSTATE and
/// a gRPC code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not SQL that Tarn knows.
    Syntax,
    /// A statement with no text.
    EmptyStatement,
    NoSuchCatalog,
    NoSuchDatabase,
    /// A name without a database, while the session has none.
    NoDatabaseSelected,
    NoSuchTable,
    NoSuchColumn,
    AmbiguousColumn,
    NoSuchFunction,
    /// A function was called with the wrong number of arguments.
    WrongArgumentCount,
    TableExists,
    DatabaseExists,
    CatalogExists,
    /// `DROP DATABASE` of a database that has tables.
    DatabaseNotEmpty,
    /// Unknown user or wrong password.
    AccessDenied,
    /// The user may not do this, e.g. kill another user's query.
    NotAllowed,
    Killed,
    TimedOut,
    /// The query's or the process's memory limit.
    MemoryLimit,
    SpillDiskFull,
    /// More of a query's joins than `max_shuffled_dimensions` would be shuffled.
    TooManyShuffles,
    /// Valid SQL, or a table feature, that this version does not do.
    Unsupported,
    /// No worker is registered with the coordinator.
    NoWorker,
    WorkerLost,
    CatalogUnreachable,
    StorageUnreachable,
    /// A data or metadata file that is missing, truncated or not what it claims to be.
    CorruptFile,
    /// Another writer won, again and again.
    CommitConflict,
    PacketTooLarge,
    TooManyConnections,
    NoSuchVariable,
    WrongValueForVariable,
    UnknownTimeZone,
    ReadOnlyVariable,
    /// `KILL` of a connection or query that is not there.
    NoSuchThread,
    /// `EXECUTE` with the wrong number of parameters.
    WrongParameterCount,
    NoSuchPreparedStatement,
    ColumnCountMismatch,
    NullInRequiredColumn,
    /// A value that its column, a cast or a function cannot take.
    WrongValue,
    DivisionByZero,
    NumberOutOfRange,
    SubqueryReturnsMoreThanOneRow,
    /// An aggregate or a grouping that is not valid.
    WrongGrouping,
    DuplicateColumn,
    /// SQL that parses but cannot be planned or computed, for a reason no other kind names.
    InvalidQuery,
    /// A value of a statement that does not make sense: a bad property, an unknown transform, ….
    InvalidArgument,
    /// The server is stopping.
    ShuttingDown,
    /// An unexpected failure inside Tarn.
    Internal,
}

/// What the protocols call one [`ErrorKind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codes {
    pub mysql: u16,
    pub sqlstate: &'static str,
    pub grpc: tonic::Code,
}

const fn codes(mysql: u16, sqlstate: &'static str, grpc: tonic::Code) -> Codes {
    Codes {
        mysql,
        sqlstate,
        grpc,
    }
}

impl ErrorKind {
    /// Every kind, for tests and documentation.
    pub const ALL: &'static [ErrorKind] = &[
        Self::Syntax,
        Self::EmptyStatement,
        Self::NoSuchCatalog,
        Self::NoSuchDatabase,
        Self::NoDatabaseSelected,
        Self::NoSuchTable,
        Self::NoSuchColumn,
        Self::AmbiguousColumn,
        Self::NoSuchFunction,
        Self::WrongArgumentCount,
        Self::TableExists,
        Self::DatabaseExists,
        Self::CatalogExists,
        Self::DatabaseNotEmpty,
        Self::AccessDenied,
        Self::NotAllowed,
        Self::Killed,
        Self::TimedOut,
        Self::MemoryLimit,
        Self::SpillDiskFull,
        Self::TooManyShuffles,
        Self::Unsupported,
        Self::NoWorker,
        Self::WorkerLost,
        Self::CatalogUnreachable,
        Self::StorageUnreachable,
        Self::CorruptFile,
        Self::CommitConflict,
        Self::PacketTooLarge,
        Self::TooManyConnections,
        Self::NoSuchVariable,
        Self::WrongValueForVariable,
        Self::UnknownTimeZone,
        Self::ReadOnlyVariable,
        Self::NoSuchThread,
        Self::WrongParameterCount,
        Self::NoSuchPreparedStatement,
        Self::ColumnCountMismatch,
        Self::NullInRequiredColumn,
        Self::WrongValue,
        Self::DivisionByZero,
        Self::NumberOutOfRange,
        Self::SubqueryReturnsMoreThanOneRow,
        Self::WrongGrouping,
        Self::DuplicateColumn,
        Self::InvalidQuery,
        Self::InvalidArgument,
        Self::ShuttingDown,
        Self::Internal,
    ];

    /// The MySQL number, SQLSTATE and gRPC code of this kind.
    pub const fn codes(self) -> Codes {
        use tonic::Code as G;
        match self {
            Self::Syntax => codes(1064, "42000", G::InvalidArgument),
            Self::EmptyStatement => codes(1065, "42000", G::InvalidArgument),
            Self::NoSuchCatalog => codes(1049, "42000", G::NotFound),
            Self::NoSuchDatabase => codes(1049, "42000", G::NotFound),
            Self::NoDatabaseSelected => codes(1046, "3D000", G::InvalidArgument),
            Self::NoSuchTable => codes(1146, "42S02", G::NotFound),
            Self::NoSuchColumn => codes(1054, "42S22", G::InvalidArgument),
            Self::AmbiguousColumn => codes(1052, "23000", G::InvalidArgument),
            Self::NoSuchFunction => codes(1305, "42000", G::InvalidArgument),
            Self::WrongArgumentCount => codes(1582, "42000", G::InvalidArgument),
            Self::TableExists => codes(1050, "42S01", G::AlreadyExists),
            Self::DatabaseExists => codes(1007, "HY000", G::AlreadyExists),
            Self::CatalogExists => codes(1007, "HY000", G::AlreadyExists),
            Self::DatabaseNotEmpty => codes(1010, "HY000", G::FailedPrecondition),
            Self::AccessDenied => codes(1045, "28000", G::Unauthenticated),
            Self::NotAllowed => codes(1227, "42000", G::PermissionDenied),
            Self::Killed => codes(1317, "70100", G::Cancelled),
            Self::TimedOut => codes(3024, "HY000", G::DeadlineExceeded),
            Self::MemoryLimit => codes(1038, "HY001", G::ResourceExhausted),
            Self::SpillDiskFull => codes(1021, "HY000", G::ResourceExhausted),
            Self::TooManyShuffles => codes(1104, "42000", G::FailedPrecondition),
            Self::Unsupported => codes(1235, "42000", G::Unimplemented),
            Self::NoWorker => codes(1429, "HY000", G::Unavailable),
            Self::WorkerLost => codes(1430, "HY000", G::Unavailable),
            Self::CatalogUnreachable => codes(1296, "HY000", G::Unavailable),
            Self::StorageUnreachable => codes(1030, "HY000", G::Unavailable),
            Self::CorruptFile => codes(1033, "HY000", G::DataLoss),
            Self::CommitConflict => codes(1213, "40001", G::Aborted),
            Self::PacketTooLarge => codes(1153, "08S01", G::ResourceExhausted),
            Self::TooManyConnections => codes(1040, "08004", G::ResourceExhausted),
            Self::NoSuchVariable => codes(1193, "HY000", G::InvalidArgument),
            Self::WrongValueForVariable => codes(1231, "42000", G::InvalidArgument),
            Self::UnknownTimeZone => codes(1298, "HY000", G::InvalidArgument),
            Self::ReadOnlyVariable => codes(1238, "HY000", G::InvalidArgument),
            Self::NoSuchThread => codes(1094, "HY000", G::NotFound),
            Self::WrongParameterCount => codes(1210, "HY000", G::InvalidArgument),
            Self::NoSuchPreparedStatement => codes(1243, "HY000", G::NotFound),
            Self::ColumnCountMismatch => codes(1136, "21S01", G::InvalidArgument),
            Self::NullInRequiredColumn => codes(1048, "23000", G::InvalidArgument),
            Self::WrongValue => codes(1292, "22007", G::InvalidArgument),
            Self::DivisionByZero => codes(1365, "22012", G::InvalidArgument),
            Self::NumberOutOfRange => codes(1690, "22003", G::OutOfRange),
            Self::SubqueryReturnsMoreThanOneRow => codes(1242, "21000", G::InvalidArgument),
            Self::WrongGrouping => codes(1055, "42000", G::InvalidArgument),
            Self::DuplicateColumn => codes(1060, "42S21", G::InvalidArgument),
            Self::InvalidQuery => codes(1105, "HY000", G::InvalidArgument),
            Self::InvalidArgument => codes(1210, "HY000", G::InvalidArgument),
            Self::ShuttingDown => codes(1053, "08S01", G::Unavailable),
            Self::Internal => codes(1105, "HY000", G::Internal),
        }
    }
}

/// A statement's failure: one clear sentence and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
}

/// The result of everything a client can ask for.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// The MySQL error number.
    pub fn mysql_code(&self) -> u16 {
        self.kind.codes().mysql
    }

    /// The five characters of SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.kind.codes().sqlstate
    }

    /// The code of the gRPC status that Flight SQL clients get.
    pub fn grpc_code(&self) -> tonic::Code {
        self.kind.codes().grpc
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_find_the_numbers_they_test_for() {
        let table = [
            (ErrorKind::Syntax, 1064, "42000"),
            (ErrorKind::NoSuchDatabase, 1049, "42000"),
            (ErrorKind::NoSuchTable, 1146, "42S02"),
            (ErrorKind::NoSuchColumn, 1054, "42S22"),
            (ErrorKind::TableExists, 1050, "42S01"),
            (ErrorKind::DatabaseExists, 1007, "HY000"),
            (ErrorKind::AccessDenied, 1045, "28000"),
            (ErrorKind::Killed, 1317, "70100"),
            (ErrorKind::TimedOut, 3024, "HY000"),
            (ErrorKind::Unsupported, 1235, "42000"),
            (ErrorKind::PacketTooLarge, 1153, "08S01"),
        ];
        for (kind, code, state) in table {
            let error = Error::new(kind, "x");
            assert_eq!((error.mysql_code(), error.sqlstate()), (code, state));
        }
    }

    #[test]
    fn every_kind_has_a_five_character_sqlstate_and_a_failing_grpc_code() {
        for kind in ErrorKind::ALL {
            let codes = kind.codes();
            assert_eq!(codes.sqlstate.len(), 5, "{kind:?}");
            assert_ne!(codes.grpc, tonic::Code::Ok, "{kind:?}");
            assert!(codes.mysql >= 1000, "{kind:?}");
        }
    }
}
