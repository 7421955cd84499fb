//! The guarded way out: HTTP requests to addresses that a model, a document or a stranger may choose.
//!
//! Eight rules apply to every request, in this order: `text`, `authority`, `scheme` and `port`, `name`, `address`,
//! `connect`, `redirect`, `bounds`. They cannot be turned off. An operator can allow single hosts of a private
//! network. A [`Refusal`] names the rule and says what allows the request.
//!
//! ```
//! use redflow_egress::{Egress, EgressPolicy, EgressSettings};
//!
//! let policy = EgressPolicy::new(&EgressSettings::default()).expect("the defaults can be used");
//! let egress = Egress::new(policy);
//! assert!(egress.judge("https://api.example.org/v1").is_ok());
//! let refusal = egress.judge("http://127.0.0.1/").expect_err("loopback is refused");
//! assert_eq!(refusal.rule.as_str(), "address");
//! assert_eq!(refusal.allow.as_deref(), Some("add `127.0.0.1:80` to `[egress] private`"));
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | `settings`, `policy` | the operator's `[egress]`, as written and as checked |
//! | `host` | names, addresses, patterns of hosts, private hosts |
//! | `address_text` | the rules `text` and `authority` |
//! | `special_names`, `special_addresses` | the tables behind the rules `name` and `address` |
//! | `net`, `connector`, `proxy`, `tls` | the rule `connect`: lookup, judgement, connection |
//! | `pool` | connections that stay open between requests |
//! | `redirect`, `hop` | the rule `redirect`: where it leads, and what goes there |
//! | `body`, `call_slots`, `deadline` | the rule `bounds` |
//! | `client` | one call from its address to its answer |
//! | `scripted_net` | the network of tests |

mod address_text;
mod body;
mod call_slots;
mod client;
mod connector;
mod deadline;
mod hop;
mod host;
mod net;
mod origin;
mod policy;
mod pool;
mod proxy;
mod redirect;
mod refusal;
mod request;
mod scripted_net;
mod settings;
mod special_addresses;
mod special_names;
mod tls;

pub use body::EgressBody;
pub use call_slots::{MAX_CALLS, MAX_CALLS_PER_HOST, MAX_STREAMS};
pub use client::{Egress, EgressResponse};
pub use connector::{CONNECT_TIMEOUT, MAX_DIALS};
pub use host::HostPattern;
pub use net::{ByteStream, Dial, Dialled, NetFuture, Resolve, SystemResolver, TcpDialler};
pub use policy::{EgressPolicy, JudgedUrl, MAX_ANSWERS, MAX_SETTING_ENTRIES};
pub use refusal::{EgressError, Refusal, Rule};
pub use request::{EgressCredential, EgressRequest, MAX_HEAD_BYTES, MAX_HEADERS};
pub use scripted_net::ScriptedNet;
pub use settings::{EgressSettings, SettingProblem};
