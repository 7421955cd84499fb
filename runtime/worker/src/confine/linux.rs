//! Restricts this process, and becomes the program.

use super::filter::{self, FilterOptions};
use super::namespaces;
use super::paths::{DEVICES, Declared, PathKind, RealPath};
use super::root;
use super::{
    ConfineError, ConfineSupport, Confinement, PROGRAM_FILE_BYTES, PROGRAM_MEMORY_BYTES, PROGRAM_OPEN_FILES,
};
use crate::limits::{drop_capabilities, lower_limit};
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    make_bitflags, path_beneath_rules,
};
use rustix::fs::Mode;
use rustix::process::{Resource, Signal, set_parent_process_death_signal, umask};
use rustix::thread::set_no_new_privs;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

/// The newest Landlock that we know. An older kernel restricts what it can.
const NEWEST: ABI = ABI::V9;

/// The first Landlock that keeps a program from sockets without a path.
const LANDLOCK_WITH_SCOPES: u32 = 6;

/// What this system has to confine programs.
pub(super) fn support(check: &mut Command) -> Option<ConfineSupport> {
    let landlock = landlock_version()?;
    let check = check.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Some(ConfineSupport { landlock, namespaces: check.status().is_ok_and(|status| status.success()) })
}

/// The version of Landlock; none if the kernel has it not. Only an applied rule set tells it, so a thread applies an empty
/// one and ends.
fn landlock_version() -> Option<u32> {
    let apply = || {
        let rules = file_rules().ok()?;
        let status = rules.restrict_self().ok()?;
        match status.landlock {
            LandlockStatus::Available { effective_abi, kernel_abi } => {
                kernel_abi.map_or(effective_abi as u32, i32::unsigned_abs).into()
            }
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
        }
    };
    std::thread::scope(|scope| scope.spawn(apply).join().ok().flatten())
}

pub(super) fn run(
    confinement: &Confinement,
    program: &OsStr,
    args: &[OsString],
) -> Result<ExitCode, ConfineError> {
    if confinement.namespaces && !namespaces::is_inside() {
        return namespaces::enter().map_err(ConfineError::Namespaces);
    }
    let network = if confinement.network_none { Network::None } else { Network::Any };
    let root = if confinement.namespaces { Root::Own } else { Root::Shared };
    restrict(&Declared::new(confinement, program)?, root, network)?;
    let mut command = Command::new(program);
    command.args(args).current_dir(&confinement.folder);
    let started = match root {
        Root::Own => namespaces::start(&mut command),
        Root::Shared => Err(command.exec()),
    };
    started.map_err(|source| ConfineError::Program { program: program.to_owned(), source })
}

/// Takes the same steps without a program.
pub(super) fn check() -> Result<ExitCode, ConfineError> {
    if !namespaces::is_inside() {
        return namespaces::enter().map_err(ConfineError::Namespaces);
    }
    restrict(&Declared::default(), Root::Own, Network::None)?;
    Ok(ExitCode::SUCCESS)
}

/// The root folder of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Own,
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Network {
    Any,
    None,
}

fn restrict(declared: &Declared, root: Root, network: Network) -> Result<(), ConfineError> {
    let Some(landlock) = landlock_version() else { return Err(ConfineError::Unavailable) };
    let socket = declared.socket();
    if let Some(path) = socket
        && (root == Root::Shared || landlock < LANDLOCK_WITH_SCOPES)
    {
        return Err(ConfineError::Socket { path: path.to_owned() });
    }
    umask(Mode::RWXG | Mode::RWXO);
    if root == Root::Own {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| refused(&error))?;
        root::enter(&declared.places()).map_err(ConfineError::Namespaces)?;
    }
    set_limits().map_err(|error| refused(&error))?;
    apply_landlock(declared)?;
    let options = FilterOptions {
        has_root: root == Root::Own,
        has_sockets: socket.is_some(),
        has_network: network == Network::Any,
    };
    filter::set(options).map_err(|error| refused(&error))
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

/// Everything is forbidden that a rule does not allow.
fn file_rules() -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    rules.handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?.create()
}

fn apply_landlock(declared: &Declared) -> Result<(), ConfineError> {
    let rules = file_rules().map_err(|error| refused(&error))?;
    let rules = rules.add_rules(path_beneath_rules(declared.system(), AccessFs::from_read(NEWEST)));
    let rules = rules.and_then(|rules| {
        let access = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate});
        rules.add_rules(path_beneath_rules(DEVICES, access))
    });
    let mut rules = rules.map_err(|error| refused(&error))?;
    for path in declared.readable() {
        rules = allow(rules, path, AccessFs::from_read(NEWEST))?;
    }
    for path in declared.writable() {
        rules = allow(rules, path, writing())?;
    }
    let status = rules.restrict_self().map_err(|error| refused(&error))?;
    if status.ruleset == RulesetStatus::NotEnforced { Err(ConfineError::Unavailable) } else { Ok(()) }
}

/// All that a program does in its folder. It makes no devices there: one would be a way to the disk.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
}

fn allow(
    rules: RulesetCreated,
    path: &RealPath,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, ConfineError> {
    let access = match path.kind {
        PathKind::Folder => access,
        PathKind::File => access & AccessFs::from_file(NEWEST),
        PathKind::Socket => make_bitflags!(AccessFs::{ReadFile | ResolveUnix}),
    };
    let opened = PathFd::new(&path.path)
        .map_err(|error| ConfineError::Path { path: path.name.clone(), reason: error.to_string() })?;
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| refused(&error))
}

fn refused(error: &dyn std::fmt::Display) -> ConfineError {
    ConfineError::Limit(error.to_string())
}
