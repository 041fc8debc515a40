//! Sessions, the statement path, the process list and dispatch.
