//! Message tags.

/// A tag: identifies a message between two ranks uniquely among the messages under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The context of the communicator: below 2^[`CONTEXT_BITS`](Tag::CONTEXT_BITS).
    pub context: u64,
    /// The number of the operation on the communicator, the same on all ranks: below
    /// 2^[`OPERATION_BITS`](Tag::OPERATION_BITS).
    pub operation: u32,
    /// Number of the message within the operation, counted per sender, receiver and port; see also
    /// [`LATE`](Tag::LATE).
    pub message: u32,
    /// The signature of the operation's call, the same on all ranks that make the same call. A wire may ignore it, or
    /// use it to detect ranks that make different calls.
    ///
    /// The upper byte stands for the pattern of messages: if ranks agree in it, every message has a matching receive,
    /// even if the calls differ otherwise.
    pub call: u16,
}

impl Tag {
    /// Bits of [`context`](Tag::context).
    pub const CONTEXT_BITS: u32 = 40;
    /// Bits of [`operation`](Tag::operation).
    pub const OPERATION_BITS: u32 = 24;
    /// Operations are numbered modulo this number.
    pub const OPERATIONS: u32 = 1 << Tag::OPERATION_BITS;
    /// Whenever the numbers of a communicator's operations pass a multiple of this, wires forget the calls of those
    /// that are further back: [`forget_calls`](super::Matching::forget_calls).
    pub const REMEMBERED: u32 = Tag::OPERATIONS / 4;
    /// Window of operations: if the numbers of two operations of a communicator differ by this or more, no rank posts
    /// messages of the later one before all of its own messages of the earlier one are done.
    pub const WINDOW: u32 = 64;
    /// Set in the numbers of all messages of an operation to which the window does not apply: the operation starts
    /// when data on which it depends are known, perhaps after operations with higher numbers.
    pub const LATE: u32 = 1 << 31;

    /// Context and operation in one number.
    pub fn operation_id(self) -> u64 {
        self.context << Tag::OPERATION_BITS | u64::from(self.operation)
    }

    /// Whether the messages of two calls match; see [`call`](Tag::call).
    pub fn do_match(one: u16, other: u16) -> bool {
        one >> 8 == other >> 8
    }

    /// Another signature than `call` whose messages match those of `call`. A rank sends under it after it has
    /// detected that other ranks make another call.
    pub fn other_call(call: u16) -> u16 {
        call ^ 0xff
    }

    /// Whether two tags name the same message; ignores the signatures of calls.
    #[inline]
    pub fn same_message(self, other: Tag) -> bool {
        (self.message, self.operation, self.context)
            == (other.message, other.operation, other.context)
    }

    /// The tag of a message of the operation with this [`operation_id`](Tag::operation_id).
    pub fn of_operation(id: u64, message: u32, call: u16) -> Self {
        let operation = (id % u64::from(Tag::OPERATIONS)) as u32;
        Tag { context: id >> Tag::OPERATION_BITS, operation, message, call }
    }
}
