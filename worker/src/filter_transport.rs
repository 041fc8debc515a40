use async_trait::async_trait;
use reqwest::StatusCode;
use std::fmt;
use std::time::Duration;
use tarn_cluster::{FilterPart, FilterWait, RUNTIME_FILTERS_PATH};
use tarn_planner::FilterTransport;
use url::Url;
use uuid::Uuid;

/// How long the coordinator may leave a question unanswered before it is asked again.
const WAIT: Duration = Duration::from_secs(20);
/// What its answer may take beyond that.
const GRACE: Duration = Duration::from_secs(5);

/// The way to the coordinator, for the runtime filters of all queries.
#[derive(Debug, Clone)]
pub(crate) struct FilterClient {
    client: reqwest::Client,
    coordinator: Url,
}

impl FilterClient {
    /// `None` if no client can be made: queries then run without filters.
    pub(crate) fn new(coordinator: &Url) -> Option<Self> {
        let client = reqwest::Client::builder()
            .timeout(WAIT + GRACE)
            .tcp_nodelay(true)
            .build()
            .ok()?;
        Some(Self {
            client,
            coordinator: coordinator.clone(),
        })
    }

    /// The filters of one query.
    pub(crate) fn of_query(&self, query_id: &str) -> QueryFilters {
        QueryFilters {
            link: self.clone(),
            query_id: query_id.to_owned(),
        }
    }
}

/// Posts and fetches the filters of one query.
pub(crate) struct QueryFilters {
    link: FilterClient,
    query_id: String,
}

impl fmt::Debug for QueryFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueryFilters").field(&self.query_id).finish()
    }
}

impl QueryFilters {
    fn url(&self, filter: Uuid) -> Option<Url> {
        let path = format!("{RUNTIME_FILTERS_PATH}/{}/{filter}", self.query_id);
        self.link.coordinator.join(&path).ok()
    }

    /// The filter, or whether to ask again.
    async fn ask(&self, url: Url) -> reqwest::Result<Result<Vec<u8>, bool>> {
        let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX);
        let request = self.link.client.get(url).query(&FilterWait { wait_ms });
        let answer = request.send().await?;
        match answer.status() {
            StatusCode::OK => Ok(Ok(answer.bytes().await?.to_vec())),
            status => Ok(Err(status == StatusCode::NO_CONTENT)),
        }
    }
}

#[async_trait]
impl FilterTransport for QueryFilters {
    async fn publish(&self, filter: Uuid, task: usize, tasks: usize, part: Vec<u8>) {
        let Some(url) = self.url(filter) else {
            return;
        };
        let request = self
            .link
            .client
            .post(url)
            .query(&FilterPart { task, tasks });
        if let Err(error) = request.body(part).send().await {
            tracing::debug!(query = self.query_id, %error, "a runtime filter was not sent");
        }
    }

    async fn receive(&self, filter: Uuid) -> Option<Vec<u8>> {
        let url = self.url(filter)?;
        loop {
            match self.ask(url.clone()).await {
                Ok(Ok(whole)) => return Some(whole),
                Ok(Err(true)) => {}
                Ok(Err(false)) => return None,
                Err(error) => {
                    tracing::debug!(query = self.query_id, %error, "a runtime filter did not come");
                    return None;
                }
            }
        }
    }
}
