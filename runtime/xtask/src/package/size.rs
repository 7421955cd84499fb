//! The size of the program: what it is made of, and the ceiling that the repository sets.

use crate::files;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The ceilings of the repository. Who raises one writes the reason beside it, in the same commit.
const CEILINGS: &str = "bench/ceilings.json";

/// Sections of less are named together.
const SMALL: u64 = 100_000;
const OTHERS: &str = "others";

/// The parts of a program with their bytes, largest first.
type Sections = Vec<(String, u64)>;

/// A table of the program's parts beside their last kept sizes.
///
/// # Errors
/// If the program is larger than the ceiling.
pub(crate) fn check(root: &Path, program: &[u8]) -> Result<String, String> {
    let ceilings = read(root)?;
    let sections = sections(program);
    let total = program.len() as u64;
    let row = |name: &str, bytes: u64, kept: &Value| {
        let kept = kept.as_u64().map_or_else(|| "–".to_owned(), megabytes);
        format!("  {name:<20}{:>9}  kept {kept}\n", megabytes(bytes))
    };
    let kept = &ceilings["program"];
    let mut table = row("the program", total, &kept["bytes"]);
    for (name, bytes) in &sections {
        table += &row(name, *bytes, &kept["sections"][name]);
    }
    let ceiling = kept["ceiling"].as_u64().ok_or_else(|| format!("{CEILINGS} has no `program.ceiling`"))?;
    if total <= ceiling {
        return Ok(table);
    }
    let grown = largest_growth(&sections, &kept["sections"]);
    Err(format!(
        "{table}the program has {}, and {CEILINGS} allows {}{grown}. Make it smaller, or raise the ceiling with the \
         reason",
        megabytes(total),
        megabytes(ceiling)
    ))
}

/// Writes the size of the program into the repository.
pub(crate) fn keep(root: &Path, program: &[u8]) -> Result<(), String> {
    let mut ceilings = read(root)?;
    let sections: Map<String, Value> =
        sections(program).into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
    ceilings["program"]["bytes"] = json!(program.len());
    ceilings["program"]["sections"] = Value::Object(sections);
    std::fs::write(root.join(CEILINGS), format!("{ceilings:#}\n"))
        .map_err(|error| format!("{CEILINGS}: {error}"))
}

fn read(root: &Path) -> Result<Value, String> {
    serde_json::from_str(&files::read(root, CEILINGS)?).map_err(|error| format!("{CEILINGS}: {error}"))
}

fn largest_growth(sections: &Sections, kept: &Value) -> String {
    let growth = sections.iter().filter_map(|(name, bytes)| {
        Some((name, bytes.checked_sub(kept[name].as_u64()?).filter(|growth| *growth > 0)?))
    });
    growth
        .max_by_key(|(_, growth)| *growth)
        .map(|(name, growth)| format!("; {name} has grown most, by {}", megabytes(growth)))
        .unwrap_or_default()
}

/// The sections of a 64-bit little-endian ELF program. Other programs have none that this knows.
fn sections(program: &[u8]) -> Sections {
    let mut large = elf_sections(program).unwrap_or_default();
    large.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let small = large.partition_point(|(_, bytes)| *bytes >= SMALL);
    let others: u64 = large.drain(small..).map(|(_, bytes)| bytes).sum();
    if others > 0 {
        large.push((OTHERS.to_owned(), others));
    }
    large
}

fn elf_sections(program: &[u8]) -> Option<Sections> {
    const NO_BITS: u64 = 8;
    if program.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |at: u64, bytes: usize| {
        let at = usize::try_from(at).ok()?;
        let bytes = program.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (table, entry, count, names) = (number(40, 8)?, number(58, 2)?, number(60, 2)?, number(62, 2)?);
    let header = |index: u64| table.checked_add(index.checked_mul(entry)?);
    let names = number(header(names)?.checked_add(24)?, 8)?;
    let mut found = Vec::new();
    for index in 0..count {
        let header = header(index)?;
        if number(header.checked_add(4)?, 4)? == NO_BITS {
            continue;
        }
        let start = usize::try_from(names.checked_add(number(header, 4)?)?).ok()?;
        let name = program.get(start..)?.split(|byte| *byte == 0).next()?;
        found.push((String::from_utf8_lossy(name).into_owned(), number(header.checked_add(32)?, 8)?));
    }
    Some(found)
}

pub(super) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.saturating_add(50_000) / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::{check, keep, largest_growth, sections};
    use pretty_assertions::assert_eq;
    use serde_json::json;

    /// An ELF program with a section `.text`, a small one, one without bytes in the file, and the names.
    fn program() -> Vec<u8> {
        let names = b"\0.text\0.x\0.bss\0.names\0";
        let mut bytes = vec![0_u8; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let table = 64 + names.len() as u64;
        bytes[40..48].copy_from_slice(&table.to_le_bytes());
        bytes[58..60].copy_from_slice(&64_u16.to_le_bytes());
        bytes[60..62].copy_from_slice(&4_u16.to_le_bytes());
        bytes[62..64].copy_from_slice(&3_u16.to_le_bytes());
        bytes.extend_from_slice(names);
        for (name, kind, offset, size) in
            [(1_u32, 1_u32, 0_u64, 2_000_000_u64), (7, 1, 0, 12), (10, 8, 0, 999_999), (15, 3, 64, 22)]
        {
            let mut header = [0_u8; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&offset.to_le_bytes());
            header[32..40].copy_from_slice(&size.to_le_bytes());
            bytes.extend_from_slice(&header);
        }
        bytes
    }

    #[test]
    fn reads_the_sections_of_a_program() {
        assert_eq!(sections(&program()), [(".text".to_owned(), 2_000_000), ("others".to_owned(), 34)]);
        assert_eq!(sections(b"MZ no ELF"), []);
        // A program that was cut off has no sections, and nothing panics.
        let program = program();
        for end in 0..program.len() {
            let _ = sections(&program[..end]);
        }
    }

    #[test]
    fn a_program_above_the_ceiling_is_refused_with_what_has_grown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench/ceilings.json");
        std::fs::create_dir(folder.path().join("bench")).unwrap();
        let program = program();
        let write = |ceiling: usize| {
            let kept =
                json!({"program": {"ceiling": ceiling, "reason": "why", "sections": {".text": 500_000}}});
            std::fs::write(&path, kept.to_string()).unwrap();
        };
        write(program.len());
        assert!(check(folder.path(), &program).unwrap().contains(".text"));
        write(program.len() - 1);
        let refused = check(folder.path(), &program).unwrap_err();
        assert!(
            refused.contains("; .text has grown most, by 1.5 MB. Make it smaller, or raise"),
            "{refused}"
        );
        keep(folder.path(), &program).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(kept["program"]["sections"], json!({".text": 2_000_000, "others": 34}));
        assert_eq!(
            (&kept["program"]["bytes"], &kept["program"]["reason"]),
            (&json!(program.len()), &json!("why"))
        );
    }

    #[test]
    fn without_growth_nothing_is_blamed() {
        let sections = vec![(".text".to_owned(), 5)];
        assert_eq!(largest_growth(&sections, &json!({".text": 5})), "");
        assert_eq!(largest_growth(&sections, &json!({})), "");
    }
}
