//! Texts become vectors. Vectors that cost something are cached, so that no text is paid for twice.

use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::transcript::BYTES_PER_TOKEN;
use redflow_ports::{Archive, ArchiveError, EmbedPurpose, Embedder, Measurement, Meter};

/// The texts of one request. Their vectors are cached when the request has ended.
const BATCH: usize = 96;

/// What vectors have cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EmbeddingUse {
    /// The texts of which the embedder made vectors. The others were cached.
    pub texts: u64,
    /// The tokens that the provider counted.
    pub tokens: u64,
    /// The cost; none if the model has no price.
    pub cost: Option<f64>,
}

impl EmbeddingUse {
    /// Adds the use of other vectors.
    pub fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.tokens += other.tokens;
        self.cost = match (self.cost, other.cost) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0.0) + two.unwrap_or(0.0)),
        };
    }
}

/// About how many tokens a text has. It errs on the high side for English.
#[must_use]
pub fn estimated_tokens(text: &str) -> u64 {
    text.len().div_ceil(BYTES_PER_TOKEN) as u64
}

/// Makes vectors with an embedder, or takes them from the cache of an archive.
pub(crate) struct Vectors<'a> {
    pub(crate) archive: &'a dyn Archive,
    pub(crate) embedder: &'a dyn Embedder,
    pub(crate) meter: &'a dyn Meter,
}

impl Vectors<'_> {
    /// The vectors of texts, in the order of the texts. Cached vectors of another length than `dimensions` are not used.
    pub(crate) async fn of(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
        dimensions: Option<u32>,
        on_progress: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(Vec<Vec<f32>>, EmbeddingUse), ArchiveError> {
        let mut all = Vec::with_capacity(texts.len());
        let mut used = EmbeddingUse::default();
        for batch in texts.chunks(BATCH) {
            let (vectors, batch_use) = self.of_batch(batch, purpose, dimensions).await?;
            all.extend(vectors);
            used.add(batch_use);
            on_progress(all.len());
        }
        Ok((all, used))
    }

    async fn of_batch(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
        dimensions: Option<u32>,
    ) -> Result<(Vec<Vec<f32>>, EmbeddingUse), ArchiveError> {
        let (archive, info) = (self.archive, self.embedder.info());
        if !info.is_cached {
            return self.make(texts, purpose).await;
        }
        let digests = digests(texts, purpose);
        let mut vectors = archive.cached_vectors(&info.id, digests.clone()).await?;
        let mut cached_lengths: Vec<usize> = vectors.iter().flatten().map(Vec::len).collect();
        if let Some(dimensions) = dimensions.or(Some(info.dimensions)).filter(|dimensions| *dimensions > 0) {
            keep_length(&mut vectors, dimensions as usize);
        }
        let hits = vectors.iter().flatten().count() as u64;
        self.meter.record(Measurement::CachedVectors { hits, misses: texts.len() as u64 - hits });
        let mut used = EmbeddingUse::default();
        // The second time, if the answer shows that the cached vectors are those of an earlier model of the same name.
        for _ in 0..2 {
            let missing: Vec<usize> = (0..texts.len()).filter(|&at| vectors[at].is_none()).collect();
            if missing.is_empty() {
                break;
            }
            let wanted: Vec<String> = missing.iter().map(|&at| texts[at].clone()).collect();
            let (made, made_use) = self.make(&wanted, purpose).await?;
            used.add(made_use);
            let length = made.first().map_or(0, Vec::len);
            if cached_lengths.iter().any(|cached| *cached != length) {
                archive.drop_cached_vectors(&info.id, None).await?;
                cached_lengths.clear();
            }
            keep_length(&mut vectors, length);
            let cached =
                missing.iter().zip(&made).map(|(&at, vector)| (digests[at], vector.clone())).collect();
            archive.cache_vectors(&info.id, cached).await?;
            for (at, vector) in missing.into_iter().zip(made) {
                vectors[at] = Some(vector);
            }
        }
        let vectors: Vec<Vec<f32>> = vectors.into_iter().flatten().collect();
        if vectors.len() == texts.len() { Ok((vectors, used)) } else { Err(not_whole(self.embedder)) }
    }

    /// The vectors that the embedder makes.
    async fn make(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<(Vec<Vec<f32>>, EmbeddingUse), ArchiveError> {
        let embedder = &self.embedder.info().id;
        let call = |tokens, cost, failed| Measurement::EmbeddingCall { embedder, tokens, cost, failed };
        match embed(self.embedder, texts, purpose).await {
            Ok((vectors, used)) => {
                self.meter.record(call(used.tokens, used.cost, None));
                Ok((vectors, used))
            }
            Err(error) => {
                self.meter.record(call(0, None, Some(error.code)));
                Err(error)
            }
        }
    }
}

/// Leaves out vectors of another length.
fn keep_length(vectors: &mut [Option<Vec<f32>>], length: usize) {
    for vector in vectors {
        vector.take_if(|vector| vector.len() != length);
    }
}

fn not_whole(embedder: &dyn Embedder) -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::EmbeddingsFailed,
        format!("{} did not make a vector of every text: check the model.", embedder.info().id),
    )
}

/// How many of the texts have no cached vector.
pub(crate) async fn missing(
    archive: &dyn Archive,
    embedder: &dyn Embedder,
    texts: &[String],
) -> Result<Vec<bool>, ArchiveError> {
    let info = embedder.info();
    let digests = digests(texts, EmbedPurpose::Document);
    let cached = archive.cached_vectors(&info.id, digests).await?;
    Ok(cached.iter().map(|vector| vector.is_none() || !info.is_cached).collect())
}

/// The names of texts in the cache.
pub(crate) fn digests(texts: &[String], purpose: EmbedPurpose) -> Vec<Digest> {
    texts.iter().map(|text| purpose.cached_name(text)).collect()
}

async fn embed(
    embedder: &dyn Embedder,
    texts: &[String],
    purpose: EmbedPurpose,
) -> Result<(Vec<Vec<f32>>, EmbeddingUse), ArchiveError> {
    let embedded = embedder.embed(texts, purpose).await?;
    let length = embedded.vectors.first().map_or(0, Vec::len);
    let is_whole = embedded.vectors.len() == texts.len()
        && length > 0
        && embedded.vectors.iter().all(|vector| vector.len() == length);
    if !is_whole {
        return Err(not_whole(embedder));
    }
    let used = EmbeddingUse { texts: texts.len() as u64, tokens: embedded.tokens, cost: embedded.cost };
    Ok((embedded.vectors, used))
}
