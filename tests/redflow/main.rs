//! The Redflow UI and the real binary: the requests of the UI in its order and from its origin, and everything that it
//! receives. The model is a stand-in for Azure that checks requests against Azure's documentation.
//!
//! The table lists the defects of agents in Redflow's own runtime, and the test of each here. `Frame::new` checks what
//! holds for every frame, and `Ui::end` what must never appear.
//!
//! | | defect there | test here |
//! |---|---|---|
//! | D1 | the reply of a tool is not awaited | `answers::a_tool_iteration` |
//! | D2 | the reply of a tool is a new task | `answers::calls_ordinary_nodes_as_tools_by_name` |
//! | D3 | stop conditions and the iteration limit have no effect | `answers::stop_conditions_and_the_iteration_limit_end_a_run` |
//! | D4 | a tool that is not allowed gives no error, and leaks | `failures::a_tool_that_is_not_allowed` |
//! | D5 | a run is two to four frames | every test; `Frame::run` |
//! | D6 | the answer in the chat goes back to the agent | `chats::a_chat_over_several_turns` |
//! | D7 | errors are not seen as errors | all of `failures` |
//! | D8 | answers appear twice, without durations, prompts and calls | `answers::a_final_answer`, `a_tool_iteration`, `warns_about_an_ignored_prompt_template` |
//! | D9 | any wire is accepted | `refused::a_refused_agent`, `answers::the_example_flow` |
//! | D10 | all tools get every call; the model knows only their names | `answers::calls_ordinary_nodes_as_tools_by_name`, `a_tool_iteration` |
//! | D11 | a run waits forever for a missing answer; a removed agent leaves its run | `failures::a_model_that_never_answers`, `a_run_whose_agent_is_removed` |
//! | D12 | the prompt template is ignored | stays, with a warning: `answers::warns_about_an_ignored_prompt_template` |
//! | D13 | anyone can read secrets | `secrets::a_stored_key_is_used_and_never_read`, `Ui::end` |
//! | D14 | too much is hidden, and too little | `secrets::names_decide_what_is_hidden`, `a_model_that_repeats_its_key`; counts of tokens in every frame |
//! | D15 | a frame ends under a slow model | `several::a_model_slower_than_five_seconds` |
//! | D16 | a message from elsewhere breaks the model node | `refused::a_message_to_a_model_node_does_no_harm` |
//! | D17 | no retries, no cancel | `failures::a_provider_with_http_500`, `a_run_that_is_cancelled` |

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and its helpers may take values"
)]

#[allow(dead_code, reason = "the live tests use more of it")]
#[path = "../live/aimock.rs"]
mod aimock;
mod answers;
mod azure;
mod chats;
#[allow(dead_code, reason = "the sidecar's own tests use more of it")]
#[path = "../../runtime/server/tests/all/client.rs"]
mod client;
mod conversation;
mod failures;
mod flows;
mod independent;
#[allow(dead_code, reason = "the live tests use more of it")]
#[path = "../live/recorder.rs"]
mod recorder;
mod refused;
mod secrets;
mod several;
mod sidecar;
mod ui;
#[allow(dead_code, reason = "the live tests use more of it")]
#[path = "../live/validator/mod.rs"]
mod validator;
