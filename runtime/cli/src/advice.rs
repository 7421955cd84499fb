//! Commands for people to copy: what can be done about a run that is not over. Each is whole as it stands: what
//! else could be said to it stands beside it.

use crate::args::ProfileName;
use crate::data_dir::{DataOption, shell_word};
use crate::terminal::printable_line;
use crate::times::moment;
use redflow_contract::Message;
use redflow_contract::id::RunId;
use redflow_contract::run::{RunSummary, WaitingCall};
use std::path::Path;
use url::Url;

/// Characters of an input that a question shows where there is little room.
pub(crate) const SHOWN_INPUT: usize = 200;

/// Where the runs are that it speaks of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Advice<'a> {
    pub(crate) data: &'a DataOption,
    /// The flow file the user named, if it can be named again.
    pub(crate) flow: Option<&'a Path>,
    /// How strictly the user wants flows to be read.
    pub(crate) profile: ProfileName,
    /// The sidecar that has them, if it is not this machine's directory that is looked at.
    pub(crate) sidecar: Option<&'a Url>,
}

impl<'a> Advice<'a> {
    /// For runs of which the user named no flow.
    pub(crate) fn of(data: &'a DataOption) -> Self {
        Self { data, flow: None, profile: ProfileName::Strict, sidecar: None }
    }

    /// What must be added to a command so that it finds the same runs.
    fn words(&self) -> String {
        match self.sidecar {
            Some(url) => format!(" --url {}", shell_word(Path::new(url.as_str()))),
            None => self.data.words(),
        }
    }

    /// Goes on with a run.
    pub(crate) fn resume(&self, run: &RunId) -> String {
        let flow = self.flow.filter(|path| *path != Path::new("-"));
        self.resume_with(run, &flow.map(|path| format!(" {}", shell_word(path))).unwrap_or_default())
    }

    /// Sends the result of a run that is over.
    pub(crate) fn deliver(&self, run: &RunSummary) -> String {
        match run.source {
            Some(_) => self.resume(&run.run_id),
            None => self.resume_with_flow(&run.run_id),
        }
    }

    /// Goes on with a run whose flow only the user can name.
    pub(crate) fn resume_with_flow(&self, run: &RunId) -> String {
        self.resume_with(run, " FLOW")
    }

    fn resume_with(&self, run: &RunId, flow: &str) -> String {
        let profile = match self.profile {
            ProfileName::Strict => "",
            ProfileName::Redflow => " --profile redflow",
        };
        format!("redflow run --resume {}{flow}{profile}{}", shown_id(run), self.words())
    }

    /// Lists the runs.
    pub(crate) fn list(&self) -> String {
        format!("redflow runs{}", self.words())
    }

    /// Shows a run.
    pub(crate) fn show(&self, run: &RunId) -> String {
        format!("redflow runs show {}{}", shown_id(run), self.words())
    }

    /// Ends a run.
    pub(crate) fn cancel(&self, run: &RunId) -> String {
        format!("redflow runs cancel {}{}", shown_id(run), self.words())
    }

    /// What can be done about a run that is damaged: a line each.
    pub(crate) fn damaged(&self, run: &RunId) -> [String; 2] {
        let replay = format!("redflow replay {}{}", shown_id(run), self.words());
        [format!("what is sound of it: {replay}"), self.prune_damaged()]
    }

    /// Removes runs that are damaged, in words.
    pub(crate) fn prune_damaged(&self) -> String {
        // Only who has the directory can remove anything.
        let words = self.sidecar.map_or_else(|| self.data.words(), |_| " --data DIR".to_owned());
        format!("to be rid of such runs: redflow runs prune --damaged{words}")
    }

    /// How a run that waits is answered, and goes on then: a line each.
    pub(crate) fn answers(&self, run: &RunId) -> [String; 4] {
        let (id, data) = (shown_id(run), self.words());
        let then = match self.sidecar {
            Some(_) => "it goes on by itself".to_owned(),
            None => self.resume(run),
        };
        [
            format!("if it did:   redflow runs resolve {id} --done{data}"),
            "             with --result JSON too, if you know what it gave".to_owned(),
            format!("if not:      redflow runs resolve {id} --not-done{data}"),
            format!("then:        {then}"),
        ]
    }
}

/// A run's id as it is shown.
pub(crate) fn shown_id(run: &RunId) -> String {
    printable_line(run.as_str(), 60)
}

/// What a run waits for, in words, with so many characters of the call's input at most.
pub(crate) fn question(call: &WaitingCall, most: usize) -> String {
    format!(
        "did `{}` {} happen? call {}, iteration {}, made {}",
        printable_line(&call.tool, 60),
        input_text(&call.input, most),
        printable_line(call.call_id.as_str(), 80),
        call.iteration,
        moment(call.asked_at)
    )
}

/// What a tool was called with, on one line.
pub(crate) fn input_text(input: &Message, most: usize) -> String {
    printable_line(&serde_json::to_string(input).unwrap_or_default(), most)
}

#[cfg(test)]
mod tests {
    use super::{Advice, question};
    use crate::args::ProfileName;
    use crate::data_dir::DataOption;
    use redflow_contract::run::WaitingCall;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_question_says_what_was_called_with_what_and_when() {
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
        assert_eq!(question(&call, 200), format!("{whole} {rest}"));
        assert_eq!(question(&call, 8), format!("did `pay` {{\"amount… {rest}"));
    }

    #[test]
    fn commands_are_whole_as_they_stand() {
        let (none, some) = (DataOption { data: None }, DataOption { data: Some("my data".into()) });
        let flow = Some(Path::new("my flow.json"));
        let quote = if cfg!(windows) { '"' } else { '\'' };
        let run = "0197".into();
        let url = url::Url::parse("http://127.0.0.1:1881").unwrap();
        let rows = [
            (Advice::of(&none).resume(&run), "redflow run --resume 0197".to_owned()),
            (
                Advice { flow, profile: ProfileName::Redflow, ..Advice::of(&some) }.resume(&run),
                format!(
                    "redflow run --resume 0197 {quote}my flow.json{quote} --profile redflow --data {quote}my data{quote}"
                ),
            ),
            // What came from standard input cannot be named again.
            (
                Advice { flow: Some(Path::new("-")), ..Advice::of(&none) }.resume(&run),
                "redflow run --resume 0197".to_owned(),
            ),
            (Advice::of(&none).resume_with_flow(&run), "redflow run --resume 0197 FLOW".to_owned()),
            // Who looks at a sidecar is not sent to a directory.
            (
                Advice { sidecar: Some(&url), ..Advice::of(&some) }.show(&run),
                "redflow runs show 0197 --url http://127.0.0.1:1881/".to_owned(),
            ),
        ];
        for (command, expected) in rows {
            assert_eq!(command, expected);
        }
        for line in Advice::of(&none).answers(&run) {
            assert!(!line.contains('['), "{line}");
        }
    }
}
