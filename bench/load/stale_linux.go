package load

import "syscall"

// stale reports whether the server has ended the connection, or said something unasked, which servers do before they
// end it. Nothing may be sent on it any more. It costs a system call.
func (c *connection) stale() bool {
	var b [1]byte
	var err error
	look := func(fd uintptr) {
		_, _, err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}
	if c.raw.Control(look) != nil {
		return false // it was ended here
	}
	return err != syscall.EAGAIN && err != syscall.EINTR
}
