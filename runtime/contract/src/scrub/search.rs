//! Searches a text for all forms of the secrets at once.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use std::ops::Range;

/// Bytes of all forms in one automaton. It takes many times as much memory.
const MAX_AUTOMATON_BYTES: usize = 1024 * 1024;

/// Finds the forms of secrets.
#[derive(Clone)]
pub(super) struct Search {
    /// Sorted.
    forms: Vec<Box<[u8]>>,
    automata: Vec<AhoCorasick>,
    /// The forms that are too long for an automaton, by their indices.
    long_forms: Vec<usize>,
    /// Whether a form starts with a byte.
    first_bytes: [bool; 256],
    longest: usize,
}

impl Search {
    pub(super) fn new(forms: &[String]) -> Self {
        let mut forms: Vec<Box<[u8]>> = forms.iter().map(|form| form.as_bytes().into()).collect();
        forms.sort_unstable();
        forms.dedup();
        let mut search = Self {
            automata: Vec::new(),
            long_forms: Vec::new(),
            first_bytes: [false; 256],
            longest: forms.iter().map(|form| form.len()).max().unwrap_or_default(),
            forms,
        };
        let (mut group, mut bytes) = (0..0, 0);
        for (index, form) in search.forms.iter().enumerate() {
            if let Some(first) = form.first() {
                search.first_bytes[usize::from(*first)] = true;
            }
            if bytes + form.len() > MAX_AUTOMATON_BYTES {
                add_automaton(&search.forms, group, &mut search.automata, &mut search.long_forms);
                (group, bytes) = (index..index, 0);
            }
            group.end = index + 1;
            bytes += form.len();
        }
        add_automaton(&search.forms, group, &mut search.automata, &mut search.long_forms);
        search
    }

    /// Where a text holds a form.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let short = self.automata.iter().flat_map(|automaton| automaton.find_overlapping_iter(text));
        let long = self.long_forms.iter().flat_map(|index| find_all(text, &self.forms[*index]));
        short.map(|found| found.range()).chain(long).collect()
    }

    /// Where the end of a text is the start of a longer form.
    pub(super) fn find_start(&self, text: &[u8]) -> Option<usize> {
        let is_start = |at: &usize| {
            self.first_bytes[usize::from(text[*at])] && {
                let end = &text[*at..];
                let next = self.forms.partition_point(|form| **form <= *end);
                self.forms.get(next).is_some_and(|form| form.starts_with(end))
            }
        };
        (text.len().saturating_sub(self.longest)..text.len()).find(is_start)
    }
}

/// Makes an automaton of some forms. A form that no automaton takes is searched for alone.
fn add_automaton(
    forms: &[Box<[u8]>],
    group: Range<usize>,
    automata: &mut Vec<AhoCorasick>,
    long_forms: &mut Vec<usize>,
) {
    let forms = &forms[group.clone()];
    let is_short = forms.iter().map(|form| form.len()).sum::<usize>() <= MAX_AUTOMATON_BYTES;
    let build = || AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(forms).ok();
    match is_short.then(build).flatten() {
        Some(automaton) => automata.push(automaton),
        None => long_forms.extend(group),
    }
}

fn find_all<'a>(text: &'a [u8], form: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let windows = text.windows(form.len().max(1)).enumerate();
    windows.filter(move |(_, window)| *window == form).map(move |(at, _)| at..at + form.len())
}
