//! A table for people, and the same as JSON.

use serde_json::{Map, Value, json};
use std::fmt;

/// The word for a target in a note.
pub(crate) fn target_word(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// Rows of figures under a heading, and figures that belong to all rows.
pub(crate) struct Table {
    name: &'static str,
    heading: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    figures: Vec<Figure>,
    notes: Vec<String>,
}

/// A column: its key in JSON, and its title with the unit.
pub(crate) struct Column {
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    /// Decimal places.
    pub(crate) digits: usize,
}

/// One figure outside the cells.
struct Figure {
    key: &'static str,
    text: String,
    value: f64,
    unit: &'static str,
}

/// The content of a cell.
pub(crate) enum Cell {
    Text(String),
    Number(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Table {
    pub(crate) fn new(name: &'static str, heading: impl Into<String>, columns: Vec<Column>) -> Self {
        let (rows, figures, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, heading: heading.into(), columns, rows, figures, notes }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// A figure below the rows.
    pub(crate) fn figure(
        &mut self,
        key: &'static str,
        text: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) {
        self.figures.push(Figure { key, text: text.into(), value, unit });
    }

    /// A sentence below the rows.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub(crate) fn to_json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Value {
            let keyed = self.columns.iter().zip(cells).map(|(column, cell)| {
                let value = match cell {
                    Cell::Text(text) => json!(text),
                    Cell::Number(number) => json!(number),
                };
                (column.key.to_owned(), value)
            });
            Value::Object(keyed.collect::<Map<_, _>>())
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        let figures: Map<String, Value> =
            self.figures.iter().map(|figure| (figure.key.to_owned(), json!(figure.value))).collect();
        json!({"name": self.name, "heading": self.heading, "rows": rows, "figures": figures, "notes": self.notes})
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.heading)?;
        let texts: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|cells| {
                cells
                    .iter()
                    .zip(&self.columns)
                    .map(|(cell, column)| format_cell(cell, column.digits))
                    .collect()
            })
            .collect();
        let width = |place: usize, title: &str| {
            let cells = texts.iter().filter_map(|row| row.get(place)).map(|text| text.chars().count());
            cells.chain([title.chars().count()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(place, column)| width(place, column.title)).collect();
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.to_owned()).collect();
        for row in titles_first(&titles, &texts) {
            let mut line = String::new();
            for (text, width) in row.iter().zip(&widths) {
                line.push_str(&format!("  {text:>width$}"));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        for Figure { text, value, unit, .. } in &self.figures {
            let digits = if *value < 1000.0 { 2 } else { 0 };
            writeln!(f, "  {text}: {}{unit}", group_thousands(*value, digits))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

fn titles_first<'a>(
    titles: &'a Vec<String>,
    rows: &'a [Vec<String>],
) -> impl Iterator<Item = &'a Vec<String>> {
    let titles = (!rows.is_empty()).then_some(titles);
    titles.into_iter().chain(rows)
}

fn format_cell(cell: &Cell, digits: usize) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(number) => group_thousands(*number, digits),
    }
}

/// A number with groups of thousands.
fn group_thousands(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    let (whole, rest) = text.find('.').map_or((text.as_str(), ""), |point| text.split_at(point));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if place > 0 && left % 3 == 0 && number.is_finite() && !out.ends_with('-') {
            out.push(' ');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{Column, Table, group_thousands};
    use serde_json::json;

    #[test]
    fn groups_thousands() {
        for (number, digits, text) in [
            (0.0, 0, "0"),
            (999.0, 0, "999"),
            (1000.0, 0, "1 000"),
            (1_234_567.891, 2, "1 234 567.89"),
            (-123.0, 0, "-123"),
        ] {
            assert_eq!(group_thousands(number, digits), text);
        }
        assert_eq!(group_thousands(f64::NAN, 1), "NaN");
    }

    #[test]
    fn aligns_columns_and_has_json_keys() {
        let columns = vec![
            Column { key: "what", title: "what", digits: 0 },
            Column { key: "micros", title: "µs", digits: 1 },
        ];
        let mut table = Table::new("demo", "two rows", columns);
        table.row(vec!["a".into(), 1.25.into()]);
        table.row(vec!["longer".into(), 1000.0.into()]);
        table.figure("ratio", "the ratio", 2.0, " times");
        table.note("That is all.");
        let text = "demo: two rows\n    what       µs\n       a      1.2\n  longer  1 000.0\n  the ratio: 2.00 times\n  That is all.\n";
        assert_eq!(table.to_string(), text);
        let json = table.to_json();
        assert_eq!(json["rows"][1], json!({"what": "longer", "micros": 1000.0}));
        assert_eq!(json["figures"], json!({"ratio": 2.0}));
    }
}
