//go:build linux

package uverbs

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/uapi"
)

// TestDCIStreams: a program learns how many streams a DCI may have, and makes one with fewer; the
// device says no to more.
func TestDCIStreams(t *testing.T) {
	for _, most := range []int{0, 4} {
		x := newRig(t, newMachineOf(t, func(p *hca.Params) { p.DCIStreams = most }))
		x.open()
		c, _ := x.write(uapi.CmdQueryDevice|uapi.CmdExtended, make([]byte, uapi.ExQueryDeviceSize), uapi.ExQueryDeviceRespSize)
		drv := uapi.MLX5QueryDeviceResp(c.Out(uapi.AttrUHWOut, uapi.MLX5QueryDeviceRespSize))
		x.do("EX_QUERY_DEVICE", c)
		if int(drv.LogStreams()) != most || int(drv.LogErroredStreams()) != most {
			t.Errorf("2^%d streams, 2^%d in error, of a device with 2^%d", drv.LogStreams(), drv.LogErroredStreams(), most)
		}
		pd, cq := x.pd(), x.cq(-1, 1)
		create := func(flags uint32, streams, failed uint8) syscall.Errno {
			c, _, _ := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) {
				d.SetFlags(uapi.QPFlagTypeDCI | flags)
				d.SetRQWQECount(0)
				d.SetRQWQEShift(0)
				d.SetLogStreams(streams)
				d.SetLogErroredStreams(failed)
			})
			c.Attr(uapi.QPCreateType).SetData(0xff)
			addr, b := x.proc.Alloc(uapi.QPCapSize)
			uapi.QPCap(b).SetMaxSendWR(sqCount / 2)
			uapi.QPCap(b).SetMaxSendSGE(1)
			c.Attr(uapi.QPCreateCap).SetData(addr)
			return x.file.Ioctl(x.proc, c.Addr())
		}
		want := map[int]syscall.Errno{0: syscall.EINVAL, 4: 0}[most]
		for _, c := range []struct {
			flags           uint32
			streams, failed uint8
			want            syscall.Errno
		}{
			{0, 9, 9, 0}, // without the flag the numbers mean nothing
			{uapi.QPFlagDCIStream, 3, 2, want},
			{uapi.QPFlagDCIStream, 5, 2, syscall.EINVAL},
			{uapi.QPFlagDCIStream, 2, 5, syscall.EINVAL},
		} {
			if got := create(c.flags, c.streams, c.failed); got != c.want {
				t.Errorf("most 2^%d, %+v: %v", most, c, got)
			}
		}
	}
}
