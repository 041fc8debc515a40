//! The MySQL front end: packets, authentication, text and binary rows.
