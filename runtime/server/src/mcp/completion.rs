//! Completes the arguments of the resource templates: runs, knowledge bases and documents.

use super::problem::{error_data, invalid_params};
use super::resources::{KNOWLEDGE, RUNS, bases, documents_of, newest_runs};
use crate::app::App;
use crate::response::Problem;
use redflow_access::Caller;
use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};

/// The values that begin with what the client has typed. A prompt has none, because there are no prompts.
pub(super) async fn complete(
    app: &App,
    caller: &Caller,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let CompleteRequestParams { r#ref, argument, context, .. } = request;
    let Reference::Resource(template) = r#ref else { return Ok(CompleteResult::default()) };
    let _slot = app.work_slots.search(&caller.name).await.map_err(error_data)?;
    let values = if template.uri.starts_with(RUNS) && argument.name == "run" {
        newest_runs(app).await?
    } else if template.uri.starts_with(KNOWLEDGE) && argument.name == "base" {
        bases(app).await?
    } else if template.uri.starts_with(KNOWLEDGE) && argument.name == "document" {
        let given = context.and_then(|context| context.arguments);
        match given.and_then(|mut given| given.remove("base")) {
            Some(base) => documents_of(app, &base, &argument.value).await,
            None => Vec::new(),
        }
    } else {
        let text = "There is no such argument. `resources/templates/list` lists the templates.";
        return Err(invalid_params(text));
    };
    let mut matching: Vec<String> =
        values.into_iter().filter(|value| value.starts_with(&argument.value)).collect();
    let (total, has_more) = (u32::try_from(matching.len()).ok(), matching.len() > CompletionInfo::MAX_VALUES);
    matching.truncate(CompletionInfo::MAX_VALUES);
    let completion = CompletionInfo::with_pagination(matching, total, has_more);
    completion.map(CompleteResult::new).map_err(|_| error_data(Problem::internal()))
}
