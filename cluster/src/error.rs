use thiserror::Error;

/// What can go wrong in the cluster layer.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The query needs workers and none is in service.
    #[error("{0}")]
    NoWorkers(String),
    /// A setting of the cluster layer is not usable.
    #[error("cluster setting {name}: {reason}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
    /// DataFusion refused the session or the plan.
    #[error(transparent)]
    DataFusion(#[from] datafusion::error::DataFusionError),
}

impl From<ClusterError> for datafusion::error::DataFusionError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::DataFusion(inner) => inner,
            other => datafusion::error::DataFusionError::External(Box::new(other)),
        }
    }
}
