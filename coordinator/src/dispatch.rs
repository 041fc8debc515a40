//! Where queries run.

use std::sync::Arc;

use tarn_cluster::ClusterDispatch;

/// Where queries run.
#[derive(Debug, Clone)]
pub enum Dispatch {
    /// In this process: plain DataFusion, nothing in between.
    Local,
    /// On the workers that have registered.
    Cluster(Arc<ClusterDispatch>),
}
