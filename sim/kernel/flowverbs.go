package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// FlowSpecOf is a spec in the form of uverbs (ib_spec_to_kern_spec of libibverbs). EINVAL: a type
// that the library does not know.
func FlowSpecOf(s *verbs.FlowSpec) (FlowSpec, error) {
	both := func(typ uint32, put func(f *verbs.FlowFilter) []byte) (FlowSpec, error) {
		return FlowSpec{Type: typ, Val: put(&s.Val), Mask: put(&s.Mask)}, nil
	}
	switch s.Type {
	case verbs.FlowSpecEth:
		return both(FlowSpecEth, func(f *verbs.FlowFilter) []byte {
			b := append(append([]byte(nil), f.DstMAC[:]...), f.SrcMAC[:]...)
			return prm.AppendNetWord(prm.AppendNetWord(b, f.EtherType), f.VLANTag)
		})
	case verbs.FlowSpecIPv4, verbs.FlowSpecIPv4Ext:
		return both(FlowSpecIPv4, func(f *verbs.FlowFilter) []byte {
			b := append(append([]byte(nil), f.SrcIP[:4]...), f.DstIP[:4]...)
			if s.Type == verbs.FlowSpecIPv4Ext {
				b = append(b, f.Proto, f.TOS, f.TTL, f.IPFlags)
			}
			return b
		})
	case verbs.FlowSpecIPv6:
		return both(FlowSpecIPv6, func(f *verbs.FlowFilter) []byte {
			b := append(append([]byte(nil), f.SrcIP[:]...), f.DstIP[:]...)
			return append(prm.AppendNetWord(prm.AppendNetWord(b, uint16(f.FlowLabel>>16)), uint16(f.FlowLabel)), f.Proto, f.TOS, f.TTL, 0)
		})
	case verbs.FlowSpecTCP, verbs.FlowSpecUDP:
		typ := uint32(FlowSpecTCP)
		if s.Type == verbs.FlowSpecUDP {
			typ = FlowSpecUDP
		}
		return both(typ, func(f *verbs.FlowFilter) []byte {
			return prm.AppendNetWord(prm.AppendNetWord(nil, f.DstPort), f.SrcPort)
		})
	case verbs.FlowSpecTag:
		return FlowSpec{Type: FlowSpecTag, Val: make([]byte, 4), Tag: s.Tag}, nil
	case verbs.FlowSpecDrop:
		return FlowSpec{Type: FlowSpecDrop}, nil
	}
	return FlowSpec{}, fmt.Errorf("type %#x: %w", uint32(s.Type), syscall.EINVAL)
}
