//! Restricts this process, and becomes the program.

use super::network::refuse_network;
use super::paths::{DEVICES, readable};
use super::{ConfineError, Confinement, PROGRAM_FILE_BYTES, PROGRAM_MEMORY_BYTES, PROGRAM_OPEN_FILES};
use crate::limits::lower_limit;
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    make_bitflags, path_beneath_rules,
};
use rustix::process::{Resource, Signal, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest Landlock that we know. An older kernel restricts what it can.
const NEWEST: ABI = ABI::V9;

/// Whether the kernel has Landlock. A rule set that is not applied restricts nothing.
pub(super) fn is_available() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

pub(super) fn run(confinement: &Confinement, program: &OsStr, args: &[OsString]) -> ConfineError {
    if let Err(error) = restrict(confinement, program) {
        return error;
    }
    let source = Command::new(program).args(args).current_dir(&confinement.folder).exec();
    ConfineError::Program { program: program.to_owned(), source }
}

fn restrict(confinement: &Confinement, program: &OsStr) -> Result<(), ConfineError> {
    if !is_available() {
        return Err(ConfineError::Unavailable);
    }
    set_limits().map_err(|error| ConfineError::Limit(error.to_string()))?;
    let path_variable = std::env::var_os("PATH").unwrap_or_default();
    let rules = file_rules().map_err(|error| refused(&error))?;
    let system = readable(&path_variable, program);
    let rules = rules.add_rules(path_beneath_rules(system, AccessFs::from_read(NEWEST)));
    let rules = rules.and_then(|rules| {
        let access = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate});
        rules.add_rules(path_beneath_rules(DEVICES, access))
    });
    let mut rules = rules.map_err(|error| refused(&error))?;
    for path in &confinement.read {
        rules = allow(rules, path, AccessFs::from_read(NEWEST))?;
    }
    for path in confinement.write.iter().chain([&confinement.folder]) {
        rules = allow(rules, path, writing())?;
    }
    let status = rules.restrict_self().map_err(|error| refused(&error))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(ConfineError::Unavailable);
    }
    if confinement.network_none {
        refuse_network().map_err(|error| refused(&error))?;
    }
    Ok(())
}

fn set_limits() -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    set_no_new_privs(true)?;
    drop_capabilities()?;
    // A memory dump would contain the secrets of the program.
    lower_limit(Resource::Core, 0, 0)?;
    lower_limit(Resource::Nofile, PROGRAM_OPEN_FILES, PROGRAM_OPEN_FILES)?;
    lower_limit(Resource::Fsize, PROGRAM_FILE_BYTES, PROGRAM_FILE_BYTES)?;
    lower_limit(Resource::Data, PROGRAM_MEMORY_BYTES, PROGRAM_MEMORY_BYTES)
}

/// Leaves a superuser nothing but the rights to its files. Other rights open ways around the rules, such as reading the
/// environment of other processes. Without new privileges the program does not get them back.
fn drop_capabilities() -> rustix::io::Result<()> {
    let kept =
        CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::FSETID;
    let earlier = capabilities(None)?;
    // Most users have none, and a service manager may refuse the call.
    if kept.contains(earlier.permitted) && earlier.inheritable.is_empty() {
        return Ok(());
    }
    let sets = CapabilitySets {
        effective: earlier.effective & kept,
        permitted: earlier.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)
}

/// Everything is forbidden that a rule does not allow.
fn file_rules() -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    rules.handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?.create()
}

/// All that a program does in its folder. It makes no devices there: one would be a way to the disk.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, ConfineError> {
    let missing = |reason: String| ConfineError::Path { path: PathBuf::from(path), reason };
    let is_folder = std::fs::metadata(path).map_err(|error| missing(error.to_string()))?.is_dir();
    let opened = PathFd::new(path).map_err(|error| missing(error.to_string()))?;
    let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| refused(&error))
}

fn refused(error: &dyn std::fmt::Display) -> ConfineError {
    ConfineError::Limit(error.to_string())
}
