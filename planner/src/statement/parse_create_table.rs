//! `CREATE TABLE`: columns with Iceberg's types, partition transforms, properties, and AS.

use std::collections::HashMap;

use datafusion::sql::sqlparser::tokenizer::Token;
use iceberg::spec::{NullOrder, Schema, SortDirection, Transform};
use tarn_catalog::{OrderField, PartitionField};

use super::column_types::{Column, parse_type, schema};
use super::cursor::{Cursor, Failure, Parsed};
use super::parse::{Context, parse_query};
use super::{CreateTable, Query, Statement};

/// The format version of new tables.
const FORMAT_VERSION: u8 = 2;

fn refused(detail: impl Into<String>) -> Failure {
    Failure::Unsupported {
        kind: "CREATE TABLE",
        detail: detail.into(),
    }
}

/// After `CREATE TABLE`.
pub(super) fn parse_create_table(
    cursor: &mut Cursor<'_>,
    context: &Context<'_>,
) -> Parsed<Statement> {
    let if_not_exists = cursor.if_not_exists();
    let name = cursor.object_path()?;
    if cursor.word("LIKE") {
        return Err(refused(
            "CREATE TABLE … LIKE is not supported: use CREATE TABLE … AS SELECT … WHERE FALSE",
        ));
    }
    let mut create = CreateTable {
        name,
        columns: None,
        partition: Vec::new(),
        order: Vec::new(),
        properties: HashMap::new(),
        location: None,
        format_version: FORMAT_VERSION,
        if_not_exists,
        query: None,
    };
    let holds_columns = cursor.is(&Token::LParen)
        && !["SELECT", "WITH", "VALUES", "TABLE"]
            .iter()
            .any(|word| cursor.is_word_at(1, word))
        && cursor.parser.peek_nth_token_ref(1).token != Token::LParen;
    if holds_columns {
        create.columns = Some(schema(columns(cursor)?)?);
    }
    options(cursor, &mut create)?;
    create.query = source(cursor, context)?;
    finish(create)
}

fn columns(cursor: &mut Cursor<'_>) -> Parsed<Vec<Column>> {
    cursor.expect(&Token::LParen)?;
    let mut columns = Vec::new();
    loop {
        for (words, what) in [
            (&["PRIMARY", "KEY"] as &[&str], "PRIMARY KEY"),
            (&["UNIQUE"], "UNIQUE"),
            (&["FOREIGN", "KEY"], "FOREIGN KEY"),
            (&["CONSTRAINT"], "CONSTRAINT"),
            (&["CHECK"], "CHECK"),
        ] {
            if cursor.words(words) {
                return Err(refused(format!(
                    "{what} is not supported: Iceberg tables do not enforce constraints"
                )));
            }
        }
        // `KEY (a)` and `KEY k (a)` are indexes; `key varchar(20)` is a column.
        let after = |n| &cursor.parser.peek_nth_token_ref(n).token;
        if (cursor.is_word("KEY") || cursor.is_word("INDEX"))
            && (*after(1) == Token::LParen
                || *after(2) == Token::LParen && !matches!(after(3), Token::Number(..)))
        {
            return Err(refused("indexes are not supported"));
        }
        let name = cursor.name()?;
        let column_type = parse_type(cursor)?;
        let mut column = Column {
            name,
            column_type,
            required: false,
            comment: None,
        };
        column_options(cursor, &mut column)?;
        columns.push(column);
        if !cursor.take(&Token::Comma) {
            break;
        }
    }
    cursor.expect(&Token::RParen)?;
    Ok(columns)
}

fn column_options(cursor: &mut Cursor<'_>, column: &mut Column) -> Parsed<()> {
    loop {
        if cursor.words(&["NOT", "NULL"]) {
            column.required = true;
        } else if cursor.word("NULL") || cursor.words(&["DEFAULT", "NULL"]) {
            // Columns are nullable unless said otherwise.
        } else if cursor.word("COMMENT") {
            column.comment = Some(cursor.string()?);
        } else if cursor.words(&["CHARACTER", "SET"])
            || cursor.one_of(&["COLLATE", "CHARSET"]).is_some()
        {
            cursor.name()?;
        } else if let Some(word) = cursor.one_of(&[
            "DEFAULT",
            "PRIMARY",
            "UNIQUE",
            "AUTO_INCREMENT",
            "REFERENCES",
            "CHECK",
            "GENERATED",
            "AS",
            "KEY",
            "ON",
        ]) {
            let what = if word == "PRIMARY" {
                "PRIMARY KEY"
            } else {
                word
            };
            return Err(refused(format!(
                "{what} is not supported (column `{}`)",
                column.name
            )));
        } else {
            return Ok(());
        }
    }
}

fn options(cursor: &mut Cursor<'_>, create: &mut CreateTable) -> Parsed<()> {
    loop {
        cursor.take(&Token::Comma);
        if cursor.words(&["PARTITION", "BY"]) || cursor.words(&["PARTITIONED", "BY"]) {
            if !create.partition.is_empty() {
                return Err(Failure::Invalid("PARTITION BY is written twice".to_owned()));
            }
            create.partition = partition_terms(cursor)?;
        } else if cursor
            .one_of(&["TBLPROPERTIES", "PROPERTIES", "WITH"])
            .is_some()
        {
            create.properties.extend(cursor.properties()?);
        } else if cursor.word("LOCATION") {
            create.location = Some(cursor.string()?);
        } else if cursor.word("COMMENT") {
            cursor.take(&Token::Eq);
            create
                .properties
                .insert("comment".to_owned(), cursor.string()?);
        } else if cursor.word("ENGINE") || cursor.word("USING") {
            // MySQL tools name an engine, Spark a format; every table here is Iceberg's.
            cursor.take(&Token::Eq);
            let engine = cursor.name()?;
            if !["iceberg", "innodb"].contains(&engine.to_lowercase().as_str()) {
                return Err(refused(format!(
                    "the table engine `{engine}` is not supported: tables are Iceberg tables"
                )));
            }
        } else if default_charset(cursor)? {
            // Text is UTF-8.
        } else if cursor.words(&["ORDER", "BY"]) {
            if !create.order.is_empty() {
                return Err(Failure::Invalid("ORDER BY is written twice".to_owned()));
            }
            create.order = terms(cursor, order_term)?;
        } else if cursor.words(&["DISTRIBUTED", "BY"]) || cursor.words(&["CLUSTERED", "BY"]) {
            return Err(refused(
                "DISTRIBUTED BY is not supported: use PARTITION BY (bucket(n, column))",
            ));
        } else {
            return Ok(());
        }
    }
}

fn default_charset(cursor: &mut Cursor<'_>) -> Parsed<bool> {
    let _ = cursor.word("DEFAULT");
    if cursor.words(&["CHARACTER", "SET"]) || cursor.one_of(&["CHARSET", "COLLATE"]).is_some() {
        cursor.take(&Token::Eq);
        cursor.name()?;
        return Ok(true);
    }
    Ok(false)
}

/// `(term, …)`, or terms without brackets as Spark writes them.
fn partition_terms(cursor: &mut Cursor<'_>) -> Parsed<Vec<PartitionField>> {
    for kind in ["RANGE", "LIST", "HASH", "KEY"] {
        if cursor.is_word(kind) && cursor.parser.peek_nth_token_ref(1).token == Token::LParen {
            return Err(refused(format!(
                "PARTITION BY {kind} is not supported: name a column or a transform (year, month, day, hour, bucket, truncate)"
            )));
        }
    }
    terms(cursor, partition_term)
}

fn terms<T>(
    cursor: &mut Cursor<'_>,
    term: impl Fn(&mut Cursor<'_>) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let bracketed = cursor.take(&Token::LParen);
    let mut terms = Vec::new();
    loop {
        terms.push(term(cursor)?);
        if !cursor.take(&Token::Comma) {
            break;
        }
    }
    if bracketed {
        cursor.expect(&Token::RParen)?;
    }
    Ok(terms)
}

/// `column`, `transform(column)`, `bucket(n, column)`; with `AS name` for the partition field's name.
fn partition_term(cursor: &mut Cursor<'_>) -> Parsed<PartitionField> {
    let (column, transform) = transformed(cursor)?;
    let name = if cursor.word("AS") {
        Some(cursor.name()?)
    } else {
        None
    };
    Ok(PartitionField {
        column,
        transform,
        name,
    })
}

/// `column`, `transform(column)`, …, each with `ASC` or `DESC` and `NULLS FIRST` or `NULLS LAST`; nulls count as the least.
fn order_term(cursor: &mut Cursor<'_>) -> Parsed<OrderField> {
    let (column, transform) = transformed(cursor)?;
    let descending = cursor
        .one_of(&["ASC", "DESC"])
        .is_some_and(|it| it == "DESC");
    let direction = match descending {
        true => SortDirection::Descending,
        false => SortDirection::Ascending,
    };
    let nulls = if cursor.words(&["NULLS", "FIRST"]) {
        NullOrder::First
    } else if cursor.words(&["NULLS", "LAST"]) || descending {
        NullOrder::Last
    } else {
        NullOrder::First
    };
    Ok(OrderField {
        column,
        transform,
        direction,
        nulls,
    })
}

fn transformed(cursor: &mut Cursor<'_>) -> Parsed<(String, Transform)> {
    let word = cursor.name()?;
    if !cursor.take(&Token::LParen) {
        return Ok((dotted(cursor, word)?, Transform::Identity));
    }
    let term = transform(cursor, &word)?;
    cursor.expect(&Token::RParen)?;
    Ok(term)
}

fn transform(cursor: &mut Cursor<'_>, word: &str) -> Parsed<(String, Transform)> {
    let simple = match word.to_ascii_lowercase().as_str() {
        "identity" => Some(Transform::Identity),
        "year" | "years" => Some(Transform::Year),
        "month" | "months" => Some(Transform::Month),
        "day" | "days" | "date" => Some(Transform::Day),
        "hour" | "hours" | "date_hour" => Some(Transform::Hour),
        "void" => Some(Transform::Void),
        "bucket" | "truncate" | "trunc" => None,
        "date_trunc" => {
            let unit = cursor.string()?.to_ascii_lowercase();
            cursor.expect(&Token::Comma)?;
            Some(match unit.as_str() {
                "year" => Transform::Year,
                "month" => Transform::Month,
                "day" => Transform::Day,
                "hour" => Transform::Hour,
                _ => {
                    return Err(Failure::Invalid(format!(
                        "date_trunc('{unit}', …) is not an Iceberg partition transform"
                    )));
                }
            })
        }
        _ => {
            return Err(Failure::Invalid(format!(
                "`{word}` is not a partition transform: there are identity, year, month, day, hour, bucket(n, column), \
                 truncate(n, column) and void"
            )));
        }
    };
    if let Some(transform) = simple {
        return Ok((column(cursor)?, transform));
    }
    // Iceberg writes the width first, StarRocks last.
    let (column, width) = if matches!(cursor.parser.peek_token_ref().token, Token::Number(..)) {
        let width = cursor.unsigned()?;
        cursor.expect(&Token::Comma)?;
        (column(cursor)?, width)
    } else {
        let column = column(cursor)?;
        cursor.expect(&Token::Comma)?;
        (column, cursor.unsigned()?)
    };
    let width = u32::try_from(width)
        .ok()
        .filter(|width| (1..=i32::MAX as u32).contains(width))
        .ok_or_else(|| {
            Failure::Invalid(format!(
                "{word}({width}, {column}): the number is at least 1 and fits 31 bits"
            ))
        })?;
    let transform = if word.eq_ignore_ascii_case("bucket") {
        Transform::Bucket(width)
    } else {
        Transform::Truncate(width)
    };
    Ok((column, transform))
}

fn column(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let name = cursor.name()?;
    dotted(cursor, name)
}

fn dotted(cursor: &mut Cursor<'_>, mut name: String) -> Parsed<String> {
    while cursor.take(&Token::Period) {
        name = format!("{name}.{}", cursor.name()?);
    }
    Ok(name)
}

/// `[AS] query`, bracketed or not.
fn source(cursor: &mut Cursor<'_>, context: &Context<'_>) -> Parsed<Option<Query>> {
    let _ = cursor.one_of(&["IGNORE", "REPLACE"]);
    if !cursor.word("AS") && cursor.at_end() {
        return Ok(None);
    }
    if ["SELECT", "WITH", "VALUES", "TABLE"]
        .iter()
        .any(|word| cursor.is_word(word))
        || cursor.is(&Token::LParen)
    {
        return parse_query(cursor, context).map(Some);
    }
    cursor.expected("a table option or AS and a query")
}

fn finish(mut create: CreateTable) -> Parsed<Statement> {
    if create.columns.is_some() && create.query.is_some() {
        return Err(refused(
            "CREATE TABLE … AS takes its columns from the query: leave out the list of columns",
        ));
    }
    if create.columns.is_none() && create.query.is_none() {
        return Err(Failure::Invalid(
            "A table must have at least 1 column".to_owned(),
        ));
    }
    if let Some(version) = create.properties.remove("format-version") {
        create.format_version = match version.as_str() {
            "1" => 1,
            "2" => 2,
            "3" => 3,
            _ => {
                return Err(refused(format!(
                    "Iceberg format version {version} is not supported: 1, 2 and 3 are"
                )));
            }
        };
    }
    if let Some(schema) = &create.columns {
        for field in &mut create.partition {
            let what = ("PARTITION", "partitioned");
            check_source(schema, &mut field.column, field.transform, what)?;
        }
        for field in &mut create.order {
            check_source(
                schema,
                &mut field.column,
                field.transform,
                ("ORDER", "sorted"),
            )?;
        }
    }
    Ok(Statement::CreateTable(Box::new(create)))
}

/// The column exists and its type can be transformed; its name becomes the schema's spelling.
fn check_source(
    schema: &Schema,
    column: &mut String,
    transform: Transform,
    (clause, done): (&str, &str),
) -> Parsed<()> {
    let source = schema
        .field_by_name(column)
        .or_else(|| schema.field_by_name_case_insensitive(column))
        .ok_or_else(|| Failure::Invalid(format!("Unknown column '{column}' in {clause} BY")))?;
    if let Some(spelled) = schema.name_by_field_id(source.id) {
        *column = spelled.to_owned();
    }
    let kind = &source.field_type;
    if !kind.is_primitive() || transform.result_type(kind).is_err() {
        return Err(Failure::Invalid(format!(
            "column `{column}` of type {kind} cannot be {done} by {transform}"
        )));
    }
    Ok(())
}
