//! What a server gives a cordon over their socket, which is of no use afterwards: the pipes that they talk over, and a file.

use rustix::{
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
};
use std::{
    io::{self, ErrorKind, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

/// What a pipe holds, where the system allows it. Longer frames take turns of writing and reading.
const PIPE_BYTES: usize = 256 << 10;

/// A way for bytes, in one direction.
pub(crate) struct Pipe {
    pub(crate) reader: OwnedFd,
    pub(crate) writer: OwnedFd,
}

impl Pipe {
    /// One whose ends wait.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Users have a quota of what their pipes hold.
        let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
        Ok(Self { reader, writer })
    }
}

/// What a cordon is given.
pub(crate) struct HandOver {
    /// Where orders come from.
    pub(crate) orders: OwnedFd,
    /// Where to tell what comes of them.
    pub(crate) told: OwnedFd,
    /// The compiled transpiler, where there is one.
    pub(crate) transpiler: Option<OwnedFd>,
}

/// Gives it.
pub(crate) fn give(
    socket: &UnixStream,
    orders: BorrowedFd<'_>,
    told: BorrowedFd<'_>,
    transpiler: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut files = vec![orders, told];
    files.extend(transpiler);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let byte = [IoSlice::new(&[1])];
    sendmsg(socket.as_fd(), &byte, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes what was given. `None`: the server is gone.
pub(crate) fn take(socket: &UnixStream) -> io::Result<Option<HandOver>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
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
    let mut files = files.flatten();
    let mut pipe = || files.next().ok_or(ErrorKind::InvalidData);
    Ok(Some(HandOver {
        orders: pipe()?,
        told: pipe()?,
        transpiler: files.next(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::File,
        io::{Read, Seek, Write},
    };

    /// What is given is what is taken, and a server that has no transpiler, or is gone, is understood.
    #[test]
    fn pipes_and_a_file_are_handed_over() {
        let (server, cordon) = UnixStream::pair().expect("a pair");
        let mut file = File::from(
            rustix::fs::memfd_create("given", rustix::fs::MemfdFlags::CLOEXEC).expect("a file"),
        );
        file.write_all(b"given").expect("it can be written");
        file.rewind().expect("it can be read again");
        let (orders, told) = (Pipe::new().expect("a pipe"), Pipe::new().expect("a pipe"));
        let ends = (orders.reader.as_fd(), told.writer.as_fd());
        give(&server, ends.0, ends.1, Some(file.as_fd())).expect("given");
        give(&server, ends.0, ends.1, None).expect("given");
        drop(server);
        let taken = take(&cordon).expect("taken").expect("something");
        let mut text = String::new();
        let transpiler = taken.transpiler.expect("a file");
        File::from(transpiler)
            .read_to_string(&mut text)
            .expect("read");
        assert_eq!(text, "given");
        File::from(orders.writer).write_all(b"go").expect("written");
        File::from(taken.told).write_all(b"did").expect("written");
        let (mut order, mut answer) = ([0; 2], [0; 3]);
        let read = File::from(taken.orders).read_exact(&mut order);
        read.expect("an order");
        let read = File::from(told.reader).read_exact(&mut answer);
        read.expect("an answer");
        assert_eq!((&order, &answer), (b"go", b"did"));
        let taken = take(&cordon).expect("taken").expect("pipes");
        assert!(taken.transpiler.is_none());
        assert!(matches!(take(&cordon), Ok(None)));
    }
}
