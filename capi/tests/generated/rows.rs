//! The table as data.

/// One row: a collective with blocks of one size, or each of its own.
pub struct Row {
    pub collective: &'static str,
    pub is_vector: bool,
    /// Lines for C.
    pub doc: Vec<&'static str>,
    /// The blocking, the non-blocking and the persistent function.
    pub functions: [&'static str; 3],
    /// The functions' arguments before the communicator.
    pub arguments: Vec<&'static str>,
    /// A line for Fortran.
    pub comment: &'static str,
}

impl Row {
    pub fn has(&self, argument: &str) -> bool {
        self.arguments.contains(&argument)
    }

    /// All arguments of one of the functions.
    pub fn arguments_of(&self, form: usize) -> Vec<&'static str> {
        let mut all = self.arguments.clone();
        all.push("comm");
        if form > 0 {
            all.push("request");
        }
        all
    }
}

macro_rules! rows {
    ($(
        $collective:ident $form:ident
        rust $rust:tt
        c {
            $(#[doc = $doc:literal])*
            $blocking:ident, $nonblocking:ident, $persistent:ident($($argument:ident),*)
        }
        fortran { #[doc = $comment:literal] }
    )*) => {
        /// The table.
        pub fn rows() -> Vec<Row> {
            vec![$(Row {
                collective: stringify!($collective),
                is_vector: stringify!($form) == "vector",
                doc: vec![$($doc.trim()),*],
                functions: [stringify!($blocking), stringify!($nonblocking), stringify!($persistent)],
                arguments: vec![$(stringify!($argument)),*],
                comment: $comment.trim(),
            }),*]
        }
    };
}

hopbine::collectives!(rows);
