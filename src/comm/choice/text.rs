//! Parser of decision tables in TOML. [`parse`] refuses unknown keys, with a list of the known ones.

use std::sync::Arc;

use hopbine_torus::choose::{
    Candidates, DecisionTable, FallbackTable, Feature, Features, Knowledge, Model, NumberRange,
    Row, Rule, Segmentation, ShapeClass, ShmLimits, TableError, TableProblem, Template, Wire,
};
use hopbine_torus::sim::Machine;
use hopbine_torus::sizes::show;
use hopbine_torus::{Collective, Shape};
use toml::Spanned;
use toml::de::DeTable;

use crate::endpoint::shm::{CONTRIBUTION_BYTES, EAGER_BYTES, SLOT_BYTES};

use super::values::{KeyValue, LineMap, PORTS, SEGMENT, SIZES, Section, whole};

/// Looks a table up by name, for the key `otherwise`.
pub(super) type TableLookup<'a> = &'a dyn Fn(&str) -> Option<Arc<DecisionTable>>;

const RULES: &str = "a list of sections [[rule]]";
const KEYS: [&str; 10] = [
    "version",
    "name",
    "wire",
    "stage_bytes",
    "shm",
    "model",
    "otherwise",
    "nearest",
    "class",
    "rule",
];
const ALGORITHM: &str = "the name of an algorithm, or several as in [\"bine\", \"mixed\"]";
const STAGE: &str = "a size such as \"512KiB\", or 0 for no copies";
const NO_STAGE: &str = "left out of a table for wire memory, through which no memory is registered";
const SHM: &str = "limits, such as { flat = \"32KiB\", flat_read = \"128KiB\", staged = \"32KiB\", \
     staged_pair = \"16KiB\" }";
const MODEL: &str =
    "a machine and numbers of ranks, such as { machine = \"tofu-d\", ranks = \"2..24\" }";
const NO_MODEL: &str =
    "left out of a table for wire memory, which the network model does not cover";
const WORD: &str = "a text in quotes";

/// Parses a table, whose rows must cover all sizes. [`DecisionTable::check_served`] checks whether its algorithms
/// serve its classes.
///
/// # Errors
/// [`TableError`].
pub(super) fn parse(text: &str, others: TableLookup<'_>) -> Result<DecisionTable, TableError> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut sections = sections(text).map(|(before, text)| (text, LineMap { ends: &ends, before }));
    let (head, lines) = sections.next().unwrap_or(("", LineMap { ends: &ends, before: 0 }));
    let tree = parsed(head, lines)?;
    let root = Section { table: tree.get_ref(), line: 1, lines };
    // Checked before the other keys, since another version may have other keys.
    let version = root.required("version", &DecisionTable::VERSION.to_string())?;
    if whole(version.value) != Some(DecisionTable::VERSION) {
        let found = version.shown();
        return Err(TableProblem::Version { found, known: DecisionTable::VERSION }.at(version.line));
    }
    root.refuse_others(&KEYS)?;
    let name = root.required("name", WORD)?.text(WORD)?.to_owned();
    let wire = root.required("wire", "\"network\" or \"memory\"")?;
    let wire = wire.one_of(&Wire::ALL.map(|wire| (wire.name(), wire)))?;
    let stage_bytes = match root.get("stage_bytes") {
        Some(at) if wire == Wire::Memory => return Err(at.wrong(NO_STAGE)),
        at => at.map(|at| at.size(STAGE)).transpose()?,
    };
    let shm = root.get("shm").map(|at| shm(&at)).transpose()?.unwrap_or_default();
    let model = match root.get("model") {
        Some(at) if wire == Wire::Memory => return Err(at.wrong(NO_MODEL)),
        at => at.map(|at| model(&at)).transpose()?,
    };
    let is_for_others = match root.get("nearest") {
        None => false,
        Some(at) => !at.value.as_bool().ok_or_else(|| at.wrong("true or false"))?,
    };
    let valid = "the name of a built-in table: \"network\", \"memory\", \"tofu-d\" or \"mpi\"";
    let otherwise = match root.get("otherwise") {
        // With `nearest = false` another table is needed for shapes and ports without a rule.
        None if !is_for_others => None,
        at => {
            let at = at.map_or_else(|| root.required("otherwise", valid), Ok)?;
            let table = others(at.text(valid)?).ok_or_else(|| at.wrong(valid))?;
            Some(FallbackTable { table, is_for_others })
        }
    };
    let (mut classes, mut rules) = (Vec::new(), Vec::new());
    of_section(&root, &mut classes, &mut rules)?;
    for (section, lines) in sections {
        let tree = parsed(section, lines)?;
        let keys = Section { table: tree.get_ref(), line: lines.at(0), lines };
        keys.refuse_others(&["class", "rule"])?;
        of_section(&keys, &mut classes, &mut rules)?;
    }
    // A table with an `otherwise` table may have no rules, only keys that do not concern single calls.
    if rules.is_empty() && otherwise.is_none() {
        root.required("rule", RULES)?;
    }
    let table = DecisionTable::new(name, wire, classes, rules, otherwise)?;
    Ok(table.with_stage_bytes(stage_bytes).with_shm(shm).with_model(model))
}

/// The limits that a table sets; the others are the defaults.
fn shm(at: &KeyValue<'_>) -> Result<ShmLimits, TableError> {
    let keys = at.keys(SHM)?;
    let mut limits = ShmLimits::default();
    // The ends of the intervals are in the layout of the shared segment.
    let (flat, slot) = ((0, CONTRIBUTION_BYTES), (EAGER_BYTES, SLOT_BYTES));
    let rows = [
        ("flat", &mut limits.flat, flat),
        ("flat_read", &mut limits.flat_read, (0, usize::MAX)),
        ("staged", &mut limits.staged, slot),
        ("staged_pair", &mut limits.staged_pair, slot),
    ];
    keys.refuse_others(&rows.each_ref().map(|(key, ..)| *key))?;
    for (key, limit, (least, most)) in rows {
        let Some(at) = keys.get(key) else { continue };
        let valid = match most {
            usize::MAX => "a size such as \"128KiB\"".to_owned(),
            most => format!("a size from {} to {}", show(least as u64), show(most as u64)),
        };
        *limit = at.size(&valid)?;
        if !(least as u64..=most as u64).contains(limit) {
            return Err(at.wrong(&valid));
        }
    }
    Ok(limits)
}

fn model(at: &KeyValue<'_>) -> Result<Model, TableError> {
    let keys = at.keys(MODEL)?;
    keys.refuse_others(&["machine", "ranks"])?;
    let machine = keys.required("machine", MODEL)?;
    let name = machine.one_of(&Machine::NAMES.map(|name| (name, name)))?.to_owned();
    let at = keys.required("ranks", MODEL)?;
    let ranks = at.interval()?;
    if ranks.last.is_none_or(|last| last > Model::MOST_RANKS) {
        return Err(at.wrong(&format!("numbers up to {}, such as \"2..24\"", Model::MOST_RANKS)));
    }
    Ok(Model { machine: name, ranks })
}

/// Splits the text into sections, each with the number of bytes before it: the head, and one section from each
/// `[[rule]]` at the start of a line to the next. No line within a value begins so, and each section is valid TOML. One
/// tree of the whole largest built-in table would take 10 MB, most of the memory that a rank needs at start-up.
fn sections(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = text.match_indices("\n[[rule]]").map(|(at, _)| at + 1);
    let ends = starts.clone().chain([text.len()]);
    [0].into_iter().chain(starts).zip(ends).map(|(start, end)| (start, &text[start..end]))
}

fn parsed<'a>(section: &'a str, lines: LineMap<'_>) -> Result<Spanned<DeTable<'a>>, TableError> {
    DeTable::parse(section).map_err(|error| {
        let line = lines.at(error.span().map_or(0, |span| span.start));
        TableProblem::Syntax(error.message().to_owned()).at(line)
    })
}

/// Adds the classes of a section, then its rules, which may use all classes added so far.
fn of_section(
    keys: &Section<'_>,
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

fn class(name: &str, keys: &Section<'_>) -> Result<ShapeClass, TableError> {
    let features = Feature::ALL.map(Feature::name);
    keys.refuse_others(&[&features[..], &["like"]].concat())?;
    let mut class = match keys.get("like") {
        None => ShapeClass::all(name),
        Some(at) => {
            let valid = "a list of shapes, such as [\"8x8x8\", \"4x4+4\"]";
            let shapes = at.list(valid)?;
            let shapes = shapes.iter().map(|at| {
                let text = at.text(valid)?;
                text.parse::<Shape>().map_err(|error| at.wrong(&format!("a shape: {error}")))
            });
            ShapeClass::enclosing(name, shapes.collect::<Result<_, _>>()?)
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

fn rule(keys: &Section<'_>, classes: &[ShapeClass]) -> Result<Rule, TableError> {
    keys.refuse_others(&["collective", "sizes", "class", "ports", "bytes_of", "segment", "rows"])?;
    let known = Collective::ALL.map(Collective::name).join(", ");
    let valid = format!("one or a list of {known}");
    let named = keys.required("collective", &valid)?.one_or_list(&valid)?;
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
    let at = keys.required("class", WORD)?;
    let name = at.text(WORD)?;
    let class = classes.iter().position(|class| class.name == name).ok_or_else(|| {
        let known = classes.iter().map(|class| &*class.name).collect::<Vec<_>>().join(", ");
        TableProblem::UnknownClass { name: name.to_owned(), known }.at(at.line)
    })?;
    let available = keys.get("ports").map_or(Ok(NumberRange::ALL), |at| at.interval())?;
    let of = [("all", false), ("block", true)];
    let is_of_block = keys.get("bytes_of").map_or(Ok(false), |at| at.one_of(&of))?;
    let segment = keys.get("segment").map(|at| at.segment()).transpose()?;
    let valid = "a list such as [{ bytes = \"0..\", algorithm = \"mixed\", ports = \"all\" }]";
    let rows = keys.required("rows", valid)?.list(valid)?;
    let rows = rows.iter().map(|at| row(&at.keys(valid)?, segment));
    let mut rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    // Every rank keeps all rows.
    rows.shrink_to_fit();
    let line = keys.line;
    Ok(Rule { line, collectives, knowledge, class, available, is_of_block, rows })
}

fn row(keys: &Section<'_>, segment: Option<Segmentation>) -> Result<Row, TableError> {
    keys.refuse_others(&["bytes", "if_unfolded", "algorithm", "ports", "segment"])?;
    let (above, up_to) = keys.required("bytes", SIZES)?.sizes()?;
    let name = |at: &KeyValue<'_>| at.text(ALGORITHM).map(|text| Template(text.to_owned()));
    let if_unfolded = keys.get("if_unfolded").as_ref().map(name).transpose()?;
    let first_of = keys.required("algorithm", ALGORITHM)?.one_or_list(ALGORITHM)?;
    let mut first_of: Vec<_> = first_of.iter().map(name).collect::<Result<_, _>>()?;
    first_of.shrink_to_fit();
    let candidates = Candidates { if_unfolded, first_of };
    let ports = keys.required("ports", PORTS)?.uses()?;
    let segment = match (keys.get("segment"), segment) {
        (Some(at), _) => at.segment()?,
        (None, Some(segment)) => segment,
        (None, None) => keys.required("segment", SEGMENT)?.segment()?,
    };
    Ok(Row { line: keys.line, above, up_to, candidates, ports, segment })
}
