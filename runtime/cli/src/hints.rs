//! Commands that users can copy: what they can do about a run that has not ended.

use crate::args::ProfileName;
use crate::files::is_stdio;
use crate::text::printable_line;
use crate::times::format_time;
use redflow_contract::Message;
use redflow_contract::id::RunId;
use redflow_contract::run::{RunSummary, WaitingCall};
use std::path::Path;
use url::Url;

/// The characters of a tool input in a note on stderr.
pub(crate) const NOTE_INPUT_CHARS: usize = 200;

/// Makes the commands for the runs of one data directory or sidecar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints<'a> {
    location: Location<'a>,
    /// The flow file that the user named.
    flow: Option<&'a Path>,
    profile: ProfileName,
}

#[derive(Debug, Clone, Copy)]
enum Location<'a> {
    /// The data directory that the user named with `--data`; none for the default one.
    Local(Option<&'a Path>),
    Sidecar(&'a Url),
}

impl<'a> Hints<'a> {
    /// `data` is the value of `--data`.
    pub(crate) fn local(data: Option<&'a Path>) -> Self {
        Self { location: Location::Local(data), flow: None, profile: ProfileName::Strict }
    }

    pub(crate) fn remote(sidecar: &'a Url) -> Self {
        Self { location: Location::Sidecar(sidecar), flow: None, profile: ProfileName::Strict }
    }

    /// Adds the flow file and the profile that the user named.
    pub(crate) fn with_flow(self, flow: Option<&'a Path>, profile: Option<ProfileName>) -> Self {
        Self { flow, profile: profile.unwrap_or(ProfileName::Strict), ..self }
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.location, Location::Sidecar(_))
    }

    /// The flag that selects the same runs.
    fn location_flag(&self) -> String {
        match self.location {
            Location::Sidecar(url) => format!(" --url {}", shell_word(Path::new(url.as_str()))),
            Location::Local(Some(dir)) => format!(" --data {}", shell_word(dir)),
            Location::Local(None) => String::new(),
        }
    }

    pub(crate) fn resume(&self, run: &RunId) -> String {
        let flow = self.flow.filter(|path| !is_stdio(path));
        self.resume_with(run, &flow.map(|path| format!(" {}", shell_word(path))).unwrap_or_default())
    }

    /// The command that delivers the result of an ended run.
    pub(crate) fn deliver(&self, run: &RunSummary) -> String {
        match run.source {
            Some(_) => self.resume(&run.run_id),
            None => self.resume_with_flow(&run.run_id),
        }
    }

    /// The command for a run whose flow file only the user knows.
    pub(crate) fn resume_with_flow(&self, run: &RunId) -> String {
        self.resume_with(run, " FLOW")
    }

    fn resume_with(&self, run: &RunId, flow: &str) -> String {
        let profile = match self.profile {
            ProfileName::Strict => "",
            ProfileName::Redflow => " --profile redflow",
        };
        format!("redflow run --resume {}{flow}{profile}{}", display_run_id(run), self.location_flag())
    }

    /// A line that names the command to list the runs.
    pub(crate) fn list(&self) -> String {
        format!("list the runs: redflow runs{}", self.location_flag())
    }

    pub(crate) fn show(&self, run: &RunId) -> String {
        format!("redflow runs show {}{}", display_run_id(run), self.location_flag())
    }

    pub(crate) fn cancel(&self, run: &RunId) -> String {
        format!("redflow runs cancel {}{}", display_run_id(run), self.location_flag())
    }

    /// Lines that name the commands for a damaged run.
    pub(crate) fn damaged(&self, run: &RunId) -> [String; 2] {
        let replay = format!("redflow replay {}{}", display_run_id(run), self.location_flag());
        [format!("replay the intact part: {replay}"), self.prune_damaged()]
    }

    /// A line that names the command to remove damaged runs.
    pub(crate) fn prune_damaged(&self) -> String {
        // A sidecar cannot remove runs, so the user has to name its data directory.
        let flag = if self.is_remote() { " --data DIR".to_owned() } else { self.location_flag() };
        format!("remove damaged runs: redflow runs prune --damaged{flag}")
    }

    /// Lines that name the commands to answer a waiting run and to resume it.
    pub(crate) fn answers(&self, run: &RunId, questions: &[WaitingCall]) -> [String; 4] {
        let (id, mut flag) = (display_run_id(run), self.location_flag());
        if let [call, _, ..] = questions {
            flag = format!(" --call {}{flag}", printable_line(call.call_id.as_str(), 80));
        }
        let then = if self.is_remote() { "the run continues by itself".to_owned() } else { self.resume(run) };
        [
            format!("if it did:   redflow runs resolve {id} --done{flag}"),
            "             add --result JSON if you know its result".to_owned(),
            format!("if not:      redflow runs resolve {id} --not-done{flag}"),
            format!("then:        {then}"),
        ]
    }
}

pub(crate) fn display_run_id(run: &RunId) -> String {
    printable_line(run.as_str(), 60)
}

/// The question that a waiting run has for a person. The input of the call is cut to `limit` characters.
pub(crate) fn format_question(call: &WaitingCall, limit: usize) -> String {
    format!(
        "did `{}` {} happen? call {}, iteration {}, made {}",
        printable_line(&call.tool, 60),
        format_input(&call.input, limit),
        printable_line(call.call_id.as_str(), 80),
        call.iteration,
        format_time(call.asked_at)
    )
}

fn format_input(input: &Message, limit: usize) -> String {
    printable_line(&serde_json::to_string(input).unwrap_or_default(), limit)
}

/// A path quoted as one word of a command line.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = printable_line(&path.display().to_string(), 1000);
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
    use super::{Hints, format_question, shell_word};
    use crate::args::ProfileName;
    use redflow_contract::run::WaitingCall;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_question_names_the_tool_its_input_and_the_time() {
        let input = json!({"amount": 17, "to": "a\u{1b}b"});
        let call = WaitingCall {
            call_id: "0197:1".into(),
            tool: "pay".to_owned(),
            iteration: 1,
            asked_at: 1_766_000_000_999,
            input: input.as_object().cloned().unwrap_or_default(),
        };
        let rest = "happen? call 0197:1, iteration 1, made 2025-12-17T19:33:20Z";
        let whole = r#"did `pay` {"amount":17,"to":"a\u001bb"}"#;
        assert_eq!(format_question(&call, 200), format!("{whole} {rest}"));
        assert_eq!(format_question(&call, 8), format!("did `pay` {{\"amount… {rest}"));
    }

    #[test]
    fn commands_can_be_copied_unchanged() {
        let (default, named) = (Hints::local(None), Hints::local(Some(Path::new("my data"))));
        let flow = Some(Path::new("my flow.json"));
        let quote = if cfg!(windows) { '"' } else { '\'' };
        let run = "0197".into();
        let url = url::Url::parse("http://127.0.0.1:1881").unwrap();
        let rows = [
            (default.resume(&run), "redflow run --resume 0197".to_owned()),
            (
                named.with_flow(flow, Some(ProfileName::Redflow)).resume(&run),
                format!(
                    "redflow run --resume 0197 {quote}my flow.json{quote} --profile redflow --data {quote}my data{quote}"
                ),
            ),
            // A flow from standard input cannot be named again.
            (
                default.with_flow(Some(Path::new("-")), None).resume(&run),
                "redflow run --resume 0197".to_owned(),
            ),
            (default.resume_with_flow(&run), "redflow run --resume 0197 FLOW".to_owned()),
            // The runs of a sidecar are not looked up in a directory.
            (
                Hints::remote(&url).show(&run),
                "redflow runs show 0197 --url http://127.0.0.1:1881/".to_owned(),
            ),
        ];
        for (command, expected) in rows {
            assert_eq!(command, expected);
        }
        for line in default.answers(&run, &[]) {
            assert!(!line.contains('['), "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_is_quoted_as_one_word() {
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
