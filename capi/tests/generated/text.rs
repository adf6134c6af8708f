//! Breaks text into lines. `~` stands for a space at which no line may end.

/// Cuts a line after spaces, so that no part has more than `width` characters.
pub fn cut(line: &str, width: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in line.split_inclusive(' ') {
        match parts.last_mut() {
            Some(part) if part.len() + word.trim_end().len() <= width => part.push_str(word),
            _ => parts.push(word.to_owned()),
        }
    }
    for part in &mut parts {
        *part = part.trim_end().replace('~', " ");
    }
    parts
}

/// A Fortran statement at an indent, continued over as many lines of `width` characters as it needs.
pub fn statement(width: usize, indent: usize, text: &str) -> String {
    let parts = cut(text, width - indent);
    format!("{:indent$}{}\n", "", parts.join(&format!(" &\n{:1$}", "", indent + 2)))
}
