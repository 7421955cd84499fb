//! The default data directory of each platform, and the directory's creation.

use crate::errors::print_store_error;
use crate::exit::Exit;
use crate::text::describe_io_error;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The platform's directory for the data of a user. None if the environment does not name one.
pub(crate) fn default_data_dir(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    default_directory(Platform::CURRENT, &|name| env(name).filter(|value| !value.is_empty()))
}

/// The error when neither the user nor the platform names a directory.
pub(crate) fn missing_data_dir() -> StoreError {
    let text = format!(
        "There is no place for a data directory, because {} an absolute path: name one with --data DIR or the \
         variable REDFLOW_DATA.",
        Platform::CURRENT.missing_variable()
    );
    StoreError::new(StoreCode::DataUnusable, text)
}

/// Creates the data directory, readable by its owner only.
pub(crate) fn create_data_dir(dir: &Path) -> Result<(), Exit> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| {
        let why = describe_io_error(&error);
        let text = format!("The data directory {} cannot be created: {why}.", dir.display());
        print_store_error(StoreError::new(StoreCode::DataUnusable, text))
    })
}

#[derive(Debug, Clone, Copy)]
enum Platform {
    Unix,
    MacOs,
    Windows,
}

impl Platform {
    const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Unix
    };

    fn missing_variable(self) -> &'static str {
        match self {
            Self::Unix => "neither XDG_DATA_HOME nor HOME is set to",
            Self::MacOs => "HOME is not set to",
            Self::Windows => "LOCALAPPDATA is not set to",
        }
    }
}

fn default_directory(platform: Platform, env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification says to ignore a path that is not absolute. The others are treated alike.
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

#[cfg(test)]
mod tests {
    use super::{Platform, default_directory};
    use std::ffi::OsString;

    fn directory(platform: Platform, vars: &[(&str, &str)]) -> Option<String> {
        let env =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        default_directory(platform, &env).map(|path| path.display().to_string().replace('\\', "/"))
    }

    #[cfg(unix)]
    #[test]
    fn each_platform_has_its_default_directory() {
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
            assert_eq!(directory(platform, vars).as_deref(), expected, "{platform:?} {vars:?}");
        }
    }
}
