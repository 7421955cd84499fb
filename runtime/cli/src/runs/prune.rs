//! `redflow runs prune`, and `redflow backup`.

use crate::Exit;
use crate::args_runs::{BackupOptions, PruneOptions};
use crate::data_dir::DataOption;
use crate::files::shown;
use crate::stored::Stored;
use crate::terminal::{count, data, json, refuse};
use crate::wiring;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use redflow_store::{Prune, PruneReport};
use serde_json::json;

pub(crate) fn prune(options: &PruneOptions, from: &DataOption) -> Exit {
    let stored = match Stored::open(from) {
        Ok(stored) => stored,
        Err(error) => return refuse(&error),
    };
    let before = options
        .older_than
        .map(|age| wiring::clock().now().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX)));
    let which = Prune {
        older_than: before,
        keep: options.keep,
        undelivered: options.undelivered,
        damaged: options.damaged,
        dry_run: options.dry_run,
    };
    let report = match stored.reader {
        Some(_) => redflow_store::prune(&stored.dir, which),
        None => Ok(PruneReport::default()),
    };
    let PruneReport { runs, damaged, bytes_before, bytes_after, .. } = match report {
        Ok(report) => report,
        Err(error) => return refuse(&error),
    };
    if options.json {
        let dry = options.dry_run;
        return json(&json!({
            "runs": runs, "damaged": damaged, "bytesBefore": bytes_before, "bytesAfter": bytes_after, "dryRun": dry,
        }));
    }
    let mut what = count(usize::try_from(runs).unwrap_or(usize::MAX), "run");
    if options.damaged {
        what += &format!(" ({damaged} damaged)");
    }
    data(&if options.dry_run {
        format!("{what} would be removed; nothing was\n")
    } else {
        let freed = bytes_before.saturating_sub(bytes_after);
        format!("{what} removed; {} given back, {} left\n", size(freed), size(bytes_after))
    })
}

pub(crate) fn backup(options: &BackupOptions) -> Exit {
    let stored = match Stored::open(&options.data) {
        Ok(stored) => stored,
        Err(error) => return refuse(&error),
    };
    let Some(reader) = stored.reader else {
        let text =
            format!("No runs are stored in {} yet, so there is nothing to copy.", stored.dir.display());
        return refuse(&StoreError::new(StoreCode::DataUnusable, text));
    };
    let report = match reader.backup(&options.file) {
        Ok(report) => report,
        Err(error) => return refuse(&error),
    };
    if options.json {
        return json(
            &json!({"file": options.file.display().to_string(), "runs": report.runs, "bytes": report.bytes}),
        );
    }
    let runs = count(usize::try_from(report.runs).unwrap_or(usize::MAX), "run");
    data(&format!("{runs} copied into {}: {}\n", shown(&options.file), size(report.bytes)))
}

/// A number of bytes as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    }
    // In tenths, so that nothing is rounded twice.
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1024, 0);
    while tenths >= 10 * 1024 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        let rows = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024, "1.0 MiB"),
            (5 * 1024 * 1024 * 1024, "5.0 GiB"),
            (1 << 60, "1048576.0 TiB"),
        ];
        for (bytes, text) in rows {
            assert_eq!(size(bytes), text);
        }
    }
}
