//! The allocator: Rust's own, with whole pages for what is about a page large.
//!
//! QuickJS carves its small objects out of arenas of just under 4 KiB, one kind of size each. A fresh isolate shares the
//! snapshot's pages and copies those that it writes to, so an arena that lay across two of them would cost two copies
//! and two resets. Whole pages make it one.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ptr,
};

/// Of the machine that runs the guest, not of Wasm.
const PAGE_BYTES: usize = 4096;
/// Requests above this and up to a page get a page: QuickJS' arenas have 3,593 bytes at least.
const PAGED_BYTES_MIN: usize = 3584;
const WASM_PAGE_BYTES: usize = 65_536;

#[global_allocator]
static HEAP: Heap = Heap {
    free: Cell::new(ptr::null_mut()),
    fresh: Cell::new(0),
    fresh_end: Cell::new(0),
};

struct Heap {
    /// The first of the free pages; each begins with a pointer to the next.
    free: Cell<*mut FreePage>,
    /// Pages that were never used, from here to the end. Not on the list, because that would be to write to them.
    fresh: Cell<usize>,
    fresh_end: Cell<usize>,
}

struct FreePage {
    next: *mut FreePage,
}

// SAFETY: the guest has one thread.
unsafe impl Sync for Heap {}

fn is_paged(size: usize, align: usize) -> bool {
    size > PAGED_BYTES_MIN && size <= PAGE_BYTES && align <= PAGE_BYTES
}

/// Memory that a fresh isolate has before it must ask for more, in Wasm pages: for what gets whole pages, and for the
/// rest. It counts in what an isolate takes from the pool.
const SPARE_PAGED: usize = 3;
const SPARE_OTHER: usize = 2;

/// Makes room at the end of what goes into the snapshot. Room that was never written to costs an isolate nothing, and
/// asking for it costs several microseconds.
pub(crate) fn make_room() {
    // What was left is used up first, as one stretch with it.
    let left = HEAP.fresh_end.get() - HEAP.fresh.get();
    if left < SPARE_PAGED * WASM_PAGE_BYTES / 2 {
        HEAP.grow(SPARE_PAGED);
    }
    let room = Vec::<u8>::with_capacity(SPARE_OTHER * WASM_PAGE_BYTES);
    // So that nobody optimises it away.
    std::hint::black_box(room);
}

/// Takes the pages that were given back out of use, and returns from where on pages are taken next.
pub(crate) fn use_up_free_pages() -> usize {
    while !HEAP.free.get().is_null() {
        HEAP.take_page();
    }
    // One for each size of the engine's arenas, next to each other.
    if HEAP.fresh_end.get() - HEAP.fresh.get() < 32 * PAGE_BYTES {
        HEAP.grow(SPARE_PAGED);
    }
    HEAP.fresh.get()
}

impl Heap {
    fn take_page(&self) -> *mut u8 {
        let page = self.free.get();
        if !page.is_null() {
            // SAFETY: what is on the list is a page that nobody uses, written by `give_page`.
            self.free.set(unsafe { (*page).next });
            return page.cast();
        }
        if self.fresh.get() == self.fresh_end.get() && !self.grow(1) {
            return ptr::null_mut();
        }
        let page = self.fresh.get();
        self.fresh.set(page + PAGE_BYTES);
        ptr::with_exposed_provenance_mut(page)
    }

    fn give_page(&self, page: *mut u8) {
        let page: *mut FreePage = page.cast();
        // SAFETY: the page came from `take_page`, is aligned, and whoever had it has given it back.
        unsafe {
            page.write(FreePage {
                next: self.free.get(),
            })
        };
        self.free.set(page);
    }

    /// Adds pages of Wasm's memory; false where the host allows no more.
    fn grow(&self, wasm_pages: usize) -> bool {
        let grown = core::arch::wasm32::memory_grow::<0>(wasm_pages);
        if grown == usize::MAX {
            return false;
        }
        self.fresh.set(grown * WASM_PAGE_BYTES);
        self.fresh_end.set((grown + wasm_pages) * WASM_PAGE_BYTES);
        true
    }
}

// SAFETY: requests that `is_paged` get a page of their own, aligned to it; all others go to the system's allocator. Both
// sides look at the same size, which whoever frees or resizes gives as it was.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_paged(layout.size(), layout.align()) {
            return self.take_page();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_paged(layout.size(), layout.align()) {
            let page = self.take_page();
            if !page.is_null() {
                // SAFETY: the page is ours, and that long.
                unsafe { page.write_bytes(0, layout.size()) };
            }
            return page;
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_paged(layout.size(), layout.align()) {
            return self.give_page(pointer);
        }
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (was_paged, is_paged) = (
            is_paged(layout.size(), layout.align()),
            is_paged(size, layout.align()),
        );
        if was_paged && is_paged {
            return pointer;
        }
        // SAFETY: as the caller promises; moved by hand where it changes sides.
        unsafe {
            if !was_paged && !is_paged {
                return System.realloc(pointer, layout, size);
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                pointer.copy_to_nonoverlapping(moved, size.min(layout.size()));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}
