//! How the shell and the demo reach an engine: inside this process, or by Flight SQL.

mod connection;
mod embedded;
mod flight;

pub use connection::{Answer, Client, ClientError, collect};
pub use embedded::EmbeddedClient;
pub use flight::FlightClient;
