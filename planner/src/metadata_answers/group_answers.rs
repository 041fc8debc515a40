//! Answers of files, put together by group.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

use super::questions::{Question, QuestionKind};

/// What is known of the rows of one group.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Count(u64),
    /// The smallest or largest value; `None` if all are null.
    Extreme(Option<ScalarValue>),
}

/// The groups that were met, in that order.
#[derive(Default)]
pub(super) struct GroupAnswers {
    by_key: HashMap<Vec<ScalarValue>, usize>,
    groups: Vec<(Vec<ScalarValue>, Vec<Answer>)>,
}

impl GroupAnswers {
    /// The answers of no row at all, which are those of the one group that is there if nothing is grouped by.
    pub(super) fn of_no_rows(questions: &[Question]) -> Vec<Answer> {
        questions
            .iter()
            .map(|question| match question.kind {
                QuestionKind::Count => Answer::Count(0),
                QuestionKind::Min | QuestionKind::Max => Answer::Extreme(None),
            })
            .collect()
    }

    /// Adds what one file answers.
    pub(super) fn add(
        &mut self,
        key: Vec<ScalarValue>,
        answers: Vec<Answer>,
        questions: &[Question],
    ) {
        match self.by_key.get(&key) {
            Some(index) => {
                let known = self.groups[*index].1.iter_mut();
                for ((known, new), question) in known.zip(answers).zip(questions) {
                    known.merge(new, question.kind);
                }
            }
            None => {
                self.by_key.insert(key.clone(), self.groups.len());
                self.groups.push((key, answers));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// A row for each group: what it is grouped by, then the answers.
    pub(super) fn rows(&self, schema: &SchemaRef) -> Result<RecordBatch> {
        let keys = self.groups.first().map_or(0, |(key, _)| key.len());
        let columns = schema.fields().iter().enumerate().map(|(column, field)| {
            if self.groups.is_empty() {
                return Ok(new_empty_array(field.data_type()));
            }
            match column.checked_sub(keys) {
                None => values(
                    self.groups.iter().map(|(key, _)| Some(&key[column])),
                    field.data_type(),
                ),
                Some(answer) => {
                    let answers = self.groups.iter().map(|(_, answers)| &answers[answer]);
                    column_of(answers, field.data_type())
                }
            }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(self.groups.len()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?)
    }
}

impl Answer {
    fn merge(&mut self, other: Answer, kind: QuestionKind) {
        match (self, other) {
            (Answer::Count(count), Answer::Count(other)) => *count += other,
            (Answer::Extreme(known), Answer::Extreme(Some(other))) => {
                let wanted = match kind {
                    QuestionKind::Max => Ordering::Greater,
                    _ => Ordering::Less,
                };
                let better = known
                    .as_ref()
                    .is_none_or(|known| other.partial_cmp(known) == Some(wanted));
                if better {
                    *known = Some(other);
                }
            }
            _ => {}
        }
    }
}

fn column_of<'a>(
    answers: impl Iterator<Item = &'a Answer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let answers: Vec<&Answer> = answers.collect();
    if let Some(Answer::Count(_)) = answers.first() {
        let counts: Int64Array = answers
            .iter()
            .map(|answer| match answer {
                Answer::Count(count) => i64::try_from(*count).ok(),
                Answer::Extreme(_) => None,
            })
            .collect();
        return Ok(Arc::new(counts));
    }
    let extremes = answers.into_iter().map(|answer| match answer {
        Answer::Extreme(value) => value.as_ref(),
        Answer::Count(_) => None,
    });
    values(extremes, data_type)
}

/// Values as an array of that type.
fn values<'a>(
    values: impl Iterator<Item = Option<&'a ScalarValue>>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let null = ScalarValue::try_from(data_type)?;
    let typed: Vec<ScalarValue> = values
        .map(|value| match value {
            Some(value) if value.data_type() != *data_type => value.cast_to(data_type),
            Some(value) => Ok(value.clone()),
            None => Ok(null.clone()),
        })
        .collect::<Result<_>>()?;
    let array = ScalarValue::iter_to_array(typed)?;
    match array.data_type() == data_type {
        true => Ok(array),
        false => Ok(cast(&array, data_type)?),
    }
}
