//! How far the program of an MCP server is confined, and what the system does not give.

use serde::{Deserialize, Serialize};

/// The first version of Landlock that keeps a program from sending signals to others.
const LANDLOCK_WITH_SIGNALS: u32 = 6;

/// How far the system confines a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpConfinement {
    /// The version of Landlock, which keeps the program in its folders; absent if the system has none. Then the program
    /// is not confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<u32>,
    /// Whether the program has namespaces of its own: processes, files and a user without rights.
    pub namespaces: bool,
    /// What follows from what the system does not have. Empty: the program is confined in every way.
    pub gaps: Vec<McpConfinementGap>,
}

/// What a program can do, or cannot do, because the system lacks something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpConfinementGap {
    /// It is not confined: it has the rights of the sidecar.
    Unconfined,
    /// It cannot change the mode, the owner or the times of any file.
    NoModes,
    /// It cannot have a declared socket.
    NoSockets,
    /// Processes that it starts can outlive the sidecar.
    Processes,
    /// It can end other processes of its user.
    Signals,
}

impl McpConfinement {
    /// What follows for programs from what a system has.
    #[must_use]
    pub fn of(landlock: Option<u32>, namespaces: bool) -> Self {
        let gaps = match landlock {
            None => vec![McpConfinementGap::Unconfined],
            Some(version) => {
                let signals =
                    (!namespaces && version < LANDLOCK_WITH_SIGNALS).then_some(McpConfinementGap::Signals);
                let sockets =
                    (!namespaces || version < LANDLOCK_WITH_SIGNALS).then_some(McpConfinementGap::NoSockets);
                let without = [McpConfinementGap::NoModes, McpConfinementGap::Processes].into_iter();
                without.filter(|_| !namespaces).chain(sockets).chain(signals).collect()
            }
        };
        Self { landlock, namespaces: namespaces && landlock.is_some(), gaps }
    }
}

impl McpConfinementGap {
    /// What it means, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unconfined => "a program has the rights of the sidecar",
            Self::NoModes => {
                "a program cannot change the mode, owner or times of any file, also of its own: installations by npx, npm \
                 or pip fail"
            }
            Self::NoSockets => "a program cannot have a declared socket",
            Self::Processes => {
                "processes that a program starts can outlive the sidecar, and it sees those of others"
            }
            Self::Signals => "a program can end other processes of its user",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{McpConfinement, McpConfinementGap};

    // SECURITY: mcp-gaps
    #[test]
    fn what_a_system_lacks_is_said() {
        use McpConfinementGap::{NoModes, NoSockets, Processes, Signals, Unconfined};
        let rows: [(_, _, &[_]); 6] = [
            (None, false, &[Unconfined]),
            (None, true, &[Unconfined]),
            (Some(1), false, &[NoModes, Processes, NoSockets, Signals]),
            (Some(6), false, &[NoModes, Processes, NoSockets]),
            (Some(5), true, &[NoSockets]),
            (Some(6), true, &[]),
        ];
        for (landlock, namespaces, gaps) in rows {
            let found = McpConfinement::of(landlock, namespaces);
            assert_eq!(found.gaps, gaps, "{landlock:?} {namespaces}");
            assert_eq!(found.namespaces, namespaces && landlock.is_some());
        }
    }
}
