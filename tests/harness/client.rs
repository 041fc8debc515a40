use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use tonic::transport::{Channel, Endpoint};

/// A Flight SQL client. Answers are rows of text, as a person would read them.
pub struct Client {
    flight: FlightSqlServiceClient<Channel>,
}

/// Rows as text; NULL is `NULL`.
pub type Rows = Vec<Vec<String>>;

impl Client {
    pub async fn connect(address: &str, user: &str, password: &str) -> Result<Self, String> {
        let channel = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|e| e.to_string())?
            .connect_timeout(Duration::from_secs(10))
            .connect()
            .await
            .map_err(|e| e.to_string())?;
        let mut flight = FlightSqlServiceClient::new(channel);
        flight
            .handshake(user, password)
            .await
            .map_err(|e| e.to_string())?;
        Ok(Self { flight })
    }

    /// Runs one statement; its batches.
    pub async fn batches(&mut self, sql: &str) -> Result<Vec<RecordBatch>, String> {
        let info = self
            .flight
            .execute(sql.to_owned(), None)
            .await
            .map_err(|e| e.to_string())?;
        let mut batches = vec![];
        for endpoint in info.endpoint {
            let ticket = endpoint.ticket.ok_or("no ticket")?;
            let stream = self
                .flight
                .do_get(ticket)
                .await
                .map_err(|e| e.to_string())?;
            batches.extend(
                stream
                    .try_collect::<Vec<_>>()
                    .await
                    .map_err(|e| e.to_string())?,
            );
        }
        Ok(batches)
    }

    /// Runs one statement; its rows as text.
    pub async fn try_query(&mut self, sql: &str) -> Result<Rows, String> {
        let batches = self.batches(sql).await?;
        let mut rows = vec![];
        let options = FormatOptions::default().with_null("NULL");
        for batch in &batches {
            let columns = batch
                .columns()
                .iter()
                .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| e.to_string())?;
            for row in 0..batch.num_rows() {
                rows.push(
                    columns
                        .iter()
                        .map(|column| column.value(row).to_string())
                        .collect(),
                );
            }
        }
        Ok(rows)
    }

    /// Runs one statement that must succeed.
    pub async fn query(&mut self, sql: &str) -> Rows {
        match self.try_query(sql).await {
            Ok(rows) => rows,
            Err(error) => panic!("{sql}\nfailed: {error}"),
        }
    }

    /// Runs one statement whose answer is one value.
    pub async fn value(&mut self, sql: &str) -> String {
        let rows = self.query(sql).await;
        assert!(
            rows.len() == 1 && rows[0].len() == 1,
            "{sql}\nis not one value: {rows:?}"
        );
        rows[0][0].clone()
    }

    /// Runs one statement that must fail; its error's text.
    pub async fn error(&mut self, sql: &str) -> String {
        match self.try_query(sql).await {
            Ok(rows) => panic!("{sql}\nshould fail, but gave {rows:?}"),
            Err(error) => error,
        }
    }

    /// The client underneath, for what the helpers above do not cover.
    pub fn flight(&mut self) -> &mut FlightSqlServiceClient<Channel> {
        &mut self.flight
    }
}
