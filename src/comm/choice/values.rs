//! Sections and values of a table's text, with their lines for errors.

use hopbine_torus::choose::{NumberRange, Segmentation, TableError, TableProblem, Uses};
use hopbine_torus::sizes::parse_size;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) const SIZES: &str =
    "sizes from above the first up to the second, such as \"0..8KiB\" or \"8KiB..\"";
const NUMBERS: &str = "a number such as 4, or numbers such as \"2..8\", \"2..\" or \"..8\"";
pub(super) const PORTS: &str = "a number from 1, \"all\", or { all_above = \"8KiB\" }";
pub(super) const SEGMENT: &str =
    "\"whole\", a size such as \"64KiB\", or { parts = 4, least = \"64KiB\", most = \"1MiB\" }";

/// Line numbers of byte offsets in a section of a text.
#[derive(Clone, Copy)]
pub(super) struct LineMap<'a> {
    /// Offset of each line's end in the whole text.
    pub(super) ends: &'a [usize],
    /// Bytes before the section.
    pub(super) before: usize,
}

impl LineMap<'_> {
    pub(super) fn at(self, place: usize) -> u32 {
        1 + self.ends.partition_point(|&end| end < self.before + place) as u32
    }
}

/// A section or an inline table.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) table: &'a DeTable<'a>,
    pub(super) line: u32,
    pub(super) lines: LineMap<'a>,
}

impl<'a> Section<'a> {
    /// Refuses keys that are not in `known`.
    pub(super) fn refuse_others(&self, known: &[&str]) -> Result<(), TableError> {
        let other = self.table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        other.map_or(Ok(()), |key| {
            let (key, line) = (key.get_ref().to_string(), self.lines.at(key.span().start));
            Err(TableProblem::UnknownKey { key, known: known.join(", ") }.at(line))
        })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, KeyValue<'a>)> {
        let lines = self.lines;
        self.table.iter().map(move |(key, value)| {
            (key.get_ref().as_ref(), KeyValue::new(key.get_ref(), value, lines))
        })
    }

    pub(super) fn get(&self, key: &'a str) -> Option<KeyValue<'a>> {
        Some(KeyValue::new(key, self.table.get(key)?, self.lines))
    }

    pub(super) fn required(
        &self,
        key: &'static str,
        valid: &str,
    ) -> Result<KeyValue<'a>, TableError> {
        let missing = || TableProblem::Missing { key, valid: valid.to_owned() }.at(self.line);
        self.get(key).ok_or_else(missing)
    }
}

/// A value with its key and its line.
#[derive(Clone, Copy)]
pub(super) struct KeyValue<'a> {
    key: &'a str,
    pub(super) value: &'a DeValue<'a>,
    pub(super) line: u32,
    pub(super) lines: LineMap<'a>,
}

impl<'a> KeyValue<'a> {
    fn new(key: &'a str, value: &'a Spanned<DeValue<'a>>, lines: LineMap<'a>) -> Self {
        KeyValue { key, value: value.get_ref(), line: lines.at(value.span().start), lines }
    }

    pub(super) fn shown(&self) -> String {
        match self.value {
            DeValue::String(text) => format!("`{text}`"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            value => format!("a value of another kind ({})", value.type_str()),
        }
    }

    pub(super) fn wrong(&self, valid: &str) -> TableError {
        let (key, found, valid) = (self.key.to_owned(), self.shown(), valid.to_owned());
        TableProblem::Value { key, found, valid }.at(self.line)
    }

    pub(super) fn text(&self, valid: &str) -> Result<&'a str, TableError> {
        self.value.as_str().ok_or_else(|| self.wrong(valid))
    }

    pub(super) fn keys(&self, valid: &str) -> Result<Section<'a>, TableError> {
        let table = self.value.as_table().ok_or_else(|| self.wrong(valid))?;
        Ok(Section { table, line: self.line, lines: self.lines })
    }

    pub(super) fn list(&self, valid: &str) -> Result<Vec<KeyValue<'a>>, TableError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong(valid))?;
        if list.is_empty() {
            return Err(self.wrong(valid));
        }
        Ok(list.iter().map(|value| KeyValue::new(self.key, value, self.lines)).collect())
    }

    pub(super) fn one_or_list(&self, valid: &str) -> Result<Vec<KeyValue<'a>>, TableError> {
        if self.value.is_array() { self.list(valid) } else { Ok(vec![*self]) }
    }

    pub(super) fn one_of<T: Copy>(&self, all: &[(&str, T)]) -> Result<T, TableError> {
        let names: Vec<String> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let valid = names.join(" or ");
        let text = self.text(&valid)?;
        let found = all.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| self.wrong(&valid))
    }

    /// `8`, `"2..8"`, `"2.."`, `"..8"`.
    pub(super) fn interval(&self) -> Result<NumberRange, TableError> {
        let wrong = || self.wrong(NUMBERS);
        if let Some(only) = whole(self.value) {
            return if only > 0 { Ok(NumberRange::only(only)) } else { Err(wrong()) };
        }
        let text = self.text(NUMBERS)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let interval = match text.split_once("..") {
            None => NumberRange::only(number(text)?),
            Some((first, last)) => NumberRange {
                first: if first.trim().is_empty() { 1 } else { number(first)? },
                last: if last.trim().is_empty() { None } else { Some(number(last)?) },
            },
        };
        let is_empty = interval.last.is_some_and(|last| last < interval.first);
        if interval.first == 0 || is_empty { Err(wrong()) } else { Ok(interval) }
    }

    /// `"8KiB..1MiB"`.
    pub(super) fn sizes(&self) -> Result<(u64, Option<u64>), TableError> {
        let size = |text: &str| parse_size(text.trim()).map_err(|_| self.wrong(SIZES));
        let (above, up_to) = self.text(SIZES)?.split_once("..").ok_or_else(|| self.wrong(SIZES))?;
        let up_to = if up_to.trim().is_empty() { None } else { Some(size(up_to)?) };
        Ok((size(above)?, up_to))
    }

    pub(super) fn size(&self, valid: &str) -> Result<u64, TableError> {
        let size = self.value.as_str().and_then(|text| parse_size(text).ok());
        size.or_else(|| whole(self.value).map(u64::from)).ok_or_else(|| self.wrong(valid))
    }

    pub(super) fn uses(&self) -> Result<Uses, TableError> {
        if self.value.is_table() {
            let keys = self.keys(PORTS)?;
            keys.refuse_others(&["all_above"])?;
            return Ok(Uses::AllAbove(keys.required("all_above", PORTS)?.size(PORTS)?));
        }
        match whole(self.value) {
            Some(used @ 1..) => Ok(Uses::Only(used)),
            None if self.value.as_str() == Some("all") => Ok(Uses::All),
            _ => Err(self.wrong(PORTS)),
        }
    }

    pub(super) fn segment(&self) -> Result<Segmentation, TableError> {
        if self.value.as_str() == Some("whole") {
            return Ok(Segmentation::Whole);
        }
        if !self.value.is_table() {
            let bytes = self.size(SEGMENT)?;
            return if bytes > 0 {
                Ok(Segmentation::bytes(bytes))
            } else {
                Err(self.wrong(SEGMENT))
            };
        }
        let keys = self.keys(SEGMENT)?;
        keys.refuse_others(&["parts", "least", "most"])?;
        let [parts, least, most] =
            ["parts", "least", "most"].map(|key| keys.required(key, SEGMENT)?.size(SEGMENT));
        let (parts, least, most) = (parts?, least?, most?);
        if parts > 0 && (1..=most).contains(&least) {
            Ok(Segmentation::Parts { parts, least, most })
        } else {
            Err(self.wrong("parts of at least 1 byte, and `least` at most as long as `most`"))
        }
    }
}

/// The value of a decimal integer, if it fits a `u32`.
pub(super) fn whole(value: &DeValue<'_>) -> Option<u32> {
    let DeValue::Integer(number) = value else { return None };
    (number.radix() == 10).then(|| number.as_str().replace('_', "").parse().ok()).flatten()
}
