//! Executes plan fragments; owns the memory pool, the spill files and the DataCache.
