//! A model that changes under its name: cached vectors of the earlier one are not used for ever.

use crate::kit::{Place, Words, document};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::code::ArchiveCode;
use redflow_knowledge::{AddResult, DocumentToAdd, KnowledgeQuery};
use redflow_ports::ArchiveError;
use std::sync::atomic::Ordering;

fn query(text: &str) -> KnowledgeQuery {
    KnowledgeQuery { text: text.to_owned(), ..KnowledgeQuery::default() }
}

async fn add(place: &Place, words: &Words, document: DocumentToAdd) -> Result<AddResult, ArchiveError> {
    place.base.add("shop", words, &Message::new(), document, &mut |_| ()).await
}

async fn reindex(place: &Place, words: &Words) -> Result<AddResult, ArchiveError> {
    place.base.reindex("shop", words, &Message::new(), &mut |_| ()).await
}

/// A document of so many passages.
fn long(name: &str, passages: usize) -> DocumentToAdd {
    let text: String = (0..passages)
        .map(|n| format!("## {name} {n}\n\nA refund of {n}. {}\n\n", "x ".repeat(400)))
        .collect();
    let document = document(name, &text);
    assert_eq!(document.content.passages.len(), passages);
    document
}

#[tokio::test]
async fn a_reindex_with_the_same_embedder_makes_new_vectors() {
    let (place, words) = (Place::new(), Words::new("words"));
    add(&place, &words, document("a.md", "A refund.")).await.unwrap();
    add(&place, &words, document("b.md", "A pump.")).await.unwrap();
    place.base.search("shop", Some(&words), &query("refund")).await.unwrap();
    // The model has changed: nothing fits any more, not even a question that was asked before.
    words.length.store(5, Ordering::SeqCst);
    let refused = add(&place, &words, document("c.md", "A color.")).await.unwrap_err();
    assert_eq!(refused.code, ArchiveCode::EmbedderMismatch);
    let refused = place.base.search("shop", Some(&words), &query("pump")).await.unwrap_err();
    assert_eq!(refused.code, ArchiveCode::EmbedderMismatch);
    let before = words.count();
    let done = reindex(&place, &words).await.unwrap();
    assert_eq!((done.passages, done.used.texts, words.count() - before), (2, 2, 2));
    assert_eq!(place.base.get("shop").await.unwrap().dimensions, 5);
    assert_eq!(place.base.search("shop", Some(&words), &query("refund")).await.unwrap().len(), 1);
    add(&place, &words, document("c.md", "A color.")).await.unwrap();
    // The same length does not mean the same model.
    let before = words.count();
    reindex(&place, &words).await.unwrap();
    assert_eq!(words.count() - before, 3);
}

#[tokio::test]
async fn a_reindex_that_was_cut_off_does_not_pay_twice() {
    let (place, words) = (Place::new(), Words::new("words"));
    add(&place, &words, long("a.md", 100)).await.unwrap();
    add(&place, &words, document("b.md", "A pump.")).await.unwrap();
    words.length.store(5, Ordering::SeqCst);
    // It fails in the second request of the first document.
    let before = words.count();
    words.fails_after.store(before + 96, Ordering::SeqCst);
    assert_eq!(reindex(&place, &words).await.unwrap_err().code, ArchiveCode::EmbeddingsFailed);
    words.fails_after.store(usize::MAX, Ordering::SeqCst);
    let done = reindex(&place, &words).await.unwrap();
    assert_eq!((done.passages, done.used.texts), (101, 5), "96 are in the cache");
    // Not if the model changes once more: then all are made again.
    words.fails_after.store(words.count() + 100, Ordering::SeqCst);
    assert_eq!(reindex(&place, &words).await.unwrap_err().code, ArchiveCode::EmbeddingsFailed);
    words.fails_after.store(usize::MAX, Ordering::SeqCst);
    words.length.store(7, Ordering::SeqCst);
    let done = reindex(&place, &words).await.unwrap();
    assert_eq!((done.passages, place.base.get("shop").await.unwrap().dimensions), (101, 7));
    assert_eq!(place.base.documents("shop", None, 10).await.unwrap().documents.len(), 2);
    assert_eq!(place.archive.collections().await.unwrap().len(), 1);
}

#[tokio::test]
async fn cached_vectors_of_another_length_count_as_missing() {
    let (place, words) = (Place::new(), Words::new("words"));
    add(&place, &words, document("a.md", "# A\n\nA refund.\n\n# B\n\nA pump.\n")).await.unwrap();
    // Without the knowledge base, which would drop its cached vectors.
    place.archive.remove_collection("kb/shop").await.unwrap();
    words.length.store(5, Ordering::SeqCst);
    let more = document("a.md", "# A\n\nA refund.\n\n# B\n\nA pump.\n\n# C\n\nA color.\n");
    let added = add(&place, &words, more).await.unwrap();
    assert_eq!((added.passages, added.used.texts), (3, 3));
    assert_eq!(place.base.get("shop").await.unwrap().dimensions, 5);
    place.archive.remove_collection("kb/shop").await.unwrap();
    let again = document("a.md", "# A\n\nA refund.\n\n# B\n\nA pump.\n\n# C\n\nA color.\n");
    assert_eq!(add(&place, &words, again).await.unwrap().used.texts, 0, "the new ones are cached");
}
