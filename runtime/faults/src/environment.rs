//! Faults around the process: slow and dead peers, full disks, jumping clocks, a second process.

use super::flows::{CLASSES, one_agent};
use super::rig::{Rig, TIME_LIMIT};
use super::witness::Behaviour;
use super::{Row, resume_until_finished};
use redflow_testkit::{Exit, LoggedProcess};
use redflow_xtask::process;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A peer that never answers or hangs up. Every effect class keeps its contract, and a cancel or a deadline closes
/// the socket.
pub(super) fn dead_peers(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("slow and dead peers: timeout, hang-up, cancel and deadline reach the socket");
    for class in CLASSES {
        for behaviour in [Behaviour::Hold, Behaviour::HangUp] {
            let folder = rig.folder("peers")?;
            let flow = Rig::write_flow(&folder, &one_agent(class, 1, json!({"timeout": 300})))?;
            rig.witness.reset(behaviour);
            let exit = rig.run(&folder, &["run", &flow, "--node", "a", "--input", "1"])?;
            let expected = if class == "at_most_once" { Some(3) } else { Some(0) };
            row.check(exit.code == expected, || format!("{class} {behaviour:?}: {exit:?}"));
            row.check(rig.witness.calls().len() == 1, || format!("{class} {behaviour:?}: not one call"));
            if behaviour == Behaviour::Hold {
                let closed = rig.witness.wait_for_given_up(1, TIME_LIMIT);
                row.check(closed, || format!("{class}: the timeout did not close the socket"));
            }
            resume_until_finished(rig, &folder, &flow)?;
            row.check(rig.witness.calls().len() == 1, || format!("{class} {behaviour:?}: called again"));
        }
    }
    let folder = rig.folder("cancel")?;
    let flow = Rig::write_flow(&folder, &one_agent("at_most_once", 1, json!({})))?;
    rig.witness.reset(Behaviour::Hold);
    let process = LoggedProcess::start(rig.redflow(&folder, &["run", &flow, "--node", "a", "--input", "1"]))?;
    row.check(rig.witness.wait_for_calls(1, TIME_LIMIT), || "no call".to_owned());
    let run = only_run(rig, &folder)?;
    let cancel = rig.run(&folder, &["runs", "cancel", &run])?;
    row.check(cancel.code == Some(0), || format!("cancel: {cancel:?}"));
    row.check(rig.witness.wait_for_given_up(1, TIME_LIMIT), || {
        "the cancel did not close the socket".to_owned()
    });
    let exit = process.wait(TIME_LIMIT)?;
    row.check(exit.code == Some(1) && exit.stderr.contains("CANCELLED"), || format!("cancelled: {exit:?}"));
    let mut limited = one_agent("at_most_once", 1, json!({}));
    for node in limited.as_array_mut().into_iter().flatten().filter(|node| node["type"] == "agent-core") {
        node["timeout"] = json!(400);
    }
    let folder = rig.folder("deadline")?;
    let flow = Rig::write_flow(&folder, &limited)?;
    rig.witness.reset(Behaviour::Hold);
    let exit = rig.run(&folder, &["run", &flow, "--node", "a", "--input", "1"])?;
    row.check(exit.code == Some(1) && exit.stderr.contains("TIMEOUT"), || format!("deadline: {exit:?}"));
    row.check(rig.witness.wait_for_given_up(1, TIME_LIMIT), || {
        "the deadline did not close the socket".to_owned()
    });
    row.figures = "0 hung, 0 called again".to_owned();
    Ok(row)
}

fn only_run(rig: &Rig, folder: &Path) -> Result<String, String> {
    match rig.list_runs(folder)?.as_slice() {
        [run] => Ok(run["runId"].as_str().unwrap_or_default().to_owned()),
        runs => Err(format!("{} runs instead of one", runs.len())),
    }
}

/// A disk that is full at a number of KiB. Every failure has a code, and the run continues when the disk has space.
pub(super) fn full_disk(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("full disk, at every size until it is large enough");
    let (mut refused, mut suspended, mut completed) = (0, 0, 0);
    for kib in (4..).step_by(12) {
        let folder = rig.folder("disk")?;
        let flow = Rig::write_flow(&folder, &one_agent("at_most_once", 6, json!({})))?;
        rig.witness.reset(Behaviour::Answer);
        let args = ["run", &flow, "--node", "a", "--input", "1", "-q"];
        let exit =
            LoggedProcess::start(rig.redflow_with_file_limit(&folder, kib, &args))?.wait(TIME_LIMIT)?;
        row.cases += 1;
        match check_full_disk(rig, &folder, &flow, &exit) {
            Ok(FullDiskOutcome::Refused) => refused += 1,
            Ok(FullDiskOutcome::Suspended) => suspended += 1,
            Ok(FullDiskOutcome::Enough) => {
                completed += 1;
                if completed == 3 {
                    break;
                }
            }
            Err(error) => row.failures.push(format!("{kib} KiB: {error}")),
        }
        if kib > 4000 {
            row.failures.push("no limit is large enough".to_owned());
            break;
        }
    }
    row.check(refused > 0 && suspended > 0, || format!("{refused} refused, {suspended} suspended"));
    row.figures =
        format!("{refused} refused, {suspended} suspended and resumed, {completed} had room; 0 lost");
    Ok(row)
}

enum FullDiskOutcome {
    Refused,
    Suspended,
    Enough,
}

fn check_full_disk(rig: &Rig, folder: &Path, flow: &str, exit: &Exit) -> Result<FullDiskOutcome, String> {
    let calls = rig.witness.calls().len();
    match exit.code {
        Some(0) => return Ok(FullDiskOutcome::Enough),
        Some(2) if exit.stderr.contains("DATA_FULL") || exit.stderr.contains("JOURNAL_FAILED") => {}
        _ => return Err(format!("{exit:?}")),
    }
    let had_started = calls > 0;
    resume_until_finished(rig, folder, flow)?;
    let keys: std::collections::BTreeSet<String> =
        rig.witness.calls().into_iter().map(|call| call.key).collect();
    if keys.len() != rig.witness.calls().len() {
        return Err("a call was repeated".to_owned());
    }
    Ok(if had_started { FullDiskOutcome::Suspended } else { FullDiskOutcome::Refused })
}

/// The same on a real small file system. Gives none if this user may not mount one.
pub(super) fn small_file_system(rig: &Rig) -> Result<Option<Row>, String> {
    let mut row = Row::new("full file system (tmpfs of 128 KiB to 1 MiB)");
    let folder = rig.folder("tmpfs")?;
    let data = folder.join("data");
    std::fs::create_dir_all(&data).map_err(|error| error.to_string())?;
    let (mut full, mut enough) = (0, 0);
    for kib in [128, 256, 384, 512, 640, 1024] {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"]).arg(&data);
        if !process::works(mount) {
            return Ok(None);
        }
        let result = run_in_tmpfs(rig, &folder, &data, &mut row, kib);
        let mut unmount = Command::new("umount");
        unmount.arg(&data);
        if !process::works(unmount) {
            return Err(format!("{} stays mounted", data.display()));
        }
        match result? {
            true => enough += 1,
            false => full += 1,
        }
    }
    row.check(full > 0 && enough > 0, || format!("{full} full, {enough} large enough"));
    row.figures = format!("{full} full, then given room and resumed; {enough} had room; 0 lost");
    Ok(Some(row))
}

/// Whether the file system was large enough.
fn run_in_tmpfs(rig: &Rig, folder: &Path, data: &Path, row: &mut Row, kib: u32) -> Result<bool, String> {
    let flow = Rig::write_flow(folder, &one_agent("at_most_once", 6, json!({})))?;
    rig.witness.reset(Behaviour::Answer);
    let exit = rig.run(folder, &["run", &flow, "--node", "a", "--input", "1", "-q"])?;
    row.cases += 1;
    let enough = exit.code == Some(0);
    if !enough {
        let coded = exit.stderr.contains("DATA_FULL") || exit.stderr.contains("JOURNAL_FAILED");
        row.check(exit.code == Some(2) && coded, || format!("{kib} KiB: {exit:?}"));
        let mut grow = Command::new("mount");
        grow.args(["-o", "remount,size=16m"]).arg(data);
        row.check(process::works(grow), || "the file system cannot grow".to_owned());
        resume_until_finished(rig, folder, &flow)?;
        let keys: std::collections::BTreeSet<String> =
            rig.witness.calls().into_iter().map(|call| call.key).collect();
        row.check(keys.len() == rig.witness.calls().len(), || format!("{kib} KiB: a call was repeated"));
    }
    Ok(enough)
}

/// Sets the clock back by a day, and forward again, between processes.
pub(super) fn jumping_clock(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("clock set back and forth by a day between processes");
    let folder = rig.folder("clock")?;
    let flow = Rig::write_flow(&folder, &one_agent("idempotent", 2, json!({})))?;
    let mut order = Vec::new();
    for day in [0, -1, 1, -1] {
        let offset = (day * 86_400_000_i64).to_string();
        rig.witness.reset(Behaviour::Hold);
        let mut first = rig.redflow(&folder, &["run", &flow, "--node", "a", "--input", "1"]);
        first.env("REDFLOW_CLOCK_OFFSET_MS", &offset);
        let mut process = LoggedProcess::start(first)?;
        row.check(rig.witness.wait_for_calls(1, TIME_LIMIT), || "no call".to_owned());
        process.kill()?;
        rig.witness.set_behaviour(Behaviour::Answer);
        // The process that resumes the run has the other clock.
        let mut second = rig.redflow(&folder, &["run", "--resume", "all", &flow]);
        second.env("REDFLOW_CLOCK_OFFSET_MS", (-day * 86_400_000_i64).to_string());
        let exit = LoggedProcess::start(second)?.wait(TIME_LIMIT)?;
        row.check(exit.code == Some(0), || format!("day {day}: {exit:?}"));
        let runs = rig.list_runs(&folder)?;
        let ids: Vec<Value> = runs.iter().map(|run| run["runId"].clone()).collect();
        row.check(ids[1..] == order[..], || "the list is not in the order of the starts".to_owned());
        order = ids;
    }
    rig.replay_all(&folder)?;
    row.figures = format!("{} runs, each resumed once; order kept, all replay", order.len());
    Ok(row)
}

/// Starts a second driver, and readers during a driver.
pub(super) fn two_processes(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("two processes on one data directory");
    let folder = rig.folder("two")?;
    let flow = Rig::write_flow(&folder, &one_agent("at_most_once", 1, json!({"timeout": 60000})))?;
    rig.witness.reset(Behaviour::Hold);
    let mut driver =
        LoggedProcess::start(rig.redflow(&folder, &["run", &flow, "--node", "a", "--input", "1"]))?;
    row.check(rig.witness.wait_for_calls(1, TIME_LIMIT), || "no call".to_owned());
    for args in [&["run", &flow, "--node", "a", "--input", "1"][..], &["run", "--resume", "all"]] {
        let second = rig.run(&folder, args)?;
        let locked = second.code == Some(2) && second.stderr.contains("DATA_LOCKED");
        row.check(locked, || format!("a second driver: {second:?}"));
    }
    let run = only_run(rig, &folder)?;
    let backup = folder.join("copy.db").display().to_string();
    for args in [&["runs"][..], &["runs", "show", &run], &["runs", "events", &run], &["backup", &backup]] {
        let reader = rig.run(&folder, args)?;
        row.check(reader.code == Some(0), || format!("{args:?} during a driver: {reader:?}"));
    }
    // A killed process leaves no lock behind.
    driver.kill()?;
    rig.witness.set_behaviour(Behaviour::Answer);
    let parked = resume_until_finished(rig, &folder, &flow)?;
    row.check(parked == 1, || format!("{parked} asked a person"));
    row.figures = "the second is refused, readers work beside, the lock dies with its process".to_owned();
    Ok(row)
}
