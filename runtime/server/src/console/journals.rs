//! `/api/runs/{id}/journal`: the journal of a run, as a file or page by page.

use crate::app::App;
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, raw};
use crate::runs::{find_run, parse_limit, store_problem};
use axum::extract::{Extension, RawQuery, State};
use redflow_access::Caller;
use redflow_contract::console::{JOURNAL_PAGE_BYTES, JOURNAL_PAGE_LINES, JournalPage};
use redflow_contract::id::RunId;
use redflow_ports::RunRecord;
use std::sync::Arc;

pub(crate) async fn journal(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let page = parse_page(query.as_deref())?;
    let run = RunId::from(run);
    let Some(page) = page else {
        let RunRecord { journal, problem, .. } = find_run(&app, &run).await?;
        return match problem {
            // A client could not tell half a journal from a whole one.
            Some(problem) => Err(problem.into()),
            None => Ok(raw(200, "application/jsonl", journal)),
        };
    };
    let slot = app.work_slots.computation(&caller.name).await?;
    let RunRecord { journal, problem, .. } = find_run(&app, &run).await?;
    let read = move || {
        let found = read_page(&journal, page);
        json(200, &JournalPage { problem: problem.map(store_problem), ..found })
    };
    Ok(slot.run_blocking(read).await?.0)
}

/// Which lines of a journal to read.
#[derive(Debug, Clone, Copy)]
struct PageRequest {
    /// The number of the first line, from 1.
    from: u32,
    lines: usize,
}

/// The page that a query asks for; none if it asks for the whole journal.
fn parse_page(query: Option<&str>) -> Result<Option<PageRequest>, Problem> {
    let mut page = None;
    for (name, value) in query_pairs(query) {
        let page = page.get_or_insert(PageRequest { from: 1, lines: JOURNAL_PAGE_LINES });
        match name.as_str() {
            "from" => {
                let from = value.parse().ok().filter(|from| *from > 0);
                page.from = from.ok_or_else(|| invalid("`from` must be the number of a line, from 1."))?;
            }
            "lines" => page.lines = parse_limit(&name, &value, JOURNAL_PAGE_LINES)?,
            other => return Err(unknown_parameter(other)),
        }
    }
    Ok(page)
}

/// Reads a page. It has at least one line if the journal has that line, also a line that must be cut.
fn read_page(journal: &[u8], PageRequest { from, lines: most }: PageRequest) -> JournalPage {
    let journal = journal.strip_suffix(b"\n").unwrap_or(journal);
    let all = journal.split(|byte| *byte == b'\n').filter(|_| !journal.is_empty());
    let total = u32::try_from(all.clone().count()).unwrap_or(u32::MAX);
    let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
    let (mut lines, mut cut, mut bytes_left) = (Vec::new(), None, JOURNAL_PAGE_BYTES);
    for line in all.skip(skipped).take(most) {
        let mut text = String::from_utf8_lossy(line).into_owned();
        if text.len() > bytes_left {
            if !lines.is_empty() {
                break;
            }
            cut = u64::try_from(text.len()).ok();
            text.truncate(text.floor_char_boundary(bytes_left));
        }
        bytes_left -= text.len();
        lines.push(text);
    }
    let end = u32::try_from(lines.len()).ok().and_then(|count| from.checked_add(count));
    let next = end.filter(|next| *next <= total && *next > from);
    JournalPage { from, lines, cut, total, next, problem: None }
}

#[cfg(test)]
mod tests {
    use super::{PageRequest, parse_page, read_page};
    use redflow_contract::console::{JOURNAL_PAGE_BYTES, JournalPage};
    use serde_json::json;

    fn page(journal: &[u8], from: u32, lines: usize) -> JournalPage {
        read_page(journal, PageRequest { from, lines })
    }

    #[test]
    fn a_page_has_the_lines_that_were_asked_for() {
        let cases = [
            ("a\nb\nc\n", 1, 2, json!({"from": 1, "lines": ["a", "b"], "total": 3, "next": 3})),
            ("a\nb\nc\n", 3, 2, json!({"from": 3, "lines": ["c"], "total": 3})),
            ("a\nb\nc", 2, 2, json!({"from": 2, "lines": ["b", "c"], "total": 3})),
            ("a\nb\nc\n", 4, 2, json!({"from": 4, "lines": [], "total": 3})),
            ("a\n", u32::MAX, 200, json!({"from": u32::MAX, "lines": [], "total": 1})),
            ("a\n\nc\n", 2, 1, json!({"from": 2, "lines": [""], "total": 3, "next": 3})),
            ("", 1, 200, json!({"from": 1, "lines": [], "total": 0})),
            ("\n", 1, 200, json!({"from": 1, "lines": [], "total": 0})),
        ];
        for (journal, from, most, expected) in cases {
            let found = page(journal.as_bytes(), from, most);
            assert_eq!(serde_json::to_value(found).unwrap(), expected, "{journal:?}");
        }
    }

    #[test]
    fn a_page_has_a_limit_in_bytes_and_a_longer_line_is_cut() {
        let half = "x".repeat(JOURNAL_PAGE_BYTES / 2);
        let long = format!("a{}", "é".repeat(JOURNAL_PAGE_BYTES / 2));
        let journal = format!("{half}\n{half}\nz\n{long}\nend\n");
        let first = page(journal.as_bytes(), 1, 200);
        assert_eq!((first.lines.len(), first.next, first.cut), (2, Some(3), None));
        assert_eq!(page(journal.as_bytes(), 3, 200).lines, ["z"]);
        let cut = page(journal.as_bytes(), 4, 200);
        assert_eq!((cut.lines[0].as_str(), cut.next), (&long[..JOURNAL_PAGE_BYTES - 1], Some(5)));
        assert_eq!(cut.cut, u64::try_from(long.len()).ok());
        assert_eq!(page(journal.as_bytes(), 5, 200).lines, ["end"]);
        assert_eq!(page(b"\xff\n", 1, 1).lines, ["\u{fffd}"]);
    }

    #[test]
    fn a_page_needs_valid_numbers() {
        assert!(parse_page(None).unwrap().is_none());
        assert_eq!(parse_page(Some("from=7&lines=200")).unwrap().unwrap().from, 7);
        for wrong in
            ["from=0", "from=-1", "from=x", "from=4294967296", "lines=0", "lines=201", "lines=", "more=1"]
        {
            assert!(parse_page(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
