package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// TestQueryQPLengths: Linux 6.1 and 6.12 ask with mailboxes of different lengths.
func TestQueryQPLengths(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq := h.newCQ(4, 64)
	q := h.newQP(cq, cq)
	in := prm.NewIn(prm.OpQueryQP, 0)
	prm.QueryQPIn(in).SetQPN(q.n)
	for n, want := range map[int]prm.Status{
		0xff: prm.StatusBadOutpLen, 0x100: prm.StatusOK, 0x110: prm.StatusOK, 0x117: prm.StatusOK, 0x118: prm.StatusOK,
		prm.QueryQPOutSize: prm.StatusOK, 0x1000: prm.StatusOK,
	} {
		out := make([]byte, n)
		h.d.Command(in, out)
		if got := prm.CmdOut(out).Status(); got != want {
			t.Errorf("%#x bytes: %v, want %v", n, got, want)
		}
		if want != prm.StatusOK {
			continue
		}
		o := prm.QueryQPOut(out)
		if o.QPC().CQNRcv() != cq.n {
			t.Errorf("%#x bytes: the context is not there", n)
		}
		if o.PAS().Count() > 0 && o.PAS().At(0) == 0 {
			t.Errorf("%#x bytes: no page of the ring", n)
		}
	}
}

// TestSetAtomic: Linux sends one field of the page, and 0 for all others.
func TestSetAtomic(t *testing.T) {
	h := &host{t: t, e: sim.New(sim.Options{})}
	h.d = New(h.e, "x", nil, testParams(), Identity{})
	h.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	set := func(mode uint32, want prm.Status) {
		t.Helper()
		in := prm.NewIn(prm.OpSetHCACap, 0)
		prm.CmdIn(in).SetOpMod(prm.CapAtomic << 1)
		prm.AtomicCap(prm.SetHCACapIn(in).Capability()).SetAtomicReq8BEndiannessMode(mode)
		h.status(in, want)
	}
	page := func(mode uint32) {
		t.Helper()
		in := prm.NewIn(prm.OpQueryHCACap, 0)
		prm.CmdIn(in).SetOpMod(prm.CapAtomic<<1 | prm.CapModeCurrent)
		a := prm.AtomicCap(prm.QueryHCACapOut(h.cmd(in)).Capability())
		if a.AtomicReq8BEndiannessMode() != mode || a.AtomicOperations() != prm.AtomicOpCmpSwap|prm.AtomicOpFetchAdd || a.AtomicSizeQP() != 1<<3 {
			t.Errorf("mode %d, operations %#x, sizes %#x", a.AtomicReq8BEndiannessMode(), a.AtomicOperations(), a.AtomicSizeQP())
		}
	}
	page(1)
	set(0, prm.StatusOK)
	page(0)
	set(1, prm.StatusOK)
	set(2, prm.StatusBadParam)
	set(3, prm.StatusBadParam)
	page(1)
	in := prm.NewIn(prm.OpSetHCACap, 0)
	prm.CmdIn(in).SetOpMod(prm.CapDeviceMem << 1)
	h.status(in, prm.StatusBadParam)
}

// TestPKeyOnEthernet: ib_core reads P_Key 0 of RoCE ports too.
func TestPKeyOnEthernet(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	for _, x := range []struct {
		index uint32
		room  int
		want  prm.Status
	}{
		{0, 4, prm.StatusOK}, {0, 64, prm.StatusOK}, {prm.AllVportEntries, 4, prm.StatusOK}, {1, 4, prm.StatusIX}, {0xfffe, 4, prm.StatusIX},
		{0, 0, prm.StatusBadOutpLen}, {0, 3, prm.StatusBadOutpLen},
	} {
		in, out := prm.NewIn(prm.OpQueryHCAVportPKey, 0), prm.NewOut(prm.OpQueryHCAVportPKey, x.room)
		prm.QueryHCAVportPKeyIn(in).SetPKeyIndex(x.index)
		h.d.Command(in, out)
		if got := prm.CmdOut(out).Status(); got != x.want {
			t.Errorf("index %d, room for %d bytes: %v, want %v", x.index, x.room, got, x.want)
		}
		if o := prm.QueryHCAVportPKeyOut(out); x.want == prm.StatusOK && (o.PKey(0) != roce.DefaultPKey || o.Room() > 1 && o.PKey(1) != 0) {
			t.Errorf("index %d: keys % x", x.index, out[prm.QueryHCAVportPKeyOutSize:])
		}
	}
	in := prm.NewIn(prm.OpQueryHCAVportPKey, 0)
	prm.QueryHCAVportPKeyIn(in).SetPortNum(2)
	h.status(in, prm.StatusBadParam)
}

// setList is MODIFY_NIC_VPORT_CONTEXT with a list of addresses that has room for room of them.
func (h *host) setList(kind, n uint32, room int, want prm.Status) {
	h.t.Helper()
	in := prm.NewIn(prm.OpModifyNICVportContext, 8*room)
	m := prm.ModifyNICVportContextIn(in)
	m.SetFieldSelect(vportList)
	m.Context().SetAllowedListType(kind)
	m.Context().SetAllowedListSize(n)
	for i := range room {
		copy(m.List().MAC(i), []byte{2, byte(kind), byte(n), 0, byte(i >> 8), byte(i)})
	}
	h.status(in, want)
}

func (h *host) vportOf(kind uint32, room int) prm.QueryNICVportContextOut {
	in, out := prm.NewIn(prm.OpQueryNICVportContext, 0), prm.NewOut(prm.OpQueryNICVportContext, 8*room)
	prm.QueryNICVportContextIn(in).SetAllowedListType(kind)
	h.d.Command(in, out)
	if st := prm.CmdOut(out).Status(); st != prm.StatusOK {
		h.t.Fatal(st)
	}
	return out
}

func TestVportLists(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	ok, bad := prm.StatusOK, prm.StatusBadParam
	for kind, most := range []uint32{128, 2048, 4096} {
		k := uint32(kind)
		if most <= 0xfff-1 {
			h.setList(k, most+1, int(most+1), bad)
		}
		if most <= 0xfff {
			h.setList(k, most, int(most), ok)
		}
		h.setList(k, 3, 2, bad)
		h.setList(k, 2, 3, ok)
		if l := h.vportOf(k, 3); l.Context().AllowedListType() != k || l.Context().AllowedListSize() != 2 ||
			!bytes.Equal(l.List().MAC(1), []byte{2, byte(k), 2, 0, 0, 1}) || !bytes.Equal(l.List()[16:], make([]byte, 8)) {
			t.Errorf("kind %d: % x", k, []byte(l))
		}
		if l := h.vportOf(k, 1); l.Context().AllowedListSize() != 2 || !bytes.Equal(l.List().MAC(0), []byte{2, byte(k), 2, 0, 0, 0}) {
			t.Errorf("kind %d with room for one: % x", k, []byte(l))
		}
	}
	h.setList(prm.VportListTypes, 0, 0, bad)
	h.setList(prm.VportListMC, 0, 0, ok)
	if n := h.vportOf(prm.VportListMC, 0).Context().AllowedListSize(); n != 0 {
		t.Errorf("%d entries of an empty list", n)
	}
	if n := h.vportOf(prm.VportListUC, 0).Context().AllowedListSize(); n != 2 {
		t.Errorf("the list of another kind has %d entries", n)
	}
	in := prm.NewIn(prm.OpQueryNICVportContext, 0)
	prm.QueryNICVportContextIn(in).SetAllowedListType(3)
	h.status(in, bad)
}

func TestPromiscuous(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	for bits := range uint32(8) {
		in := prm.NewIn(prm.OpModifyNICVportContext, 0)
		m := prm.ModifyNICVportContextIn(in)
		m.SetFieldSelect(vportPromisc)
		m.Context().SetPromiscUC(bits&1 != 0)
		m.Context().SetPromiscMC(bits&2 != 0)
		m.Context().SetPromiscAll(bits&4 != 0)
		m.Context().SetMTU(77) // not selected
		h.cmd(in)
		if c := h.vportOf(0, 0).Context(); c.PromiscUC() != (bits&1 != 0) || c.PromiscMC() != (bits&2 != 0) || c.PromiscAll() != (bits&4 != 0) || c.MTU() == 77 {
			t.Errorf("%03b: % x", bits, []byte(c))
		}
	}
	in := prm.NewIn(prm.OpModifyNICVportContext, 0)
	prm.ModifyNICVportContextIn(in).SetFieldSelect(vportPromisc | 1<<31)
	h.status(in, prm.StatusBadParam)
}

// TestPortCapabilities: ib_cm sets and clears its bit, and no other changes.
func TestPortCapabilities(t *testing.T) {
	_, h, _ := ibHosts(t)
	const cm = 1 << 16
	mask := func() prm.HCAVportContext {
		return prm.QueryHCAVportContextOut(h.cmd(prm.NewIn(prm.OpQueryHCAVportContext, 0))).Context()
	}
	modify := func(fields, bits, value uint32, want prm.Status) {
		t.Helper()
		in := prm.NewIn(prm.OpModifyHCAVportContext, 0)
		c := prm.ModifyHCAVportContextIn(in).Context()
		c.SetFieldSelect(fields)
		c.SetCapMask1FieldSelect(bits)
		c.SetCapMask1(value)
		h.status(in, want)
	}
	first := mask().CapMask1()
	if first&cm == 0 || mask().CapMask1FieldSelect()&cm == 0 {
		t.Errorf("mask %#x, changeable %#x", first, mask().CapMask1FieldSelect())
	}
	modify(0, cm, 0, prm.StatusOK)
	if got := mask().CapMask1(); got != first&^cm {
		t.Errorf("mask %#x without CM", got)
	}
	modify(0, cm, ^uint32(0), prm.StatusOK)
	if got := mask().CapMask1(); got != first {
		t.Errorf("mask %#x with CM again", got)
	}
	modify(0, cm|1<<2, cm, prm.StatusBadParam)
	modify(1, cm, cm, prm.StatusBadParam)
	modify(0, 0, ^uint32(0), prm.StatusOK)
	if got := mask().CapMask1(); got != first {
		t.Errorf("mask %#x after a change of nothing", got)
	}
	in := prm.NewIn(prm.OpModifyHCAVportContext, 0)
	prm.ModifyHCAVportContextIn(in).SetOtherVport(true)
	h.status(in, prm.StatusBadParam)
	eth := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	eth.status(prm.NewIn(prm.OpModifyHCAVportContext, 0), prm.StatusBadOp)
}
