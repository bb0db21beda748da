package cm

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// Commands of the channel file (include/uapi/rdma/rdma_user_cm.h).
const (
	cmdCreateID  = 0
	cmdListen    = 7
	cmdGetOption = 13
	cmdUnknown   = 1000
	noSuchID     = 0xfff0
)

// rawFile is a channel file of the case, closed at its end.
type rawFile struct {
	verbs.CMFile
	answer verbs.Buffer // memory for answers
}

func openRaw(c *spec.C) *rawFile {
	o, ok := c.Process().(verbs.CMFileOpener)
	if !ok {
		c.Errorf("the testbed says that commands can be written to the file of the connection manager, and its processes cannot open one")
	}
	f, err := o.OpenCMFile(c.T)
	kit.Must(c, "open of the channel file", err)
	kit.DestroyOnce(c, "close of the channel file", f.Close)
	b, err := c.Process().Map(c.T, 4096, verbs.MapOptions{})
	kit.Must(c, "mmap", err)
	return &rawFile{f, b}
}

// command is the header, and the command's own bytes; room is that for an answer.
func command(number uint32, room uint16, body []byte) []byte {
	h := uapi.CMHeader(make([]byte, uapi.CMHeaderSize))
	h.SetCommand(number)
	h.SetIn(uint16(len(body)))
	h.SetOut(room)
	return append(h, body...)
}

// refused writes a command that must be refused.
func (f *rawFile) refused(c *spec.C, step string, b []byte, want syscall.Errno) {
	_, err := f.Write(c.T, b)
	c.Errno(step, err, want)
}

// create is CREATE_ID of the port space TCP.
func (f *rawFile) create(c *spec.C) uint32 {
	b := uapi.CMCreateID(make([]byte, uapi.CMCreateIDSize))
	b.SetUID(1)
	b.SetResponse(f.answer.Addr())
	b.SetPortSpace(uint16(verbs.PortSpaceTCP))
	b.SetQPType(uint8(verbs.QPTRC))
	whole := command(cmdCreateID, uapi.CMCreateIDRespSize, b)
	n, err := f.Write(c.T, whole)
	c.NoErr("CREATE_ID", err)
	c.Equal("bytes that were taken", n, len(whole))
	id := uapi.CMCreateIDResp(make([]byte, uapi.CMCreateIDRespSize))
	_, err = f.answer.ReadAt(c.T, id, 0)
	kit.Must(c, "read of the answer", err)
	return id.ID()
}

// listen is LISTEN, which binds an id that is not bound.
func listen(id uint32) []byte {
	b := uapi.CMListen(make([]byte, uapi.CMListenSize))
	b.SetID(id)
	b.SetBacklog(1)
	return command(cmdListen, 0, b)
}

func rawHeaders(c *spec.C) {
	f := openRaw(c)
	whole := listen(noSuchID)
	f.refused(c, "less than a header", whole[:4], syscall.EINVAL)
	f.refused(c, "less than the header says", whole[:len(whole)-2], syscall.EINVAL)
	f.refused(c, "a number that no command has", command(cmdUnknown, 0, nil), syscall.EINVAL)
	f.refused(c, "GET_OPTION", command(cmdGetOption, 0, make([]byte, 24)), syscall.ENOSYS)
}

func rawIDs(c *spec.C) {
	f, other := openRaw(c), openRaw(c)
	f.refused(c, "an id that was never made", listen(noSuchID), syscall.ENOENT)
	id := f.create(c)
	other.refused(c, "an id of another file", listen(id), syscall.EINVAL)
	_, err := f.Write(c.T, listen(id))
	c.NoErr("the id's own file", err)
}
