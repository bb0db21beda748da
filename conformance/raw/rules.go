package raw

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// Priorities of rules.
const (
	lastPriority = 15
	unprivileged = 1 << 20 // bytes that a process without privileges may lock
)

func ordinaryUser(c *spec.C) {
	o := kit.OpenUnprivileged(c, unprivileged)
	q := o.CreateQP(c, player.CreateQP, nil)
	for _, x := range []struct {
		what string
		typ  verbs.FlowType
	}{{"a rule", verbs.FlowNormal}, {"the default rule", verbs.FlowAllDefault}} {
		_, err := o.DoErr(c, player.CreateFlow, kit.Args{"qp": q.ID, "type": uint64(x.typ), "ether_type": kit.TypeExperimental}, nil)
		c.Errno("create_flow of "+x.what+" without CAP_NET_RAW", err, syscall.EPERM)
	}
}

// drop and tag are specs of actions.
func drop() verbs.FlowSpec { return verbs.FlowSpec{Type: verbs.FlowSpecDrop} }

func tag(n uint32) verbs.FlowSpec { return verbs.FlowSpec{Type: verbs.FlowSpecTag, Tag: n} }

// ipv4, ipv6 and l4 are specs of a few fields.
func ipv4(val, mask verbs.FlowFilter) verbs.FlowSpec {
	return verbs.FlowSpec{Type: verbs.FlowSpecIPv4Ext, Val: val, Mask: mask}
}

func ipv6(val, mask verbs.FlowFilter) verbs.FlowSpec {
	return verbs.FlowSpec{Type: verbs.FlowSpecIPv6, Val: val, Mask: mask}
}

func l4(t verbs.FlowSpecType, val, mask verbs.FlowFilter) verbs.FlowSpec {
	return verbs.FlowSpec{Type: t, Val: val, Mask: mask}
}

// with is a rule with another attribute.
func with(a verbs.FlowAttr, change func(a *verbs.FlowAttr)) verbs.FlowAttr {
	change(&a)
	return a
}

func refusedRules(c *spec.C) {
	e := kit.Open(c)
	q := e.NewRaw(c)
	try := func(q verbs.QP, a verbs.FlowAttr, port uint8) error {
		a.Port = port
		f, err := q.CreateFlow(c.T, a)
		if err == nil {
			kit.Must(c, "destroy_flow", f.Destroy(c.T))
		}
		return err
	}
	attr, err := e.Ctx.QueryDevice(c.T)
	kit.Must(c, "query_device", err)
	rule := experimental
	c.Errno("port 0", try(q, rule(), 0), syscall.EINVAL)
	c.Errno("a port that does not exist", try(q, rule(), attr.PhysPortCnt+1), syscall.EINVAL)
	rc := e.CreateQP(c, kit.Default())
	c.Errno("a QP of RC", try(rc, rule(), e.Port), syscall.EINVAL)

	const none = 0
	full := verbs.FlowFilter{Proto: 0xff}
	tcp, udp := l4(verbs.FlowSpecTCP, verbs.FlowFilter{}, verbs.FlowFilter{}), l4(verbs.FlowSpecUDP, verbs.FlowFilter{}, verbs.FlowFilter{})
	partly := kit.EthFlow(roce.EtherTypeIPv4)
	partly.Mask.EtherType = 0xff00
	any4, any6 := ipv4(verbs.FlowFilter{}, verbs.FlowFilter{}), ipv6(verbs.FlowFilter{}, verbs.FlowFilter{})
	for _, x := range []struct {
		what string
		rule verbs.FlowAttr
		want syscall.Errno
	}{
		{"the last priority", with(rule(), func(a *verbs.FlowAttr) { a.Priority = lastPriority }), none},
		{"a priority behind the last", with(rule(), func(a *verbs.FlowAttr) { a.Priority = lastPriority + 1 }), syscall.ENOMEM},
		{"the greatest priority", with(rule(), func(a *verbs.FlowAttr) { a.Priority = 0xffff }), syscall.ENOMEM},
		{"a default rule of a priority behind the last", verbs.FlowAttr{Type: verbs.FlowAllDefault, Priority: lastPriority + 1}, syscall.ENOMEM},
		{"the flag that was withdrawn", with(rule(), func(a *verbs.FlowAttr) { a.Flags = 1 }), syscall.EINVAL},
		{"a flag that does not exist", with(rule(), func(a *verbs.FlowAttr) { a.Flags = 1 << 3 }), syscall.EINVAL},
		{"a default rule that lets packets continue", verbs.FlowAttr{Type: verbs.FlowAllDefault, Flags: verbs.FlowDontTrap}, syscall.EINVAL},
		{"a default rule of multicast that lets packets continue", verbs.FlowAttr{Type: verbs.FlowMulticastDefault, Flags: verbs.FlowDontTrap}, syscall.EINVAL},
		{"a default rule of packets that are sent", verbs.FlowAttr{Type: verbs.FlowAllDefault, Flags: verbs.FlowEgress}, syscall.EINVAL},
		{"a spec that does not exist", kit.FlowOf(verbs.FlowSpec{Type: 0x7f}), syscall.EINVAL},
		{"11 specs", kit.FlowOf(tag(1), tag(1), tag(1), tag(1), tag(1), tag(1), tag(1), tag(1), tag(1), tag(1), tag(1)), syscall.EINVAL},
		{"a tag of 24 bits", kit.FlowOf(kit.EthFlow(kit.TypeExperimental), tag(1<<24-1)), none},
		{"a tag of 25 bits", kit.FlowOf(kit.EthFlow(kit.TypeExperimental), tag(1<<24)), syscall.EINVAL},
		{"IPv4 behind its EtherType", kit.FlowOf(kit.EthFlow(roce.EtherTypeIPv4), any4), none},
		{"IPv4 before its EtherType", kit.FlowOf(any4, kit.EthFlow(roce.EtherTypeIPv4)), none},
		{"IPv4 behind the EtherType of IPv6", kit.FlowOf(kit.EthFlow(roce.EtherTypeIPv6), any4), syscall.EINVAL},
		{"IPv6 behind the EtherType of IPv4", kit.FlowOf(kit.EthFlow(roce.EtherTypeIPv4), any6), syscall.EINVAL},
		{"IPv4 behind a part of its EtherType", kit.FlowOf(partly, any4), syscall.EINVAL},
		{"TCP of IPv4 with that protocol", kit.FlowOf(ipv4(verbs.FlowFilter{Proto: ether.ProtoTCP}, full), tcp), none},
		{"UDP of IPv4 with the protocol TCP", kit.FlowOf(ipv4(verbs.FlowFilter{Proto: ether.ProtoTCP}, full), udp), syscall.EINVAL},
		{"UDP of IPv6 with the next header TCP", kit.FlowOf(ipv6(verbs.FlowFilter{Proto: ether.ProtoTCP}, full), udp), syscall.EINVAL},
		{"TCP and UDP", kit.FlowOf(tcp, udp), syscall.EINVAL},
		{"a time to live", kit.FlowOf(ipv4(verbs.FlowFilter{TTL: 64}, verbs.FlowFilter{TTL: 0xff})), syscall.EOPNOTSUPP},
		{"flags of IPv4", kit.FlowOf(ipv4(verbs.FlowFilter{IPFlags: 2}, verbs.FlowFilter{IPFlags: 2})), syscall.EOPNOTSUPP},
		{"a time to live without a mask", kit.FlowOf(ipv4(verbs.FlowFilter{TTL: 64}, verbs.FlowFilter{})), none},
		{"a hop limit", kit.FlowOf(ipv6(verbs.FlowFilter{TTL: 64}, verbs.FlowFilter{TTL: 0xff})), syscall.EOPNOTSUPP},
		{"a flow label of 21 bits", kit.FlowOf(ipv6(verbs.FlowFilter{FlowLabel: 1 << 20}, verbs.FlowFilter{})), syscall.EINVAL},
		{"a flow label with a mask of 21 bits", kit.FlowOf(ipv6(verbs.FlowFilter{}, verbs.FlowFilter{FlowLabel: 1 << 20})), syscall.EINVAL},
	} {
		c.Errno(x.what, try(q, x.rule, e.Port), x.want)
	}
	// A refused rule leaves nothing behind.
	q.DestroyNow(c)
}

func priorities(c *spec.C) {
	s := kit.NewSteered(c, 3)
	p := build(c, plain(s), 100)
	all := verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{SrcMAC: src}, Mask: verbs.FlowFilter{SrcMAC: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}}
	at := func(prio uint16) func(a *verbs.FlowAttr) { return func(a *verbs.FlowAttr) { a.Priority = prio } }
	for _, prio := range []uint16{0, 1, 6, 7, 14} {
		step := fmt.Sprintf("priorities %d and %d: ", prio, prio+1)
		later := s.To[1].NewFlow(c, with(experimental(), at(prio+1)))
		s.ExpectAt(c, step+"only the second", p, 1)
		first := s.To[0].NewFlow(c, with(kit.FlowOf(all), at(prio)))
		s.ExpectAt(c, step+"both, made in the other order", p, 0)
		last := s.To[2].NewFlow(c, with(experimental(), at(lastPriority)))
		s.ExpectAt(c, step+"and one of the last", p, 0)
		first(c)
		if prio+1 < lastPriority {
			s.ExpectAt(c, step+"without the first", p, 1)
		} else {
			s.ExpectAt(c, step+"without the first", p, 1, 2)
		}
		later(c)
		s.ExpectAt(c, step+"the last", p, 2)
		last(c)
	}
	s.ExpectAt(c, "without rules", p)
}

func conflicts(c *spec.C) {
	s := kit.NewSteered(c, 2)
	p := build(c, plain(s), 100)
	try := func(step string, q *kit.Receiver, a verbs.FlowAttr, want syscall.Errno) (destroy func()) {
		a.Port = q.Env.Port
		f, err := q.CreateFlow(c.T, a)
		c.Errno(step, err, want)
		if err != nil {
			return nil
		}
		gone := kit.DestroyOnce(c, "destroy_flow", f.Destroy)
		return func() { gone(c) }
	}
	rule := func(more ...verbs.FlowSpec) verbs.FlowAttr {
		a := experimental()
		a.Specs = append(a.Specs, more...)
		return a
	}
	a, b := s.To[0], s.To[1]
	first := try("a rule with a tag", a, rule(tag(5)), 0)
	try("the same with another tag", b, rule(tag(6)), syscall.EEXIST)
	try("the same that drops", b, rule(drop()), syscall.EEXIST)
	second := try("the same without a tag", b, rule(), 0)
	s.ExpectAt(c, "two rules", p, 0, 1)
	try("the same with another tag, again", a, rule(tag(6)), syscall.EEXIST)
	first()
	s.ExpectAt(c, "the one without a tag", p, 1)
	second()
	s.ExpectAt(c, "none", p)
	first = try("a rule that drops", a, rule(drop()), 0)
	try("the same that leads to a QP", b, rule(), syscall.EEXIST)
	second = try("the same that drops", b, rule(drop()), 0)
	first()
	third := try("one of the next priority that leads to a QP", b, with(rule(), func(a *verbs.FlowAttr) { a.Priority = 1 }), 0)
	s.ExpectAt(c, "one that drops is left", p)
	second()
	s.ExpectAt(c, "none that drops is left", p, 1)
	third()
}

func drops(c *spec.C) {
	s := kit.NewSteered(c, 1)
	p, other := plain(s), plain(s)
	other.SrcMAC[5]++
	kept, dropped := build(c, other, 100), build(c, p, 100)
	s.To[0].NewFlow(c, with(kit.FlowOf(kit.EthFlow(kit.TypeExperimental)), func(a *verbs.FlowAttr) { a.Priority = 2 }))
	s.ExpectAt(c, "before", dropped, 0)
	a := experimental()
	a.Specs, a.Priority = append(a.Specs, drop()), 1
	destroy := s.To[0].NewFlow(c, a)
	s.ExpectAt(c, "a packet that a rule drops", dropped)
	s.ExpectAt(c, "another one", kept, 0)
	destroy(c)
	s.ExpectAt(c, "after it", dropped, 0)
}

func busy(c *spec.C) {
	e := kit.Open(c)
	for _, x := range []struct {
		what string
		rule verbs.FlowAttr
	}{
		{"a rule", experimental()}, {"a rule that drops", with(experimental(), func(a *verbs.FlowAttr) { a.Specs = append(a.Specs, drop()) })},
		{"a default rule", verbs.FlowAttr{Type: verbs.FlowAllDefault}},
	} {
		q := e.NewRaw(c)
		first, second := q.NewFlow(c, x.rule), q.NewFlow(c, x.rule)
		c.Errno("destroy_qp with "+x.what+" twice", q.Destroy(c.T), syscall.EBUSY)
		first(c)
		c.Errno("destroy_qp with "+x.what, q.Destroy(c.T), syscall.EBUSY)
		second(c)
		q.DestroyNow(c)
	}
	// What a process leaves behind is not in the way of others.
	o := kit.OpenOtherProcess(c, 0, nil)
	far := o.CreateQP(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTRawPacket)})
	o.Do(c, player.CreateFlow, kit.Args{"qp": far.ID, "ether_type": kit.TypeExperimental, "priority": 3, "drop": 1}, nil)
	q := e.NewRaw(c)
	rule := with(kit.FlowOf(kit.EthFlow(kit.TypeExperimental)), func(a *verbs.FlowAttr) { a.Port, a.Priority = e.Port, 3 })
	_, err := q.CreateFlow(c.T, rule)
	c.Errno("a rule that another process has otherwise", err, syscall.EEXIST)
	o.Kill(c)
	c.Eventually("the rule when that process has died", func() string {
		f, err := q.CreateFlow(c.T, rule)
		if err == nil {
			kit.Must(c, "destroy_flow", f.Destroy(c.T))
		}
		return verbs.ErrnoName(verbs.ErrnoOf(err))
	}).Within(kit.CompletionTimeout).ProbeEvery(kit.QuietPeriod).Should(isSuccess)
}

func defaults(c *spec.C) {
	s := kit.NewSteered(c, 3)
	toPort, toGroup, toAll := plain(s), plain(s), plain(s)
	toGroup.DstMAC, toAll.DstMAC = [6]byte{1, 0, 0x5e, 0, 0, 5}, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	one, group, all := build(c, toPort, 100), build(c, toGroup, 100), build(c, toAll, 100)
	expect := func(step string, ofOne, ofGroup []int) {
		s.ExpectAt(c, step+": a packet to the port", one, ofOne...)
		s.ExpectAt(c, step+": to a group", group, ofGroup...)
		s.ExpectAt(c, step+": to all", all, ofGroup...)
	}
	multicast := s.To[0].NewFlow(c, verbs.FlowAttr{Type: verbs.FlowMulticastDefault})
	expect("the default of groups", nil, []int{0})
	everything := s.To[1].NewFlow(c, verbs.FlowAttr{Type: verbs.FlowAllDefault, Priority: 3, Specs: []verbs.FlowSpec{kit.EthFlow(roce.EtherTypeIPv4)}})
	expect("and that of all", []int{1}, []int{0, 1})
	normal := s.To[2].NewFlow(c, with(experimental(), func(a *verbs.FlowAttr) { a.Priority = lastPriority }))
	expect("and a rule of the last priority", []int{2}, []int{2})
	multicast(c)
	normal(c)
	expect("without these", []int{1}, []int{1})
	everything(c)
	expect("without any", nil, nil)
}

func multicastLast(c *spec.C) {
	s := kit.NewSteered(c, 2)
	p := plain(s)
	p.DstMAC = [6]byte{1, 0, 0x5e, 0, 0, 5}
	toGroup := verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{DstMAC: p.DstMAC}, Mask: verbs.FlowFilter{DstMAC: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}}
	packet := build(c, p, 100)
	group := s.To[0].NewFlow(c, kit.FlowOf(toGroup))
	s.ExpectAt(c, "a rule of a group", packet, 0)
	other := s.To[1].NewFlow(c, with(experimental(), func(a *verbs.FlowAttr) { a.Priority = lastPriority }))
	s.ExpectAt(c, "and one of the last priority that is not of groups alone", packet, 1)
	other(c)
	s.ExpectAt(c, "without that", packet, 0)
	def := s.To[1].NewFlow(c, verbs.FlowAttr{Type: verbs.FlowAllDefault})
	s.ExpectAt(c, "and the default rule", packet, 0)
	group(c)
	s.ExpectAt(c, "the default rule alone", packet, 1)
	def(c)

	// Of IPv4 the destination decides, and its mask does not count.
	q := plain(s)
	q.EtherType, q.Proto, q.TTL = roce.EtherTypeIPv4, roce.ProtoUDP, 1
	q.SrcIP, q.DstIP = [16]byte{198, 18, 0, 1}, [16]byte{198, 18, 0, 2}
	packet = build(c, q, 100)
	s.To[0].NewFlow(c, kit.FlowOf(ipv4(verbs.FlowFilter{SrcIP: q.SrcIP, DstIP: [16]byte{224, 0, 0, 9}}, verbs.FlowFilter{SrcIP: [16]byte{255, 255, 255, 255}})))
	s.ExpectAt(c, "a rule of IPv4 with a group that it masks out", packet, 0)
	s.To[1].NewFlow(c, with(kit.FlowOf(ipv4(verbs.FlowFilter{SrcIP: q.SrcIP}, verbs.FlowFilter{SrcIP: [16]byte{255, 255, 255, 255}})), func(a *verbs.FlowAttr) { a.Priority = lastPriority }))
	s.ExpectAt(c, "and one without a group", packet, 1)
}

func tags(c *spec.C) {
	s := kit.NewSteered(c, 2)
	p := build(c, plain(s), 100)
	expect := func(step string, want uint32) {
		for i, l := range s.Deliver(c, p) {
			for _, x := range l {
				c.Equal(fmt.Sprintf("%s: at QP %d", step, i), x.WC.QPN, want)
			}
		}
	}
	for _, n := range []uint32{1, 0x123456, 1<<24 - 1, 0} {
		a := experimental()
		a.Specs = append(a.Specs, tag(n))
		first := s.To[0].NewFlow(c, a)
		expect(fmt.Sprintf("tag %#x", n), n)
		second := s.To[1].NewFlow(c, experimental())
		expect(fmt.Sprintf("tag %#x, and a rule without", n), n)
		first(c)
		expect("the rule without", n)
		second(c)
		third := s.To[1].NewFlow(c, experimental())
		expect("a new one without", 0)
		third(c)
	}
}
