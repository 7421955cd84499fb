//! Searches in an archive, against an exact scan of all vectors.

mod real_text;

use crate::clock::{figure, median, resident, timed};
use crate::folder::Folder;
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure};
use redflow_archive::SqliteArchive;
use redflow_contract::archive::{EntryKind, SearchMode};
use redflow_engine::SystemClock;
use redflow_ports::{Archive as _, NewCollection, NewEntry, SearchFilter, SearchQuery, VectorScores};
use std::sync::Arc;

const COLLECTION: &str = "kb/bench";
const DIMENSIONS: usize = 384;
/// The entries that are stored at once.
const BATCH: usize = 1_000;
/// Vectors lie around this many points, as those of real texts do.
const CLUSTERS: usize = 1_000;
/// The different words, of which some are frequent and most are not.
const WORDS: u64 = 20_000;
const WORDS_OF_ENTRY: usize = 60;
/// One of so many entries has the tag of the filter.
const TAGGED: usize = 100;

const TARGET_P50: f64 = 12.0;
const TARGET_P99: f64 = 25.0;
const TARGET_RATIO: f64 = 0.6;
const TARGET_RECALL: f64 = 0.99;
const TARGET_HYBRID: f64 = 20.0;
const TARGET_COLD: f64 = 400.0;
const TARGET_RESIDENT: f64 = 45.0;
const TARGET_PUTS: f64 = 5_000.0;

/// Random numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn centred(&mut self) -> f32 {
        self.next() as f32 / (1_u64 << 30) as f32 - 1.0
    }

    fn vector(&mut self, around: Option<&[f32]>) -> Vec<f32> {
        let mut vector: Vec<f32> = (0..DIMENSIONS).map(|_| self.centred()).collect();
        if let Some(centre) = around {
            vector.iter_mut().zip(centre).for_each(|(value, centre)| *value += centre * 20.0);
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    }

    /// A word; the first ones are the most frequent.
    fn word(&mut self) -> u64 {
        let share = (self.next() % 1_000_000) as f64 / 1_000_000.0;
        ((WORDS as f64).powf(share) - 1.0) as u64
    }

    fn text(&mut self, words: usize) -> String {
        let words: Vec<String> = (0..words).map(|_| format!("word{}", self.word())).collect();
        words.join(" ")
    }
}

struct Data {
    centres: Vec<Vec<f32>>,
    /// All vectors, one after the other.
    vectors: Vec<f32>,
}

impl Data {
    fn new(entries: usize, numbers: &mut Numbers) -> Self {
        let centres: Vec<Vec<f32>> = (0..CLUSTERS).map(|_| numbers.vector(None)).collect();
        let vectors =
            (0..entries).flat_map(|number| numbers.vector(Some(&centres[number * 7 % CLUSTERS]))).collect();
        Self { centres, vectors }
    }
}

/// The ten closest of these vectors, which lie one after the other, by comparing all.
fn closest(vectors: &[f32], query: &[f32]) -> Vec<usize> {
    let mut all: Vec<(f32, usize)> =
        vectors.chunks_exact(DIMENSIONS).enumerate().map(|(at, vector)| (dot(vector, query), at)).collect();
    all.select_nth_unstable_by(10, |left, right| right.0.total_cmp(&left.0));
    all.into_iter().take(10).map(|(_, at)| at).collect()
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 8];
    for (left, right) in left.chunks_exact(8).zip(right.chunks_exact(8)) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    sums.iter().sum()
}

async fn fill(archive: &SqliteArchive, data: &Data, numbers: &mut Numbers) -> Result<f64, Failure> {
    let (name, embedder) = (COLLECTION.to_owned(), "bench".to_owned());
    let dimensions = u32::try_from(DIMENSIONS)?;
    archive
        .create_collection(NewCollection { name, embedder, dimensions, settings: serde_json::Map::new() })
        .await?;
    let mut micros = 0.0;
    for (batch, vectors) in data.vectors.chunks(BATCH * DIMENSIONS).enumerate() {
        let entry = |(at, vector): (usize, &[f32])| {
            let number = batch * BATCH + at;
            let tags = if number.is_multiple_of(TAGGED) { vec!["rare".to_owned()] } else { Vec::new() };
            let text = numbers.text(WORDS_OF_ENTRY);
            NewEntry {
                vector: Some(vector.to_vec()),
                tags,
                ..NewEntry::new(format!("{number:06}"), EntryKind::Chunk, text)
            }
        };
        let entries = vectors.chunks_exact(DIMENSIONS).enumerate().map(entry).collect();
        let (stored, spent) = {
            let begin = std::time::Instant::now();
            let stored = archive.put(COLLECTION, entries).await;
            (stored, begin.elapsed())
        };
        stored?;
        micros += spent.as_secs_f64() * 1e6;
    }
    Ok(figure((data.vectors.len() / DIMENSIONS) as u64) / (micros / 1e6))
}

/// The ways to search.
const WAYS: [(&str, SearchMode, bool); 5] = [
    ("by meaning", SearchMode::Semantic, false),
    ("by meaning, one of 100 allowed", SearchMode::Semantic, true),
    ("by words", SearchMode::Lexical, false),
    ("by both", SearchMode::Hybrid, false),
    ("by both, one of 100 allowed", SearchMode::Hybrid, true),
];

fn query(vector: Vec<f32>, text: String, mode: SearchMode, is_filtered: bool) -> SearchQuery {
    let tags = if is_filtered { vec!["rare".to_owned()] } else { Vec::new() };
    let filter = SearchFilter { tags, ..SearchFilter::default() };
    let vector_scores = VectorScores::default();
    SearchQuery { text, vector: Some(vector), mode, filter, min_score: 0.0, vector_scores, limit: 10 }
}

fn at_share(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * share) as usize]
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (entries, queries) = if extent == Extent::Quick { (5_000, 20) } else { (100_000, 200) };
    let mut numbers = Numbers(11);
    let data = Data::new(entries, &mut numbers);
    let folder = Folder::on_disk()?;
    runtime()?.block_on(async {
        let archive = SqliteArchive::new(folder.path(), Arc::new(SystemClock));
        let puts = fill(&archive, &data, &mut numbers).await?;
        drop(archive);
        let archive = SqliteArchive::new(folder.path(), Arc::new(SystemClock));
        let before = resident("RssAnon")?;
        let first = query(data.vectors[..DIMENSIONS].to_vec(), "word1".to_owned(), SearchMode::Semantic, false);
        let begin = std::time::Instant::now();
        archive.search(COLLECTION, first).await?;
        let cold = begin.elapsed().as_secs_f64() * 1e3;
        let held = resident("RssAnon")? - before;
        let mut exact = Vec::new();
        let mut samples: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
        let (mut found, mut wanted) = (0, 0);
        for number in 0..queries {
            let vector = numbers.vector(Some(&data.centres[number * 13 % CLUSTERS]));
            let text = numbers.text(6);
            let (closest, micros) = timed(|| closest(&data.vectors, &vector));
            exact.push(micros / 1e3);
            for ((_, mode, is_filtered), samples) in WAYS.into_iter().zip(&mut samples) {
                let query = query(vector.clone(), text.clone(), mode, is_filtered);
                let begin = std::time::Instant::now();
                let hits = archive.search(COLLECTION, query).await?;
                samples.push(begin.elapsed().as_secs_f64() * 1e3);
                if mode == SearchMode::Semantic && !is_filtered {
                    let keys: Vec<usize> = hits.iter().filter_map(|hit| hit.entry.key.parse().ok()).collect();
                    wanted += closest.len();
                    found += closest.iter().filter(|at| keys.contains(at)).count();
                }
            }
        }
        let recall = figure(found as u64) / figure(wanted as u64);
        let exact = median(exact);
        let columns =
            [("what", "search", 0), ("p50", "p50 ms", 2), ("p99", "p99 ms", 2), ("ratio", "p50 × exact", 2)];
        let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
        let heading = format!("{entries} entries of {DIMENSIONS} dimensions, ten hits");
        let mut table = Table::new("archive", heading, columns.into());
        let mut p50 = Vec::new();
        let mut p99 = Vec::new();
        for ((name, ..), samples) in WAYS.into_iter().zip(&mut samples) {
            let (middle, high) = (at_share(samples, 0.5), at_share(samples, 0.99));
            table.row(vec![name.into(), middle.into(), high.into(), (middle / exact).into()]);
            p50.push(middle);
            p99.push(high);
        }
        table.figure("exact", "exact: all vectors in memory compared as f32", exact, "ms");
        table.figure("recall", "recall@10 by meaning, against the exact scan", recall, "");
        table.figure("cold", "the first search of a process", cold, "ms");
        table.figure("held", "memory that it holds from then on (RssAnon)", held / 1e6, "MB");
        table.figure("puts", "entries stored, 1 000 at once, without making vectors", puts, "per second");
        table.note("vectors lie around 1 000 points; texts of 60 words of 20 000, queries of 6");
        table.note(format!(
            "targets: p50 {TARGET_P50} ms: {}, p99 {TARGET_P99} ms: {}, {TARGET_RATIO} × exact: {}, recall {TARGET_RECALL}: {}",
            target_word(p50[0] <= TARGET_P50),
            target_word(p99[0] <= TARGET_P99),
            target_word(p50[0] / exact <= TARGET_RATIO),
            target_word(recall >= TARGET_RECALL),
        ));
        table.note(format!(
            "targets: by both with a filter {TARGET_HYBRID} ms: {}, cold {TARGET_COLD} ms: {}, {TARGET_RESIDENT} MB: {}, \
             {TARGET_PUTS} entries/s: {}",
            target_word(p50[4] <= TARGET_HYBRID),
            target_word(cold <= TARGET_COLD),
            target_word(held / 1e6 <= TARGET_RESIDENT),
            target_word(puts >= TARGET_PUTS),
        ));
        show(table)
    })?;
    real_text::measure(extent, show)
}
