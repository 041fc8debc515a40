//! Settings: one table of what can be set ([`table`]), one way to write values ([`value`]), three places they come
//! from ([`load`]), and the forms they are handed on in ([`handover`]) and shown in ([`show`]).

mod entries;
mod error;
mod handover;
mod load;
mod show;
mod table;
mod toml_file;
mod value;

pub use error::ConfigError;
pub use load::{Overrides, Settings, load};
pub use show::{markdown, print};
