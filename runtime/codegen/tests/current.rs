//! The generated files are what the generators write.

#[test]
fn generated_files_are_current() {
    let problems = redflow_codegen::problems(&redflow_xtask::root()).unwrap();
    assert!(problems.is_empty(), "run `cargo xtask codegen`:\n  {}", problems.join("\n  "));
}
