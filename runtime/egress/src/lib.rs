//! The guarded way out: HTTP requests to addresses that a model, a document or a stranger may choose.
//!
//! Eight rules apply to every request, in this order: `text`, `authority`, `scheme` and `port`, `name`, `address`,
//! `connect`, `redirect`, `bounds`. They cannot be turned off. An operator can allow single hosts of a private
//! network. A [`Refusal`] names the rule and says what an operator would write.
//!
//! | module | what it owns |
//! |---|---|
//! | `settings`, `policy` | the operator's `[egress]`, as written and as checked |
//! | `host` | patterns of hosts, private hosts |
//! | `address_text` | the rules `text` and `authority` |
//! | `special_names`, `special_addresses` | the tables behind the rules `name` and `address` |
//! | `net`, `connector`, `proxy`, `tls` | the rule `connect`: lookup, judgement, connection |
//! | `redirect` | the rule `redirect` |
//! | `body`, `call_slots` | the rule `bounds` |
//! | `client` | one call from its address to its answer |

mod client;
mod host;
mod net;
mod policy;
mod refusal;
mod request;
mod settings;

pub use client::{Egress, EgressBody, EgressResponse};
pub use host::HostPattern;
pub use net::{ByteStream, Dial, Dialled, NetFuture, Resolve, SystemResolver, TcpDialler};
pub use policy::{EgressPolicy, JudgedUrl};
pub use refusal::{EgressError, Refusal, Rule};
pub use request::{EgressCredential, EgressRequest};
pub use settings::{EgressSettings, SettingProblem};
