//! The invariants of the tree, a test each.

use redflow_xtask::tidy::CHECKS;

fn check(name: &str) {
    let named = CHECKS.iter().filter(|(known, _)| *known == name);
    let found: Vec<String> = named.flat_map(|(_, problems)| problems(&redflow_xtask::root())).collect();
    assert!(found.is_empty(), "\n  {}", found.join("\n  "));
}

macro_rules! invariants {
    ($($name:ident)+) => {
        $(#[test] fn $name() { check(stringify!($name)); })+

        #[test]
        fn every_check_of_tidy_is_a_test_here() {
            let checks: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
            assert_eq!(checks, [$(stringify!($name)),+]);
        }
    };
}

invariants! {
    pure_crates_depend_on_nothing_impure
    pure_crates_touch_no_system
    pure_crates_have_clippy_bans
    shipped_binary_carries_no_derives
    files_are_short
    no_panics_and_no_unsafe
    every_crate_takes_the_workspace_lints
    doors_open_downward
    versions_agree
    no_private_paths
    lock_files_name_no_private_host
    examples_are_described
    codes_are_tested
    generated_files_are_current
}
