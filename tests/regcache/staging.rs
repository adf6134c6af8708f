//! The staging pool: buffers are aligned, registered once, and used again.

use std::sync::Arc;

use hopbine::memory::{CacheConfig, RegistrationCache, StagingError, StagingPool, page_bytes};

use crate::device::Device;

fn pool() -> (Arc<Device>, StagingPool<Arc<Device>>) {
    let device = Arc::new(Device::default());
    let cache = RegistrationCache::new(Arc::clone(&device), CacheConfig::default(), None);
    (device, StagingPool::new(Arc::new(cache)))
}

#[test]
fn buffers_are_aligned_zeroed_and_registered() {
    let (_device, pool) = pool();
    for len in [0, 1, page_bytes(), page_bytes() + 1, 5 * page_bytes()] {
        let buffer = pool.take(len).unwrap();
        let addr = buffer.as_ptr() as usize;
        assert_eq!(addr % page_bytes(), 0);
        assert!(buffer.len() >= len && buffer.iter().all(|byte| *byte == 0));
        let handle = buffer.handle();
        assert_eq!(handle.addr + buffer.offset() as usize, addr);
        assert!(addr + buffer.len() <= handle.addr + handle.len);
    }
}

#[test]
fn a_buffer_comes_again_with_its_registration() {
    let (device, pool) = pool();
    let mut first = pool.take(3 * page_bytes()).unwrap();
    first[7] = 42;
    let (addr, id) = (first.as_ptr(), first.handle().id);
    drop(first);
    let again = pool.take(4 * page_bytes()).unwrap();
    assert_eq!((again.as_ptr(), again.handle().id, again[7]), (addr, id, 42));
    let other = pool.take(4 * page_bytes()).unwrap();
    assert_ne!(other.as_ptr(), addr);
    assert_eq!(device.made(), 2);
}

#[test]
fn memory_and_registrations_end_with_pool_and_buffers() {
    let (device, pool) = pool();
    let idle = pool.take(1).unwrap();
    let used = pool.take(1).unwrap();
    drop(idle);
    drop(pool);
    assert_eq!(device.live(), 2);
    drop(used);
    assert_eq!(device.live(), 0);
}

#[test]
fn too_much_is_an_error() {
    let (_device, pool) = pool();
    for len in [usize::MAX, isize::MAX as usize] {
        let error = pool.take(len).map(|buffer| buffer.len()).unwrap_err();
        assert!(matches!(error, StagingError::Memory { len: asked } if asked == len));
    }
}
