//! The frames between the sidecar and the process that reads documents, in both directions.

use super::{Outcome, Target};
use redflow_worker::{DocumentProblem, HtmlText, Worker, WorkerError, WorkerSettings};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Builder;

/// The longest header line.
const MAX_HEADER_BYTES: usize = 1024;

/// How long a worker may take for a frame. Then the sidecar would kill it.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The answers of a worker that a document has taken over: the program of this target sends an input as it is.
pub(super) struct Answers {
    folder: TempDir,
    program: PathBuf,
}

impl Answers {
    pub(super) fn new() -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("worker");
        let script = format!("#!/bin/sh\nexec /bin/cat '{}'\n", folder.path().join("answer").display());
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
        Ok(Self { folder, program })
    }

    fn read(&self) -> Result<Result<HtmlText, WorkerError>, String> {
        let settings =
            WorkerSettings { program: Some(self.program.clone()), timeout: TIME_LIMIT, filter: false };
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        Ok(runtime.block_on(Worker::new(settings).read_html(b"<p>a</p>".to_vec())))
    }
}

impl Target for Answers {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let text = json!({"title": "T", "markdown": "# T\n\ntext"}).to_string();
        let length = text.len();
        let problems = ["not_pdf", "not_html", "no_text", "text_too_large", "sandbox"];
        let failures = problems.map(|reason| format!("{{\"ok\":false,\"reason\":\"{reason}\"}}\n"));
        let frames = [
            format!("{{\"ok\":true,\"bytes\":{length}}}\n{text}"),
            format!("{{\"ok\":true,\"bytes\":{}}}\n{text}", length + 1),
            format!("{{\"ok\":true,\"bytes\":18446744073709551615}}\n{text}"),
            format!("{{\"ok\":true,\"bytes\":{length},\"reason\":\"no_text\"}}\n{text}"),
            "{\"ok\":true,\"bytes\":0}\n".to_owned(),
            String::new(),
        ];
        frames.into_iter().chain(failures).map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let file = self.folder.path().join("answer");
        std::fs::write(file, input).map_err(|error| error.to_string())?;
        let (header, rest) = frame(input);
        match self.read()? {
            Ok(text) => {
                let bytes = header["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
                let result = bytes.and_then(|bytes| rest.get(..bytes)).unwrap_or_default();
                let sent: Option<HtmlText> = serde_json::from_slice(result).ok();
                let is_right = header["ok"] == true && sent == Some(text);
                if is_right { Ok("a text".to_owned()) } else { Err("a text that was not sent".to_owned()) }
            }
            Err(WorkerError::Unreadable(problem)) => {
                let sent: Option<DocumentProblem> = serde_json::from_value(header["reason"].clone()).ok();
                let is_right = header["ok"] == false && sent == Some(problem);
                if is_right { Ok(problem.to_string()) } else { Err("a problem that was not sent".to_owned()) }
            }
            Err(WorkerError::SandboxUnavailable) if header["reason"] == "sandbox" => {
                Ok("no sandbox".to_owned())
            }
            Err(WorkerError::Ended) => Ok("no answer".to_owned()),
            Err(other) => Err(format!("the worker ended at once, but the outcome is {other:?}")),
        }
    }
}

/// The header of a frame, and what follows. Null if the first line is no JSON.
fn frame(bytes: &[u8]) -> (Value, &[u8]) {
    let end = bytes.iter().take(MAX_HEADER_BYTES).position(|byte| *byte == b'\n');
    let end = end.map_or(bytes.len().min(MAX_HEADER_BYTES), |end| end + 1);
    (serde_json::from_slice(&bytes[..end]).unwrap_or_default(), &bytes[end..])
}

/// The jobs of the real worker. An input that is no job is a document, for a job of its kind.
pub(super) struct Jobs {
    program: PathBuf,
}

impl Jobs {
    pub(super) fn new(program: &Path) -> Self {
        Self { program: program.to_owned() }
    }

    /// What the worker writes. None if it needs too long.
    fn perform(&self, job: Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
        let mut command = Command::new(&self.program);
        command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        // A worker that ends early closes the pipe.
        let send = std::thread::spawn(move || drop(input.map(|mut input| input.write_all(&job))));
        let (sender, answers) = channel();
        let receive = std::thread::spawn(move || {
            let mut answer = Vec::new();
            output.map(|mut output| output.read_to_end(&mut answer));
            // Without a receiver it came too late.
            let _ = sender.send(answer);
        });
        let answer = answers.recv_timeout(TIME_LIMIT).ok();
        if answer.is_none() {
            child.kill()?;
        }
        child.wait()?;
        let ended = |_| std::io::Error::other("a thread has panicked");
        send.join().map_err(ended)?;
        receive.join().map_err(ended)?;
        Ok(answer)
    }
}

impl Target for Jobs {
    fn name(&self) -> &'static str {
        "jobs"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let pdf = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
                   3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
                   4 0 obj<</Length 27>>stream\nBT /F 9 Tf (pump) Tj ET    \nendstream endobj\n\
                   5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n\
                   trailer<</Root 1 0 R/Size 6>>\n%%EOF\n";
        let html = "<!doctype html><title>T</title><h1>A &amp; b</h1><table><tr><td>1<td>2</table><ul><li>x<ul><li>y</ul></ul>\
                    <pre><code>c</code></pre><script>no</script><a href='x'>l</a>";
        let jobs = [
            "{\"job\":\"html\",\"bytes\":3}\n<p>",
            "{\"job\":\"html\",\"bytes\":4}\n<p>",
            "{\"job\":\"pdf\",\"bytes\":99999999999}\n",
            "{\"job\":\"js\",\"bytes\":1}\nx",
            "{}",
        ];
        [pdf, html].into_iter().chain(jobs).map(|text| text.as_bytes().to_vec()).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let is_job = input.starts_with(b"{");
        let kind = if input.starts_with(b"%PDF") { "pdf" } else { "html" };
        let header = format!("{{\"job\":\"{kind}\",\"bytes\":{}}}\n", input.len()).into_bytes();
        let job = if is_job { input.to_vec() } else { [&header, input].concat() };
        let Some(answer) = self.perform(job).map_err(|error| error.to_string())? else {
            return Ok("too late".to_owned());
        };
        let (header, rest) = frame(&answer);
        if answer.is_empty() {
            return Ok("no answer".to_owned());
        }
        if header["ok"] == false && rest.is_empty() {
            return Ok(header["reason"].to_string());
        }
        let is_whole = header["ok"] == true && header["bytes"].as_u64() == u64::try_from(rest.len()).ok();
        if is_whole && serde_json::from_slice::<Value>(rest).is_ok() {
            Ok("a text".to_owned())
        } else {
            Err(format!(
                "the answer is no frame: {}",
                String::from_utf8_lossy(&answer[..answer.len().min(300)])
            ))
        }
    }
}
