/// A parsed statement.
#[derive(Debug, Clone)]
pub struct Statement {}
impl Statement {
    /// The statement's family, for the audit.
    pub fn kind(&self) -> &'static str {
        "SELECT"
    }
}
