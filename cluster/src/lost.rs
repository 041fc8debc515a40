use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use std::error::Error;
use std::fmt;
use tonic::{Code, Status};
use url::Url;

/// How a loss reads as text. Errors cross the wire between workers as text, so the loss of worker B, seen by
/// worker A, reaches the coordinator as this prefix.
const MARK: &str = "lost worker <";

/// What datafusion-distributed says when the plan of a task never arrived at a worker: the process that was
/// sent the plan is not the one that was asked to run it, or the coordinator's call to it broke.
const PLAN_NEVER_CAME: &str = "Worker::execute_task timed-out while waiting for the plan";

/// A worker that a query could not reach any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostWorker {
    /// Which worker, where that is known.
    pub url: Option<Url>,
    /// What was seen, for the log and for the client if the query cannot be retried.
    pub reason: String,
}

/// The error that [`crate::WorkerChannels`] makes of a transport failure.
#[derive(Debug, Clone)]
pub(crate) struct LostWorkerError {
    pub(crate) url: Url,
    pub(crate) reason: String,
}

impl fmt::Display for LostWorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}>: {}", self.url, self.reason)
    }
}

impl Error for LostWorkerError {}

/// Tells the loss of a worker (retriable on the others) from an error of the query itself.
///
/// Looks for the error that our channels make, as a value or, after it travelled through another worker, as the
/// text of an external error. Messages of the query (casts, plans, memory) are never searched, so data that
/// happens to read like a loss is not mistaken for one.
pub fn worker_lost(error: &DataFusionError) -> Option<LostWorker> {
    match error {
        DataFusionError::External(inner) => external_lost(inner.as_ref()),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            worker_lost(inner)
        }
        DataFusionError::Shared(inner) => worker_lost(inner),
        DataFusionError::Collection(inner) => inner.iter().find_map(worker_lost),
        DataFusionError::ArrowError(inner, _) => arrow_lost(inner),
        DataFusionError::Execution(text) if text.starts_with(PLAN_NEVER_CAME) => Some(LostWorker {
            url: None,
            reason: "a worker never received its part of the plan".to_string(),
        }),
        _ => None,
    }
}

fn arrow_lost(error: &ArrowError) -> Option<LostWorker> {
    match error {
        ArrowError::ExternalError(inner) => external_lost(inner.as_ref()),
        _ => None,
    }
}

fn external_lost(error: &(dyn Error + 'static)) -> Option<LostWorker> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(lost) = error.downcast_ref::<LostWorkerError>() {
            return Some(LostWorker {
                url: Some(lost.url.clone()),
                reason: lost.reason.clone(),
            });
        }
        if let Some(inner) = error.downcast_ref::<DataFusionError>() {
            return worker_lost(inner);
        }
        if let Some(inner) = error.downcast_ref::<ArrowError>() {
            return arrow_lost(inner);
        }
        if let Some(status) = error.downcast_ref::<Status>() {
            return transport_failure(status).map(|reason| LostWorker { url: None, reason });
        }
        cause = error.source();
    }
    parse_mark(&error.to_string())
}

/// Reads a loss from the text of an error that crossed the wire. Only at the very start: what follows a prefix
/// of somebody else's is not ours to interpret.
fn parse_mark(text: &str) -> Option<LostWorker> {
    let text = text.strip_prefix("External error: ").unwrap_or(text);
    let (url, reason) = text.strip_prefix(MARK)?.split_once(">: ")?;
    Some(LostWorker {
        url: Some(Url::parse(url).ok()?),
        reason: reason.to_string(),
    })
}

/// Why a status is a failure of the transport, if it is. A worker's own errors are `Internal` with details (an
/// encoded DataFusionError) or name a misuse; everything the transport makes up on this side has a source, or
/// a code that no worker sends.
pub(crate) fn transport_failure(status: &Status) -> Option<String> {
    let transport = match status.code() {
        Code::Unavailable
        | Code::Unknown
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted => true,
        Code::Internal => {
            status.message() != "DataFusionError"
                && (status.source().is_some() || status.message().contains("h2 protocol error"))
        }
        _ => false,
    };
    transport.then(|| describe(status))
}

/// An error with its causes, without repeating what a cause already said.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = match error.downcast_ref::<Status>() {
        Some(status) => status.message().to_string(),
        None => error.to_string(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Arc;

    fn lost() -> DataFusionError {
        DataFusionError::External(Box::new(LostWorkerError {
            url: Url::parse("http://10.0.0.7:9050").unwrap(),
            reason: "connection reset by peer".to_string(),
        }))
    }

    fn url_of(error: &DataFusionError) -> Option<String> {
        worker_lost(error)?.url.map(|url| url.to_string())
    }

    #[test]
    fn a_loss_is_found_under_every_wrapping() {
        let expected = Some("http://10.0.0.7:9050/".to_string());
        assert_eq!(url_of(&lost()), expected);
        assert_eq!(url_of(&lost().context("joining")), expected);
        assert_eq!(url_of(&DataFusionError::Shared(Arc::new(lost()))), expected);
        assert_eq!(
            url_of(&DataFusionError::Collection(vec![
                DataFusionError::Plan("x".into()),
                lost()
            ])),
            expected
        );
        assert_eq!(
            url_of(&DataFusionError::ArrowError(
                Box::new(ArrowError::ExternalError(Box::new(lost()))),
                None
            )),
            expected
        );
        assert_eq!(
            url_of(&DataFusionError::External(Box::new(lost()))),
            expected
        );
    }

    #[test]
    fn a_loss_between_workers_arrives_as_text_and_is_still_found() {
        let DataFusionError::External(inner) = lost() else {
            panic!()
        };
        let text = inner.to_string();
        let arrived = DataFusionError::Shared(Arc::new(DataFusionError::External(text.into())));
        assert_eq!(
            worker_lost(&arrived),
            Some(LostWorker {
                url: Url::parse("http://10.0.0.7:9050").ok(),
                reason: "connection reset by peer".to_string()
            })
        );
    }

    #[test]
    fn errors_of_the_query_are_not_losses() {
        let text = "Cannot cast string 'lost worker <http://x:1>: boo' to value of Int32 type";
        for error in [
            DataFusionError::ArrowError(Box::new(ArrowError::CastError(text.into())), None),
            DataFusionError::Execution(text.into()),
            DataFusionError::Execution("lost worker <http://x:1>: boo".into()),
            DataFusionError::External(text.into()),
            DataFusionError::ResourcesExhausted("Memory exhausted".into()),
            DataFusionError::IoError(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the store's",
            )),
            DataFusionError::External(Box::new(Status::internal("Error during flight stream: x"))),
            DataFusionError::External(Box::new(Status::invalid_argument(
                "Unknown compression type",
            ))),
        ] {
            assert_eq!(worker_lost(&error), None, "{error}");
        }
    }

    #[test]
    fn transport_statuses_are_losses_even_without_a_name() {
        for status in [
            Status::unavailable("error trying to connect"),
            Status::unknown("h2 protocol error: error reading a body from connection"),
            Status::internal("h2 protocol error: http2 error"),
            Status::from_error(Box::new(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "broken pipe",
            ))),
        ] {
            let error = DataFusionError::External(Box::new(status));
            assert!(worker_lost(&error).is_some(), "{error}");
        }
        assert!(
            worker_lost(&DataFusionError::Execution(format!(
                "{PLAN_NEVER_CAME} to be set by the coordinator. (timed out waiting for value)"
            )))
            .is_some()
        );
    }
}
