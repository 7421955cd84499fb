use super::{Refusal, Who};
use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::Failure;

#[test]
fn only_https_at_its_own_hosts_is_azure() {
    for endpoint in [
        "https://name.openai.azure.com",
        " HTTPS://NAME.OpenAI.Azure.com:443/openai?x=1 ",
        "https://name.services.ai.azure.com/",
    ] {
        assert_eq!(Who::at(endpoint), Who::Azure, "{endpoint}");
    }
    for endpoint in [
        "http://name.openai.azure.com",
        "https://openai.azure.com.example",
        "https://evil-openai.azure.com",
        "https://example/openai.azure.com",
        "https://name.openai.azure.com@example",
        "https://example\\name.openai.azure.com",
        "https://127.0.0.1",
        "http://localhost:11434",
        "name.openai.azure.com",
        "",
    ] {
        assert_eq!(Who::at(endpoint), Who::Other, "{endpoint}");
    }
}

#[test]
fn what_was_said_is_told_of_azure_alone() {
    const SAID: &str = "what an inner service says";
    for code in RunErrorCode::ALL {
        let refusal = |who| Refusal::of(Failure { code: *code, message: SAID.to_owned() }, who);
        let (azure, other) = (refusal(Who::Azure), refusal(Who::Other));
        assert_eq!(azure.error, SAID);
        assert!(!other.error.contains(SAID) && other.error.len() > 60, "{}", other.error);
        assert_eq!((azure.status, azure.code), (other.status, other.code));
        assert_eq!(other.code, code.as_str());
    }
}
