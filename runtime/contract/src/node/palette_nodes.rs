//! Nodes that people use in Node-RED's editor: the chat, and the config node of a sidecar.

use super::declaration::{
    Initial, Kind, LINE, NodeDeclaration, Palette, Property, SecretRule, between, choice, line, text,
};
use crate::edge::{PortKind, Role};

pub(super) const CHAT: NodeDeclaration =
    NodeDeclaration::data("chat-node").native().role(Role::Chat, &[PortKind::Chat]).palette(Palette {
        label: "chat",
        summary: "A window in the editor in which a person chats with an agent. The button on the node opens it.",
        color: "#8cc98b",
        icon: "redflow-chat.svg",
        properties: &[&[Property::new(
            "maxHistory",
            between(1, 1000),
            "Keep",
            "How many messages are kept, 1 to 1000. They are in memory until Node-RED stops.",
        )
        .default(Initial::Number(100))
        .example("100")
        .icon("list")]],
        named_by: None,
        input: Some(text("agentSays", "messages of the agent")),
        outputs: &[text("personSays", "messages of a person")],
    });

pub(super) const RUNTIME: NodeDeclaration = NodeDeclaration::data("redflow-runtime").config().palette(Palette {
    label: "Redflow runtime",
    summary: "The Redflow sidecar that runs the agents of this flow.",
    color: "",
    icon: "",
    properties: &[&[
        Property::new(
            "mode",
            Kind::Choice {
                choices: &[
                    choice("managed", "Started by Node-RED"),
                    choice("remote", "Runs already at an address"),
                ],
            },
            "Sidecar",
            "*Started by Node-RED*: Node-RED starts the `redflow` program, restarts it after an exit, and stops it \
             when Node-RED stops. *Runs already*: Node-RED connects to its address with a token.",
        )
        .default(Initial::Text("managed"))
        .note("mode", "The sidecar is the program that runs the agents. Who starts it?")
        .icon("server"),
        Property::new(
            "url",
            Kind::Address { example: "http://127.0.0.1:1881" },
            "Address",
            "The address of the sidecar, such as `http://127.0.0.1:1881`.",
        )
        .default(Initial::Text("http://127.0.0.1:1881"))
        .example("http://127.0.0.1:1881")
        .icon("globe"),
        Property::new(
            "token",
            Kind::Secret { rule: SecretRule::Token, variable: None },
            "Token",
            "The sidecar's token. Stored in Node-RED's credentials, never in the flow.",
        )
        .icon("key"),
        Property::new(
            "binary",
            LINE,
            "Program",
            "The path of the `redflow` program. If it is empty: the environment variable `REDFLOW_BINARY`, else the \
             program that was installed with this module, else the one on the PATH.",
        )
        .example("redflow")
        .note("binary", "Leave it empty for the program that was installed with this module.")
        .icon("terminal"),
        Property::new(
            "dataDir",
            LINE,
            "Data",
            "The data directory of the sidecar. Each runtime needs its own. A file `redflow.toml` in it is the configuration \
             of the sidecar.",
        )
        .hint("dataDir", "redflow, in Node-RED's user directory")
        .icon("folder-o"),
        Property::new(
            "allowPrivate",
            Kind::HostPorts { most: 100 },
            "Private hosts",
            "Hosts of your own network that tools may call, each with its port, separated by commas: `nas.lan:8123`, \
             `192.168.1.5:80`, `192.168.1.0/24:80`. The sidecar refuses all others.",
        )
        .example("nas.lan:8123")
        .note("allowPrivate", "Tools call public addresses only, except these. Separate them by commas.")
        .icon("shield"),
        Property::new(
            "queueSeconds",
            between(1, 86_400),
            "Wait for the sidecar (s)",
            "How many seconds a message to an agent waits for a sidecar that is offline.",
        )
        .default(Initial::Number(60))
        .note("queueSeconds", "How long a message to an agent waits while the sidecar is offline.")
        .more(),
        Property::new("maxQueued", between(1, 100_000), "Waiting messages (max)", "How many messages may wait.")
            .default(Initial::Number(1000))
            .note("maxQueued", "How many messages may wait for the sidecar; further ones fail.")
            .more(),
        Property::new(
            "maxHeldRuns",
            between(1, 100_000),
            "Held runs (max)",
            "How many messages are held until their runs end. They keep values that JSON does not have, such as \
             `msg.res`.",
        )
        .default(Initial::Number(1000))
        .note("maxHeldRuns", "How many runs may be active at once; further ones fail.")
        .more(),
        Property::new(
            "instance",
            line(200),
            "Instance",
            "The id of this Node-RED at the sidecar. It must stay the same, and no other Node-RED may use it.",
        )
        .hint("instance", "created automatically")
        .more(),
        Property::new(
            "events",
            Kind::Flag,
            "Events",
            "Whether Node-RED emits events of runs as `redflow:event`, for other modules.",
        )
        .more(),
    ]],
    named_by: None,
    input: None,
    outputs: &[],
});
