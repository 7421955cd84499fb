//! The sidecar that runs on this machine with the data directory of a command.

use crate::context::AppContext;
use crate::errors::print_store_error;
use crate::exit::Exit;
use crate::sidecar::{Sidecar, connect, local_address};
use crate::terminal::fail;
use redflow_store::Driver;
use std::time::{Duration, Instant};
use url::Url;

/// How long a sidecar that starts may take until it listens.
const START_TIME: Duration = Duration::from_secs(3);

const PAUSE: Duration = Duration::from_millis(50);

/// The sidecar that uses the data directory now; none if there is none. A process that never listens, such as `redflow
/// run`, is none either.
pub(super) fn find_sidecar(context: &AppContext) -> Result<Option<Sidecar>, Exit> {
    let settings = &context.settings;
    let data = settings.data_dir().map_err(print_store_error)?;
    let began = Instant::now();
    let address = loop {
        match Driver::find(&data) {
            Driver::None => return Ok(None),
            Driver::Sidecar(address) => break local_address(address),
            Driver::Unreachable if began.elapsed() > START_TIME => return Ok(None),
            Driver::Unreachable => std::thread::park_timeout(PAUSE),
        }
    };
    let url = Url::parse(&format!("http://{address}")).map_err(|_| {
        fail("the sidecar of the data directory has no usable address: name it with --url URL")
    })?;
    connect(&url, None, settings).map(Some)
}
