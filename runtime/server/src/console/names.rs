//! The names of the console's files. `build.rs` uses this file too.

/// The page, which refers to the other files.
pub(crate) const INDEX: &str = "index.html";

/// Every file of `console/dist`.
pub(crate) const NAMES: [&str; 6] =
    [INDEX, "console.js", "console.css", "icon.svg", "words.es.json", "words.de.json"];
