/// The worker that a query's plan chose for a file, where rows must meet those of other files: it goes along with the file,
/// and counts for more than rendezvous by the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenWorker {
    /// Its place among the query's workers.
    pub worker: usize,
    /// How many workers the query has.
    pub workers: usize,
    /// Rows are sent to that worker from elsewhere: the scan runs on all workers, however small it is.
    pub meets_shuffled: bool,
}
