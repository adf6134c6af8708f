//! Persistent collectives: planned, allocated and registered once, started many times.
//!
//! A persistent collective owns its buffers, so that starting it is safe without a scope: forgetting a
//! [`Persistent`] leaks the buffers, and an operation under way can still use them.

use std::ptr::NonNull;

use bytemuck::allocation::try_zeroed_vec;

use hopbine_torus::collectives::Collective;

use crate::comm::call::Call;
use crate::comm::communicator::Communicator;
use crate::comm::operations::started::Repeated;
use crate::error::Error;
use crate::reduce::Datatype;

/// Elements that are accessed by reference only while no operation is under way. (A `Vec` asserts exclusive access
/// whenever it is moved.)
struct Owned<T>(NonNull<[T]>);

// SAFETY: owns its elements, like a Vec.
unsafe impl<T: Send> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Owned<T> {}

impl<T> Owned<T> {
    fn new(elements: Vec<T>) -> Self {
        Owned(NonNull::from(Box::leak(elements.into_boxed_slice())))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: leaked from a box in `new`; `Persistent` drops it when nothing is under way.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A collective that can be started repeatedly. `start` and `wait` allocate nothing, register nothing and, after the
/// first round, exchange no addresses.
pub struct Persistent<T: Datatype> {
    repeated: Repeated,
    /// `None` if the collective works in place.
    send: Option<Owned<T>>,
    recv: Owned<T>,
}

impl<T: Datatype> Persistent<T> {
    pub(super) fn new(
        comm: &Communicator,
        call: Call,
        send: Option<Vec<T>>,
        recv: Vec<T>,
    ) -> Result<Self, Error> {
        let (send, recv) = (send.map(Owned::new), Owned::new(recv));
        let call = Call {
            send: send.as_ref().map_or(std::ptr::null(), |send| send.0.as_ptr().cast()),
            send_count: send.as_ref().map_or(0, |send| send.0.len() as u64),
            recv: recv.0.as_ptr().cast(),
            recv_count: recv.0.len() as u64,
            ..call
        };
        // SAFETY: this value owns the buffers and frees them only after the operation has ended (`drop`); no
        // reference to them exists while it is under way.
        let repeated = unsafe { comm.repeated(&call) }?;
        Ok(Persistent { repeated, send, recv })
    }

    /// A collective in place in `buffer`, which also takes the result.
    pub(super) fn of_buffer(
        comm: &Communicator,
        call: Call,
        buffer: Vec<T>,
    ) -> Result<Self, Error> {
        let call = Call { count: buffer.len() as u64, in_place: true, ..call };
        Persistent::new(comm, call, None, buffer)
    }

    /// A collective that sends `send` and receives into a new buffer of zeros.
    pub(super) fn of_send(comm: &Communicator, call: Call, send: Vec<T>) -> Result<Self, Error> {
        let call = call.send(&send).infer_count_from_send(comm.caller())?;
        let (_, elements) = call.normalized(comm.caller()).needed(comm.caller());
        let recv = zeros(call.collective, elements)?;
        Persistent::new(comm, call, Some(send), recv)
    }

    /// Starts the collective with the current contents of the input.
    ///
    /// # Errors
    /// [`Error::Active`] if it is under way; [`Error::Poisoned`] after a failure.
    pub fn start(&mut self) -> Result<(), Error> {
        self.repeated.start()
    }

    /// Whether the collective is done or was never started. Without workers, this call advances it.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn test(&mut self) -> Result<bool, Error> {
        self.repeated.test()
    }

    /// Waits until the collective is done; returns at once if it was not started.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.repeated.wait()
    }

    fn inactive(&self) -> Result<(), Error> {
        if self.repeated.is_active() { Err(Error::Active) } else { Ok(()) }
    }

    /// The buffer that holds the result and, in place, the input.
    ///
    /// # Errors
    /// [`Error::Active`] if the collective is under way.
    pub fn buffer(&self) -> Result<&[T], Error> {
        self.inactive()?;
        // SAFETY: owned, and nothing is under way.
        Ok(unsafe { self.recv.0.as_ref() })
    }

    /// As [`buffer`](Persistent::buffer), mutable.
    ///
    /// # Errors
    /// [`Error::Active`] if the collective is under way.
    pub fn buffer_mut(&mut self) -> Result<&mut [T], Error> {
        self.inactive()?;
        // SAFETY: as above, and borrowed exclusively.
        Ok(unsafe { self.recv.0.as_mut() })
    }

    /// The buffer that holds the input.
    ///
    /// # Errors
    /// [`Error::Active`] if the collective is under way.
    pub fn input_mut(&mut self) -> Result<&mut [T], Error> {
        self.inactive()?;
        let input = self.send.as_mut().unwrap_or(&mut self.recv);
        // SAFETY: as above, and borrowed exclusively.
        Ok(unsafe { input.0.as_mut() })
    }
}

impl<T: Datatype> Drop for Persistent<T> {
    fn drop(&mut self) {
        if self.repeated.end() {
            // A late message may still be written to the addresses that peers have.
            self.send.take().into_iter().for_each(std::mem::forget);
            std::mem::forget(std::mem::replace(&mut self.recv, Owned::new(Vec::new())));
        }
    }
}

/// The output buffer of a persistent collective: zeros.
///
/// # Errors
/// [`Error::Memory`].
fn zeros<T: Datatype>(collective: Collective, elements: u64) -> Result<Vec<T>, Error> {
    let zeros = usize::try_from(elements).ok().and_then(|len| try_zeroed_vec(len).ok());
    zeros.ok_or(Error::Memory { collective, elements, dtype: T::DTYPE })
}
