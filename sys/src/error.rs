//! Return codes of uTofu as typed errors.
//!
//! Every code of the interface has a name and a meaning here; a number that no header lists is kept
//! as it came. What a code means *for an operation in flight* is said where that is polled.

use core::ffi::c_int;

use utofu_abi::*;

/// A uTofu function returned something other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{call}: {} ({code}): {}", self.name(), self.meaning())]
pub struct UtofuError {
    /// The function that failed.
    pub call: &'static str,
    /// What it returned.
    pub code: c_int,
}

impl UtofuError {
    /// Success, or the error that `code` is.
    pub(crate) fn check(call: &'static str, code: c_int) -> Result<(), UtofuError> {
        if code == UTOFU_SUCCESS { Ok(()) } else { Err(UtofuError { call, code }) }
    }

    /// The header's name of the code.
    #[must_use]
    pub fn name(&self) -> &'static str {
        row(self.code).map_or("unknown return code", |r| r.1)
    }

    /// What the code says, in a few words.
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

    /// The header is the list to be complete against.
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
            let e = UtofuError { call: "utofu_put", code };
            assert_eq!(e.name(), name);
            assert!(!e.meaning().is_empty());
            seen += 1;
        }
        assert_eq!(seen, CODES.len());
        assert_eq!(seen, 49, "the interface has 49 codes");
    }

    #[test]
    fn an_unlisted_code_keeps_its_number() {
        let text = UtofuError { call: "utofu_poll_mrq", code: -12345 }.to_string();
        assert!(text.contains("utofu_poll_mrq") && text.contains("-12345"), "{text}");
    }

    #[test]
    fn only_zero_is_success() {
        assert_eq!(UtofuError::check("f", 0), Ok(()));
        assert_eq!(UtofuError::check("f", -4), Err(UtofuError { call: "f", code: UTOFU_ERR_BUSY }));
        assert!(UtofuError::check("f", 1).is_err());
    }
}
