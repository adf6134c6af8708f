//! The uTofu functions as a table of pointers.
//!
//! All of hopbine calls uTofu through an [`Api`]: which library is behind it (Fujitsu's, found at
//! run time, or the emulated device) is decided once, where the `Api` is made. This file must not
//! know how to find a library (`load.rs`) nor what the functions mean (`handles`).

use utofu_sys::*;

/// States the table once and derives from it the struct and the way to fill it.
macro_rules! table {
    (
        required { $($req:ident: $req_ty:ident,)* }
        optional { $($opt:ident: $opt_ty:ident,)* }
    ) => {
        /// One pointer per uTofu function, under the function's own name.
        ///
        /// What a function demands and returns is documented at its type in [`utofu_sys`].
        #[derive(Debug)]
        pub struct Functions {
            $(
                #[doc = concat!("See [`utofu_sys::", stringify!($req_ty), "`].")]
                pub $req: $req_ty,
            )*
            $(
                #[doc = concat!("See [`utofu_sys::", stringify!($opt_ty), "`]; not in every library.")]
                pub $opt: Option<$opt_ty>,
            )*
        }

        impl Functions {
            /// Fills the table by asking `find` for each symbol; the names of required symbols
            /// that it does not know are the error.
            ///
            /// # Safety
            /// What `find` returns for a name must be the address of a function of that name's type.
            pub(crate) unsafe fn from_symbols(
                mut find: impl FnMut(&str) -> Option<core::ptr::NonNull<core::ffi::c_void>>,
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
                        // SAFETY: the caller vouches that the address is a function of this type;
                        // on every platform with dlsym both kinds of pointer have one representation.
                        $req: unsafe {
                            core::mem::transmute::<core::ptr::NonNull<core::ffi::c_void>, $req_ty>(
                                $req.expect("nothing is missing"),
                            )
                        },
                    )*
                    $(
                        // SAFETY: as above; None is the null pointer of an optional function.
                        $opt: unsafe {
                            core::mem::transmute::<
                                Option<core::ptr::NonNull<core::ffi::c_void>>,
                                Option<$opt_ty>,
                            >(find(stringify!($opt)))
                        },
                    )*
                })
            }

            /// Names of the symbols without which a library cannot be used.
            pub const REQUIRED: &'static [&'static str] = &[$(stringify!($req)),*];
            /// Names of the symbols that are used where they exist.
            pub const OPTIONAL: &'static [&'static str] = &[$(stringify!($opt)),*];
        }

        /// Fills the table from the module named in the scope of the call that defines every function.
        #[cfg(feature = "emu")]
        macro_rules! functions_of {
            ($module:ident) => {
                $crate::Functions {
                    $($req: $module::$req,)*
                    $($opt: Some($module::$opt),)*
                }
            };
        }
        #[cfg(feature = "emu")]
        pub(crate) use functions_of;
    };
}

table! {
    required {
        utofu_get_onesided_tnis: utofu_get_onesided_tnis_fn,
        utofu_get_barrier_tnis: utofu_get_barrier_tnis_fn,
        utofu_query_onesided_caps: utofu_query_onesided_caps_fn,
        utofu_query_barrier_caps: utofu_query_barrier_caps_fn,
        utofu_query_tofu_version: utofu_query_tofu_version_fn,
        utofu_query_utofu_version: utofu_query_utofu_version_fn,
        utofu_query_my_coords: utofu_query_my_coords_fn,
        utofu_create_vcq: utofu_create_vcq_fn,
        utofu_create_vcq_with_cmp_id: utofu_create_vcq_with_cmp_id_fn,
        utofu_free_vcq: utofu_free_vcq_fn,
        utofu_query_vcq_id: utofu_query_vcq_id_fn,
        utofu_construct_vcq_id: utofu_construct_vcq_id_fn,
        utofu_set_vcq_id_path: utofu_set_vcq_id_path_fn,
        utofu_query_vcq_info: utofu_query_vcq_info_fn,
        utofu_get_path_id: utofu_get_path_id_fn,
        utofu_get_path_coords: utofu_get_path_coords_fn,
        utofu_reg_mem: utofu_reg_mem_fn,
        utofu_reg_mem_with_stag: utofu_reg_mem_with_stag_fn,
        utofu_query_stadd: utofu_query_stadd_fn,
        utofu_dereg_mem: utofu_dereg_mem_fn,
        utofu_put: utofu_put_fn,
        utofu_put_gap: utofu_put_gap_fn,
        utofu_put_stride: utofu_put_stride_fn,
        utofu_put_stride_gap: utofu_put_stride_gap_fn,
        utofu_put_piggyback: utofu_put_piggyback_fn,
        utofu_put_piggyback8: utofu_put_piggyback8_fn,
        utofu_get: utofu_get_fn,
        utofu_get_gap: utofu_get_gap_fn,
        utofu_get_stride: utofu_get_stride_fn,
        utofu_get_stride_gap: utofu_get_stride_gap_fn,
        utofu_armw4: utofu_armw4_fn,
        utofu_armw8: utofu_armw8_fn,
        utofu_cswap4: utofu_cswap4_fn,
        utofu_cswap8: utofu_cswap8_fn,
        utofu_nop: utofu_nop_fn,
        utofu_prepare_put: utofu_prepare_put_fn,
        utofu_prepare_put_gap: utofu_prepare_put_gap_fn,
        utofu_prepare_put_stride: utofu_prepare_put_stride_fn,
        utofu_prepare_put_stride_gap: utofu_prepare_put_stride_gap_fn,
        utofu_prepare_put_piggyback: utofu_prepare_put_piggyback_fn,
        utofu_prepare_put_piggyback8: utofu_prepare_put_piggyback8_fn,
        utofu_prepare_get: utofu_prepare_get_fn,
        utofu_prepare_get_gap: utofu_prepare_get_gap_fn,
        utofu_prepare_get_stride: utofu_prepare_get_stride_fn,
        utofu_prepare_get_stride_gap: utofu_prepare_get_stride_gap_fn,
        utofu_prepare_armw4: utofu_prepare_armw4_fn,
        utofu_prepare_armw8: utofu_prepare_armw8_fn,
        utofu_prepare_cswap4: utofu_prepare_cswap4_fn,
        utofu_prepare_cswap8: utofu_prepare_cswap8_fn,
        utofu_prepare_nop: utofu_prepare_nop_fn,
        utofu_post_toq: utofu_post_toq_fn,
        utofu_poll_tcq: utofu_poll_tcq_fn,
        utofu_poll_mrq: utofu_poll_mrq_fn,
        utofu_query_num_unread_tcq: utofu_query_num_unread_tcq_fn,
        utofu_query_num_unread_mrq: utofu_query_num_unread_mrq_fn,
        utofu_alloc_vbg: utofu_alloc_vbg_fn,
        utofu_free_vbg: utofu_free_vbg_fn,
        utofu_set_vbg: utofu_set_vbg_fn,
        utofu_query_vbg_info: utofu_query_vbg_info_fn,
        utofu_barrier: utofu_barrier_fn,
        utofu_reduce_uint64: utofu_reduce_uint64_fn,
        utofu_reduce_double: utofu_reduce_double_fn,
        utofu_poll_barrier: utofu_poll_barrier_fn,
        utofu_poll_reduce_uint64: utofu_poll_reduce_uint64_fn,
        utofu_poll_reduce_double: utofu_poll_reduce_double_fn,
    }
    optional {
        utofu_get_last_error: utofu_get_last_error_fn,
        jtofu_initialize: jtofu_initialize_fn,
        jtofu_finalize: jtofu_finalize_fn,
        jtofu_query_phys_coords: jtofu_query_phys_coords_fn,
        jtofu_query_log_coords: jtofu_query_log_coords_fn,
        jtofu_query_phys_size: jtofu_query_phys_size_fn,
        jtofu_query_log_size: jtofu_query_log_size_fn,
        jtofu_query_sys_size: jtofu_query_sys_size_fn,
        jtofu_query_max_proc_per_node: jtofu_query_max_proc_per_node_fn,
        jtofu_query_ranks_from_phys_coords: jtofu_query_ranks_from_phys_coords_fn,
        jtofu_query_ranks_from_log_coords: jtofu_query_ranks_from_log_coords_fn,
        jtofu_query_onesided_paths: jtofu_query_onesided_paths_fn,
        jtofu_query_onesided_hops: jtofu_query_onesided_hops_fn,
        jtofu_add_job: jtofu_add_job_fn,
        jtofu_delete_job: jtofu_delete_job_fn,
        jtofu_query_sys_torus: jtofu_query_sys_torus_fn,
        jtofu_query_ref_coords: jtofu_query_ref_coords_fn,
        jtofu_query_barrier_paths: jtofu_query_barrier_paths_fn,
        jtofu_query_barrier_hops: jtofu_query_barrier_hops_fn,
        jtofu_query_jtofu_version: jtofu_query_jtofu_version_fn,
        jtofu_create_mapinfo_by_envvars: jtofu_create_mapinfo_by_envvars_fn,
    }
}

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

    /// Where the functions come from: the library's name or path, or `emulated device`.
    #[must_use]
    pub fn origin(&self) -> &'static str {
        self.origin
    }

    /// Whether both call the same functions.
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
