//! Layout of a table with a limited width. Texts are wrapped first, then columns are omitted; numbers are never
//! broken.

use super::cells::{Cell, Column};

/// Spaces between two columns.
const GAP: usize = 2;
/// Minimum width of a text column that may be wrapped.
const NARROWEST_TEXT: usize = 20;

/// The shown columns with their widths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Index and width of every shown column.
    shown: Vec<(usize, usize)>,
    /// Titles of the columns that are omitted because the table is too wide.
    pub left_out: Vec<&'static str>,
}

impl TableLayout {
    /// The layout for `rows`, and for later rows up to the columns' expected widths, in `limit` characters. The table
    /// exceeds `limit` only if its indispensable columns need more.
    pub fn new(columns: &[Column], rows: &[Vec<Cell>], limit: Option<usize>) -> Self {
        let natural = |index: usize| {
            let column = &columns[index];
            let cells = rows.iter().map(|row| width(row[index].shown()));
            cells.chain([width(column.title), column.width.expected]).max().unwrap_or(0)
        };
        let narrowest = |index: usize, natural: usize| match columns[index].width.wraps {
            true => natural.min(NARROWEST_TEXT.max(width(columns[index].title))),
            false => natural,
        };
        let mut shown: Vec<(usize, usize)> = (0..columns.len())
            .filter(|&index| columns[index].in_table)
            .map(|index| (index, natural(index)))
            .collect();
        let mut left_out = Vec::new();
        let Some(limit) = limit else { return TableLayout { shown, left_out } };
        let total = |widths: &mut dyn Iterator<Item = usize>| {
            widths.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
        };
        while total(&mut shown.iter().map(|&(index, width)| narrowest(index, width))) > limit {
            // Omits the column with the highest number first; among equal numbers the last one.
            let yields = |&(_, &(index, _)): &(usize, &(usize, usize))| columns[index].width.yields;
            let Some((at, &(index, _))) =
                shown.iter().enumerate().filter(|entry| yields(entry) > 0).max_by_key(yields)
            else {
                break;
            };
            left_out.push(columns[index].title);
            shown.remove(at);
        }
        while total(&mut shown.iter().map(|&(_, width)| width)) > limit {
            let widest = shown
                .iter_mut()
                .filter(|(index, width)| *width > narrowest(*index, *width))
                .max_by_key(|(_, width)| *width);
            let Some((_, width)) = widest else { break };
            *width -= 1;
        }
        TableLayout { shown, left_out }
    }

    /// The titles and a rule below them.
    pub fn header(&self, columns: &[Column]) -> String {
        let line = self.lines(columns, |index| columns[index].title);
        let rule = self.shown.iter().map(|(_, width)| width + GAP).sum::<usize>();
        format!("{line}{}\n", "\u{2500}".repeat(rule.saturating_sub(GAP)))
    }

    /// A row: one line, or several lines if texts are wrapped.
    pub fn row(&self, columns: &[Column], cells: &[Cell]) -> String {
        self.lines(columns, |index| cells[index].shown())
    }

    fn lines<'c>(&self, columns: &[Column], text: impl Fn(usize) -> &'c str) -> String {
        let cells: Vec<Vec<&str>> = self
            .shown
            .iter()
            .map(|&(index, width)| match columns[index].width.wraps {
                true => wrap(text(index), width),
                false => vec![text(index)],
            })
            .collect();
        let mut lines = String::new();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut begun = String::new();
            for (&(index, room), cell) in self.shown.iter().zip(&cells) {
                let piece = cell.get(line).copied().unwrap_or("");
                let pad = " ".repeat(room.saturating_sub(width(piece)));
                match columns[index].is_number {
                    true => begun.extend([&pad, piece]),
                    false => begun.extend([piece, &pad]),
                }
                begun.push_str(&" ".repeat(GAP));
            }
            lines.push_str(begun.trim_end());
            lines.push('\n');
        }
        lines
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text into lines of at most `room` characters (at least 1). Words are broken only if they are longer than
/// a line.
pub fn wrap(text: &str, room: usize) -> Vec<&str> {
    let room = room.max(1);
    let mut lines = Vec::new();
    let mut rest = text;
    while width(rest) > room {
        let end = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        // A word that exactly fills the line stays on it.
        let reach = end + rest[end..].chars().next().map_or(0, char::len_utf8);
        let (line, next) = match rest[..reach].rfind(' ') {
            Some(at) if at > 0 => (&rest[..at], &rest[at + 1..]),
            _ => rest.split_at(end),
        };
        lines.push(line);
        rest = next.trim_start();
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> [Column; 4] {
        [
            Column::text("name", "name"),
            Column::number("n", "number"),
            Column::number("more", "more").yields(1),
            Column::text("what", "what it is").wraps(),
        ]
    }

    fn rows() -> Vec<Vec<Cell>> {
        let what = "a text of several words that may be broken";
        vec![
            vec![
                Cell::text("one"),
                Cell::count(123_456_789u64),
                Cell::count(5u64),
                Cell::text(what),
            ],
            vec![Cell::text("two"), Cell::count(7u64), Cell::count(66u64), Cell::text("short")],
        ]
    }

    #[test]
    fn texts_are_wrapped_and_then_columns_left_out_but_numbers_stay_whole() {
        let (columns, rows) = (columns(), rows());
        for (limit, left_out) in
            [(None, 0), (Some(60), 0), (Some(44), 0), (Some(40), 1), (Some(8), 1)]
        {
            let layout = TableLayout::new(&columns, &rows, limit);
            assert_eq!(layout.left_out.len(), left_out, "{limit:?}");
            let text: String = rows.iter().map(|row| layout.row(&columns, row)).collect();
            assert!(text.contains("123456789"), "{text}");
            assert!(text.split_whitespace().any(|word| word == "broken"), "{text}");
            if let Some(limit) = limit.filter(|&limit| limit >= 40) {
                assert!(text.lines().all(|line| width(line) <= limit), "{limit}:\n{text}");
            }
        }
    }

    #[test]
    fn numbers_are_right_and_texts_left() {
        let layout = TableLayout::new(&columns(), &rows(), None);
        let text = layout.header(&columns()) + &layout.row(&columns(), &rows()[1]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "name     number  more  what it is");
        assert!(lines[1].chars().all(|c| c == '\u{2500}'));
        assert_eq!(lines[2], "two           7    66  short");
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 6), ["one", "two", "three"]);
        assert_eq!(wrap("extraordinary", 5), ["extra", "ordin", "ary"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("a b", 0), ["a", "b"]);
        assert_eq!(wrap("\u{fc}\u{fc}\u{fc} x", 3), ["\u{fc}\u{fc}\u{fc}", "x"]);
    }
}
