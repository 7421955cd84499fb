//! The memory of a run that waits for its model with an image: it should hold the image once.

use super::agent::{image_flow, world_on_disk};
use super::provider::{AfterCalls, Provider, ProviderCounts, base};
use super::waiting::wait_until_held;
use crate::clock::{figure, resident};
use crate::probe::{Probe, print_and_wait};
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure};
use redflow_contract::image::image_from_bytes;
use serde_json::{Value, json};

/// The first argument of a process that holds runs with images.
pub(crate) const PROBE: &str = "--probe-images";

/// The most memory of a waiting run, relative to its image in Base64.
const TARGET: f64 = 1.1;

/// The bytes of an image. With its text, it just fits into a message.
const IMAGE_BYTES: usize = 3 * 1024 * 1024 - 3 * 1024;

/// Runs before memory is measured.
const WARM_UP: u64 = 4;

pub(crate) fn table(extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("runs", "runs", 0),
        ("imageBytes", "image bytes", 0),
        ("base64Bytes", "in Base64", 0),
        ("bytes", "bytes/run", 0),
        ("ratio", "× Base64", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table =
        Table::new("live-images", "AI Agents that wait for a slow model with an image", columns.into());
    if resident("RssAnon").is_err() {
        table.note("not measured: this system has no /proc/self/status");
        return Ok(table);
    }
    let runs: u64 = if extent == Extent::Quick { 16 } else { 64 };
    let provider = Provider::start()?;
    let args = [runs, u64::from(provider.port)].map(|arg| arg.to_string());
    let mut probe = Probe::start(PROBE, &args.each_ref().map(String::as_str))?;
    let bytes = probe.figures()?.get("grownBytes") / figure(runs);
    let encoded = figure(image()?.len() as u64);
    let ratio = bytes / encoded;
    table.row(vec![
        figure(runs).into(),
        figure(IMAGE_BYTES as u64).into(),
        encoded.into(),
        bytes.into(),
        ratio.into(),
    ]);
    table.note("growth of what the process holds (RssAnon) while the provider has taken every call; runs on the disk");
    table.note(format!("target: at most {TARGET} × the image in Base64: {}", target_word(ratio <= TARGET)));
    Ok(table)
}

/// An image in Base64.
fn image() -> Result<String, Failure> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x03\xe8\0\0\x03\xe8\x08\x02\0\0\0".to_vec();
    bytes.resize(IMAGE_BYTES, 7);
    image_from_bytes(&bytes, None)
        .map(|image| image.data.to_string())
        .map_err(|problem| problem.to_string().into())
}

fn payload() -> Result<Value, Failure> {
    Ok(
        json!({"question": "What does the meter show?", "photo": format!("data:image/png;base64,{}", image()?)}),
    )
}

/// The work of such a process. Its arguments: runs, the provider's port.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let numbers: Vec<u64> = args.iter().map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [runs, port] = numbers.as_slice() else { return Err("a probe takes runs and a port".into()) };
    let port = u16::try_from(*port)?;
    runtime()?.block_on(async {
        let flow = image_flow(&base(port, 0, AfterCalls::Hold));
        let (world, _folder) = world_on_disk(&flow, usize::try_from(*runs + WARM_UP)?)?;
        let mut held = ProviderCounts::new(port)?;
        let mut before = 0.0;
        for started in 0..*runs + WARM_UP {
            if started == WARM_UP {
                before = resident("RssAnon")?;
            }
            world.start_run_with(payload()?);
            wait_until_held(&mut held, started + 1).await?;
        }
        print_and_wait(&json!({"grownBytes": resident("RssAnon")? - before}))
    })
}

#[cfg(test)]
mod tests {
    use super::{image, payload};
    use redflow_contract::image::check_base64;
    use redflow_contract::limits::RunLimits;

    #[test]
    fn the_image_is_one_and_fits_into_a_message() {
        assert!(check_base64(&image().unwrap(), None).is_ok());
        let message =
            serde_json::json!({"payload": payload().unwrap(), "_msgid": "0123456789abcdef"}).to_string();
        assert!(message.len() <= RunLimits::default().max_message_bytes as usize);
    }
}
