//! Texts become vectors. Vectors that cost something are cached, so that no text is paid for twice.

use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_ports::{Archive, ArchiveError, EmbedPurpose, Embedder};

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
    text.len().div_ceil(3) as u64
}

/// The vectors of texts, in the order of the texts.
pub(crate) async fn vectors_of(
    archive: &dyn Archive,
    embedder: &dyn Embedder,
    texts: &[String],
    purpose: EmbedPurpose,
    on_progress: &mut (dyn FnMut(usize) + Send),
) -> Result<(Vec<Vec<f32>>, EmbeddingUse), ArchiveError> {
    let mut all = Vec::with_capacity(texts.len());
    let mut used = EmbeddingUse::default();
    for batch in texts.chunks(BATCH) {
        let (vectors, batch_use) = batch_vectors(archive, embedder, batch, purpose).await?;
        all.extend(vectors);
        used.add(batch_use);
        on_progress(all.len());
    }
    Ok((all, used))
}

async fn batch_vectors(
    archive: &dyn Archive,
    embedder: &dyn Embedder,
    texts: &[String],
    purpose: EmbedPurpose,
) -> Result<(Vec<Vec<f32>>, EmbeddingUse), ArchiveError> {
    let info = embedder.info();
    if !info.is_cached {
        return embed(embedder, texts, purpose).await;
    }
    let digests = digests(texts, purpose);
    let mut vectors = archive.cached_vectors(&info.id, digests.clone()).await?;
    let missing: Vec<usize> = (0..texts.len()).filter(|&at| vectors[at].is_none()).collect();
    let mut used = EmbeddingUse::default();
    if !missing.is_empty() {
        let wanted: Vec<String> = missing.iter().map(|&at| texts[at].clone()).collect();
        let (made, made_use) = embed(embedder, &wanted, purpose).await?;
        used = made_use;
        let cached = missing.iter().zip(&made).map(|(&at, vector)| (digests[at], vector.clone())).collect();
        archive.cache_vectors(&info.id, cached).await?;
        for (at, vector) in missing.into_iter().zip(made) {
            vectors[at] = Some(vector);
        }
    }
    Ok((vectors.into_iter().flatten().collect(), used))
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

fn digests(texts: &[String], purpose: EmbedPurpose) -> Vec<Digest> {
    let tag = match purpose {
        EmbedPurpose::Query => b'q',
        EmbedPurpose::Document => b'd',
    };
    texts.iter().map(|text| Digest::ZERO.chain(tag, text.as_bytes())).collect()
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
        return Err(ArchiveError::new(
            ArchiveCode::EmbeddingsFailed,
            format!("{} did not make a vector of every text: check the model.", embedder.info().id),
        ));
    }
    let used = EmbeddingUse { texts: texts.len() as u64, tokens: embedded.tokens, cost: embedded.cost };
    Ok((embedded.vectors, used))
}
