//! `tarn demo`: the product in one command. Makes a small lake, starts a cluster of processes over it, and shows it.

mod bars;
mod children;
mod paint;
mod run;
mod tour;

pub use bars::Bars;
pub use run::demo;
