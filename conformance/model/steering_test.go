package model_test

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// ofPort is a rule of a priority for packets to UDP ports that equal 0x1234 in the bits of a mask.
func ofPort(prio, mask uint16, more ...verbs.FlowSpec) *verbs.FlowAttr {
	s := verbs.FlowSpec{Type: verbs.FlowSpecUDP, Val: verbs.FlowFilter{DstPort: 0x1234}, Mask: verbs.FlowFilter{DstPort: mask}}
	return &verbs.FlowAttr{Priority: prio, Port: 1, Specs: append([]verbs.FlowSpec{s}, more...)}
}

func udp(port uint16) *ether.Packet {
	return &ether.Packet{DstMAC: [6]byte{2}, SrcMAC: [6]byte{2, 1}, EtherType: roce.EtherTypeIPv6, Proto: roce.ProtoUDP, DstPort: port}
}

// at are arrivals, once and whole.
func at(qps ...int) (l []model.Arrival) {
	for _, q := range qps {
		l = append(l, model.Arrival{QP: q, Times: 1, Whole: true})
	}
	return l
}

// TestSteering: what is said of a rule is said of packets.
func TestSteering(t *testing.T) {
	var s model.Steering
	create := func(qp int, a *verbs.FlowAttr) *model.SteeringRule {
		t.Helper()
		r, err := s.Create(qp, a, nil)
		ok(t, err)
		return r
	}
	first := create(0, ofPort(2, 0xffff))
	wants(t, "at its queue pair", s.Delivered(udp(0x1234), at(0), false), "")
	wants(t, "at another", s.Delivered(udp(0x1234), at(1), false), "want at queue pairs [0]")
	wants(t, "one bit off", s.Delivered(udp(0x1235), at(0), false), "want at no queue pair")
	wants(t, "twice", s.Delivered(udp(0x1234), []model.Arrival{{QP: 0, Times: 2, Whole: true}}, false), "once and whole")
	part := create(1, ofPort(1, 0xfff0))
	wants(t, "a smaller priority", s.Delivered(udp(0x1234), at(1), false), "")
	wants(t, "both priorities", s.Delivered(udp(0x1234), at(0, 1), false), "smallest priority")
	wants(t, "outside the mask", s.Delivered(udp(0x123f), at(1), false), "")
	same := create(2, ofPort(2, 0xfff0))
	ok(t, s.Destroy(part, nil))
	wants(t, "one of two masks", s.Delivered(udp(0x1234), at(0), false), "")
	wants(t, "the other", s.Delivered(udp(0x1234), at(2), false), "")
	wants(t, "both", s.Delivered(udp(0x1234), at(0, 2), false), "want at queue pairs [0] or at queue pairs [2]")
	ok(t, s.Destroy(first, nil))
	create(1, ofPort(2, 0xfff0))
	wants(t, "two of one value", s.Delivered(udp(0x1230), at(1, 2), false), "")
	wants(t, "with a tag", s.Delivered(udp(0x1230), []model.Arrival{{QP: 1, Times: 1, Whole: true, Tag: 3}, {QP: 2, Times: 1, Whole: true, Tag: 3}}, true), "tag")
	_, err := s.Create(0, ofPort(2, 0xfff0, verbs.FlowSpec{Type: verbs.FlowSpecTag, Tag: 3}), nil)
	wants(t, "another tag", err, "want EEXIST")
	_, err = s.Create(0, ofPort(2, 0xfff0, verbs.FlowSpec{Type: verbs.FlowSpecDrop}), syscall.EEXIST)
	wants(t, "another action", err, "")
	_, err = s.Create(0, ofPort(16, 0xffff), nil)
	wants(t, "a priority that does not exist", err, "want ENOMEM")
	gone, err := s.DestroyQP(2, nil)
	wants(t, "a queue pair with rules", err, "want EBUSY")
	if gone {
		t.Error("it is gone")
	}
	ok(t, s.Destroy(same, nil))
	_, err = s.DestroyQP(2, nil)
	wants(t, "one without", err, "")
}

// TestSteeredGroups: rules of groups are behind all others, and default rules behind them.
func TestSteeredGroups(t *testing.T) {
	var s model.Steering
	group := verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{DstMAC: [6]byte{1, 2}}, Mask: verbs.FlowFilter{DstMAC: [6]byte{0xff, 0xff}}}
	p := udp(0x1234)
	p.DstMAC = [6]byte{1, 2, 3}
	for i, a := range []*verbs.FlowAttr{{Type: verbs.FlowAllDefault}, {Type: verbs.FlowMulticastDefault}} {
		_, err := s.Create(i, a, nil)
		ok(t, err)
	}
	wants(t, "two default rules", s.Delivered(p, at(0, 1), false), "")
	wants(t, "to a station", s.Delivered(udp(0x1234), at(0), false), "")
	_, err := s.Create(2, &verbs.FlowAttr{Priority: 1, Specs: []verbs.FlowSpec{group}}, nil)
	ok(t, err)
	wants(t, "a rule of a group", s.Delivered(p, at(2), false), "")
	_, err = s.Create(3, ofPort(15, 0xffff), nil)
	ok(t, err)
	wants(t, "and another", s.Delivered(p, at(3), false), "")
}
