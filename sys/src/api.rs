//! The uTofu functions as a table of pointers.
//!
//! All of hopbine calls uTofu through an [`Api`]. The code that makes the `Api` selects the library behind it once:
//! Fujitsu's, found at run time, or the emulated device. `load.rs` finds libraries; `handles` gives the functions
//! their meaning.

use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::NonNull;

/// Makes the table of [`utofu_sys::functions`].
macro_rules! table {
    (required { $($req:ident)* } optional { $($opt:ident)* }) => {
        /// One pointer per uTofu function, under the function's own name.
        ///
        /// The type of each function in [`utofu_sys`] documents its arguments and results.
        #[derive(Debug)]
        pub struct Functions {
            $(
                #[doc = concat!("See [`utofu_sys::", stringify!($req), "`].")]
                pub $req: utofu_sys::$req,
            )*
            $(
                #[doc = concat!("See [`utofu_sys::", stringify!($opt), "`]; not in every library.")]
                pub $opt: Option<utofu_sys::$opt>,
            )*
        }

        impl Functions {
            /// Fills the table by asking `find` for each symbol. The error lists the required symbols that `find`
            /// does not know.
            ///
            /// # Safety
            /// The address that `find` returns for a name must be that of a function of that name's type.
            pub(crate) unsafe fn from_symbols(
                mut find: impl FnMut(&str) -> Option<NonNull<c_void>>,
            ) -> Result<Functions, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(
                    let $req = find(stringify!($req));
                    if $req.is_none() {
                        missing.push(stringify!($req));
                    }
                )*
                if !missing.is_empty() {
                    return Err(missing);
                }
                Ok(Functions {
                    $(
                        // SAFETY: the caller vouches that the address is a function of this type; on every platform
                        // with dlsym, data and function pointers have one representation.
                        $req: unsafe {
                            transmute::<NonNull<c_void>, utofu_sys::$req>(
                                $req.expect("nothing is missing"),
                            )
                        },
                    )*
                    $(
                        // SAFETY: as for the required functions; None is the null pointer of an optional function.
                        $opt: unsafe {
                            transmute::<Option<NonNull<c_void>>, Option<utofu_sys::$opt>>(
                                find(stringify!($opt)),
                            )
                        },
                    )*
                })
            }

            /// Names of the symbols without which a library cannot be used.
            pub const REQUIRED: &'static [&'static str] = &[$(stringify!($req)),*];
        }
    };
}

utofu_sys::functions!(table);

/// A uTofu library, ready to be called. Copying it copies a reference.
#[derive(Clone, Copy, Debug)]
pub struct Api {
    functions: &'static Functions,
    origin: &'static str,
}

impl Api {
    /// An API whose functions live as long as the process.
    pub(crate) const fn new(functions: &'static Functions, origin: &'static str) -> Api {
        Api { functions, origin }
    }

    /// Source of the functions: the library's name or path, or `emulated device`.
    #[must_use]
    pub fn origin(&self) -> &'static str {
        self.origin
    }

    /// Whether `self` and `other` call the same functions.
    #[must_use]
    pub fn is_same(&self, other: &Api) -> bool {
        core::ptr::eq(self.functions, other.functions)
    }
}

impl core::ops::Deref for Api {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        self.functions
    }
}
