use super::{ErrorKind, TABLE};
use crate::ModelSettings;
use crate::recorded_errors::{RecordedError, other_errors, too_long};
use crate::recording::{DeltaLog, Recording, RetryLog, reply};
use crate::wire::ProviderError;
use redflow_ports::ToolChoice;
use std::sync::Arc;

/// Makes a call that fails once. Gives the code of the failure, and whether the call was made again.
fn outcome(error: &RecordedError) -> (String, bool) {
    let recording = Recording::new([error.reply.clone()]);
    let retries = Arc::new(RetryLog::default());
    let settings = ModelSettings { meter: Arc::clone(&retries) as _, ..ModelSettings::default() };
    let deltas = DeltaLog::default();
    let result = error.node().call_observed(&reply(ToolChoice::None), &recording, settings, Some(&deltas));
    match result {
        Ok(_) => {
            let retries = retries.0.lock().unwrap();
            let code = retries[0].split(' ').next_back().unwrap().to_owned();
            assert_eq!((retries.len(), recording.requests().len()), (1, 2), "{}", error.server);
            (code, true)
        }
        Err(failure) => {
            assert_eq!(recording.requests().len(), 1, "{}: {}", error.server, failure.message);
            (failure.code.as_str().to_owned(), false)
        }
    }
}

#[test]
fn every_recorded_error_has_its_code() {
    for error in too_long().into_iter().chain(other_errors()) {
        assert_eq!(outcome(&error), (error.code.to_owned(), error.is_retried), "{}", error.server);
    }
}

#[test]
fn every_text_of_the_table_is_found_in_any_case_and_place() {
    for (kind, patterns) in TABLE {
        for pattern in patterns {
            assert_eq!(*pattern, pattern.to_ascii_lowercase());
            let text = format!("So: {}!", pattern.to_ascii_uppercase());
            for error in [
                ProviderError { message: text.clone(), ..ProviderError::default() },
                ProviderError { code: text.clone(), ..ProviderError::default() },
                ProviderError { kind: text.clone(), ..ProviderError::default() },
            ] {
                assert_eq!(ErrorKind::of_text(&error), Some(kind), "{pattern}");
                let at = |status| ErrorKind::of(&ProviderError { status, ..error.clone() });
                assert_eq!(at(400), Some(kind), "{pattern}");
            }
        }
    }
    assert_eq!(ErrorKind::of_text(&ProviderError::default()), None);
}

#[test]
fn a_request_that_is_larger_than_a_rate_says_what_to_do() {
    let error = other_errors().into_iter().find(|error| error.server == "Groq, too large").unwrap();
    let recording = Recording::new([error.reply.clone()]);
    let result = error.node().call(&reply(ToolChoice::None), &recording, ModelSettings::default());
    let message = result.unwrap_err().message;
    let start = "the request is larger than what OpenAI's interface (api.openai.com) allows in a minute; lower `maxTokens`";
    assert!(message.starts_with(start) && message.contains("Limit 8000, Requested 12000"), "{message}");
}
