//! Return codes of uTofu as typed errors.
//!
//! Every code of the interface has a name and a meaning here. A number that no header lists is kept unchanged. The
//! errors of the polling functions state what a code means *for an operation in flight*.

use core::ffi::{c_char, c_int};
use std::ffi::CStr;
use std::sync::Arc;

use utofu_sys::*;

use crate::Api;

/// A uTofu function returned something other than success.
///
/// Two errors are equal if function and code are equal; the library's text is not compared.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call}: {}", self.reason())]
pub struct UtofuError {
    /// The function that failed.
    pub call: &'static str,
    /// The function's return code.
    pub code: c_int,
    /// The library's text about the error, if it has one.
    text: Option<Arc<str>>,
}

impl PartialEq for UtofuError {
    fn eq(&self, other: &UtofuError) -> bool {
        (self.call, self.code) == (other.call, other.code)
    }
}

impl Eq for UtofuError {}

/// Size in bytes of the buffer for the library's text: four times the 1 KiB that the interface asks for, since the
/// function takes no buffer size.
const TEXT: usize = 4096;

impl Api {
    /// Returns `Ok` for success, else the error for `code` with the library's text.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, code: c_int) -> Result<(), UtofuError> {
        if code == UTOFU_SUCCESS { Ok(()) } else { Err(self.error(call, code)) }
    }

    /// Returns the value that a function writes through a pointer, if the function succeeds.
    pub(crate) fn call_with_out<T: Default>(
        &self,
        call: &'static str,
        call_into: impl FnOnce(&mut T) -> c_int,
    ) -> Result<T, UtofuError> {
        let mut answer = T::default();
        let code = call_into(&mut answer);
        self.check(call, code)?;
        Ok(answer)
    }

    /// The error of this thread's last call. Later calls overwrite the library's text.
    #[cold]
    pub(crate) fn error(&self, call: &'static str, code: c_int) -> UtofuError {
        let text = self.utofu_get_last_error.and_then(|get| {
            let mut text = [0u8; TEXT];
            // SAFETY: the buffer is larger than the interface asks for.
            unsafe { get(text.as_mut_ptr().cast_const().cast::<c_char>()) };
            // Ends the text if the library has written no terminator.
            text[TEXT - 1] = 0;
            let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
            // Some libraries put the function's name first; the error names it already.
            let text = text.trim().trim_start_matches(call).trim_start_matches([':', ' ']);
            (!text.is_empty()).then(|| Arc::from(text))
        });
        UtofuError { call, code, text }
    }
}

impl UtofuError {
    /// An error that this crate or its callers detect themselves, without a text of the library.
    #[must_use]
    pub fn new(call: &'static str, code: c_int) -> UtofuError {
        UtofuError { call, code, text: None }
    }

    /// The reason for a message that names the function itself: name and number of the code, and the library's text,
    /// or the code's meaning if there is no text.
    #[must_use]
    pub fn reason(&self) -> String {
        let what = self.text.as_deref().unwrap_or_else(|| self.meaning());
        format!("{} ({}): {what}", self.name(), self.code)
    }

    /// The code's name in the header.
    #[must_use]
    pub fn name(&self) -> &'static str {
        row(self.code).map_or("unknown return code", |r| r.1)
    }

    /// The code's meaning, in a few words.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        row(self.code)
            .map_or("not a code of uTofu 1.0; see the library's own documentation", |r| r.2)
    }
}

fn row(code: c_int) -> Option<&'static (c_int, &'static str, &'static str)> {
    CODES.iter().find(|r| r.0 == code)
}

macro_rules! codes {
    ($($name:ident: $meaning:literal,)*) => {
        /// Value, name and meaning of every return code.
        const CODES: &[(c_int, &str, &str)] = &[$(($name, stringify!($name), $meaning)),*];
    };
}

codes! {
    UTOFU_SUCCESS: "done",
    UTOFU_ERR_NOT_FOUND: "the polled queue has no entry",
    UTOFU_ERR_NOT_COMPLETED: "the operation is still running",
    UTOFU_ERR_NOT_PROCESSED: "the request was not processed",
    UTOFU_ERR_BUSY: "the queue or gate has no room now: poll, then try again",
    UTOFU_ERR_USED: "the named resource is already in use",
    UTOFU_ERR_FULL: "no resource of this kind is free",
    UTOFU_ERR_NOT_AVAILABLE: "the resource exists but cannot be had here",
    UTOFU_ERR_NOT_SUPPORTED: "the combination of arguments is not supported",
    UTOFU_ERR_TCQ_OTHER: "TCQ: an error without a code of its own",
    UTOFU_ERR_TCQ_DESC: "TCQ: the descriptor is wrong",
    UTOFU_ERR_TCQ_MEMORY: "TCQ: local memory could not be accessed",
    UTOFU_ERR_TCQ_STADD: "TCQ: the local STADD is not registered",
    UTOFU_ERR_TCQ_LENGTH: "TCQ: the length does not fit",
    UTOFU_ERR_MRQ_OTHER: "MRQ: an error without a code of its own",
    UTOFU_ERR_MRQ_PEER: "MRQ: the peer VCQ does not answer or does not exist",
    UTOFU_ERR_MRQ_LCL_MEMORY: "MRQ: local memory could not be accessed",
    UTOFU_ERR_MRQ_RMT_MEMORY: "MRQ: remote memory could not be accessed",
    UTOFU_ERR_MRQ_LCL_STADD: "MRQ: the local STADD is not registered",
    UTOFU_ERR_MRQ_RMT_STADD: "MRQ: the remote STADD is not registered",
    UTOFU_ERR_MRQ_LCL_LENGTH: "MRQ: the access leaves the local registered range",
    UTOFU_ERR_MRQ_RMT_LENGTH: "MRQ: the access leaves the remote registered range",
    UTOFU_ERR_BARRIER_OTHER: "barrier: an error without a code of its own",
    UTOFU_ERR_BARRIER_MISMATCH: "barrier: the participants started different operations",
    UTOFU_ERR_INVALID_ARG: "an argument without a code of its own is wrong",
    UTOFU_ERR_INVALID_POINTER: "a pointer that must not be null is null",
    UTOFU_ERR_INVALID_FLAGS: "a flag is not allowed here",
    UTOFU_ERR_INVALID_COORDS: "coordinates are out of range",
    UTOFU_ERR_INVALID_PATH: "path coordinates are out of range",
    UTOFU_ERR_INVALID_TNI_ID: "there is no such TNI",
    UTOFU_ERR_INVALID_CQ_ID: "there is no such CQ",
    UTOFU_ERR_INVALID_BG_ID: "there is no such barrier gate",
    UTOFU_ERR_INVALID_CMP_ID: "the component id is out of range",
    UTOFU_ERR_INVALID_VCQ_HDL: "not a live VCQ handle",
    UTOFU_ERR_INVALID_VCQ_ID: "not a VCQ id",
    UTOFU_ERR_INVALID_VBG_ID: "not an allocated barrier gate",
    UTOFU_ERR_INVALID_PATH_ID: "the path id is out of range",
    UTOFU_ERR_INVALID_STADD: "the STADD is not registered",
    UTOFU_ERR_INVALID_ADDRESS: "the address cannot be registered",
    UTOFU_ERR_INVALID_SIZE: "a length is out of range",
    UTOFU_ERR_INVALID_STAG: "the steering tag is out of range or in use",
    UTOFU_ERR_INVALID_EDATA: "edata does not fit its width",
    UTOFU_ERR_INVALID_NUMBER: "a count is out of range",
    UTOFU_ERR_INVALID_OP: "the operator is not allowed here",
    UTOFU_ERR_INVALID_DESC: "the descriptor is wrong",
    UTOFU_ERR_INVALID_DATA: "the data cannot be reduced",
    UTOFU_ERR_OUT_OF_RESOURCE: "the system has no resource of the kind left",
    UTOFU_ERR_OUT_OF_MEMORY: "there is no memory left",
    UTOFU_ERR_FATAL: "the library cannot go on",
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table has every code of the header.
    #[test]
    fn every_code_of_the_header_has_a_name_and_a_meaning() {
        let header = include_str!("../include/utofu.h");
        let mut seen = 0;
        for line in header.lines().map(str::trim) {
            let Some((name, value)) = line.split_once(" = ") else {
                continue;
            };
            if name != "UTOFU_SUCCESS" && !name.starts_with("UTOFU_ERR_") {
                continue;
            }
            let code: c_int = value.trim_end_matches(',').parse().expect("a number");
            let e = UtofuError::new("utofu_put", code);
            assert_eq!(e.name(), name);
            assert!(!e.meaning().is_empty());
            seen += 1;
        }
        assert_eq!(seen, CODES.len());
        assert_eq!(seen, 49, "the interface has 49 codes");
    }

    #[test]
    fn an_unlisted_code_keeps_its_number() {
        let text = UtofuError::new("utofu_poll_mrq", -12345).to_string();
        assert!(text.contains("utofu_poll_mrq") && text.contains("-12345"), "{text}");
    }

    #[test]
    fn only_zero_is_success() {
        let api = Api::emulated();
        assert_eq!(api.check("f", 0), Ok(()));
        assert_eq!(api.check("f", -4), Err(UtofuError::new("f", UTOFU_ERR_BUSY)));
        assert!(api.check("f", 1).is_err());
    }

    /// The message contains the library's text, and the function's name only once.
    #[test]
    fn the_librarys_own_text_reaches_the_user() {
        let text = Api::emulated().onesided_caps(77).unwrap_err().to_string();
        assert_eq!(
            text,
            "utofu_query_onesided_caps: UTOFU_ERR_INVALID_TNI_ID (-517): TNI 77: must be below 6"
        );
    }
}
