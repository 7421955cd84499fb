//! An archive in a folder of its own, and an embedder that knows three words.

use redflow_archive::SqliteArchive;
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;
use redflow_knowledge::{DocumentKind, DocumentToAdd, KnowledgeBase, read_text};
use redflow_ports::{
    Archive, ArchiveError, BoxFuture, Clock, EmbedPurpose, Embedded, Embedder, EmbedderInfo,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct TestClock;

impl Clock for TestClock {
    fn now(&self) -> u64 {
        1_000_000
    }
    fn run_id(&self) -> RunId {
        "run".into()
    }
    fn message_id(&self) -> String {
        String::new()
    }
}

/// Counts three words, and may fail after some texts. Its model can change: then the vectors have another length.
pub(crate) struct Words {
    info: EmbedderInfo,
    pub(crate) embedded: AtomicUsize,
    pub(crate) fails_after: AtomicUsize,
    pub(crate) length: AtomicUsize,
    texts: Mutex<Vec<String>>,
}

impl Words {
    pub(crate) fn new(id: &str) -> Self {
        let info = EmbedderInfo {
            id: id.to_owned(),
            dimensions: 0,
            max_bytes: 10_000,
            finds_meaning: true,
            is_cached: true,
        };
        Self {
            info,
            embedded: AtomicUsize::new(0),
            fails_after: AtomicUsize::new(usize::MAX),
            length: AtomicUsize::new(3),
            texts: Mutex::default(),
        }
    }

    /// The texts that it got.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.embedded.load(Ordering::SeqCst)
    }
}

impl Embedder for Words {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        _: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
        let vector = |text: &String| {
            let text = text.to_lowercase();
            let mut vector =
                ["refund", "pump", "color"].map(|word| text.matches(word).count() as f32 + 0.01).to_vec();
            vector.resize(self.length.load(Ordering::SeqCst), 0.01);
            vector
        };
        self.texts.lock().unwrap().extend_from_slice(texts);
        let before = self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        let fails = before + texts.len() > self.fails_after.load(Ordering::SeqCst);
        let vectors = texts.iter().map(vector).collect();
        Box::pin(async move {
            if fails {
                return Err(ArchiveError::new(ArchiveCode::EmbeddingsFailed, "no more"));
            }
            Ok(Embedded { vectors, tokens: 10, cost: Some(0.5) })
        })
    }
}

pub(crate) struct Place {
    pub(crate) base: KnowledgeBase,
    pub(crate) archive: Arc<dyn Archive>,
    _data: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let archive: Arc<dyn Archive> = Arc::new(SqliteArchive::new(data.path(), Arc::new(TestClock)));
        Self { base: KnowledgeBase::new(archive.clone()), archive, _data: data }
    }
}

pub(crate) fn document(name: &str, text: &str) -> DocumentToAdd {
    DocumentToAdd {
        name: name.to_owned(),
        origin: format!("/docs/{name}"),
        digest: Digest::of(text.as_bytes()),
        bytes: text.len() as u64,
        tags: Vec::new(),
        expires_at: None,
        content: read_text(DocumentKind::Markdown, name, text.as_bytes()).unwrap(),
    }
}
