//! Every sentence that the palette shows in the user's language: diagnostics of the checker, and statuses.
//!
//! A row has a key, its arguments and the English text. `cargo xtask codegen` writes them as the palette's English
//! catalogue. The German and Spanish texts are in `node-red-bridge/src/editor/locales/{de,es}/phrases.json`.
//! A key never changes its meaning: another sentence is another key.

use crate::phrase::{Sentence, Template, phrases};

phrases! {
    // Roles of nodes, alone, as several, and as what a node is.
    model() "model";
    memory() "memory";
    tool() "tool";
    agent() "agent";
    chat() "chat";
    data() "data";
    models() "models";
    memories() "memories";
    a_model() "a model";
    a_memory() "a memory";
    a_tool() "a tool";
    an_agent() "an agent";
    a_chat() "a chat";
    a_data() "a data";

    // Ports.
    port_of_kind(port, kind) "port {port} ({kind})";
    port_number(port) "port {port}";
    only_port_0() "only port 0";
    ports_up_to(last) "ports 0 to {last}";

    // Wires.
    remove_wire() "Remove the wire.";
    wire_target_missing(port, id) "{port} leads to `{id}`, which is not in the flow";
    wire_target_missing_help() "Remove the wire, or add the node it should lead to.";
    port_out_of_range(port, node_type, ports) "a wire leaves from port {port}, but `{node_type}` has {ports}";
    port_out_of_range_help() "Move the wire to a port the node has.";
    wire_twice(port, target) "{port} is wired to {target} twice";
    wire_twice_help() "Remove one of the two wires: every message would arrive twice.";
    wire_to_itself(port) "{port} leads back to the node's own input";
    port_binds_model(port, target, role) "{port} binds a model, but {target} is {role} node";
    port_binds_tools(port, target, role) "{port} binds tools, but {target} is {role} node";
    port_binds_memory(port, target, role) "{port} binds a memory, but {target} is {role} node";
    port_sends_results(port, target, role) "{port} sends results, but {target} is {role}, which takes no results";
    service_answers_agent(target, role) "a service answers only the agent that uses it, but {target} is {role} node";
    flow_tool_leads_to_work(target, role) "a flow tool must lead into the nodes that do the work, but {target} is {role}";
    messages_into(target, role) "messages are wired into {target}, {role}";
    move_wire_for_answer(port) "Move the wire to {port}, where the answer leaves.";
    move_wire_for_agent(port) "Move the wire to {port}, which may feed another agent.";
    move_wire_of_agent(port) "Move the wire to {port} of an agent-core.";
    remove_reply_wire(result, each) "Remove the wire. To see the answers of the model or tool, use the agent's {result} or {each}.";
    wire_flow_tool() "Wire the flow tool to ordinary nodes that end in a flow-tool-return.";
    messages_into_service(target, role) "messages are wired into {target}, {role}: only an agent may use it";
    messages_into_service_help(port) "Wire the messages to the agent's input, and the agent's {port} to it.";
    foreign_reply(service, agent, role) "{service} replies to {agent}, which uses another {role}";
    foreign_reply_port_help(port) "Wire the agent's {port} to it, or remove this wire.";
    foreign_reply_help() "Name it in the agent's properties, or remove this wire.";
    foreign_tool_reply(owner, agent) "this node belongs to the tool of {owner}, but replies to {agent}";
    foreign_tool_reply_help() "Wire it back to the agent that calls the tool.";

    // Services of an agent.
    property_target_missing(property, id) "`{property}` names `{id}`, which is not in the flow";
    property_target_missing_help(role) "Name a {role} node by its id, or remove the property.";
    property_mismatch(property, target, role) "`{property}` names {target}, {role} node";
    property_mismatch_help(role) "Name a {role} node there.";
    property_target_disabled(property, id) "`{property}` names `{id}`, which is disabled";
    key_node_mismatch(property, target, node_type) "`{property}` names {target}, a `{node_type}` node";
    key_node_help(node_type) "Name an `{node_type}` node by its id, or remove the property.";
    fallback_model_used(id) "`fallbackModels` names `{id}`, which the agent uses already";
    fallback_model_used_help() "Name every model once.";
    tool_named_twice(id) "`tools` names `{id}` twice";
    tool_named_twice_help() "Name every tool once.";
    service_missing(agent, role) "{agent} has no {role}";
    service_missing_port_help(port, role, property) "Wire {port} to a {role} node, or name one in `{property}`.";
    service_missing_help(role, property) "Wire a {role} node to the agent's input, or name one in `{property}`.";
    service_disabled(service, role, agent) "`{service}` is disabled; it is the {role} of {agent}";
    service_disabled_help(service, role) "Enable `{service}` and deploy, or use another {role}.";
    memory_silent() "the memory does not answer";
    redis_unreachable() "Redis cannot be reached";
    memory_fails(reason, memory) "{reason}: the agent runs without its memory `{memory}`";
    too_many_services(agent, count, roles, names) "{agent} has {count} {roles}: {names}";
    too_many_services_help(role) "Keep one {role} and remove the wires or properties that bind the others.";
    model_key_missing(model) "`{model}` has no API key";
    model_key_missing_help(variable) "Open the node, enter its API key and deploy. Or set {variable} where the sidecar runs, and restart it.";
    model_key_missing_shared_help(key, variable) "Enter the API key in the shared key `{key}` and deploy. Or set {variable} where the sidecar runs, and restart it.";
    session_shared(memory) "messages without `msg.sessionId` all share one conversation in {memory}";
    memory_cycle(memory) "{memory} leads back to itself, or through too many other memories";
    memory_cycle_help() "Let the last memory of the row name no other one: a buffer-memory, window-memory or redis-memory.";
    memory_model_missing(memory) "{memory} has no model that writes its summaries";
    memory_model_missing_help() "Set `model` to the id of a model.";
    session_shared_help() "Set `sessionId` on the agent, such as `{{msg.userId}}`, or send `msg.sessionId`.";

    // Tools.
    tool_without_name() "the tool has no name";
    tool_name_invalid(name) "`{name}` cannot be a tool's name";
    tool_name_invalid_help() "Set `toolName` to 1 to 64 letters, digits, `_` or `-`.";
    tool_without_schema(tool) "{tool} has no `inputSchema`: the model may send it any object";
    tool_without_schema_help() "Set `inputSchema` to a JSON Schema of the tool's input.";
    tool_not_strict(tool) "{tool} asks for strict input, but no provider can force its `inputSchema`";
    tool_not_strict_help() "Make every property required, forbid further ones, and use only types, `enum`, `const`, `items` and `anyOf`. Or remove `strict`.";
    tool_called_final_answer(name) "a tool is called `{name}`, the name of the tool that the model gives its answer with";
    tool_called_final_answer_help() "Set another `toolName` on it, or remove `outputSchema` from the agent.";
    tool_called_finish_step(name) "a tool is called `{name}`, the name of the tool that the model gives its result with";
    tool_called_finish_step_help() "Set another `toolName` on it.";
    tool_of_reader(name) "the tool `{name}` is connected, but this agent only reads its text and calls no tools";
    tool_of_reader_help() "Disconnect the tool, or use an `ai-simple-agent`.";
    memory_of_reader(memory) "{memory} is connected, but this agent only reads its text and has no memory";
    memory_of_reader_help() "Disconnect the memory, or use an `ai-simple-agent`.";
    tool_not_allowed(name) "the tool `{name}` is connected, but the model may not call it";
    tool_not_allowed_help(name) "Add \"{name}\" to `allowedTools`, or disconnect the tool.";
    mcp_server_unknown(server) "the manifest has no MCP server `{server}`: nothing of it can be used";
    mcp_server_unknown_help(server) "Add the server to the manifest, or with `redflow mcp add {server}`. Nothing must be deployed again.";
    price_incomplete(set, missing) "`{set}` is set without `{missing}`, so the price of the model is not known";
    price_incomplete_help() "Set `inputPrice` and `outputPrice`, both in US dollars for a million tokens, or remove the price. A model that costs nothing has 0 in both.";
    collection_unknown(name) "there is no knowledge base `{name}` yet: a search in it fails";
    collection_unknown_help(name) "Add its documents: `redflow kb add {name} PATH`. Nothing must be deployed again.";
    embeddings_lexical(name) "the knowledge base `{name}` has no embedding model: a search in it finds words, not meaning";
    embeddings_lexical_help(name) "Name an embedding model: `redflow kb reindex {name} --embeddings openai`, or `minilm`. Or set `mode` to `lexical`.";
    memory_lexical(name) "the long memory `{name}` has no embedding model: it recalls what has the same words, not the same meaning";
    memory_lexical_help() "Set `embeddings` to an embedding model, such as `openai` or `minilm`, before the memory keeps something.";
    flow_tool_open(start) "the flow that starts at {start} is used as a tool, but it never returns";
    flow_tool_open_port_help(port) "Wire its last node to a flow-tool-return or back to the agent; for results, use {port}.";
    flow_tool_open_help() "Wire its last node to a flow-tool-return.";
    with_flow_tool(help) "{help} To name and describe the tool, wire a flow-tool to its first node, and the agent to the flow-tool.";
    tools_of_one_name(first, second, name) "the tools `{first}` and `{second}` are both called `{name}`";
    tools_of_similar_names(first, first_name, second, name) "the tools `{first}` (`{first_name}`) and `{second}` (`{name}`) differ only in case";
    tools_of_one_name_help() "Set another `toolName` on one of them.";
    tool_not_connected(name) "`allowedTools` names `{name}`, but no connected tool has that name";
    tool_not_connected_help(port) "Wire {port} to a tool of that name, or remove the name from `allowedTools`.";

    // Properties.
    property_missing(property) "`{property}` is missing";
    property_missing_help(property) "Add `{property}` to the node.";
    property_unknown(property) "there is no property `{property}`";
    property_unknown_help(property) "Remove `{property}`.";
    property_ignored(node_type, property) "`{node_type}` has no property `{property}`, so it has no effect";
    property_misspelt(node_type, property, known) "`{node_type}` has no property `{property}`, so it has no effect: did you mean `{known}`?";
    property_of_other_model(node_type, property) "`{node_type}` has no property `{property}`, so it has no effect: only other types of models have it";
    property_of_other_model_help(property) "Remove `{property}`. If the server knows such a setting, name it in `extraBody` as the server does.";
    property_misspelt_help(property, known) "Rename `{property}` to `{known}`, or remove it.";
    no_tool_allowed() "the agent may call no tool: `allowedTools` is empty";
    no_tool_allowed_help() "Allow at least one: tick it in the agent's tab Tools, or name it in `allowedTools`.";
    property_wrong(property, expected, found, rule) "`{property}` must be {expected}, and is {found} (rule `{rule}`)";
    property_wrong_help(property, expected) "Set `{property}` to {expected}.";
    with_profile_redflow(help) "{help} For flows as Redflow writes them, use the profile `redflow`.";
    stop_condition_help() "Use `final_answer`, `confidence_threshold` or `iteration_limit`.";
    stop_value_help(expected) "Set `value` to {expected}, as a number and not as text.";
    variable_unset_help(name) "Set the variable `{name}` on the tab, group or subflow, with its type; a process variable is always text.";
    secret_in_flow(pointer) "a secret is written in the flow file, at `{pointer}`";
    secret_in_flow_help() "Put it into the node's credentials, or write `${NAME}` and set that environment variable.";
    secret_variable(name) "`${{name}}` looks like a secret, and this property can reach prompts and journals";
    secret_variable_help() "Use a variable of another name, or put the value into the flow's own environment.";
    prompt_template_ignored() "`modelPromptTemplate` is set, but Agent Core's prompt is fixed";
    prompt_template_ignored_help() "Empty it. Tell the agent what to do in the message that you send to it.";
    wired_tools_assumed() "`allowedTools` is missing: the model may call all tools that are wired to the agent";
    wired_tools_assumed_for_empty()
        "`allowedTools` is empty: the model may call all tools that are wired to the agent";
    default_assumed(property, value) "`{property}` is missing: {value} is assumed";
    default_assumed_help(property) "Set `{property}` on the node; the profile `strict` asks for it.";
    credential_unbound() "the model chooses the address, so the tool could send its credentials to any host";
    credential_unbound_help() "Name the hosts that may get them in `hosts`, such as [\"api.example.org\"].";
    credentials_wrong() "`credentials` must be an object of names and values";
    credentials_wrong_help() "Send {\"name\": \"value\"}, or leave `credentials` out to keep those of the node.";
    build_failed(node, reason) "`{node}` cannot be built: {reason}";
    build_failed_help() "Correct the node that the message names, and deploy again.";

    // What a property must be, and what it is.
    one_or_other(first, second) "{first} or {second}";
    an_array() "an array";
    true_or_false() "true or false";
    a_whole_number() "a whole number";
    a_number() "a number";
    an_object() "an object";
    a_string() "a string";
    nothing() "nothing";
    a_property(name) "a property `{name}`";
    no_such_property() "no such property";
    one() "one";
    one_of(values) "one of {values}";
    at_least(limit) "at least {limit}";
    at_most(limit) "at most {limit}";
    list_of_at_least(limit) "a list of at least {limit}";
    a_shorter_list() "a shorter list";
    list_of(count) "a list of {count}";
    list_of_categories(most) "a list of 1 to {most} categories, each one a text, or an object with `name` and `description`";
    category_name(most) "a category with a name of 1 to {most} characters that no other category has";
    list_of_texts() "a list of texts, or a text with commas";
    schema_or_text() "a JSON Schema object, or its text";
    list_of_ids() "a list of node ids, \"group\" or null";
    another_form() "another form";
    lists_of_ids() "a list of lists of node ids";
    number_up_to_1() "a number from 0 to 1";
    whole_number_from_1() "a whole number from 1";
    quick_schema() "a JSON Schema that refers only to itself and is quick to check";
    quick_object_schema() "a JSON Schema of an object that refers only to itself and is quick to check";
    none_because(reason) "none: {reason}";
    not_a_json_object() "it is not a JSON object";
    type_not_object() "its `type` is not `object`";
    schema_not_valid(path) "it is not valid at `{path}`";
    list_of_hosts(limit) "a list of at most {limit} hosts";
    a_host() "a host such as `api.example.org`, `*.example.org` or `nas.lan:8123`";
    value_because(value, reason) "{value}: {reason}";
    header_name() "the name of a header that the HTTP client does not set itself";
    no_header_name(value) "{value}, which is no name";
    header_once() "a header that is set once";
    second_one() "a second one";
    header_text() "a text of printable ASCII in one line";
    other_characters() "other characters";
    header_reference() "a value without `${NAME}`, or `${NAME}` alone and a variable that is set; a secret variable needs a header whose name is one of a secret";
    reference_stays() "a `${NAME}` that stays";

    // The flow as a whole.
    nodes() "nodes";
    wires() "wires";
    bytes_of_ids() "bytes of ids";
    flow_too_many(limit, parts) "the flow has more than {limit} {parts} once its subflows are expanded";
    flow_too_many_help() "Split the flow, or use fewer instances of large subflows.";
    copies_too_large() "subflows, variables or shared services of this flow multiply large properties";
    copies_too_large_help() "Use smaller properties in what is used many times.";
    hub_too_large() "junctions, links and flow tools of this flow join too many nodes to too many others";
    hub_too_large_help() "Wire agents and services directly, or split the flow.";
    subflows_too_deep(limit) "subflows are nested deeper than {limit} levels";
    subflows_too_deep_help() "Flatten the subflows.";
    subflow_cycle(name) "the subflow `{name}` contains itself; this instance is left out";
    subflow_cycle_help() "Remove the instance of the subflow from inside the subflow.";
    id_in_subflow(id) "the id `{id}` is also the id of a node inside a subflow instance";
    id_in_subflow_help() "Give one of them another id.";
    two_ids(id, first, second) "two nodes share the id `{id}`: a `{first}` and a `{second}`";
    two_ids_help() "Give one of them another id, and change the wires to it.";
    node_without_id(node_type) "this `{node_type}` node has no id";
    node_without_id_help() "Give every node an `id` of its own: any text that is not empty.";
    flow_too_large(bytes, limit) "the flow file has {bytes} bytes; the limit is {limit}";
    flow_too_large_help() "Split the flow into several files.";
    flow_too_deep(limit, offset) "the flow file nests deeper than {limit} levels (at byte {offset})";
    flow_too_deep_help() "Move deeply nested data out of the flow file.";
    key_twice(key) "the key `{key}` appears twice in one object";
    key_twice_help() "Remove one of the two: it is not clear which one counts.";
    subflow_missing(id) "the subflow `{id}` is not in this flow";
    type_not_run(node_type) "this build cannot run the type `{node_type}`";
    type_not_run_help() "Run this flow in Node-RED; without Node-RED, messages stop at this node.";
    service_not_run(id, node_type) "`{id}` is of type `{node_type}`, which this build cannot run";
    service_not_run_help() "Run this flow in Node-RED, or use a type that this build runs.";

    // Statuses of agents.
    status_started() "started";
    status_model(iteration) "iteration {iteration}: model";
    status_model_loading(iteration) "iteration {iteration}: the model is loading";
    status_model_busy(iteration) "iteration {iteration}: waits for the model";
    status_tool(iteration, tool) "iteration {iteration}: {tool}";
    status_final(iteration) "iteration {iteration}: final";
    status_waiting(tool) "waiting for the outcome of {tool}";
    status_failed(code, iterations) "{code} after {iterations}";
    status_done(iterations) "done after {iterations}";
    status_confident(iterations) "confidence reached after {iterations}";
    status_stopped(iterations) "stopped after {iterations}";
    one_iteration() "1 iteration";
    iterations(count) "{count} iterations";
}

#[cfg(test)]
mod tests {
    use super::PHRASES;
    use crate::phrase::{Phrase, PhraseArg, Sentence, Template};
    use crate::phrases;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn a_sentence_has_its_english_text_and_its_phrase() {
        let sentence = phrases::wire_twice(phrases::port_of_kind(0_u32, "model"), "`${NAME}` {target}");
        assert_eq!(sentence.text, "port 0 (model) is wired to `${NAME}` {target} twice");
        let port = json!({"key": "port_of_kind", "args": {"port": "0", "kind": "model"}});
        let phrase = json!({"key": "wire_twice", "args": {"port": port, "target": "`${NAME}` {target}"}});
        assert_eq!(serde_json::to_value(&sentence.phrase).unwrap(), phrase);
        assert_eq!(serde_json::from_value::<Option<Phrase>>(phrase).unwrap(), sentence.phrase);
        let without_args = phrases::remove_wire();
        assert_eq!(serde_json::to_value(without_args.phrase).unwrap(), json!({"key": "remove_wire"}));
        assert_eq!(Sentence::from("as it is").phrase, None);
    }

    #[test]
    fn braces_of_other_words_stay() {
        let secret = phrases::secret_in_flow_help();
        assert!(secret.text.contains("`${NAME}`"), "{}", secret.text);
        assert!(phrases::session_shared_help().text.contains("`{{msg.userId}}`"));
        let open = Template { key: "open", english: "{a} {b {a", args: &["a"] };
        assert_eq!(Sentence::fill(&open, ["x".into()]).text, "x {b {a");
    }

    #[test]
    fn every_template_has_exactly_the_places_of_its_arguments() {
        let mut keys = BTreeSet::new();
        for Template { key, english, args } in PHRASES {
            assert!(keys.insert(key), "{key} is declared twice");
            let places: BTreeSet<&str> = english
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
                .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
                .collect();
            assert_eq!(places, args.iter().copied().collect(), "{key}");
            // Node-RED reads these in a catalogue.
            assert!(!["__", "$t(", "<", ">"].iter().any(|mark| english.contains(mark)), "{key}");
        }
    }

    #[test]
    fn arguments_are_cut_at_every_depth() {
        let mut phrase =
            phrases::wire_twice(phrases::port_of_kind(7_u32, "k".repeat(50)), "é".repeat(50)).phrase.unwrap();
        phrase.truncate(10);
        assert_eq!(phrase.args["target"], PhraseArg::Text("é".repeat(10) + "…"));
        let PhraseArg::Phrase(port) = &phrase.args["port"] else { panic!("a phrase") };
        assert_eq!(port.args["kind"], PhraseArg::Text("k".repeat(10) + "…"));
    }
}
