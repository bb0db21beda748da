//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// ErrUnmappable is what a Caller says of a DMA-BUF whose memory this process cannot reach, as that
// of most GPUs.
var ErrUnmappable = fmt.Errorf("%w: memory of a DMA-BUF that cannot be mapped: only the driver that exports it knows its pages: %w", errNotModelled, syscall.EOPNOTSUPP)

// regDmabuf is REG_DMABUF_MR.
func (f *File) regDmabuf(c Caller, k *uapi.Call) error {
	pd, _ := k.Handle(uapi.RegDmabufPD)
	flags, err := k.Flags32(uapi.RegDmabufAccess, uint32(verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic|verbs.AccessRelaxedOrdering))
	if err != nil {
		return err
	}
	var buf *kernel.DMABuf
	h, lkey, rkey, err := f.u.RegDmabufMR(noCaller, kernel.DmabufMRReq{
		PD: kernelHandle(pd), Offset: k.Value(uapi.RegDmabufOffset), Length: k.Value(uapi.RegDmabufLength), Iova: k.Value(uapi.RegDmabufIova), Access: access(flags),
		File: func() (*kernel.DMABuf, error) {
			exp, err := c.Dmabuf(int(int32(k.Value(uapi.RegDmabufFD))))
			if err != nil {
				return nil, err
			}
			buf = kernel.NewDMABuf(exp)
			return buf, nil
		},
	})
	if buf != nil {
		buf.Put() // the region has a reference of its own
	}
	if err != nil {
		return err
	}
	err = errors.Join(k.Out32(uapi.RegDmabufLKey, lkey), k.Out32(uapi.RegDmabufRKey, rkey), k.SetNew(uapi.RegDmabufHandle, uint64(h)))
	return undo(err, func() error { return f.u.DeregMR(noCaller, h) })
}
