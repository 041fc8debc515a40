//! Builds an engine from the settings, for the coordinator, the one-process server and the embedded shell alike.

use std::sync::Arc;

use tarn_audit::FileSink;
use tarn_cache::DataCache;
use tarn_catalog::Catalogs;
use tarn_cluster::{ClusterDispatch, Membership, RuntimeFilters};
use tarn_coordinator::{Dispatch, Engine, EngineParts};
use tarn_planner::{ScanCodec, ScanStores, merge_runtime_filters};

use super::ServiceError;
use crate::config::Settings;

/// Where queries run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In this process.
    Local,
    /// On workers that register.
    Cluster,
}

/// Opens catalogs, cache, spill directory and audit, and starts the engine over them.
pub async fn start_engine(
    settings: &Settings,
    placement: Placement,
) -> Result<Arc<Engine>, ServiceError> {
    let engine_settings = settings.engine()?;
    let catalogs = Catalogs::open(settings.catalogs()).await?;
    // A coordinator of workers reads no data itself.
    let cache = match settings.cache().filter(|_| placement == Placement::Local) {
        Some(cache) => Some(DataCache::open(cache).await?),
        None => None,
    };
    let stores = ScanStores::new(cache, settings.store());
    let runtime = tarn_worker::runtime_env(
        settings.bytes("worker.memory"),
        &settings.path("worker.spill_dir"),
        settings.bytes("worker.spill_bytes"),
    )?;
    let audit = FileSink::open(settings.audit()).map_err(ServiceError::Audit)?;
    let dispatch = match placement {
        Placement::Local => Dispatch::Local,
        Placement::Cluster => {
            let membership = Arc::new(Membership::new(settings.membership()));
            let codec = Arc::new(ScanCodec::new(Arc::clone(&stores)));
            let filters = RuntimeFilters::new(merge_runtime_filters);
            let dispatch = ClusterDispatch::new(settings.cluster(), membership, codec, filters);
            Dispatch::Cluster(Arc::new(dispatch))
        }
    };
    let parts = EngineParts {
        catalogs,
        stores,
        runtime,
        dispatch,
        audit: Arc::new(audit),
    };
    Engine::start(engine_settings, parts)
        .await
        .map_err(|e| ServiceError::Engine(e.message))
}
