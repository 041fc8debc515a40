//! Cluster membership, routing of tasks to workers, and the channels between them.
