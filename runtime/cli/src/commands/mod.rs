//! The commands of `redflow`, one file or folder each.

mod backup;
mod check;
mod config;
mod credentials;
mod egress;
mod exchange;
mod explain;
mod flows;
mod models;
mod replay;
mod run;
mod runs;
mod schema;
mod serve;
mod token;
mod tools;

pub(crate) use backup::backup;
pub(crate) use check::check;
pub(crate) use config::show_config;
pub(crate) use credentials::credentials;
pub(crate) use egress::egress;
pub(crate) use exchange::{export, import};
pub(crate) use explain::explain;
pub(crate) use flows::flows;
pub(crate) use models::models;
pub(crate) use replay::replay;
pub(crate) use run::run;
pub(crate) use runs::runs;
pub(crate) use schema::{schema, types};
pub(crate) use serve::serve;
pub(crate) use token::token;
pub(crate) use tools::check_manifest;
