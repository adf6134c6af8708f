//! The table of the collectives' signatures as data.

/// One row: a collective, either with blocks of one size or with blocks of different sizes.
pub struct Row {
    pub collective: &'static str,
    pub is_vector: bool,
    /// Lines of documentation for the C header.
    pub doc: Vec<&'static str>,
    /// The blocking, the non-blocking and the persistent function.
    pub functions: [&'static str; 3],
    /// The functions' arguments before the communicator.
    pub arguments: Vec<&'static str>,
    /// One line of documentation for Fortran.
    pub comment: &'static str,
}

impl Row {
    pub fn has(&self, argument: &str) -> bool {
        self.arguments.contains(&argument)
    }

    /// All arguments of one function.
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
        /// The rows of the table.
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
