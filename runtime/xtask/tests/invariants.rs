//! The invariants of the tree, one test each. `cargo xtask tidy` runs them alone.

mod tidy;

use tidy::{
    clippy_files, cycles, dependencies, manifests, packages, repository, security, source, spelling,
    type_names, words,
};

macro_rules! invariants {
    ($($name:ident: $check:path;)+) => {
        $(
            #[test]
            fn $name() {
                let problems = $check(&redflow_xtask::root());
                assert!(problems.is_empty(), "\n  {}", problems.join("\n  "));
            }
        )+
    };
}

invariants! {
    pure_crates_depend_on_nothing_impure: dependencies::pure_crates;
    pure_crates_touch_no_system: source::pure_code;
    pure_crates_have_clippy_bans: clippy_files::pure_crates;
    shipped_binary_carries_no_derives: dependencies::shipped_binary;
    tools_use_the_guarded_way_out: source::guarded_code;
    files_are_short: source::short_files;
    // SECURITY: no-panic
    no_panics_and_no_unsafe: source::no_panics;
    every_crate_takes_the_workspace_lints: manifests::lints;
    dependencies_point_down: manifests::layers;
    modules_have_no_cycles: cycles::module_cycles;
    versions_agree: manifests::versions;
    crates_are_described: manifests::descriptions;
    dependencies_are_used: manifests::used_dependencies;
    exceptions_exist: tidy::exceptions;
    rust_packages_come_from_crates_io: packages::rust_sources;
    rust_packages_have_allowed_licences: packages::rust_licences;
    npm_packages_have_allowed_licences_and_hashes: packages::npm;
    no_private_paths: repository::private_paths;
    examples_are_described: repository::examples;
    codes_are_tested: repository::codes;
    phrases_are_used: repository::phrases;
    security_promises_are_tested: security::promises;
    // SECURITY: service-unit
    the_service_unit_is_confined: repository::service_unit;
    words_are_spelled_right: spelling::check;
    no_forbidden_names: words::forbidden_names;
    no_private_type_name_stands_in_three_crates: type_names::repeated_type_names;
}
