//! Errors of the crates below, turned into one sentence and a kind.

use std::error::Error as StdError;
use std::io;

use datafusion::arrow::error::ArrowError;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use tarn_catalog::{CatalogError, near_names};
use tarn_cluster::ClusterError;
use tarn_planner::PlannerError;
use tarn_planner::statement::{ParseError, RewriteError};

use crate::error::{Error, ErrorKind};

/// "No space left on device".
const ENOSPC: i32 = 28;

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        from_datafusion(&error)
    }
}

impl From<CatalogError> for Error {
    fn from(error: CatalogError) -> Self {
        from_catalog(&error)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        from_arrow(&error)
    }
}

impl From<ClusterError> for Error {
    fn from(error: ClusterError) -> Self {
        from_cluster(&error)
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        let kind = match &error {
            ParseError::Syntax { .. } | ParseError::TooDeep => ErrorKind::Syntax,
            ParseError::Empty => ErrorKind::EmptyStatement,
            ParseError::Several(_) => ErrorKind::Syntax,
            ParseError::Invalid(_) => ErrorKind::InvalidArgument,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<RewriteError> for Error {
    fn from(error: RewriteError) -> Self {
        match &error {
            RewriteError::UnknownVariable(name) => crate::variables::unknown(name),
            RewriteError::Unsupported(_) => Self::new(ErrorKind::Unsupported, error.to_string()),
            RewriteError::Hint(_) => Self::new(ErrorKind::InvalidQuery, error.to_string()),
            RewriteError::ParameterCount(_) => {
                Self::new(ErrorKind::WrongArgumentCount, error.to_string())
            }
        }
    }
}

fn from_datafusion(error: &DataFusionError) -> Error {
    use DataFusionError as D;
    match error {
        // What wraps an error says where in the code it passed, which tells the client nothing.
        D::Context(_, inner) | D::Diagnostic(_, inner) => from_datafusion(inner),
        D::Shared(inner) => from_datafusion(inner),
        D::Collection(errors) => match errors.first() {
            Some(first) => from_datafusion(first),
            None => Error::new(ErrorKind::Internal, "the query failed"),
        },
        D::External(inner) => from_any(inner.as_ref()),
        D::ArrowError(inner, _) => from_arrow(inner),
        D::ParquetError(inner) => from_parquet(inner),
        D::ObjectStore(inner) => from_any(inner.as_ref()),
        D::IoError(inner) => from_io(inner),
        D::SQL(inner, _) => Error::new(
            ErrorKind::Syntax,
            format!(
                "You have an error in your SQL syntax: {}",
                parser_text(inner)
            ),
        ),
        D::NotImplemented(text) => unsupported(text),
        D::Plan(text) => from_plan(text),
        D::Configuration(text) => Error::new(ErrorKind::InvalidArgument, sentence(text)),
        D::SchemaError(inner, _) => from_schema(inner),
        D::Execution(text) => from_text(text).unwrap_or_else(|| execution(text)),
        D::ExecutionJoin(inner) if inner.is_cancelled() => {
            Error::new(ErrorKind::Killed, "Query execution was interrupted")
        }
        D::ExecutionJoin(inner) => Error::new(
            ErrorKind::Internal,
            format!("a task of the query failed: {inner}"),
        ),
        D::ResourcesExhausted(text) => resources(text),
        D::Internal(text) | D::Substrait(text) | D::Ffi(text) => {
            Error::new(ErrorKind::Internal, sentence(text))
        }
    }
}

/// Looks for an error of ours among the causes; what crossed a process as text is known by its words.
fn from_any(error: &(dyn StdError + 'static)) -> Error {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(ours) = error.downcast_ref::<Error>() {
            return ours.clone();
        }
        if let Some(ours) = error.downcast_ref::<CatalogError>() {
            return from_catalog(ours);
        }
        if let Some(ours) = error.downcast_ref::<ClusterError>() {
            return from_cluster(ours);
        }
        if let Some(ours) = error.downcast_ref::<PlannerError>() {
            return from_planner(ours);
        }
        if let Some(inner) = error.downcast_ref::<DataFusionError>() {
            return from_datafusion(inner);
        }
        if let Some(inner) = error.downcast_ref::<ArrowError>() {
            return from_arrow(inner);
        }
        if let Some(inner) = error.downcast_ref::<ParquetError>() {
            return from_parquet(inner);
        }
        if let Some(inner) = error.downcast_ref::<io::Error>()
            && let Some(known) = from_known_io(inner)
        {
            return known;
        }
        cause = error.source();
    }
    let text = error.to_string();
    from_text(&text).unwrap_or_else(|| Error::new(ErrorKind::StorageUnreachable, sentence(&text)))
}

fn from_catalog(error: &CatalogError) -> Error {
    use CatalogError as C;
    let kind = match error {
        C::NoSuchCatalog { .. } => ErrorKind::NoSuchCatalog,
        C::NoSuchDatabase { .. } => ErrorKind::NoSuchDatabase,
        C::NoSuchTable { table, similar } => {
            return no_such_table(&table.to_string(), similar);
        }
        C::NoTableAt { .. } => ErrorKind::NoSuchTable,
        C::CatalogExists { .. } => ErrorKind::CatalogExists,
        C::DatabaseExists { .. } => ErrorKind::DatabaseExists,
        C::TableExists { .. } => ErrorKind::TableExists,
        C::DatabaseNotEmpty { .. } => ErrorKind::DatabaseNotEmpty,
        C::CatalogFixed { .. } => ErrorKind::NotAllowed,
        C::InvalidCatalog { .. }
        | C::NoSuchVersion { .. }
        | C::InvalidName { .. }
        | C::InvalidTable { .. }
        | C::InvalidLocation { .. } => ErrorKind::InvalidArgument,
        C::InvalidValue { .. } => ErrorKind::WrongValue,
        C::Unreachable { .. } | C::Refused { .. } => ErrorKind::CatalogUnreachable,
        C::Store { .. } => ErrorKind::StorageUnreachable,
        C::MissingFile { .. } | C::Corrupt { .. } => ErrorKind::CorruptFile,
        C::CommitConflict { .. } => ErrorKind::CommitConflict,
        C::CommitUnknown { .. } => ErrorKind::CatalogUnreachable,
        C::Unsupported { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

fn from_cluster(error: &ClusterError) -> Error {
    match error {
        ClusterError::NoWorkers(text) => Error::new(ErrorKind::NoWorker, text.clone()),
        ClusterError::DataFusion(inner) => from_datafusion(inner),
        other => Error::new(ErrorKind::InvalidArgument, other.to_string()),
    }
}

fn from_planner(error: &PlannerError) -> Error {
    let kind = match error {
        PlannerError::DataFile { .. }
        | PlannerError::DeleteFile { .. }
        | PlannerError::Metadata { .. } => ErrorKind::CorruptFile,
        PlannerError::TableVersion(_) => ErrorKind::InvalidArgument,
        PlannerError::Setting { .. } => ErrorKind::WrongValueForVariable,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

/// The error of a table that is not there, in MySQL's words, with near names.
pub(crate) fn no_such_table(name: &str, similar: &[String]) -> Error {
    Error::new(
        ErrorKind::NoSuchTable,
        format!("Table '{name}' doesn't exist{}", did_you_mean(similar)),
    )
}

/// `; did you mean 'a' or 'b'?`, or nothing.
pub(crate) fn did_you_mean(similar: &[String]) -> String {
    if similar.is_empty() {
        return String::new();
    }
    let names: Vec<String> = similar.iter().map(|name| format!("'{name}'")).collect();
    format!("; did you mean {}?", names.join(" or "))
}

fn from_schema(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => no_such_column(field, valid_fields),
        SchemaError::AmbiguousReference { field } => Error::new(
            ErrorKind::AmbiguousColumn,
            format!("Column '{}' in field list is ambiguous", field.flat_name()),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => Error::new(
            ErrorKind::DuplicateColumn,
            format!("Duplicate column name '{name}'"),
        ),
    }
}

fn no_such_column(field: &Column, valid: &[Column]) -> Error {
    let mut names: Vec<&str> = valid.iter().map(|column| column.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let similar = near_names(&field.name, names.iter().copied());
    let hint = if !similar.is_empty() {
        did_you_mean(&similar)
    } else if names.is_empty() {
        String::new()
    } else {
        let mut shown = names
            .iter()
            .take(20)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        if names.len() > 20 {
            shown.push_str(", …");
        }
        format!("; the columns are {shown}")
    };
    Error::new(
        ErrorKind::NoSuchColumn,
        format!(
            "Unknown column '{}' in 'field list'{hint}",
            field.flat_name()
        ),
    )
}

fn from_plan(text: &str) -> Error {
    if let Some(name) = between(text, "table '", "' not found") {
        return no_such_table(name, &[]);
    }
    if let Some(name) = between(text, "Invalid function '", "'") {
        let hint = between(text, "Did you mean '", "'")
            .filter(|near| levenshtein(name, near) <= name.chars().count() / 3)
            .map(|near| format!("; did you mean '{near}'?"))
            .unwrap_or_default();
        return Error::new(
            ErrorKind::NoSuchFunction,
            format!("FUNCTION {name} does not exist{hint}"),
        );
    }
    // The engine says so of every column, whether there is a wildcard or not.
    if let Some((_, column)) = text.split_once("While expanding wildcard, column \"")
        && let Some((column, _)) = column.split_once("\" must appear")
    {
        return Error::new(
            ErrorKind::WrongGrouping,
            format!(
                "Column '{column}' must appear in the GROUP BY clause or in an aggregate function"
            ),
        );
    }
    let lower = text.to_ascii_lowercase();
    let kind = if lower.contains("group by") && lower.contains("must appear")
        || lower.contains("could not be resolved from available columns")
    {
        ErrorKind::WrongGrouping
    } else if lower.contains("not implemented")
        || lower.contains("not supported")
        || lower.contains("unsupported")
    {
        ErrorKind::Unsupported
    } else if lower.contains("have the same name") || lower.contains("duplicate") {
        ErrorKind::DuplicateColumn
    } else {
        ErrorKind::InvalidQuery
    };
    Error::new(kind, sentence(text))
}

fn unsupported(text: &str) -> Error {
    if text.contains("Physical plan does not support logical expression")
        && ["ScalarSubquery(", "Exists(", "InSubquery("]
            .iter()
            .any(|kind| text.contains(kind))
    {
        return Error::new(
            ErrorKind::Unsupported,
            "This subquery names columns of the query around it in a way that is not supported: it can be an aggregate, EXISTS or IN \
             whose conditions on them are joined by AND, and that is not below OR or inside an aggregate. Write it as a join",
        );
    }
    Error::new(ErrorKind::Unsupported, sentence(text))
}

fn from_arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => from_any(inner.as_ref()),
        ArrowError::DivideByZero => Error::new(ErrorKind::DivisionByZero, "Division by zero"),
        ArrowError::ArithmeticOverflow(text) => Error::new(
            ErrorKind::NumberOutOfRange,
            format!("value is out of range: {text}"),
        ),
        ArrowError::CastError(text) | ArrowError::ParseError(text) => {
            Error::new(ErrorKind::WrongValue, sentence(text))
        }
        ArrowError::ParquetError(text) => corrupt(text),
        ArrowError::IoError(text, inner) => {
            from_known_io(inner).unwrap_or_else(|| Error::new(ErrorKind::Internal, sentence(text)))
        }
        ArrowError::MemoryError(text) => resources(text),
        ArrowError::NotYetImplemented(text) => Error::new(ErrorKind::Unsupported, sentence(text)),
        ArrowError::InvalidArgumentError(text) | ArrowError::ComputeError(text) => {
            from_text(text).unwrap_or_else(|| Error::new(ErrorKind::WrongValue, sentence(text)))
        }
        other => Error::new(ErrorKind::Internal, sentence(&other.to_string())),
    }
}

fn from_parquet(error: &ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => from_any(inner.as_ref()),
        ParquetError::NYI(text) => Error::new(ErrorKind::Unsupported, sentence(text)),
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::ArrowError(text) => {
            from_text(text).unwrap_or_else(|| corrupt(text))
        }
        other => corrupt(&other.to_string()),
    }
}

fn corrupt(text: &str) -> Error {
    Error::new(
        ErrorKind::CorruptFile,
        format!("a data file is corrupt: {}", sentence(text)),
    )
}

fn from_io(error: &io::Error) -> Error {
    from_known_io(error)
        .unwrap_or_else(|| Error::new(ErrorKind::StorageUnreachable, error.to_string()))
}

fn from_known_io(error: &io::Error) -> Option<Error> {
    if error.kind() == io::ErrorKind::StorageFull || error.raw_os_error() == Some(ENOSPC) {
        return Some(Error::new(
            ErrorKind::SpillDiskFull,
            "Disk full: no space is left for spilled data",
        ));
    }
    let inner = error.get_ref()?;
    if let Some(inner) = inner.downcast_ref::<DataFusionError>() {
        return Some(from_datafusion(inner));
    }
    inner.downcast_ref::<CatalogError>().map(from_catalog)
}

fn resources(text: &str) -> Error {
    let lower = text.to_ascii_lowercase();
    if lower.contains("disk") {
        return Error::new(
            ErrorKind::SpillDiskFull,
            format!("The spill disk is full: {}", sentence(text)),
        );
    }
    Error::new(
        ErrorKind::MemoryLimit,
        format!("Out of memory: {} (see query_memory_bytes)", sentence(text)),
    )
}

/// Errors that came from a worker as text, known by how their own crate words them.
fn from_text(text: &str) -> Option<Error> {
    let lower = text.to_ascii_lowercase();
    let kind = if lower.contains("no space left on device") || lower.contains("os error 28") {
        ErrorKind::SpillDiskFull
    } else if lower.contains("resources exhausted") || lower.contains("memory limit") {
        return Some(resources(text));
    } else if lower.contains(" is corrupt")
        || lower.contains("data file '") && lower.contains("cannot be read")
        || lower.contains("is missing") && lower.contains("file")
    {
        ErrorKind::CorruptFile
    } else if lower.contains("this version of tarn does not support") {
        ErrorKind::Unsupported
    } else if lower.starts_with("cannot read ") || lower.starts_with("cannot open ") {
        ErrorKind::StorageUnreachable
    } else if lower.contains("divide by zero") {
        return Some(Error::new(ErrorKind::DivisionByZero, "Division by zero"));
    } else if lower.contains("subquery returns more than 1 row")
        || lower.contains("subquery") && lower.contains("more than one row")
    {
        return Some(Error::new(
            ErrorKind::SubqueryReturnsMoreThanOneRow,
            "Subquery returns more than 1 row",
        ));
    } else {
        return None;
    };
    Some(Error::new(kind, sentence(text)))
}

fn execution(text: &str) -> Error {
    let lower = text.to_ascii_lowercase();
    let kind = if lower.contains("overflow") || lower.contains("out of range") {
        ErrorKind::NumberOutOfRange
    } else if lower.contains("cast") || lower.contains("parse") || lower.contains("invalid") {
        ErrorKind::WrongValue
    } else {
        ErrorKind::InvalidQuery
    };
    Error::new(kind, sentence(text))
}

fn parser_text(error: &datafusion::sql::sqlparser::parser::ParserError) -> String {
    use datafusion::sql::sqlparser::parser::ParserError as P;
    match error {
        P::TokenizerError(text) | P::ParserError(text) => sentence(text),
        P::RecursionLimitExceeded => "it is nested too deeply".to_owned(),
    }
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let rest = text.get(start..)?;
    rest.get(..rest.find(after)?)
}

/// One line without backtrace and without the names of the layers an error went through.
fn sentence(text: &str) -> String {
    let text = text.split("\n\nbacktrace:").next().unwrap_or(text);
    let text = text
        .split("\nThis issue was likely caused")
        .next()
        .unwrap_or(text);
    let mut text = text.trim();
    'peel: loop {
        for layer in [
            "Error during planning: ",
            "Execution error: ",
            "External error: ",
            "External: ",
            "Arrow error: ",
            "Parquet error: ",
            "Parquet argument error: ",
            "Object Store error: ",
            "Internal error: ",
            "Cast error: ",
            "Parser error: ",
            "sql parser error: ",
            "This feature is not implemented: ",
            "Resources exhausted: ",
            "Invalid argument error: ",
        ] {
            if let Some(rest) = text.strip_prefix(layer) {
                text = rest.trim_start();
                continue 'peel;
            }
        }
        break;
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tarn_catalog::TableName;

    use super::*;

    fn converted(error: DataFusionError) -> (ErrorKind, String) {
        let error = Error::from(error);
        (error.kind, error.message)
    }

    #[test]
    fn our_own_errors_are_found_under_every_wrapping() {
        let missing = CatalogError::NoSuchTable {
            table: TableName::new("lake", "shop", "ordrs"),
            similar: vec!["orders".into()],
        };
        let wrapped = DataFusionError::Shared(Arc::new(
            DataFusionError::External(Box::new(missing)).context("while pinning"),
        ));
        assert_eq!(
            converted(wrapped),
            (
                ErrorKind::NoSuchTable,
                "Table 'lake.shop.ordrs' doesn't exist; did you mean 'orders'?".into()
            )
        );
    }

    #[test]
    fn a_missing_column_suggests_near_names() {
        let error = DataFusionError::SchemaError(
            Box::new(SchemaError::FieldNotFound {
                field: Box::new(Column::from_name("amuont")),
                valid_fields: vec![Column::from_name("amount"), Column::from_name("day")],
            }),
            Box::new(None),
        );
        let (kind, message) = converted(error);
        assert_eq!(kind, ErrorKind::NoSuchColumn);
        assert_eq!(
            message,
            "Unknown column 'amuont' in 'field list'; did you mean 'amount'?"
        );
    }

    #[test]
    fn kinds_follow_from_datafusions_errors() {
        use DataFusionError as D;
        for (error, kind) in [
            (D::NotImplemented("PIVOT".into()), ErrorKind::Unsupported),
            (
                D::ResourcesExhausted("Failed to allocate 5 MB".into()),
                ErrorKind::MemoryLimit,
            ),
            (
                D::ResourcesExhausted("The used disk space has exceeded".into()),
                ErrorKind::SpillDiskFull,
            ),
            (
                D::IoError(io::Error::from_raw_os_error(ENOSPC)),
                ErrorKind::SpillDiskFull,
            ),
            (
                D::Plan("table 'a.b.c' not found".into()),
                ErrorKind::NoSuchTable,
            ),
            (
                D::Plan("Invalid function 'fooo'.\nDid you mean 'floor'?".into()),
                ErrorKind::NoSuchFunction,
            ),
            (
                D::ArrowError(Box::new(ArrowError::DivideByZero), None),
                ErrorKind::DivisionByZero,
            ),
            (
                D::ArrowError(Box::new(ArrowError::CastError("x".into())), None),
                ErrorKind::WrongValue,
            ),
            (
                D::ParquetError(Box::new(ParquetError::EOF("short".into()))),
                ErrorKind::CorruptFile,
            ),
            (
                D::External("data file 's3://b/f' is corrupt: no footer".into()),
                ErrorKind::CorruptFile,
            ),
        ] {
            let shown = error.to_string();
            assert_eq!(converted(error).0, kind, "{shown}");
        }
    }

    #[test]
    fn messages_are_one_line_without_layers() {
        let text = "External error: Execution error: it broke\nhere\n\nbacktrace: 0: main";
        assert_eq!(sentence(text), "it broke here");
    }
}
