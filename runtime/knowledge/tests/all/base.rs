use crate::kit::{Place, Words, document};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::archive::{EntryKind, SearchMode, Trust};
use redflow_contract::code::ArchiveCode;
use redflow_contract::knowledge_api::KnowledgeDocumentList;
use redflow_knowledge::{DocumentToAdd, KnowledgeQuery};
use redflow_ports::{
    Archive, ArchiveError, BoxFuture, EmbedPurpose, Embedded, Embedder, EmbedderInfo, Measurement, Meter,
    NewCollection, NewEntry, SearchFilter,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const SHOP: &str = "# Shop\n\n## Money\n\nA refund takes five days.\n\n## Colors\n\nEvery color is there.\n";

fn query(text: &str) -> KnowledgeQuery {
    KnowledgeQuery { text: text.to_owned(), ..KnowledgeQuery::default() }
}

async fn add(place: &Place, words: &Words, document: DocumentToAdd) {
    place.base.add("shop", words, &Message::new(), document, &mut |_| ()).await.unwrap();
}

#[tokio::test]
async fn the_right_passage_is_found() {
    let (place, words) = (Place::new(), Words::new("words"));
    add(&place, &words, document("shop.md", SHOP)).await;
    let found = place.base.search("shop", Some(&words), &query("refund?")).await.unwrap();
    assert_eq!(found.len(), 1, "the passage about colors is below 0.7");
    let first = &found[0];
    assert!(first.content.contains("five days") && first.score > 0.9, "{first:?}");
    let metadata = &first.metadata;
    assert_eq!((metadata.document.as_str(), metadata.title.as_str()), ("shop.md", "Shop"));
    assert_eq!(metadata.headings, ["Shop", "Money"]);
    assert_eq!((metadata.added_at, metadata.page, metadata.row), (Some(1_000_000), None, None));
    assert_eq!(first.reason.vector_rank, Some(1));
    let by_words = KnowledgeQuery { mode: Some(SearchMode::Lexical), ..query("days") };
    let found = place.base.search("shop", Some(&words), &by_words).await.unwrap();
    assert_eq!((found.len(), found[0].reason.text_rank), (1, Some(1)));
    let low = KnowledgeQuery { min_score: Some(0.0), limit: Some(1), ..query("refund") };
    assert_eq!(place.base.search("shop", Some(&words), &low).await.unwrap().len(), 1);
    let passages = place.archive.passages("kb/shop", "shop.md").await.unwrap();
    assert!(passages.iter().all(|entry| entry.trust == Trust::External));
    let source = passages[0].source.as_ref().unwrap();
    assert_eq!((source.reference.as_str(), source.digest.is_some()), ("shop.md", true));
}

#[tokio::test]
async fn only_what_changed_is_embedded_again() {
    let (place, words) = (Place::new(), Words::new("words"));
    let mut progress = Vec::new();
    let first = document("shop.md", SHOP);
    let passages = first.content.passages.len();
    let added = place
        .base
        .add("shop", &words, &Message::new(), first, &mut |at| progress.push((at.done, at.all)))
        .await
        .unwrap();
    assert_eq!((added.passages as usize, added.used.texts as usize), (passages, passages));
    assert_eq!((added.used.tokens, added.used.cost), (10, Some(0.5)));
    assert_eq!(progress, [(passages, passages)]);
    let changed = document("shop.md", &SHOP.replace("five", "six"));
    assert_eq!(place.base.estimate(&words, &changed.content).await.unwrap().0, 1);
    let again = place.base.add("shop", &words, &Message::new(), changed, &mut |_| ()).await.unwrap();
    assert_eq!(again.used.texts, 1);
    let found = place.base.search("shop", Some(&words), &query("refund")).await.unwrap();
    assert!(found[0].content.contains("six days"));
    let before = words.count();
    place.base.search("shop", Some(&words), &query("refund")).await.unwrap();
    assert_eq!(words.count(), before, "the same question is embedded once");
}

#[tokio::test]
async fn what_was_paid_for_stays_after_a_failure() {
    let (place, words) = (Place::new(), Words::new("words"));
    let long: String =
        (0..150).map(|n| format!("## Part {n}\n\nThe pump has part {n}. {}\n\n", "x ".repeat(400))).collect();
    let all = document("pump.md", &long).content.passages.len();
    assert!(all > 96, "more than one request");
    words.fails_after.store(96, Ordering::SeqCst);
    let failed =
        place.base.add("shop", &words, &Message::new(), document("pump.md", &long), &mut |_| ()).await;
    assert_eq!(failed.unwrap_err().code, ArchiveCode::EmbeddingsFailed);
    assert_eq!(place.base.list().await.unwrap(), [], "nothing is half there");
    words.fails_after.store(usize::MAX, Ordering::SeqCst);
    let added = place
        .base
        .add("shop", &words, &Message::new(), document("pump.md", &long), &mut |_| ())
        .await
        .unwrap();
    assert_eq!(
        (added.passages as usize, added.used.texts as usize),
        (all, all - 96),
        "it goes on where it was"
    );
}

#[tokio::test]
async fn another_embedder_is_refused_until_all_vectors_are_made_again() {
    let (place, words, other) = (Place::new(), Words::new("words"), Words::new("other"));
    add(&place, &words, document("shop.md", SHOP)).await;
    add(&place, &words, document("pump.md", "# Pump\n\nThe pump.\n")).await;
    let refused = place
        .base
        .add("shop", &other, &Message::new(), document("b.md", "b"), &mut |_| ())
        .await
        .unwrap_err();
    assert_eq!((refused.code, other.count()), (ArchiveCode::EmbedderMismatch, 0), "nothing was paid for");
    assert!(refused.message.contains("come from words, not from other"), "{refused}");
    let refused = place.base.search("shop", Some(&other), &query("x")).await.unwrap_err();
    assert_eq!(refused.code, ArchiveCode::EmbedderMismatch);
    other.fails_after.store(other.count() + 1, Ordering::SeqCst);
    let failed = place.base.reindex("shop", &other, &Message::new(), &mut |_| ()).await.unwrap_err();
    assert_eq!(failed.code, ArchiveCode::EmbeddingsFailed);
    assert_eq!(
        place.base.search("shop", Some(&words), &query("refund")).await.unwrap().len(),
        1,
        "still the earlier vectors"
    );
    assert_eq!(place.base.list().await.unwrap().len(), 1, "the unfinished one is not shown");
    other.fails_after.store(usize::MAX, Ordering::SeqCst);
    let mut progress = Vec::new();
    place.base.reindex("shop", &other, &Message::new(), &mut |at| progress.push(at.done)).await.unwrap();
    let known = place.base.get("shop").await.unwrap();
    assert_eq!(
        (known.embedder.as_str(), known.documents, progress.last()),
        ("other", 2, Some(&(known.entries as usize)))
    );
    let found = place.base.search("shop", Some(&other), &query("refund")).await.unwrap();
    assert_eq!(
        (found.len(), found[0].metadata.headings.as_slice()),
        (1, &["Shop".to_owned(), "Money".to_owned()][..])
    );
    assert_eq!(place.archive.collections().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_not_there_has_a_code() {
    let (place, words) = (Place::new(), Words::new("words"));
    let base = &place.base;
    let unknown = ArchiveCode::CollectionUnknown;
    assert_eq!(base.get("no").await.unwrap_err().code, unknown);
    assert_eq!(base.documents("no", None, 9).await.unwrap_err().code, unknown);
    assert_eq!(base.search("no", Some(&words), &query("x")).await.unwrap_err().code, unknown);
    assert_eq!(base.remove("no").await.unwrap_err().code, unknown);
    assert_eq!(base.remove_document("no", "d").await.unwrap_err().code, unknown);
    assert_eq!(base.reindex("no", &words, &Message::new(), &mut |_| ()).await.unwrap_err().code, unknown);
    add(&place, &words, document("shop.md", SHOP)).await;
    assert_eq!(base.passages("shop", "no", 0, 9).await.unwrap_err().code, ArchiveCode::DocumentUnknown);
    assert_eq!(base.remove_document("shop", "no").await.unwrap_err().code, ArchiveCode::DocumentUnknown);
    base.remove_document("shop", "shop.md").await.unwrap();
    assert_eq!(base.search("shop", Some(&words), &query("refund")).await.unwrap(), []);
    base.remove("shop").await.unwrap();
    assert_eq!(base.list().await.unwrap(), []);
}

#[tokio::test]
async fn documents_and_passages_have_pages() {
    let (place, words) = (Place::new(), Words::new("words"));
    let base = &place.base;
    for name in ["a.md", "b.md", "c.md"] {
        add(&place, &words, document(name, SHOP)).await;
    }
    let names = |page: &KnowledgeDocumentList| -> Vec<String> {
        page.documents.iter().map(|one| one.name.clone()).collect()
    };
    let first = base.documents("shop", None, 2).await.unwrap();
    assert_eq!(
        (names(&first), first.next.as_deref()),
        (vec!["a.md".to_owned(), "b.md".to_owned()], Some("b.md"))
    );
    let last = base.documents("shop", Some("b.md"), 2).await.unwrap();
    assert_eq!((names(&last), last.next), (vec!["c.md".to_owned()], None));
    let exact = base.documents("shop", None, 3).await.unwrap();
    assert_eq!((exact.documents.len(), exact.next), (3, None));
    let after = base.documents("shop", Some("z"), 3).await.unwrap();
    assert_eq!((after.documents.len(), after.next), (0, None));

    let all = base.passages("shop", "b.md", 0, 9).await.unwrap();
    let chunks: Vec<u32> = all.passages.iter().map(|passage| passage.metadata.chunk).collect();
    let count = u32::try_from(chunks.len()).unwrap();
    assert!(count > 1 && all.next.is_none() && chunks == (1..=count).collect::<Vec<_>>(), "{all:?}");
    assert_eq!(all.passages[0].metadata.added_at, Some(1_000_000));
    let first = base.passages("shop", "b.md", 0, 1).await.unwrap();
    assert_eq!((first.passages.as_slice(), first.next), (&all.passages[..1], Some(1)));
    let rest = base.passages("shop", "b.md", 1, 9).await.unwrap();
    assert_eq!((rest.passages.as_slice(), rest.next), (&all.passages[1..], None));
    let after = base.passages("shop", "b.md", 99, 9).await.unwrap();
    assert_eq!((after.passages.len(), after.next), (0, None));

    assert_eq!(base.document("shop", "b.md").await.unwrap().unwrap().chunks, count);
    assert_eq!(base.document("shop", "no").await.unwrap(), None);
    assert_eq!(base.document("no", "b.md").await.unwrap(), None);
}

/// A document without a name could not be listed.
#[tokio::test]
async fn the_name_of_a_document_has_bounds() {
    let (place, words) = (Place::new(), Words::new("words"));
    for name in [String::new(), "n".repeat(1_001)] {
        let document = DocumentToAdd { name, ..document("shop.md", SHOP) };
        let refused = place.base.add("shop", &words, &Message::new(), document, &mut |_| ()).await;
        assert_eq!(refused.unwrap_err().code, ArchiveCode::EntryInvalid);
    }
    assert_eq!(place.base.list().await.unwrap(), [], "nothing is half stored");
}

#[tokio::test]
async fn tags_narrow_a_search() {
    let (place, words) = (Place::new(), Words::new("words"));
    let tagged = DocumentToAdd { tags: vec!["old".to_owned()], ..document("old.md", "A refund, long ago.") };
    add(&place, &words, tagged).await;
    add(&place, &words, document("new.md", "A refund today.")).await;
    let filter = SearchFilter { tags: vec!["old".to_owned()], ..SearchFilter::default() };
    let found =
        place.base.search("shop", Some(&words), &KnowledgeQuery { filter, ..query("refund") }).await.unwrap();
    assert_eq!(found.iter().map(|one| one.metadata.document.as_str()).collect::<Vec<_>>(), ["old.md"]);
    let known = &place.base.documents("shop", None, 9).await.unwrap().documents[1];
    assert!(DocumentToAdd::is_stored(known, &known.digest, &["old".to_owned()], false));
    assert!(!DocumentToAdd::is_stored(known, &known.digest, &[], false));
    assert_eq!(words.info().dimensions, 0, "known after the first call");
}

#[tokio::test]
async fn what_changes_while_vectors_are_made_again_is_not_lost() {
    let (place, words, other) = (Place::new(), Words::new("words"), Words::new("other"));
    let base = &place.base;
    for name in ["a.md", "b.md", "c.md", "d.md"] {
        add(&place, &words, document(name, &format!("A refund of {name}."))).await;
    }
    // It is cut off after some documents.
    other.fails_after.store(2, Ordering::SeqCst);
    base.reindex("shop", &other, &Message::new(), &mut |_| ()).await.unwrap_err();
    base.remove_document("shop", "a.md").await.unwrap();
    let copies = place.archive.documents("kb-new/shop").await.unwrap();
    assert_eq!(
        copies.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
        ["b.md"],
        "removed there, too"
    );
    let tagged = DocumentToAdd { tags: vec!["new".to_owned()], ..document("b.md", "A refund of b.md.") };
    add(&place, &words, tagged).await;
    add(&place, &words, document("e.md", "A refund of e.md.")).await;
    other.fails_after.store(usize::MAX, Ordering::SeqCst);
    base.reindex("shop", &other, &Message::new(), &mut |_| ()).await.unwrap();
    let documents = base.documents("shop", None, 9).await.unwrap().documents;
    let names: Vec<&str> = documents.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        (names.as_slice(), documents[0].tags.as_slice()),
        (&["b.md", "c.md", "d.md", "e.md"][..], &["new".to_owned()][..])
    );
    assert_eq!(documents[1].added_at, 1_000_000);
    assert_eq!(base.search("shop", Some(&other), &query("refund")).await.unwrap().len(), 4);
}

#[tokio::test]
async fn an_empty_knowledge_base_can_change_its_embedder() {
    let (place, words, other) = (Place::new(), Words::new("words"), Words::new("other"));
    add(&place, &words, document("a.md", "A refund.")).await;
    place.base.remove_document("shop", "a.md").await.unwrap();
    place.base.reindex("shop", &other, &Message::new(), &mut |_| ()).await.unwrap();
    assert_eq!(place.base.get("shop").await.unwrap().embedder, "other");
}

#[tokio::test]
async fn names_and_tags_are_checked_before_anything_is_paid_for() {
    let (place, words) = (Place::new(), Words::new("words"));
    for name in ["", "a/b", "a b", "..", "-", "x/../y", &"n".repeat(65), "a\u{0}"] {
        let refused = place.base.add(name, &words, &Message::new(), document("a.md", "a"), &mut |_| ()).await;
        assert_eq!(refused.unwrap_err().code, ArchiveCode::EntryInvalid, "{name}");
        assert_eq!(place.base.remove(name).await.unwrap_err().code, ArchiveCode::EntryInvalid, "{name}");
    }
    for tags in [vec![String::new()], vec!["t".repeat(65)], vec!["t".to_owned(); 17]] {
        let tagged = DocumentToAdd { tags, ..document("a.md", "a") };
        let refused = place.base.add("shop", &words, &Message::new(), tagged, &mut |_| ()).await;
        assert_eq!(refused.unwrap_err().code, ArchiveCode::EntryInvalid);
    }
    assert_eq!(words.count(), 0);
    assert!(
        place
            .base
            .add("Käse-1.2_x", &words, &Message::new(), document("a.md", "a"), &mut |_| ())
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_search_by_words_needs_no_embedder() {
    let (place, words) = (Place::new(), Words::new("words"));
    add(&place, &words, document("shop.md", SHOP)).await;
    let found = place.base.search("shop", None, &query("days")).await.unwrap();
    assert_eq!((found.len(), found[0].reason.cosine), (1, None));
}

#[tokio::test]
async fn a_document_that_cannot_be_stored_leaves_no_empty_knowledge_base() {
    let (place, words) = (Place::new(), Words::new("words"));
    let mut large = document("a.md", "A refund.");
    large.content.passages[0].text = "x".repeat(70_000);
    let refused = place.base.add("shop", &words, &Message::new(), large.clone(), &mut |_| ()).await;
    assert_eq!(refused.unwrap_err().code, ArchiveCode::EntryInvalid);
    assert_eq!(place.base.list().await.unwrap(), []);
    // One that was there stays, also without documents.
    add(&place, &words, document("a.md", "A refund.")).await;
    place.base.remove_document("shop", "a.md").await.unwrap();
    place.base.add("shop", &words, &Message::new(), large, &mut |_| ()).await.unwrap_err();
    assert_eq!(place.base.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn names_and_titles_hide_nothing() {
    let (place, words) = (Place::new(), Words::new("words"));
    let mut odd = document("a\u{202e}b\u{200b}\n.md", "A refund.");
    odd.content.title = " The\u{2066}\u{200b} shop\u{7}\n".to_owned();
    add(&place, &words, odd).await;
    let documents = place.base.documents("shop", None, 10).await.unwrap().documents;
    assert_eq!((documents[0].name.as_str(), documents[0].title.as_str()), ("ab.md", "The shop"));
    let found = place.base.search("shop", Some(&words), &query("refund")).await.unwrap();
    assert_eq!(found[0].metadata.title, "The shop");
    // A blank title is that of the name.
    let mut blank = document("pump.md", "A pump.");
    blank.content.title = "\u{200b}".to_owned();
    add(&place, &words, blank).await;
    assert_eq!(place.base.documents("shop", None, 10).await.unwrap().documents[1].title, "pump");
    for name in ["", " ", "\u{202e}\u{200b}"] {
        let refused = place.base.add("shop", &words, &Message::new(), document(name, "x"), &mut |_| ()).await;
        assert_eq!(refused.unwrap_err().code, ArchiveCode::EntryInvalid, "{name:?}");
    }
}

#[tokio::test]
async fn secrets_are_neither_stored_nor_embedded() {
    let (place, words) = (Place::new(), Words::new("words"));
    let key = "sk-ant-api03-AbC_dEf-0123456789";
    let mut secret = document("a.md", &format!("# The key {key}\n\nA refund with {key}.\n"));
    secret.content.title = format!("Title {key}");
    let added = place.base.add("shop", &words, &Message::new(), secret, &mut |_| ()).await.unwrap();
    assert_eq!(added.masked, 3);
    let found = place.base.search("shop", Some(&words), &query("refund")).await.unwrap();
    assert_eq!(found[0].metadata.title, "Title [redacted]");
    assert_eq!(found[0].metadata.headings, ["The key [redacted]"]);
    assert!(found[0].content.ends_with("A refund with [redacted]."), "{found:?}");
    assert!(!words.texts().concat().contains("sk-ant"), "sent to the embedder");
}

#[tokio::test]
async fn what_is_removed_leaves_the_cache() {
    let (place, words) = (Place::new(), Words::new("words"));
    for name in ["a.md", "b.md", "c.md"] {
        add(&place, &words, document(name, &format!("A refund of {name}."))).await;
    }
    assert_eq!(words.count(), 3);
    place.base.remove_document("shop", "a.md").await.unwrap();
    for name in ["a.md", "b.md"] {
        add(&place, &words, document(name, &format!("A refund of {name}."))).await;
    }
    assert_eq!(words.count(), 4, "only the vector of the removed document was made again");
    place.base.remove("shop").await.unwrap();
    add(&place, &words, document("c.md", "A refund of c.md.")).await;
    assert_eq!(words.count(), 5);
    // What a document no longer says.
    add(&place, &words, document("c.md", "A pump.")).await;
    add(&place, &words, document("c.md", "A refund of c.md.")).await;
    assert_eq!(words.count(), 7);
    // What another embedder made.
    let other = Words::new("other");
    place.base.reindex("shop", &other, &Message::new(), &mut |_| ()).await.unwrap();
    place.base.reindex("shop", &words, &Message::new(), &mut |_| ()).await.unwrap();
    assert_eq!((other.count(), words.count()), (1, 8));
}

#[tokio::test]
async fn a_copy_with_another_end_is_made_again() {
    let (place, words) = (Place::new(), Words::new("words"));
    let ends = |expires_at| DocumentToAdd { expires_at, ..document("a.md", "A refund.") };
    for (first, second) in [(Some(2_000_000), None), (None, Some(2_000_000))] {
        add(&place, &words, ends(first)).await;
        // A reindex that was cut off has copied the document.
        let stored = place.archive.documents("kb/shop").await.unwrap().remove(0);
        let (embedder, settings) = ("other".to_owned(), Message::new());
        let new = NewCollection { name: "kb-new/shop".to_owned(), embedder, dimensions: 3, settings };
        let passage = NewEntry {
            vector: Some(vec![1.0, 0.0, 0.0]),
            expires_at: first,
            ..NewEntry::new("a.md#1", EntryKind::Chunk, "A refund.")
        };
        place.archive.add_document(new, stored, vec![passage]).await.unwrap();
        add(&place, &words, ends(second)).await;
        place.base.reindex("shop", &Words::new("other"), &Message::new(), &mut |_| ()).await.unwrap();
        let kept = place.base.documents("shop", None, 9).await.unwrap().documents;
        assert_eq!(kept.iter().map(|document| document.expires_at).collect::<Vec<_>>(), [second]);
        place.base.remove("shop").await.unwrap();
    }
}

#[tokio::test]
async fn two_commands_never_mix_the_vectors_of_two_embedders() {
    let (place, words) = (Place::new(), Words::new("words"));
    for name in ["a.md", "b.md"] {
        add(&place, &words, document(name, "A refund.")).await;
    }
    // Another command takes the place while the vectors are made.
    let archive = Arc::clone(&place.archive);
    let other = NewCollection {
        name: "kb-new/shop".to_owned(),
        embedder: "third".to_owned(),
        dimensions: 3,
        settings: Message::new(),
    };
    let takes = Taking { words: Words::new("other"), archive, other };
    let error = place.base.reindex("shop", &takes, &Message::new(), &mut |_| ()).await.unwrap_err();
    assert_eq!(error.code, ArchiveCode::MemoryConflict);
    assert_eq!(place.archive.documents("kb-new/shop").await.unwrap(), []);
    assert_eq!(place.base.get("shop").await.unwrap().embedder, "words");
}

/// An embedder during whose work another command makes a collection.
struct Taking {
    words: Words,
    archive: Arc<dyn Archive>,
    other: NewCollection,
}

impl Embedder for Taking {
    fn info(&self) -> &EmbedderInfo {
        self.words.info()
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        purpose: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
        Box::pin(async move {
            self.archive.remove_collection("kb-new/shop").await?;
            self.archive.create_collection(self.other.clone()).await?;
            self.words.embed(texts, purpose).await
        })
    }
}

#[derive(Default)]
struct Records(Mutex<Vec<String>>);

impl Meter for Records {
    fn record(&self, measurement: Measurement<'_>) {
        let text = match measurement {
            Measurement::KnowledgeSearch { mode, found, .. } => format!("search {} {found}", mode.as_str()),
            Measurement::CachedVectors { hits, misses } => format!("cache {hits} {misses}"),
            Measurement::EmbeddingCall { embedder, tokens, cost, failed } => {
                format!("call {embedder} {tokens} {cost:?} {}", failed.map_or("", ArchiveCode::as_str))
            }
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test]
async fn searches_and_vectors_are_measured() {
    let (mut place, words, records) = (Place::new(), Words::new("words"), Arc::new(Records::default()));
    place.base = place.base.with_meter(records.clone());
    add(&place, &words, document("a.md", "A refund.")).await;
    place.base.search("shop", Some(&words), &query("refund")).await.unwrap();
    place.base.search("shop", None, &query("nothing")).await.unwrap();
    words.fails_after.store(0, Ordering::SeqCst);
    place.base.search("shop", Some(&words), &query("pump")).await.unwrap_err();
    let expected = [
        "cache 0 1",
        "call words 10 Some(0.5) ",
        "cache 0 1",
        "call words 10 Some(0.5) ",
        "search semantic true",
        "search lexical false",
        "cache 0 1",
        "call words 0 None EMBEDDINGS_FAILED",
    ];
    assert_eq!(*records.0.lock().unwrap(), expected);
}
