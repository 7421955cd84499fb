//! The Redflow UI and the real binary in conversation: what the UI does, in its order and from its origin, and
//! everything it is told in return. The model is behind a stand-in for Azure that holds requests to what Azure
//! documents.
//!
//! What was wrong with agents in Redflow's own runtime, and which test shows that it is not so here. What can be seen
//! in every frame is looked at in `conversation`, what must never be seen in `Ui::end`.
//!
//! | | there | here |
//! |---|---|---|
//! | D1 | the reply of a tool is not awaited | `answers::a_tool_iteration` |
//! | D2 | the reply of a tool is a new task | `answers::ordinary_nodes_are_tools_each_by_its_name` |
//! | D3 | stop conditions and the limit of iterations mean nothing | `answers::conditions_and_the_limit_of_iterations_end_a_run` |
//! | D4 | a tool that is not allowed ends in silence, and leaks | `failures::a_tool_that_is_not_allowed` |
//! | D5 | a run is two to four frames | every test; `Frame::run` |
//! | D6 | the answer in the chat goes back to the agent | `chats::a_chat_over_several_turns` |
//! | D7 | errors are not seen as errors | all of `failures` |
//! | D8 | answers are told of twice, without durations, prompts and calls | `answers::a_final_answer`, `a_tool_iteration`, `a_prompt_template_stays_ignored_with_a_warning` |
//! | D9 | any wire is taken | `refused::a_refused_agent`, `answers::the_example_flow` |
//! | D10 | all tools get every call; the model knows only their names | `answers::ordinary_nodes_are_tools_each_by_its_name`, `a_tool_iteration` |
//! | D11 | who never answers is waited for; what is removed is forgotten | `failures::a_model_that_never_answers`, `a_run_whose_agent_is_removed` |
//! | D12 | the prompt template is ignored | stays, with a warning: `answers::a_prompt_template_stays_ignored_with_a_warning` |
//! | D13 | secrets can be read by anybody | `secrets::a_stored_key_is_used_and_never_read`, `Ui::end` |
//! | D14 | too much is hidden, and too little | `secrets::names_decide_what_is_hidden`, `a_model_that_repeats_its_key`; counts of tokens in every frame |
//! | D15 | a frame ends under a slow model | `several::a_model_slower_than_five_seconds` |
//! | D16 | a message from elsewhere breaks the model node | `refused::a_message_that_goes_straight_to_a_model_harms_nobody` |
//! | D17 | nothing is tried again, nothing can be cancelled | `failures::a_provider_with_http_500`, `a_run_that_is_cancelled` |

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

#[allow(dead_code, reason = "the live tests need more of it")]
#[path = "../live/aimock.rs"]
mod aimock;
mod answers;
mod azure;
#[path = "../live/built.rs"]
mod built;
mod chats;
#[allow(dead_code, reason = "the sidecar's own tests need more of it")]
#[path = "../../runtime/server/tests/all/client.rs"]
mod client;
mod conversation;
mod failures;
mod flows;
mod independent;
#[allow(dead_code, reason = "the live tests need more of it")]
#[path = "../live/recorder.rs"]
mod recorder;
mod refused;
mod secrets;
mod several;
mod sidecar;
mod ui;
#[allow(dead_code, reason = "the live tests need more of it")]
#[path = "../live/validator/mod.rs"]
mod validator;
