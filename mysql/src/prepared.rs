//! The prepared statements of one connection, their long data and their cursors.

use std::collections::HashMap;

use tarn_coordinator::{Error, ErrorKind, Prepared};

use crate::result::PendingRows;
use crate::wire::parameter::ParameterType;

/// One prepared statement.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    pub prepared: Prepared,
    /// Types bound by the last execution that brought some.
    pub types: Vec<ParameterType>,
    /// Values that were sent ahead, for the next execution.
    pub long_data: Vec<Option<Vec<u8>>>,
    /// What was wrong with long data; COM_STMT_SEND_LONG_DATA has no answer, so the next execution
    /// tells.
    pub long_data_error: Option<Error>,
    /// An open cursor.
    pub cursor: Option<PendingRows>,
}

impl PreparedStatement {
    fn long_data_bytes(&self) -> usize {
        self.long_data.iter().flatten().map(Vec::len).sum()
    }

    /// Forgets long data and closes the cursor.
    pub fn reset(&mut self) {
        self.long_data.fill(None);
        self.long_data_error = None;
        self.cursor = None;
    }
}

/// All prepared statements of one connection, by their ids.
#[derive(Debug, Default)]
pub(crate) struct PreparedStatements {
    last_id: u32,
    by_id: HashMap<u32, PreparedStatement>,
}

impl PreparedStatements {
    pub fn insert(&mut self, prepared: Prepared, most: usize) -> Result<u32, Error> {
        if self.by_id.len() >= most {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("this connection already holds {most} prepared statements"),
            ));
        }
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if !self.by_id.contains_key(&self.last_id) {
                break;
            }
        }
        let long_data = vec![None; prepared.parameter_types.len()];
        let statement = PreparedStatement {
            prepared,
            types: vec![],
            long_data,
            long_data_error: None,
            cursor: None,
        };
        self.by_id.insert(self.last_id, statement);
        Ok(self.last_id)
    }

    pub fn get(&mut self, id: u32, command: &str) -> Result<&mut PreparedStatement, Error> {
        self.by_id.get_mut(&id).ok_or_else(|| {
            Error::new(
                ErrorKind::NoSuchPreparedStatement,
                format!("Unknown prepared statement handler ({id}) given to {command}"),
            )
        })
    }

    /// Appends to a parameter's value, which with all others of this connection stays under
    /// `limit_bytes`.
    pub fn append_long_data(&mut self, id: u32, parameter: u16, data: &[u8], limit_bytes: usize) {
        let total: usize = self
            .by_id
            .values()
            .map(PreparedStatement::long_data_bytes)
            .sum();
        // There is no answer, not even an error, to what is sent for a statement that is not there.
        let Some(statement) = self.by_id.get_mut(&id) else {
            return;
        };
        if total + data.len() > limit_bytes {
            statement.long_data.fill(None);
            let message = "what COM_STMT_SEND_LONG_DATA has sent is larger than max_allowed_packet";
            statement.long_data_error = Some(Error::new(ErrorKind::PacketTooLarge, message));
            return;
        }
        match statement.long_data.get_mut(usize::from(parameter)) {
            Some(value) => value.get_or_insert_default().extend_from_slice(data),
            None => {
                let message = format!("the statement has no parameter {parameter}");
                statement.long_data_error =
                    Some(Error::new(ErrorKind::WrongParameterCount, message));
            }
        }
    }

    pub fn remove(&mut self, id: u32) {
        self.by_id.remove(&id);
    }

    pub fn clear(&mut self) {
        self.by_id.clear();
    }
}
