//! Files other than the database: the flow, its credentials, the manifest of tools, the UI storage, Node-RED's
//! credentials file, keys.

mod credentials;
pub(crate) mod flow_file;
pub(crate) mod key_file;
pub(crate) mod manifest_files;
pub(crate) mod manifest_text;
pub(crate) mod node_red_file;
mod sealed_file;
pub(crate) mod ui_storage;
pub(crate) mod whole_file;
mod yaml;
