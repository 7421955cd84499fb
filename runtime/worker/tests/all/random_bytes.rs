//! Random bytes never hang a call and never break the caller.

use crate::kit::{read_html, read_pdf};
use crate::pdf_file::PdfFile;
use proptest::prelude::*;
use redflow_worker::WorkerError;

fn is_usual<T>(result: &Result<T, WorkerError>) -> bool {
    matches!(result, Ok(_) | Err(WorkerError::Unreadable(_) | WorkerError::Ended | WorkerError::TimedOut))
}

proptest! {
    // A process for each case is slow.
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_as_html(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        // The parser of HTML reads everything.
        prop_assert!(read_html(bytes).is_ok());
    }

    #[test]
    fn any_tags_as_html(page in "(<[/!]?[a-z]{1,8}( [a-z]+=.{0,4})?>|&[a-z#]{0,5};?|.){0,200}") {
        prop_assert!(read_html(page).is_ok());
    }

    #[test]
    fn any_bytes_as_pdf(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(is_usual(&read_pdf([b"%PDF-1.4\n".to_vec(), bytes].concat())));
    }

    #[test]
    fn a_pdf_with_changed_bytes(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..20)) {
        let mut file = PdfFile::with_pages(&["one", "two"]).bytes();
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        prop_assert!(is_usual(&read_pdf(file)));
    }
}
