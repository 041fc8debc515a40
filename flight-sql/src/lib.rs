//! The Arrow Flight SQL front end.
