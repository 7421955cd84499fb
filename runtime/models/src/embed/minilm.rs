//! The model all-MiniLM-L6-v2 on this machine, by our own code.
//!
//! Owns its files and when they are read. [`tokenizer`] splits texts into tokens, [`encoder`] makes vectors of
//! them, [`weights`] reads the file of the weights, and [`install`] copies the files of the model.

mod encoder;
mod install;
mod matrix;
mod tokenizer;
mod weights;

pub use install::{install_minilm, is_minilm_installed};

use super::{cut, failed};
use encoder::Encoder;
use redflow_ports::{ArchiveError, BoxFuture, EmbedPurpose, Embedded, Embedder, EmbedderInfo};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokenizer::Tokenizer;
use tokio::sync::Mutex;
use weights::Weights;

/// The folder of MiniLM below that of all models.
pub const MINILM_DIR: &str = "minilm";

const WEIGHTS_FILE: &str = "model.safetensors";
const VOCABULARY_FILE: &str = "vocab.txt";
const TOKENIZER_FILE: &str = "tokenizer.json";

/// The most bytes of a text. It has more than the 256 tokens that the model reads in most languages.
const MAX_TEXT_BYTES: usize = 2_048;
/// The most bytes of a vocabulary.
const MAX_VOCABULARY_BYTES: u64 = 4 * 1024 * 1024;
/// So many texts are one piece of work. A dropped call stops it after a piece.
const TEXTS_AT_ONCE: usize = 16;

/// Makes vectors that show what a text means, without a network.
pub struct Minilm {
    info: EmbedderInfo,
    dir: PathBuf,
    /// The model after its first use: 90 MB. Only one piece of work uses it at a time.
    model: Arc<Mutex<Option<Model>>>,
}

struct Model {
    tokenizer: Tokenizer,
    encoder: Encoder,
}

impl Minilm {
    /// Opens the model in a folder with `model.safetensors` and `vocab.txt` or `tokenizer.json`. The weights
    /// are checked now, and loaded when the first text comes.
    ///
    /// # Errors
    /// When a file is missing or is not of this model.
    pub fn open(dir: &Path) -> Result<Self, ArchiveError> {
        Encoder::check(&open_weights(dir)?)?;
        open_tokenizer(dir)?;
        let info = EmbedderInfo {
            id: "minilm".to_owned(),
            dimensions: encoder::DIMENSIONS as u32,
            max_bytes: MAX_TEXT_BYTES,
            finds_meaning: true,
            is_cached: true,
        };
        Ok(Self { info, dir: dir.to_owned(), model: Arc::default() })
    }

    async fn embed_all(&self, texts: &[String]) -> Result<Embedded, ArchiveError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for some in texts.chunks(TEXTS_AT_ONCE) {
            let some: Vec<String> = some.iter().map(|text| cut(text, MAX_TEXT_BYTES).to_owned()).collect();
            // The lock is held until the work ends, even if the call was dropped.
            let mut model = Arc::clone(&self.model).lock_owned().await;
            let dir = self.dir.clone();
            let work = move || {
                let model = match &mut *model {
                    Some(model) => model,
                    none => none.insert(Model::load(&dir)?),
                };
                model.embed(&some)
            };
            let done = tokio::task::spawn_blocking(work).await;
            vectors.extend(done.unwrap_or_else(|_| Err(failed("MiniLM stopped while it made vectors")))?);
        }
        Ok(Embedded { vectors, tokens: 0, cost: None })
    }
}

impl Embedder for Minilm {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        _: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
        Box::pin(self.embed_all(texts))
    }
}

impl Model {
    fn load(dir: &Path) -> Result<Self, ArchiveError> {
        Ok(Self { tokenizer: open_tokenizer(dir)?, encoder: Encoder::load(&mut open_weights(dir)?)? })
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ArchiveError> {
        let tokens: Vec<Vec<u32>> = texts.iter().map(|text| self.tokenizer.tokens(text)).collect();
        let vectors = self.encoder.vectors(&tokens);
        vectors.ok_or_else(|| failed("MiniLM made a vector without a direction; install it again"))
    }
}

fn open_weights(dir: &Path) -> Result<Weights<BufReader<File>>, ArchiveError> {
    let file = File::open(dir.join(WEIGHTS_FILE)).map_err(|_| not_installed(WEIGHTS_FILE))?;
    let bytes = file.metadata().map_err(|_| not_installed(WEIGHTS_FILE))?.len();
    Weights::open(BufReader::new(file), bytes)
}

fn open_tokenizer(dir: &Path) -> Result<Tokenizer, ArchiveError> {
    if let Ok(file) = File::open(dir.join(VOCABULARY_FILE)) {
        return Tokenizer::from_list(&read_text(file, VOCABULARY_FILE)?);
    }
    let file = File::open(dir.join(TOKENIZER_FILE)).map_err(|_| not_installed(VOCABULARY_FILE))?;
    Tokenizer::from_json(&read_text(file, TOKENIZER_FILE)?)
}

fn read_text(file: File, name: &str) -> Result<String, ArchiveError> {
    let mut text = String::new();
    let read = file.take(MAX_VOCABULARY_BYTES + 1).read_to_string(&mut text);
    if read.is_err() || text.len() as u64 > MAX_VOCABULARY_BYTES {
        return Err(invalid(name));
    }
    Ok(text)
}

fn not_installed(file: &str) -> ArchiveError {
    failed(format!(
        "MiniLM is not installed: there is no `{file}`; install it with `redflow embeddings install`"
    ))
}

fn invalid(file: &str) -> ArchiveError {
    failed(format!(
        "`{file}` is not that of all-MiniLM-L6-v2; install it again with `redflow embeddings install`"
    ))
}
