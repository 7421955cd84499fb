//! Lists the platforms that `redflow` is packed for, with the names that Rust, npm and Debian give them.

use std::fmt::Write as _;

/// The beginning of the packages with the program, before the platform. The palette module looks for them.
const PACKAGE: &str = "@redflow/runtime-";

/// A platform with a package of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// Rust's name of the target.
    pub triple: &'static str,
    /// The end of the package's name.
    pub name: &'static str,
    /// npm's `os`, which is Node.js's `process.platform`.
    pub os: &'static str,
    /// npm's `cpu`, which is Node.js's `process.arch`.
    pub cpu: &'static str,
    /// npm's `libc`; only on Linux.
    pub libc: Option<&'static str>,
    /// The tools that build it on another platform, if we know any.
    pub cross: Option<Cross>,
}

/// The C tools that build for a platform on another one.
#[derive(Debug, PartialEq, Eq)]
pub struct Cross {
    /// Compiles the C in the dependencies and, unless Rust brings its own, links.
    pub compiler: &'static str,
    /// Debian's package with it.
    pub debian: &'static str,
}

/// Every platform that a release can contain.
pub const PLATFORMS: &[Platform] = &[
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        name: "linux-x64",
        os: "linux",
        cpu: "x64",
        libc: Some("glibc"),
        cross: Some(Cross { compiler: "x86_64-linux-gnu-gcc", debian: "gcc-x86-64-linux-gnu" }),
    },
    Platform {
        triple: "x86_64-unknown-linux-musl",
        name: "linux-x64-musl",
        os: "linux",
        cpu: "x64",
        libc: Some("musl"),
        cross: Some(Cross { compiler: "musl-gcc", debian: "musl-tools" }),
    },
    Platform {
        triple: "aarch64-unknown-linux-gnu",
        name: "linux-arm64",
        os: "linux",
        cpu: "arm64",
        libc: Some("glibc"),
        cross: Some(Cross { compiler: "aarch64-linux-gnu-gcc", debian: "gcc-aarch64-linux-gnu" }),
    },
    Platform {
        triple: "armv7-unknown-linux-gnueabihf",
        name: "linux-arm",
        os: "linux",
        cpu: "arm",
        libc: Some("glibc"),
        cross: Some(Cross { compiler: "arm-linux-gnueabihf-gcc", debian: "gcc-arm-linux-gnueabihf" }),
    },
    Platform {
        triple: "x86_64-pc-windows-gnu",
        name: "win32-x64",
        os: "win32",
        cpu: "x64",
        libc: None,
        cross: Some(Cross { compiler: "x86_64-w64-mingw32-gcc", debian: "gcc-mingw-w64-x86-64" }),
    },
    Platform {
        triple: "aarch64-apple-darwin",
        name: "darwin-arm64",
        os: "darwin",
        cpu: "arm64",
        libc: None,
        cross: None,
    },
    Platform {
        triple: "x86_64-apple-darwin",
        name: "darwin-x64",
        os: "darwin",
        cpu: "x64",
        libc: None,
        cross: None,
    },
];

impl Platform {
    /// The name of its npm package.
    #[must_use]
    pub fn package(&self) -> String {
        format!("{PACKAGE}{}", self.name)
    }

    /// The file name of the program.
    #[must_use]
    pub fn program(&self) -> &'static str {
        if self.os == "win32" { "redflow.exe" } else { "redflow" }
    }

    /// The file name of its tarball.
    #[must_use]
    pub fn tarball(&self, version: &str) -> String {
        tarball(&self.package(), version)
    }
}

/// The file name that npm gives to the tarball of a package.
#[must_use]
pub fn tarball(package: &str, version: &str) -> String {
    format!("{}-{version}.tgz", package.trim_start_matches('@').replace('/', "-"))
}

/// The platform with this triple.
///
/// # Errors
/// If no release contains it. The message lists all platforms.
pub fn by_triple(triple: &str) -> Result<&'static Platform, String> {
    PLATFORMS.iter().find(|platform| platform.triple == triple).ok_or_else(|| {
        format!("redflow has no package for `{triple}`; these are known:\n{}", list().trim_end())
    })
}

/// One line for each platform.
#[must_use]
pub fn list() -> String {
    let mut out = String::new();
    for platform in PLATFORMS {
        let _ = writeln!(out, "  {:<32}{}", platform.triple, platform.package());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{PLATFORMS, by_triple, tarball};

    #[test]
    fn names_are_those_of_node_js() {
        for platform in PLATFORMS {
            let musl = if platform.libc == Some("musl") { "-musl" } else { "" };
            assert_eq!(platform.name, format!("{}-{}{musl}", platform.os, platform.cpu));
            assert_eq!(platform.libc.is_some(), platform.os == "linux", "{}", platform.triple);
        }
    }

    #[test]
    fn an_unknown_platform_is_refused_with_the_known_ones() {
        assert_eq!(by_triple("x86_64-pc-windows-gnu").map(|platform| platform.program()), Ok("redflow.exe"));
        let error = by_triple("riscv64gc-unknown-linux-gnu").unwrap_err();
        assert!(error.contains("riscv64gc") && error.contains("aarch64-unknown-linux-gnu"), "{error}");
    }

    #[test]
    fn tarballs_have_the_names_that_npm_gives_them() {
        assert_eq!(tarball("@redflow/node-red-bridge", "0.1.0"), "redflow-node-red-bridge-0.1.0.tgz");
        assert_eq!(tarball("plain", "1.0.0"), "plain-1.0.0.tgz");
    }
}
