use tarn_coordinator::Error;
use tonic::{Code, Status};

/// The gRPC status of a failed statement: the coordinator's code and its one sentence.
pub(crate) fn status(error: &Error) -> Status {
    Status::new(error.grpc_code(), &error.message)
}

/// Arrow could not do what it was asked to with values of this server's own making.
pub(crate) fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

/// A request that makes no sense.
pub(crate) fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// A query that was cancelled through another call.
pub(crate) fn cancelled() -> Status {
    Status::new(Code::Cancelled, "the query was cancelled")
}
