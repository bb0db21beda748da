//go:build linux && amd64

package vfiouser

import (
	"bytes"
	"encoding/json"
	"syscall"

	"github.com/rdmasim/rdmasim/uapi"
)

// maxMessageFiles is how many files a client may send with a message (max_msg_fds). QEMU refuses
// more than 16.
const maxMessageFiles = 16

// version agrees on version 0.0 and on what both sides can do. Migration and writes in bundles are
// not offered: a client then uses neither.
func (x *connection) version(m *message) ([]byte, error) {
	v := uapi.VFIOUserVersion(m.body)
	if x.agreed || v.Major() != 0 {
		return nil, syscall.EINVAL
	}
	text, _, terminated := bytes.Cut(m.body[uapi.VFIOUserVersionSize:], []byte{0})
	if len(text) > 0 {
		var asked map[string]any
		if err := json.Unmarshal(text, &asked); err != nil || !terminated {
			return nil, syscall.EINVAL
		}
	}
	answer, err := json.Marshal(map[string]any{"capabilities": map[string]any{
		"max_msg_fds": maxMessageFiles, "max_data_xfer_size": maxTransfer, "pgsizes": pageSize, "max_dma_maps": maxWindows,
	}})
	if err != nil {
		return nil, err
	}
	x.agreed = true
	x.d.Connected(x.irqs)
	// Minor 0 is the only one, and not above the client's.
	out := make(uapi.VFIOUserVersion, uapi.VFIOUserVersionSize, uapi.VFIOUserVersionSize+len(answer)+1)
	return append(append(out, answer...), 0), nil
}
