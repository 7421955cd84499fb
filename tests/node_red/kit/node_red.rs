//! A Node-RED as a process, with its own user directory.

use super::admin::Admin;
use super::comms::Comms;
use super::release_line::{ReleaseLine, palette};
use super::{TIME_LIMIT, eventually};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use tokio::time::Instant;

/// How many ports are tried if other processes take them first.
const PORTS_TRIED: usize = 5;

/// How many lines of the log a failed test prints.
const PRINTED_LINES: usize = 120;

/// A running Node-RED. Drop kills it.
pub(crate) struct NodeRed {
    pub(crate) line: ReleaseLine,
    user: TempDir,
    child: Child,
    pub(crate) admin: Admin,
    pub(crate) comms: Comms,
    /// Variables of its environment.
    env: Vec<(String, String)>,
}

/// How a Node-RED is set up before it starts.
#[derive(Default)]
pub(crate) struct Setup {
    /// Leaves the palette module out.
    pub(crate) without_palette: bool,
    /// The folder of the palette module, if not the prepared one.
    pub(crate) palette: Option<PathBuf>,
    /// More modules: their names and files.
    pub(crate) modules: Vec<(&'static str, Vec<(&'static str, String)>)>,
    /// Variables of its environment.
    pub(crate) env: Vec<(String, String)>,
    /// Lines for `settings.js`.
    pub(crate) settings: String,
}

impl NodeRed {
    /// Starts it with the palette module and no flows.
    pub(crate) async fn start(line: ReleaseLine) -> Self {
        Self::start_with(line, Setup::default()).await
    }

    pub(crate) async fn start_with(line: ReleaseLine, setup: Setup) -> Self {
        let user = tempfile::tempdir().unwrap();
        prepare_user_folder(user.path(), &setup);
        let (child, addr) = launch(line, user.path(), &setup.env).await;
        let (admin, comms) = (Admin { addr }, Comms::open(addr).await);
        Self { line, user, child, admin, comms, env: setup.env }
    }

    pub(crate) fn user(&self) -> &Path {
        self.user.path()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.admin.addr
    }

    /// Its whole log.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(log_file(self.user())).unwrap()).into_owned()
    }

    /// The number of log lines that contain a text.
    pub(crate) fn count_log_lines(&self, words: &str) -> usize {
        self.log().lines().filter(|line| line.contains(words)).count()
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Ends it as a service manager does.
    pub(crate) async fn stop(&mut self) {
        let done = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
        eventually("Node-RED stops", async || self.child.try_wait().unwrap()).await;
    }

    /// Starts it again, in the same user directory.
    pub(crate) async fn start_again(&mut self) {
        assert!(self.child.try_wait().unwrap().is_some(), "it still runs");
        let (child, addr) = launch(self.line, self.user.path(), &self.env).await;
        self.child = child;
        self.admin = Admin { addr };
        self.comms = Comms::open(addr).await;
    }

    /// Deploys and waits until the flows run.
    pub(crate) async fn deploy(&self, flows: &serde_json::Value) {
        self.deploy_as("full", flows).await;
    }

    pub(crate) async fn deploy_as(&self, kind: &str, flows: &serde_json::Value) {
        let before = self.comms.deploys().len();
        let revision = self.admin.deploy(kind, flows).await;
        eventually("the flows run", async || {
            self.comms.deploys().iter().skip(before).any(|known| *known == revision).then_some(())
        })
        .await;
    }
}

impl Drop for NodeRed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            print_log("Node-RED", &self.log());
        }
    }
}

/// Prints the last lines of a log, for a test that failed.
#[allow(clippy::print_stderr, reason = "a failed test prints what it knows")]
pub(crate) fn print_log(owner: &str, log: &str) {
    let lines: Vec<&str> = log.lines().collect();
    let text = lines[lines.len().saturating_sub(PRINTED_LINES)..].join("\n");
    eprintln!("--- the log of {owner}\n{text}\n---");
}

fn log_file(user: &Path) -> PathBuf {
    user.join("node-red.log")
}

/// Writes the files that a user directory needs before the first start.
fn prepare_user_folder(user: &Path, setup: &Setup) {
    let modules = user.join("node_modules");
    std::fs::create_dir(&modules).unwrap();
    let mut names: Vec<String> = setup.modules.iter().map(|(name, _)| (*name).to_owned()).collect();
    if !setup.without_palette {
        let installed = setup.palette.clone().unwrap_or_else(palette);
        for folder in ["@redflow", "ws"] {
            std::os::unix::fs::symlink(installed.join(folder), modules.join(folder)).unwrap();
        }
        names.push("@redflow/node-red-bridge".to_owned());
    }
    for (name, files) in &setup.modules {
        let folder = modules.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
    }
    let dependencies: serde_json::Map<_, _> = names.into_iter().map(|name| (name, "*".into())).collect();
    let package = serde_json::json!({"name": "user", "private": true, "dependencies": dependencies});
    std::fs::write(user.join("package.json"), package.to_string()).unwrap();
    std::fs::write(user.join("flows.json"), "[]").unwrap();
    std::fs::write(user.join("settings.js"), settings(&setup.settings)).unwrap();
}

/// The settings: loopback only, no requests to the internet.
fn settings(more: &str) -> String {
    format!(
        r#"module.exports = {{
    uiHost: "127.0.0.1",
    uiPort: Number(process.env.TEST_PORT),
    flowFile: "flows.json",
    credentialSecret: "of the tests",
    lang: "en-US",
    telemetry: {{ enabled: false, updateNotification: false }},
    editorTheme: {{ palette: {{ catalogues: [] }}, tours: false }},
    externalModules: {{ palette: {{ allowInstall: false }}, modules: {{ allowInstall: false }} }},
    functionExternalModules: false,
    logging: {{ console: {{ level: "debug", metrics: false, audit: false }} }},
    {more}
}};
"#
    )
}

async fn launch(line: ReleaseLine, user: &Path, env: &[(String, String)]) -> (Child, SocketAddr) {
    for _ in 0..PORTS_TRIED {
        // Another process may take the port first. Then Node-RED logs it and ends.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let log = File::options().append(true).create(true).open(log_file(user)).unwrap();
        let begin = usize::try_from(log.metadata().unwrap().len()).unwrap();
        let new_log =
            || String::from_utf8_lossy(&std::fs::read(log_file(user)).unwrap()[begin..]).into_owned();
        let mut command = Command::new(line.node());
        command
            .arg(line.program())
            .arg("--userDir")
            .arg(user)
            .arg("--settings")
            .arg(user.join("settings.js"));
        for (name, _) in std::env::vars_os() {
            let is_setting = name.to_str().is_some_and(|name| {
                ["REDFLOW_", "NODE_RED_", "npm_"].iter().any(|prefix| name.starts_with(prefix))
                    || name.ends_with("_API_KEY")
            });
            if is_setting {
                command.env_remove(name);
            }
        }
        command.env("TEST_PORT", port.to_string()).env("LANG", "en_US.UTF-8").env("NO_COLOR", "1");
        command.envs(env.iter().map(|(name, value)| (name, value))).current_dir(user);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = command.spawn().unwrap();
        if is_ready(&mut child, addr, new_log).await {
            return (child, addr);
        }
        let _ = child.kill();
        child.wait().unwrap();
        let log = new_log();
        if !log.contains("port in use") {
            print_log("Node-RED", &log);
            panic!("Node-RED {} did not start", line.name());
        }
    }
    panic!("{PORTS_TRIED} ports were taken");
}

/// Whether it responds and its flows have started. The Admin API alone reports that too early.
async fn is_ready(child: &mut Child, addr: SocketAddr, new_log: impl Fn() -> String) -> bool {
    let end = Instant::now() + TIME_LIMIT;
    while Instant::now() < end {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if new_log().contains("Started flows") && (Admin { addr }).is_up().await {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    false
}
