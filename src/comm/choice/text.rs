//! The text of decision tables: TOML, whose keys [`parse`] documents by refusing all others.

use std::sync::Arc;

use hopbine_torus::choose::{
    Candidates, DecisionTable, Feature, Features, Interval, Knowledge, Otherwise, Row, Rule,
    Segment, ShapeClass, TableError, TableProblem, Template, Uses, Wire,
};
use hopbine_torus::sizes::parse_size;
use hopbine_torus::{Collective, Shape};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Tables by name, for `otherwise`.
pub(super) type Others<'a> = &'a dyn Fn(&str) -> Option<Arc<DecisionTable>>;

const RULES: &str = "a list of sections [[rule]]";
const SIZES: &str =
    "sizes from above the first up to the second, such as \"0..8KiB\" or \"8KiB..\"";
const NUMBERS: &str = "a number such as 4, or numbers such as \"2..8\", \"2..\" or \"..8\"";
const KEYS: [&str; 8] =
    ["version", "name", "wire", "stage_bytes", "otherwise", "nearest", "class", "rule"];
const PORTS: &str = "a number from 1, \"all\", or { all_above = \"8KiB\" }";
const SEGMENT: &str =
    "\"whole\", a size such as \"64KiB\", or { parts = 4, least = \"64KiB\", most = \"1MiB\" }";
const ALGORITHM: &str = "the name of an algorithm, or several as in [\"bine\", \"mixed\"]";
const STAGE: &str = "a size such as \"512KiB\", or 0 for no copies";
const NO_STAGE: &str = "left out of a table for wire memory, through which no memory is registered";
const WORD: &str = "a text in quotes";

/// The table that a text describes, with rows for all sizes. Whether its algorithms serve its classes is another
/// question ([`DecisionTable::check_served`]).
///
/// # Errors
/// [`TableError`].
pub(super) fn parse(text: &str, others: Others<'_>) -> Result<DecisionTable, TableError> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut sections = sections(text).map(|(before, text)| (text, Lines { ends: &ends, before }));
    let (head, lines) = sections.next().unwrap_or(("", Lines { ends: &ends, before: 0 }));
    let tree = parsed(head, lines)?;
    let root = Keys { table: tree.get_ref(), line: 1, lines };
    // Before other keys, which another version may have.
    let version = root.needed("version", &DecisionTable::VERSION.to_string())?;
    if whole(version.value) != Some(DecisionTable::VERSION) {
        let found = version.shown();
        return Err(TableProblem::Version { found, known: DecisionTable::VERSION }.at(version.line));
    }
    root.only(&KEYS)?;
    let name = root.needed("name", WORD)?.text(WORD)?.to_owned();
    let wire = root.needed("wire", "\"network\" or \"memory\"")?;
    let wire = wire.one_of(&Wire::ALL.map(|wire| (wire.name(), wire)))?;
    let stage_bytes = match root.get("stage_bytes") {
        Some(at) if wire == Wire::Memory => return Err(at.wrong(NO_STAGE)),
        at => at.map(|at| at.size(STAGE)).transpose()?,
    };
    let is_for_others = match root.get("nearest") {
        None => false,
        Some(at) => !at.value.as_bool().ok_or_else(|| at.wrong("true or false"))?,
    };
    let valid = "the name of a built-in table: \"network\", \"memory\" or \"tofu-d\"";
    let otherwise = match root.get("otherwise") {
        // All others must go by something.
        None if !is_for_others => None,
        at => {
            let at = at.map_or_else(|| root.needed("otherwise", valid), Ok)?;
            let table = others(at.text(valid)?).ok_or_else(|| at.wrong(valid))?;
            Some(Otherwise { table, is_for_others })
        }
    };
    let (mut classes, mut rules) = (Vec::new(), Vec::new());
    of_section(&root, &mut classes, &mut rules)?;
    for (section, lines) in sections {
        let tree = parsed(section, lines)?;
        let keys = Keys { table: tree.get_ref(), line: lines.at(0), lines };
        keys.only(&["class", "rule"])?;
        of_section(&keys, &mut classes, &mut rules)?;
    }
    // With another table behind it, a table may say what is not of calls only.
    if rules.is_empty() && otherwise.is_none() {
        root.needed("rule", RULES)?;
    }
    let table = DecisionTable::new(name, wire, classes, rules, otherwise)?;
    Ok(table.with_stage_bytes(stage_bytes))
}

/// The text in pieces, each with the bytes before it: its head, and from each `[[rule]]` at the start of a line to the
/// next. No value has several lines, so each is TOML by itself. The tree of all of the largest built-in table would
/// be most of what a rank takes at its start, 10 MB.
fn sections(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = text.match_indices("\n[[rule]]").map(|(at, _)| at + 1);
    let ends = starts.clone().chain([text.len()]);
    [0].into_iter().chain(starts).zip(ends).map(|(start, end)| (start, &text[start..end]))
}

fn parsed<'a>(section: &'a str, lines: Lines<'_>) -> Result<Spanned<DeTable<'a>>, TableError> {
    DeTable::parse(section).map_err(|error| {
        let line = lines.at(error.span().map_or(0, |span| span.start));
        TableProblem::Syntax(error.message().to_owned()).at(line)
    })
}

/// Adds a section's classes, and its rules, for classes that are known by then.
fn of_section(
    keys: &Keys<'_>,
    classes: &mut Vec<ShapeClass>,
    rules: &mut Vec<Rule>,
) -> Result<(), TableError> {
    if let Some(all) = keys.get("class") {
        for (name, at) in all.keys("sections, such as [class.pair]")?.entries() {
            if classes.iter().any(|class: &ShapeClass| class.name == name) {
                return Err(TableProblem::Syntax(format!("a second class `{name}`")).at(at.line));
            }
            classes.push(class(name, &at.keys("a section, such as [class.pair]")?)?);
        }
    }
    if let Some(all) = keys.get("rule") {
        for at in all.list(RULES)? {
            rules.push(rule(&at.keys("a section [[rule]]")?, classes)?);
        }
    }
    Ok(())
}

fn class(name: &str, keys: &Keys<'_>) -> Result<ShapeClass, TableError> {
    let features = Feature::ALL.map(Feature::name);
    keys.only(&[&features[..], &["like"]].concat())?;
    let mut class = match keys.get("like") {
        None => ShapeClass::all(name),
        Some(at) => {
            let valid = "a list of shapes, such as [\"8x8x8\", \"4x4+4\"]";
            let shapes = at.list(valid)?;
            let shapes = shapes.iter().map(|at| {
                let text = at.text(valid)?;
                text.parse::<Shape>().map_err(|error| at.wrong(&format!("a shape: {error}")))
            });
            ShapeClass::like(name, shapes.collect::<Result<_, _>>()?)
        }
    };
    for (feature, bounds) in Feature::ALL.into_iter().zip(&mut class.bounds) {
        if let Some(at) = keys.get(feature.name()) {
            *bounds = at.interval()?;
        }
    }
    for shape in &class.examples {
        let of = Features::of(shape);
        for (feature, bounds) in Feature::ALL.into_iter().zip(class.bounds) {
            let found = of.get(feature);
            if !bounds.contains(found) {
                let (class, shape, valid) =
                    (name.to_owned(), shape.to_string(), bounds.to_string());
                let problem =
                    TableProblem::NoExample { class, shape, feature: feature.name(), found, valid };
                return Err(problem.at(keys.line));
            }
        }
    }
    Ok(class)
}

fn rule(keys: &Keys<'_>, classes: &[ShapeClass]) -> Result<Rule, TableError> {
    keys.only(&["collective", "sizes", "class", "ports", "bytes_of", "segment", "rows"])?;
    let known = Collective::ALL.map(Collective::name).join(", ");
    let valid = format!("one or a list of {known}");
    let named = keys.needed("collective", &valid)?.one_or_list(&valid)?;
    let collectives = named.iter().map(|at| at.text(&valid)?.parse().map_err(|_| at.wrong(&valid)));
    let collectives: Vec<Collective> = collectives.collect::<Result<_, _>>()?;
    let knowledge = match keys.get("sizes") {
        None => Knowledge::Known,
        Some(at) => {
            let knowledge = at.one_of(&Knowledge::ALL.map(|known| (known.name(), known)))?;
            if let Some(other) =
                collectives.iter().find(|&&collective| !knowledge.is_of(collective))
            {
                return Err(
                    at.wrong(&format!("known for {other}, of which all ranks know the sizes"))
                );
            }
            knowledge
        }
    };
    let at = keys.needed("class", WORD)?;
    let name = at.text(WORD)?;
    let class = classes.iter().position(|class| class.name == name).ok_or_else(|| {
        let known = classes.iter().map(|class| &*class.name).collect::<Vec<_>>().join(", ");
        TableProblem::UnknownClass { name: name.to_owned(), known }.at(at.line)
    })?;
    let available = keys.get("ports").map_or(Ok(Interval::ALL), |at| at.interval())?;
    let of = [("all", false), ("block", true)];
    let is_of_block = keys.get("bytes_of").map_or(Ok(false), |at| at.one_of(&of))?;
    let segment = keys.get("segment").map(|at| at.segment()).transpose()?;
    let valid = "a list such as [{ bytes = \"0..\", algorithm = \"mixed\", ports = \"all\" }]";
    let rows = keys.needed("rows", valid)?.list(valid)?;
    let rows = rows.iter().map(|at| row(&at.keys(valid)?, segment));
    let rows = rows.collect::<Result<_, _>>()?;
    let line = keys.line;
    Ok(Rule { line, collectives, knowledge, class, available, is_of_block, rows })
}

fn row(keys: &Keys<'_>, segment: Option<Segment>) -> Result<Row, TableError> {
    keys.only(&["bytes", "if_unfolded", "algorithm", "ports", "segment"])?;
    let (above, up_to) = keys.needed("bytes", SIZES)?.sizes()?;
    let name = |at: &At<'_>| at.text(ALGORITHM).map(|text| Template(text.to_owned()));
    let if_unfolded = keys.get("if_unfolded").as_ref().map(name).transpose()?;
    let first_of = keys.needed("algorithm", ALGORITHM)?.one_or_list(ALGORITHM)?;
    let first_of = first_of.iter().map(name).collect::<Result<_, _>>()?;
    let candidates = Candidates { if_unfolded, first_of };
    let ports = keys.needed("ports", PORTS)?.uses()?;
    let segment = match (keys.get("segment"), segment) {
        (Some(at), _) => at.segment()?,
        (None, Some(segment)) => segment,
        (None, None) => keys.needed("segment", SEGMENT)?.segment()?,
    };
    Ok(Row { line: keys.line, above, up_to, candidates, ports, segment })
}

/// Lines of a text by places in a section of it.
#[derive(Clone, Copy)]
struct Lines<'a> {
    /// Where each ends, in the whole text.
    ends: &'a [usize],
    /// Bytes before the section.
    before: usize,
}

impl Lines<'_> {
    fn at(self, place: usize) -> u32 {
        1 + self.ends.partition_point(|&end| end < self.before + place) as u32
    }
}

/// A section, or what stands in braces.
#[derive(Clone, Copy)]
struct Keys<'a> {
    table: &'a DeTable<'a>,
    line: u32,
    lines: Lines<'a>,
}

impl<'a> Keys<'a> {
    /// Refuses all other keys.
    fn only(&self, known: &[&str]) -> Result<(), TableError> {
        let other = self.table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        other.map_or(Ok(()), |key| {
            let (key, line) = (key.get_ref().to_string(), self.lines.at(key.span().start));
            Err(TableProblem::UnknownKey { key, known: known.join(", ") }.at(line))
        })
    }

    fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a>)> {
        let lines = self.lines;
        self.table
            .iter()
            .map(move |(key, value)| (key.get_ref().as_ref(), At::new(key.get_ref(), value, lines)))
    }

    fn get(&self, key: &'a str) -> Option<At<'a>> {
        Some(At::new(key, self.table.get(key)?, self.lines))
    }

    fn needed(&self, key: &'static str, valid: &str) -> Result<At<'a>, TableError> {
        let missing = || TableProblem::Missing { key, valid: valid.to_owned() }.at(self.line);
        self.get(key).ok_or_else(missing)
    }
}

/// A value, and where it is.
#[derive(Clone, Copy)]
struct At<'a> {
    key: &'a str,
    value: &'a DeValue<'a>,
    line: u32,
    lines: Lines<'a>,
}

impl<'a> At<'a> {
    fn new(key: &'a str, value: &'a Spanned<DeValue<'a>>, lines: Lines<'a>) -> Self {
        At { key, value: value.get_ref(), line: lines.at(value.span().start), lines }
    }

    fn shown(&self) -> String {
        match self.value {
            DeValue::String(text) => format!("`{text}`"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            value => format!("a value of another kind ({})", value.type_str()),
        }
    }

    fn wrong(&self, valid: &str) -> TableError {
        let (key, found, valid) = (self.key.to_owned(), self.shown(), valid.to_owned());
        TableProblem::Value { key, found, valid }.at(self.line)
    }

    fn text(&self, valid: &str) -> Result<&'a str, TableError> {
        self.value.as_str().ok_or_else(|| self.wrong(valid))
    }

    fn keys(&self, valid: &str) -> Result<Keys<'a>, TableError> {
        let table = self.value.as_table().ok_or_else(|| self.wrong(valid))?;
        Ok(Keys { table, line: self.line, lines: self.lines })
    }

    fn list(&self, valid: &str) -> Result<Vec<At<'a>>, TableError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong(valid))?;
        if list.is_empty() {
            return Err(self.wrong(valid));
        }
        Ok(list.iter().map(|value| At::new(self.key, value, self.lines)).collect())
    }

    fn one_or_list(&self, valid: &str) -> Result<Vec<At<'a>>, TableError> {
        if self.value.is_array() { self.list(valid) } else { Ok(vec![*self]) }
    }

    fn one_of<T: Copy>(&self, all: &[(&str, T)]) -> Result<T, TableError> {
        let names: Vec<String> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let valid = names.join(" or ");
        let text = self.text(&valid)?;
        let found = all.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| self.wrong(&valid))
    }

    /// `8`, `"2..8"`, `"2.."`, `"..8"`.
    fn interval(&self) -> Result<Interval, TableError> {
        let wrong = || self.wrong(NUMBERS);
        if let Some(only) = whole(self.value) {
            return if only > 0 { Ok(Interval::only(only)) } else { Err(wrong()) };
        }
        let text = self.text(NUMBERS)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let interval = match text.split_once("..") {
            None => Interval::only(number(text)?),
            Some((first, last)) => Interval {
                first: if first.trim().is_empty() { 1 } else { number(first)? },
                last: if last.trim().is_empty() { None } else { Some(number(last)?) },
            },
        };
        let is_empty = interval.last.is_some_and(|last| last < interval.first);
        if interval.first == 0 || is_empty { Err(wrong()) } else { Ok(interval) }
    }

    /// `"8KiB..1MiB"`.
    fn sizes(&self) -> Result<(u64, Option<u64>), TableError> {
        let size = |text: &str| parse_size(text.trim()).map_err(|_| self.wrong(SIZES));
        let (above, up_to) = self.text(SIZES)?.split_once("..").ok_or_else(|| self.wrong(SIZES))?;
        let up_to = if up_to.trim().is_empty() { None } else { Some(size(up_to)?) };
        Ok((size(above)?, up_to))
    }

    fn size(&self, valid: &str) -> Result<u64, TableError> {
        let size = self.value.as_str().and_then(|text| parse_size(text).ok());
        size.or_else(|| whole(self.value).map(u64::from)).ok_or_else(|| self.wrong(valid))
    }

    fn uses(&self) -> Result<Uses, TableError> {
        if self.value.is_table() {
            let keys = self.keys(PORTS)?;
            keys.only(&["all_above"])?;
            return Ok(Uses::AllAbove(keys.needed("all_above", PORTS)?.size(PORTS)?));
        }
        match whole(self.value) {
            Some(used @ 1..) => Ok(Uses::Only(used)),
            None if self.value.as_str() == Some("all") => Ok(Uses::All),
            _ => Err(self.wrong(PORTS)),
        }
    }

    fn segment(&self) -> Result<Segment, TableError> {
        if self.value.as_str() == Some("whole") {
            return Ok(Segment::Whole);
        }
        if !self.value.is_table() {
            let bytes = self.size(SEGMENT)?;
            return if bytes > 0 { Ok(Segment::bytes(bytes)) } else { Err(self.wrong(SEGMENT)) };
        }
        let keys = self.keys(SEGMENT)?;
        keys.only(&["parts", "least", "most"])?;
        let [parts, least, most] =
            ["parts", "least", "most"].map(|key| keys.needed(key, SEGMENT)?.size(SEGMENT));
        let (parts, least, most) = (parts?, least?, most?);
        if parts > 0 && (1..=most).contains(&least) {
            Ok(Segment::Parts { parts, least, most })
        } else {
            Err(self.wrong("parts of at least 1 byte, and `least` at most as long as `most`"))
        }
    }
}

/// A whole number that is written as one.
fn whole(value: &DeValue<'_>) -> Option<u32> {
    let DeValue::Integer(number) = value else { return None };
    (number.radix() == 10).then(|| number.as_str().replace('_', "").parse().ok()).flatten()
}
