//! The two halves of a connection, against a peer that misbehaves.

use super::*;
use futures::AsyncWriteExt as _;
use std::time::Duration;
use tokio_util::compat::TokioAsyncReadCompatExt;

fn local<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

#[test]
fn many_small_writes_leave_together_and_in_order() {
    local(async {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let mut writer = LazyWriter::new(near.compat(), Rc::default());
        for byte in 0..100 {
            writer.write_all(&[byte]).await.expect("room");
        }
        let mut read = [0; 100];
        far.compat()
            .read_exact(&mut read)
            .await
            .expect("a hundred bytes");
        assert!(read.iter().copied().eq(0..100));
    });
}

#[test]
fn a_peer_that_takes_nothing_stalls_the_reader_until_it_does() {
    local(async {
        let (near, far) = tokio::io::duplex(1024);
        let stall = Rc::new(Stall::default());
        let mut writer = LazyWriter::new(near.compat(), Rc::clone(&stall));
        let total = 2 * BACKLOG_BYTES_MAX;
        let write = tokio::task::spawn_local(async move {
            writer
                .write_all(&vec![7; total])
                .await
                .expect("taken at last");
            // One more than the bound, so that the writer has to wait.
            writer.write_all(&[8]).await.expect("taken at last");
            writer
        });
        let mut reader = GatedReader {
            inner: &b"request"[..],
            stall: Rc::clone(&stall),
        };
        tokio::time::timeout(Duration::from_secs(5), async {
            while !stall.on.get() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("it stalls");
        let mut read = [0; 7];
        let refused =
            tokio::time::timeout(Duration::from_millis(20), reader.read_exact(&mut read)).await;
        assert!(refused.is_err(), "read although the peer takes nothing");
        let mut taken = vec![0; total + 1];
        far.compat()
            .read_exact(&mut taken)
            .await
            .expect("all of it");
        assert_eq!(taken.last(), Some(&8));
        drop(write.await.expect("no panic"));
        tokio::time::timeout(Duration::from_secs(5), reader.read_exact(&mut read))
            .await
            .expect("in time")
            .expect("read");
        assert_eq!(&read, b"request");
    });
}

#[test]
fn closing_writes_the_rest_first() {
    local(async {
        let (near, far) = tokio::io::duplex(1024);
        let mut writer = LazyWriter::new(near.compat(), Rc::default());
        writer.write_all(&[1; 5000]).await.expect("room");
        let reading = tokio::task::spawn_local(async move {
            let mut all = Vec::new();
            far.compat()
                .read_to_end(&mut all)
                .await
                .expect("closed properly");
            all.len()
        });
        writer.close().await.expect("closed");
        assert_eq!(reading.await.expect("no panic"), 5000);
    });
}
