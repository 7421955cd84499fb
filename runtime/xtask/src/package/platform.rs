//! The platforms that `redflow` is packed for. Owns how each is called by Rust, by npm and by Debian; never looks at the
//! machine.

use std::fmt::Write as _;

/// What the packages with the program are called, up to the platform. The palette module looks for these.
const PACKAGE: &str = "@redflow/runtime-";

/// A platform.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// What Rust calls it.
    pub triple: &'static str,
    /// What its package ends with.
    pub name: &'static str,
    /// npm's `os`, which is Node.js's `process.platform`.
    pub os: &'static str,
    /// npm's `cpu`, which is Node.js's `process.arch`.
    pub cpu: &'static str,
    /// npm's `libc`, on Linux.
    pub libc: Option<&'static str>,
    /// What builds it on a machine of another kind; none if nothing that we know does.
    pub cross: Option<Cross>,
}

/// The C tools that build for another platform.
#[derive(Debug, PartialEq, Eq)]
pub struct Cross {
    /// Compiles the C in the dependencies and, unless Rust brings its own, links.
    pub compiler: &'static str,
    /// Takes the symbols out.
    pub strip: &'static str,
    /// What Debian calls the package with both.
    pub debian: &'static str,
}

/// Every platform.
pub const PLATFORMS: &[Platform] = &[
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        name: "linux-x64",
        os: "linux",
        cpu: "x64",
        libc: Some("glibc"),
        cross: Some(Cross {
            compiler: "x86_64-linux-gnu-gcc",
            strip: "x86_64-linux-gnu-strip",
            debian: "gcc-x86-64-linux-gnu",
        }),
    },
    Platform {
        triple: "x86_64-unknown-linux-musl",
        name: "linux-x64-musl",
        os: "linux",
        cpu: "x64",
        libc: Some("musl"),
        cross: Some(Cross { compiler: "musl-gcc", strip: "strip", debian: "musl-tools" }),
    },
    Platform {
        triple: "aarch64-unknown-linux-gnu",
        name: "linux-arm64",
        os: "linux",
        cpu: "arm64",
        libc: Some("glibc"),
        cross: Some(Cross {
            compiler: "aarch64-linux-gnu-gcc",
            strip: "aarch64-linux-gnu-strip",
            debian: "gcc-aarch64-linux-gnu",
        }),
    },
    Platform {
        triple: "armv7-unknown-linux-gnueabihf",
        name: "linux-arm",
        os: "linux",
        cpu: "arm",
        libc: Some("glibc"),
        cross: Some(Cross {
            compiler: "arm-linux-gnueabihf-gcc",
            strip: "arm-linux-gnueabihf-strip",
            debian: "gcc-arm-linux-gnueabihf",
        }),
    },
    Platform {
        triple: "x86_64-pc-windows-gnu",
        name: "win32-x64",
        os: "win32",
        cpu: "x64",
        libc: None,
        cross: Some(Cross {
            compiler: "x86_64-w64-mingw32-gcc",
            strip: "x86_64-w64-mingw32-strip",
            debian: "gcc-mingw-w64-x86-64",
        }),
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
    /// Its package.
    #[must_use]
    pub fn package(&self) -> String {
        format!("{PACKAGE}{}", self.name)
    }

    /// The file of the program.
    #[must_use]
    pub fn program(&self) -> &'static str {
        if self.os == "win32" { "redflow.exe" } else { "redflow" }
    }

    /// What the tarball of a version of its package is called by npm.
    #[must_use]
    pub fn tarball(&self, version: &str) -> String {
        tarball(&self.package(), version)
    }
}

/// What npm calls the tarball of a package.
#[must_use]
pub fn tarball(package: &str, version: &str) -> String {
    format!("{}-{version}.tgz", package.trim_start_matches('@').replace('/', "-"))
}

/// The platform of this triple.
///
/// # Errors
/// If we have none.
pub fn by_triple(triple: &str) -> Result<&'static Platform, String> {
    PLATFORMS
        .iter()
        .find(|platform| platform.triple == triple)
        .ok_or_else(|| format!("redflow is not packed for `{triple}`; it is for:\n{}", list().trim_end()))
}

/// The platforms, a line each.
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
    fn names_are_what_node_js_calls_the_platform() {
        for platform in PLATFORMS {
            let musl = if platform.libc == Some("musl") { "-musl" } else { "" };
            assert_eq!(platform.name, format!("{}-{}{musl}", platform.os, platform.cpu));
            assert_eq!(platform.libc.is_some(), platform.os == "linux", "{}", platform.triple);
        }
    }

    #[test]
    fn a_platform_that_we_have_not_is_told_those_that_we_have() {
        assert_eq!(by_triple("x86_64-pc-windows-gnu").map(|found| found.program()), Ok("redflow.exe"));
        let error = by_triple("riscv64gc-unknown-linux-gnu").unwrap_err();
        assert!(error.contains("riscv64gc") && error.contains("aarch64-unknown-linux-gnu"), "{error}");
    }

    #[test]
    fn tarballs_are_called_as_npm_calls_them() {
        assert_eq!(tarball("@redflow/node-red-bridge", "0.1.0"), "redflow-node-red-bridge-0.1.0.tgz");
        assert_eq!(tarball("plain", "1.0.0"), "plain-1.0.0.tgz");
    }
}
