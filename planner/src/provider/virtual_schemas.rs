//! Tables that no catalog holds: `information_schema`, and the engine's own.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::datasource::TableProvider;
use datafusion::error::Result;

/// Schemas that the coordinator answers itself, asked before a catalog is.
#[async_trait]
pub trait VirtualSchemas: Send + Sync + Debug {
    /// Catalogs that exist only here, such as `tarn`.
    fn catalogs(&self) -> Vec<String> {
        Vec::new()
    }

    /// The virtual schemas of a catalog.
    fn schemas(&self, catalog: &str) -> Vec<String>;

    /// The tables of a virtual schema.
    fn tables(&self, catalog: &str, schema: &str) -> Vec<String>;

    /// A virtual table; `None` if it is not one.
    async fn table(
        &self,
        catalog: &str,
        schema: &str,
        table: &str,
    ) -> Result<Option<Arc<dyn TableProvider>>>;
}

/// No virtual table at all.
#[derive(Debug, Default)]
pub struct NoVirtualSchemas;

#[async_trait]
impl VirtualSchemas for NoVirtualSchemas {
    fn schemas(&self, _catalog: &str) -> Vec<String> {
        Vec::new()
    }

    fn tables(&self, _catalog: &str, _schema: &str) -> Vec<String> {
        Vec::new()
    }

    async fn table(
        &self,
        _catalog: &str,
        _schema: &str,
        _table: &str,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(None)
    }
}
