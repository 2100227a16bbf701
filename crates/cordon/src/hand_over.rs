//! A file that a server gives a cordon over their socket, before the first frame.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

/// Gives a file, or says that there is none.
pub(crate) fn give(socket: &UnixStream, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let files: Vec<_> = file.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    let byte = [IoSlice::new(&[1])];
    sendmsg(socket.as_fd(), &byte, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes what was given. The outer `None`: the server is gone.
pub(crate) fn take(socket: &UnixStream) -> io::Result<Option<Option<OwnedFd>>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let received = recvmsg(
        socket.as_fd(),
        &mut bytes,
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok(Some(files.flatten().next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::File,
        io::{Read, Seek, Write},
    };

    /// What is given is what is taken, and a server that has nothing to give, or is gone, is understood.
    #[test]
    fn a_file_is_handed_over() {
        let (server, cordon) = UnixStream::pair().expect("a pair");
        let mut file = File::from(
            rustix::fs::memfd_create("given", rustix::fs::MemfdFlags::CLOEXEC).expect("a file"),
        );
        file.write_all(b"given").expect("it can be written");
        file.rewind().expect("it can be read again");
        give(&server, Some(file.as_fd())).expect("given");
        give(&server, None).expect("nothing given");
        drop(server);
        let taken = take(&cordon).expect("taken").flatten().expect("a file");
        let mut text = String::new();
        File::from(taken).read_to_string(&mut text).expect("read");
        assert_eq!(text, "given");
        assert!(matches!(take(&cordon), Ok(Some(None))));
        assert!(matches!(take(&cordon), Ok(None)));
    }
}
