//! Letting others go first without changing places with them.
//!
//! Calls of one capability take place in the order in which they were sent: Cap'n Proto promises that. `tokio`'s
//! `yield_now` wakes those who wait in the opposite order, so only the first of them waits there, and wakes the others when
//! it goes on.

use std::{
    cell::RefCell,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

/// Those behind the first, in the order in which they came; none where nobody waits.
#[derive(Default)]
struct Line(Mutex<Option<Vec<Waker>>>);

thread_local! {
    static LINE: RefCell<Arc<Line>> = RefCell::default();
}

/// Waits until all else that is ready on this thread has had a turn.
pub(crate) async fn yield_in_order() {
    let line = LINE.with_borrow(Arc::clone);
    let is_first = line.lock().is_none();
    if is_first {
        *line.lock() = Some(Vec::new());
        let _others_follow = First(line);
        tokio::task::yield_now().await;
    } else {
        line.follow().await;
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Waker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow(&self) {
        let mut has_waited = false;
        poll_fn(|context| match self.lock().as_mut() {
            Some(behind) if !mem::replace(&mut has_waited, true) => {
                behind.push(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
        .await;
    }
}

/// Wakes the others when the first goes on, or is given up.
struct First(Arc<Line>);

impl Drop for First {
    fn drop(&mut self) {
        let behind = self.0.lock().take();
        behind.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, StreamExt, stream::FuturesUnordered};

    #[tokio::test]
    async fn nobody_changes_places() {
        let order = RefCell::new(Vec::new());
        let go = async |number: u32| {
            yield_in_order().await;
            order.borrow_mut().push(number);
        };
        for round in [0, 10, 20] {
            let calls: FuturesUnordered<_> = (round..round + 6).map(go).collect();
            calls.collect::<Vec<()>>().await;
        }
        let expected = [0, 10, 20].map(|round| (round..round + 6).collect::<Vec<u32>>());
        assert_eq!(*order.borrow(), expected.concat());
    }

    #[tokio::test]
    async fn those_behind_go_on_when_the_first_is_given_up() {
        let mut first = Box::pin(yield_in_order());
        let mut second = Box::pin(yield_in_order());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        second.await;
        yield_in_order().await;
    }
}
