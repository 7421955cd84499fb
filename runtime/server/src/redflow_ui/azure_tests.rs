use super::{ServerOwner, TestFailure};
use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::Failure;

// SECURITY: connection-test
#[test]
fn only_https_to_azure_hosts_is_azure() {
    for endpoint in [
        "https://name.openai.azure.com",
        " HTTPS://NAME.OpenAI.Azure.com:443/openai?x=1 ",
        "https://name.services.ai.azure.com/",
    ] {
        assert_eq!(ServerOwner::at(endpoint), ServerOwner::Azure, "{endpoint}");
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
        assert_eq!(ServerOwner::at(endpoint), ServerOwner::Other, "{endpoint}");
    }
}

// SECURITY: connection-test
#[test]
fn shows_the_answer_of_azure_only() {
    const ANSWER: &str = "the answer of an internal service";
    for code in RunErrorCode::ALL {
        let failure =
            |server| TestFailure::from_model(Failure { code: *code, message: ANSWER.to_owned() }, server);
        let (azure, other) = (failure(ServerOwner::Azure), failure(ServerOwner::Other));
        assert_eq!(azure.error, ANSWER);
        assert!(!other.error.contains(ANSWER) && other.error.len() > 60, "{}", other.error);
        assert_eq!((azure.status, azure.code), (other.status, other.code));
        assert_eq!(other.code, code.as_str());
    }
}
