//! Where runs are kept: `--data DIR`, else what the environment or the configuration says, else the platform's own
//! place.
//!
//! Owns that place, and how commands that need the directory are written for people to copy. Never makes or opens
//! it.

use crate::wiring;
use clap::Args;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) const DATA_HELP: &str = "\
Where runs are kept. Without it the directory in REDFLOW_DATA or in the configuration, else `redflow` in the user's \
data folder: ~/.local/share (or $XDG_DATA_HOME), on macOS ~/Library/Application Support, on Windows %LOCALAPPDATA%";

/// Which data directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataOption {
    #[arg(long, value_name = "DIR", help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
}

impl DataOption {
    /// The directory.
    pub(crate) fn directory(&self) -> Result<PathBuf, StoreError> {
        self.data.clone().map_or_else(wiring::data_dir, Ok)
    }

    /// What must be added to a command so that it finds the same directory.
    pub(crate) fn words(&self) -> String {
        self.data.as_ref().map(|dir| format!(" --data {}", shell_word(dir))).unwrap_or_default()
    }
}

/// The platform's own place for the data of a user, if it has one.
pub(crate) fn default_place(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    default_directory(Platform::HERE, &|name| env(name).filter(|value| !value.is_empty()))
}

/// Nobody named a directory, and the platform has no place for one.
pub(crate) fn no_place() -> StoreError {
    let text = format!(
        "There is no place for a data directory, because {} an absolute path: name one with --data DIR or the \
         variable REDFLOW_DATA.",
        Platform::HERE.needs()
    );
    StoreError::new(StoreCode::DataUnusable, text)
}

#[derive(Debug, Clone, Copy)]
enum Platform {
    Unix,
    MacOs,
    Windows,
}

impl Platform {
    const HERE: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Unix
    };

    fn needs(self) -> &'static str {
        match self {
            Self::Unix => "neither XDG_DATA_HOME nor HOME is set to",
            Self::MacOs => "HOME is not set to",
            Self::Windows => "LOCALAPPDATA is not set to",
        }
    }
}

fn default_directory(platform: Platform, env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification: a path that is not absolute is to be ignored. The same is wise of the others.
    let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = match platform {
        Platform::Unix => {
            folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local").join("share")))
        }
        Platform::MacOs => Some(folder("HOME")?.join("Library").join("Application Support")),
        Platform::Windows => folder("LOCALAPPDATA"),
    };
    Some(data?.join("redflow"))
}

/// A path as one word of a command line.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = crate::terminal::printable_line(&path.display().to_string(), 1000);
    let plain = |c: char| c.is_alphanumeric() || "/\\._-:+,@%~".contains(c);
    if text.chars().all(plain) {
        text
    } else if cfg!(windows) {
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Platform, default_directory, shell_word};
    use std::ffi::OsString;
    use std::path::Path;

    fn place(platform: Platform, vars: &[(&str, &str)]) -> Option<String> {
        let env =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        default_directory(platform, &env).map(|path| path.display().to_string().replace('\\', "/"))
    }

    #[cfg(unix)]
    #[test]
    fn each_platform_has_its_place() {
        use Platform::{MacOs, Unix, Windows};
        let home = ("HOME", "/h/me");
        let rows: [(_, &[_], _); 11] = [
            (Unix, &[home], Some("/h/me/.local/share/redflow")),
            (Unix, &[home, ("XDG_DATA_HOME", "/data")], Some("/data/redflow")),
            (Unix, &[home, ("XDG_DATA_HOME", "")], Some("/h/me/.local/share/redflow")),
            (Unix, &[home, ("XDG_DATA_HOME", "data")], Some("/h/me/.local/share/redflow")),
            (Unix, &[("HOME", "me")], None),
            (Unix, &[], None),
            (MacOs, &[home, ("XDG_DATA_HOME", "/data")], Some("/h/me/Library/Application Support/redflow")),
            (MacOs, &[], None),
            (Windows, &[("LOCALAPPDATA", "/c/local"), home], Some("/c/local/redflow")),
            (Windows, &[home], None),
            (Windows, &[("LOCALAPPDATA", "local")], None),
        ];
        for (platform, vars, expected) in rows {
            assert_eq!(place(platform, vars).as_deref(), expected, "{platform:?} {vars:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_is_one_word() {
        let rows = [
            ("/tmp/data", "/tmp/data"),
            ("my data", "'my data'"),
            ("it's", "'it'\\''s'"),
            ("a;b", "'a;b'"),
            ("a\u{1b}b", "'a\\u{1b}b'"),
        ];
        for (path, word) in rows {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}
