//! Peers that are slow or dead, disks that are full, clocks that jump, and two processes that want the same.

use super::flows::{CLASSES, one_agent};
use super::rig::{Done, HANGS, Rig, Started};
use super::witness::Manner;
use super::{Row, resume_all_answering};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A peer that never answers, or hangs up: every class as the contract says; and a cancel or a deadline reaches
/// the socket.
pub(super) fn dead_peers(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("slow and dead peers: timeout, hang-up, cancel and deadline reach the socket");
    for class in CLASSES {
        for manner in [Manner::Holds, Manner::HangsUp] {
            let place = rig.place("peers")?;
            let flow = Rig::flow(&place, &one_agent(class, 1, json!({"timeout": 300})))?;
            rig.witness.reset(manner);
            let done = rig.end(&place, &["run", &flow, "--node", "a", "--input", "1"])?;
            let expected = if class == "at_most_once" { Some(3) } else { Some(0) };
            row.check(done.code == expected, || format!("{class} {manner:?}: {done:?}"));
            row.check(rig.witness.calls().len() == 1, || format!("{class} {manner:?}: not one call"));
            if manner == Manner::Holds {
                let closed = rig.witness.wait_for_given_up(1, HANGS);
                row.check(closed, || format!("{class}: the timeout did not close the socket"));
            }
            resume_all_answering(rig, &place, &flow)?;
            row.check(rig.witness.calls().len() == 1, || format!("{class} {manner:?}: called again"));
        }
    }
    let place = rig.place("cancel")?;
    let flow = Rig::flow(&place, &one_agent("at_most_once", 1, json!({})))?;
    rig.witness.reset(Manner::Holds);
    let started = Started::new(rig.redflow(&place, &["run", &flow, "--node", "a", "--input", "1"]))?;
    row.check(rig.witness.wait_for_calls(1, HANGS), || "no call".to_owned());
    let run = only_run(rig, &place)?;
    let asked = rig.end(&place, &["runs", "cancel", &run])?;
    row.check(asked.code == Some(0), || format!("cancel: {asked:?}"));
    row.check(rig.witness.wait_for_given_up(1, HANGS), || "the cancel did not close the socket".to_owned());
    let done = started.end(HANGS)?;
    row.check(done.code == Some(1) && done.stderr.contains("CANCELLED"), || format!("cancelled: {done:?}"));
    let mut limited = one_agent("at_most_once", 1, json!({}));
    for node in limited.as_array_mut().into_iter().flatten().filter(|node| node["type"] == "agent-core") {
        node["timeout"] = json!(400);
    }
    let place = rig.place("deadline")?;
    let flow = Rig::flow(&place, &limited)?;
    rig.witness.reset(Manner::Holds);
    let done = rig.end(&place, &["run", &flow, "--node", "a", "--input", "1"])?;
    row.check(done.code == Some(1) && done.stderr.contains("TIMEOUT"), || format!("deadline: {done:?}"));
    row.check(rig.witness.wait_for_given_up(1, HANGS), || "the deadline did not close the socket".to_owned());
    row.figures = "0 hung, 0 called again".to_owned();
    Ok(row)
}

fn only_run(rig: &Rig, place: &Path) -> Result<String, String> {
    match rig.runs(place)?.as_slice() {
        [run] => Ok(run["runId"].as_str().unwrap_or_default().to_owned()),
        runs => Err(format!("{} runs instead of one", runs.len())),
    }
}

/// A disk that is full after so many KiB: whatever fails has a code, and goes on when there is room.
pub(super) fn full_disk(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("full disk, at every size until it is large enough");
    let (mut refused, mut suspended, mut completed) = (0, 0, 0);
    for kib in (4..).step_by(12) {
        let place = rig.place("disk")?;
        let flow = Rig::flow(&place, &one_agent("at_most_once", 6, json!({})))?;
        rig.witness.reset(Manner::Answers);
        let args = ["run", &flow, "--node", "a", "--input", "1", "-q"];
        let done = Started::new(rig.redflow_in_a_small_room(&place, kib, &args))?.end(HANGS)?;
        row.cases += 1;
        match judge_full(rig, &place, &flow, &done) {
            Ok(Full::Refused) => refused += 1,
            Ok(Full::Suspended) => suspended += 1,
            Ok(Full::Enough) => {
                completed += 1;
                if completed == 3 {
                    break;
                }
            }
            Err(error) => row.failures.push(format!("{kib} KiB: {error}")),
        }
        if kib > 4000 {
            row.failures.push("no room is large enough".to_owned());
            break;
        }
    }
    row.check(refused > 0 && suspended > 0, || format!("{refused} refused, {suspended} suspended"));
    row.figures =
        format!("{refused} refused, {suspended} suspended and resumed, {completed} had room; 0 lost");
    Ok(row)
}

enum Full {
    Refused,
    Suspended,
    Enough,
}

fn judge_full(rig: &Rig, place: &Path, flow: &str, done: &Done) -> Result<Full, String> {
    let calls = rig.witness.calls().len();
    match done.code {
        Some(0) => return Ok(Full::Enough),
        Some(2) if done.stderr.contains("DATA_FULL") || done.stderr.contains("JOURNAL_FAILED") => {}
        _ => return Err(format!("{done:?}")),
    }
    let had_begun = calls > 0;
    resume_all_answering(rig, place, flow)?;
    let keys: std::collections::BTreeSet<String> =
        rig.witness.calls().into_iter().map(|call| call.key).collect();
    if keys.len() != rig.witness.calls().len() {
        return Err("a call was repeated".to_owned());
    }
    Ok(if had_begun { Full::Suspended } else { Full::Refused })
}

/// The same on a real small file system, where this user may make one.
pub(super) fn small_file_system(rig: &Rig) -> Result<Option<Row>, String> {
    let mut row = Row::new("full file system (tmpfs of 128 KiB to 512 KiB)");
    let place = rig.place("tmpfs")?;
    let data = place.join("data");
    std::fs::create_dir_all(&data).map_err(|error| error.to_string())?;
    let (mut full, mut enough) = (0, 0);
    for kib in [128, 160, 192, 224, 256, 512] {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"]).arg(&data);
        if !crate::process::works(mount) {
            return Ok(None);
        }
        let result = in_tmpfs(rig, &place, &data, &mut row, kib);
        let mut unmount = Command::new("umount");
        unmount.arg(&data);
        if !crate::process::works(unmount) {
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

fn in_tmpfs(rig: &Rig, place: &Path, data: &Path, row: &mut Row, kib: u32) -> Result<bool, String> {
    let flow = Rig::flow(place, &one_agent("at_most_once", 6, json!({})))?;
    rig.witness.reset(Manner::Answers);
    let done = rig.end(place, &["run", &flow, "--node", "a", "--input", "1", "-q"])?;
    row.cases += 1;
    let enough = done.code == Some(0);
    if !enough {
        let coded = done.stderr.contains("DATA_FULL") || done.stderr.contains("JOURNAL_FAILED");
        row.check(done.code == Some(2) && coded, || format!("{kib} KiB: {done:?}"));
        let mut grow = Command::new("mount");
        grow.args(["-o", "remount,size=16m"]).arg(data);
        row.check(crate::process::works(grow), || "the file system cannot grow".to_owned());
        resume_all_answering(rig, place, &flow)?;
        let keys: std::collections::BTreeSet<String> =
            rig.witness.calls().into_iter().map(|call| call.key).collect();
        row.check(keys.len() == rig.witness.calls().len(), || format!("{kib} KiB: a call was repeated"));
    }
    Ok(enough)
}

/// The clock is set back by a day, and forward again, between processes.
pub(super) fn jumping_clock(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("clock set back and forth by a day between processes");
    let place = rig.place("clock")?;
    let flow = Rig::flow(&place, &one_agent("idempotent", 2, json!({})))?;
    let mut order = Vec::new();
    for day in [0, -1, 1, -1] {
        let offset = (day * 86_400_000_i64).to_string();
        rig.witness.reset(Manner::Holds);
        let mut first = rig.redflow(&place, &["run", &flow, "--node", "a", "--input", "1"]);
        first.env("REDFLOW_CLOCK_OFFSET_MS", &offset);
        let started = Started::new(first)?;
        row.check(rig.witness.wait_for_calls(1, HANGS), || "no call".to_owned());
        started.kill()?;
        rig.witness.behave(Manner::Answers);
        // The process that goes on has the other clock.
        let mut second = rig.redflow(&place, &["run", "--resume", "all", &flow]);
        second.env("REDFLOW_CLOCK_OFFSET_MS", (-day * 86_400_000_i64).to_string());
        let done = Started::new(second)?.end(HANGS)?;
        row.check(done.code == Some(0), || format!("day {day}: {done:?}"));
        let runs = rig.runs(&place)?;
        let ids: Vec<Value> = runs.iter().map(|run| run["runId"].clone()).collect();
        row.check(ids[1..] == order[..], || "the list is not in the order of the starts".to_owned());
        order = ids;
    }
    rig.replay_all(&place)?;
    row.figures = format!("{} runs, each resumed once; order kept, all replay", order.len());
    Ok(row)
}

/// Two drivers at once, and readers beside one.
pub(super) fn two_processes(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("two processes on one data directory");
    let place = rig.place("two")?;
    let flow = Rig::flow(&place, &one_agent("at_most_once", 1, json!({"timeout": 60000})))?;
    rig.witness.reset(Manner::Holds);
    let driver = Started::new(rig.redflow(&place, &["run", &flow, "--node", "a", "--input", "1"]))?;
    row.check(rig.witness.wait_for_calls(1, HANGS), || "no call".to_owned());
    for args in [&["run", &flow, "--node", "a", "--input", "1"][..], &["run", "--resume", "all"]] {
        let second = rig.end(&place, args)?;
        let locked = second.code == Some(2) && second.stderr.contains("DATA_LOCKED");
        row.check(locked, || format!("a second driver: {second:?}"));
    }
    let run = only_run(rig, &place)?;
    let backup = place.join("copy.db").display().to_string();
    for args in [&["runs"][..], &["runs", "show", &run], &["runs", "events", &run], &["backup", &backup]] {
        let beside = rig.end(&place, args)?;
        row.check(beside.code == Some(0), || format!("{args:?} beside a driver: {beside:?}"));
    }
    // Killed, it leaves no lock behind.
    driver.kill()?;
    rig.witness.behave(Manner::Answers);
    let parked = resume_all_answering(rig, &place, &flow)?;
    row.check(parked == 1, || format!("{parked} asked a person"));
    row.figures = "the second is refused, readers work beside, the lock dies with its process".to_owned();
    Ok(row)
}
