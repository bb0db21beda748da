//go:build linux

package uverbs

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
	"github.com/rdmasim/rdmasim/verbs"
)

// A call that advises on memory is refused for what is wrong with it, in the order in which the
// kernel looks.
func TestAdviseMR(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd := x.pd()
	call := func(pd uint32, advice uint64, flags uint64, ranges []byte) *client.Call {
		return client.New(x.proc, uapi.ObjectMR, uapi.MRAdvise).Object(uapi.MRAdvisePD, uint64(pd)).
			Value(uapi.MRAdviseAdvice, 8, advice).Value(uapi.MRAdviseFlags, 4, flags).In(uapi.MRAdviseRanges, ranges)
	}
	s := uapi.SGE(make([]byte, uapi.SGESize))
	s.SetAddr(0x1000)
	s.SetLength(1)
	s.SetLKey(0x12345600)
	flush := uint64(verbs.AdviseFlush)
	for what, c := range map[string]struct {
		c    *client.Call
		want syscall.Errno
	}{
		"unknown key":            {call(pd, 0, flush, s), syscall.ENOENT},
		"two ranges":             {call(pd, 0, 0, append(append([]byte{}, s...), s...)), syscall.ENOENT},
		"part of a range":        {call(pd, 0, flush, append(append([]byte{}, s...), 0)), syscall.EINVAL},
		"less than a range":      {call(pd, 0, flush, s[:8]), syscall.EINVAL},
		"unknown flag":           {call(pd, 0, flush|2, s), syscall.EINVAL},
		"unknown advice":         {call(pd, 3, flush, s), syscall.EOPNOTSUPP},
		"advice beyond a word":   {call(pd, 1<<32, flush, s), syscall.EOPNOTSUPP},
		"PD that does not exist": {call(pd+100, 0, flush, s), syscall.ENOENT},
	} {
		x.refuse(what, c.c, c.want)
	}
}
