//go:build linux && amd64

package vfiouser

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/uapi"
)

// maxTransfer is the most data that one message carries (max_data_xfer_size).
const maxTransfer = 1 << 20

// maxMessage is the longest message that is taken.
const maxMessage = uapi.VFIOUserHeaderSize + uapi.VFIOUserRegionAccessSize + maxTransfer

// maxFiles is how many descriptors the kernel passes with one message (SCM_MAX_FD).
const maxFiles = 253

var oobSize = unix.CmsgSpace(4 * maxFiles)

// message is a request. Files that are not taken out of it are closed after the request.
type message struct {
	head      uapi.VFIOUserHeader
	body      []byte
	files     []int
	truncated bool // more files came than there is room for
}

func (m *message) kind() uint32 { return m.head.Flags() & uapi.VFIOUserTypeMask }

// take removes file i from what is closed, and returns it.
func (m *message) take(i int) int {
	fd := m.files[i]
	m.files[i] = -1
	return fd
}

func (m *message) closeFiles() {
	for _, fd := range m.files {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	m.files = nil
}

// receive takes the next message. What it refers to is valid until the next call. After an error
// the message may hold files all the same.
func (x *connection) receive() (m message, err error) {
	x.in = grow(x.in, uapi.VFIOUserHeaderSize)
	if err := x.fill(x.in, &m); err != nil {
		return m, err
	}
	m.head = append(x.head[:0], x.in...)
	n := int64(m.head.Size()) - uapi.VFIOUserHeaderSize
	if n < 0 || m.head.Size() > maxMessage {
		_ = x.reply(&m, nil, syscall.EMSGSIZE)
		return m, fmt.Errorf("%w: a message of %d bytes, where %d to %d are possible", ErrProtocol, m.head.Size(), uapi.VFIOUserHeaderSize, maxMessage)
	}
	x.in = grow(x.in[:0], int(n))
	if err := x.fill(x.in, &m); err != nil {
		return m, err
	}
	m.body = x.in
	return m, nil
}

// fill reads all of p, and collects the files that come with it.
func (x *connection) fill(p []byte, m *message) error {
	for first := true; len(p) > 0; first = false {
		n, on, flags, _, err := x.c.ReadMsgUnix(p, x.oob)
		m.truncated = m.truncated || flags&unix.MSG_CTRUNC != 0
		if on > 0 {
			m.files = append(m.files, rights(x.oob[:on])...)
		}
		if n == 0 && err == nil {
			err = io.EOF
		}
		if errors.Is(err, io.EOF) && (!first || len(m.head) > 0) {
			return fmt.Errorf("%w: the connection ends inside a message", io.EOF)
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// rights are the files of control messages.
func rights(oob []byte) (fds []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		if more, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, more...)
		}
	}
	return fds
}

// reply answers a request with a body, or with the number of an error.
func (x *connection) reply(m *message, body []byte, err error) error {
	if m.head.Flags()&uapi.VFIOUserNoReply != 0 {
		return nil
	}
	flags, number := uint32(uapi.VFIOUserReply), uint32(0)
	if err != nil {
		var e syscall.Errno
		if !errors.As(err, &e) {
			e = syscall.EINVAL
		}
		body, flags, number = nil, flags|uapi.VFIOUserError, uint32(e)
	}
	x.out = append(grow(x.out[:0], uapi.VFIOUserHeaderSize), body...)
	h := uapi.VFIOUserHeader(x.out)
	h.SetID(m.head.ID())
	h.SetCommand(m.head.Command())
	h.SetSize(uint32(len(x.out)))
	h.SetFlags(flags)
	h.SetError(number)
	_, werr := x.c.Write(x.out)
	return werr
}
