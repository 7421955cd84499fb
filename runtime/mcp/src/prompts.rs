//! Prompts: the messages of one become a text that an agent uses as its system prompt.

use crate::input::{AskError, InputRounds};
use crate::lists::{ListTime, ask, read_prompts};
use crate::server::{Connected, Server};
use crate::text::{clean, clean_and_cut, cut_bytes};
use redflow_contract::code::ToolCode;
use redflow_contract::mcp::{MAX_MCP_DESCRIPTION_CHARS, McpPromptInfo};
use rmcp::model::{
    ClientRequest, ContentBlock, GetPromptRequest, GetPromptRequestParams, Prompt, ResourceContents,
    ServerResult,
};

/// The most bytes of a prompt.
pub(crate) const MAX_PROMPT_BYTES: usize = 65_536;

/// The most characters of a name.
const MAX_NAME_CHARS: usize = 200;

/// What people see of a prompt.
pub(crate) fn info_of(prompt: &Prompt) -> McpPromptInfo {
    let text = prompt.description.as_ref().map(|text| clean_and_cut(text, MAX_MCP_DESCRIPTION_CHARS));
    McpPromptInfo {
        name: clean_and_cut(&prompt.name, MAX_NAME_CHARS),
        description: text,
        needs_arguments: needs_arguments(prompt),
    }
}

fn needs_arguments(prompt: &Prompt) -> bool {
    prompt.arguments.iter().flatten().any(|argument| argument.required == Some(true))
}

/// Reads a prompt that is not known yet.
pub(crate) async fn read(server: &Server, connected: &Connected, name: &str) {
    if server.prompt(name).is_some() {
        return;
    }
    match fetch(connected, name).await {
        Ok(mut text) => {
            server.scrubber().text(&mut text);
            server.keep_prompt(name, text.into());
        }
        Err(AskError { code, text: mut reason }) => {
            server.scrubber().text(&mut reason);
            tracing::warn!(
                server = server.name(),
                prompt = name,
                code = code.map(ToolCode::as_str),
                reason,
                "a prompt of an MCP server cannot be used"
            );
        }
    }
}

async fn fetch(connected: &Connected, name: &str) -> Result<String, AskError> {
    if connected.info.as_ref().is_some_and(|info| info.capabilities.prompts.is_none()) {
        return Err(AskError::failed("The server has no prompts."));
    }
    let time = ListTime::new(connected.times);
    let known = read_prompts(&connected.peer, time).await.map_err(AskError::failed)?;
    if known.iter().any(|prompt| prompt.name == name && needs_arguments(prompt)) {
        return Err(AskError::failed("The prompt needs arguments."));
    }
    let (mut params, mut rounds) = (GetPromptRequestParams::new(name), InputRounds::default());
    let result = loop {
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone()));
        match ask(&connected.peer, request, connected.times.page).await.map_err(AskError::failed)? {
            ServerResult::GetPromptResult(result) => break result,
            ServerResult::InputRequiredResult(asked) => {
                let declined = rounds.decline(&connected.warnings, asked).await?;
                (params.input_responses, params.request_state) = (declined.responses, declined.state);
            }
            _ => return Err(AskError::failed("The answer of the server is not a prompt.")),
        }
    };
    let texts: Vec<&str> = result.messages.iter().filter_map(|message| text_of(&message.content)).collect();
    let text = clean(&texts.join("\n\n"));
    match text.trim() {
        "" => Err(AskError::failed("The prompt has no text.")),
        text => Ok(cut_bytes(text, MAX_PROMPT_BYTES).to_owned()),
    }
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => Some(text),
            _ => None,
        },
        _ => None,
    }
}
