//! MySQL's functions that DataFusion does not have, or has with another meaning.
//!
//! They are ordinary scalar functions, registered by name in every session, the coordinator's and the workers':
//! a fragment that travels names them and the worker looks them up.

mod register;

pub use register::{register_functions, scalar_functions};
