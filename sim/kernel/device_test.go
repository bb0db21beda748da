package kernel

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/verbs"
)

func wantErrno(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	if got := verbs.ErrnoOf(err); got != want {
		t.Errorf("%s: %v, want errno %v", what, err, want)
	}
}

func TestBringUpOrder(t *testing.T) {
	s := newSetup(t, testParams())
	var names []string
	for _, op := range s.f.seen {
		if n := op.String(); len(names) == 0 || names[len(names)-1] != n {
			names = append(names, n)
		}
	}
	want := []string{
		"ENABLE_HCA", "QUERY_ISSI", "SET_ISSI", "QUERY_PAGES", "QUERY_HCA_CAP", "SET_HCA_CAP", "QUERY_HCA_CAP", "SET_HCA_CAP",
		"QUERY_HCA_CAP", "QUERY_PAGES", "INIT_HCA", "QUERY_HCA_CAP", "QUERY_NIC_VPORT_CONTEXT", "QUERY_ADAPTER",
		"ALLOC_UAR", "CREATE_EQ", "ALLOC_PD", "ALLOC_Q_COUNTER", "MODIFY_NIC_VPORT_CONTEXT", "SET_ROCE_ADDRESS",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	if n := s.d.NumCompVectors(); n != 4 {
		t.Errorf("%d completion vectors", n)
	}
	if s.d.res != (Resources{}) {
		t.Errorf("the kernel's own objects are counted: %+v", s.d.res)
	}
}

// A command that fails during bring-up is an error that names it.
func TestBringUpFails(t *testing.T) {
	for _, op := range []prm.Opcode{
		prm.OpEnableHCA, prm.OpQueryHCACap, prm.OpInitHCA, prm.OpCreateEQ, prm.OpAllocPD, prm.OpSetRoCEAddress,
	} {
		e, m, f := sim.New(sim.Options{}), mem.New(1<<30), newFake()
		f.fail[op] = prm.StatusBadParam
		link := pcie.NewLink(e, m, newSetup(t, testParams()).pcieParams())
		link.Attach(f, func(int) {})
		_, err := NewDevice(e, "mlx5_0", link, m, testParams())
		wantErrno(t, op.String(), err, syscall.EINVAL)
		if err != nil && !strings.Contains(err.Error(), op.String()) {
			t.Errorf("%v does not name %v", err, op)
		}
	}
}

func TestParamsValidate(t *testing.T) {
	p := testParams()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		field  string
		damage func(*Params)
	}{
		{"Syscall", func(p *Params) { p.Syscall = 0 }},
		{"Interrupt", func(p *Params) { p.Interrupt = -1 }},
		{"page size", func(p *Params) { p.PageSize = 65536 }},
		{"CompVectors", func(p *Params) { p.CompVectors = 0 }},
		{"Generation", func(p *Params) { p.Generation = 7 }},
	} {
		p := testParams()
		x.damage(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), x.field) {
			t.Errorf("%s: %v", x.field, err)
		}
	}
}

func TestGIDTable(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	ll := verbs.GID{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55}
	v4 := verbs.GID{10: 0xff, 11: 0xff, 12: 192, 13: 0, 14: 2, 15: 1}
	for i, want := range []verbs.GIDEntry{
		{GID: ll, Index: 0, Port: 1, Type: verbs.GIDTypeRoCEv1, NetDevice: 2},
		{GID: ll, Index: 1, Port: 1, Type: verbs.GIDTypeRoCEv2, NetDevice: 2},
		{GID: v4, Index: 2, Port: 1, Type: verbs.GIDTypeRoCEv1, NetDevice: 2},
		{GID: v4, Index: 3, Port: 1, Type: verbs.GIDTypeRoCEv2, NetDevice: 2},
	} {
		got, err := u.QueryGIDEntry(Caller{}, 1, i)
		if err != nil || got != want {
			t.Errorf("GID %d: %+v, %v, want %+v", i, got, err, want)
		}
		a := s.f.gids[uint32(i)]
		if verbs.GID(a.SourceL3()) != want.GID || MAC(a.MAC()) != fakeMAC {
			t.Errorf("GID %d told to the device: %x", i, a)
		}
		if v2 := a.RoCEVersion() == prm.RoCEVersion2; v2 != (want.Type == verbs.GIDTypeRoCEv2) {
			t.Errorf("GID %d: RoCE version %d", i, a.RoCEVersion())
		}
	}
	_, err := u.QueryGIDEntry(Caller{}, 1, 4)
	wantErrno(t, "empty slot", err, syscall.ENODATA)
	_, err = u.QueryGIDEntry(Caller{}, 1, 16)
	wantErrno(t, "outside the table", err, syscall.EINVAL)
	_, err = u.QueryGIDEntry(Caller{}, 2, 0)
	wantErrno(t, "port 2", err, syscall.EINVAL)

	if err := s.d.RemoveIP(netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	_, err = u.QueryGIDEntry(Caller{}, 1, 2)
	wantErrno(t, "removed", err, syscall.ENODATA)
	wantErrno(t, "removed twice", s.d.RemoveIP(netip.MustParseAddr("192.0.2.1")), syscall.ENOENT)
	if e, err := u.WaitAsync(Caller{}, 0); err != nil || e.Type != verbs.EventGIDChange || e.Port != 1 {
		t.Errorf("event %+v, %v", e, err)
	}
}

func TestQueryPortAndPKey(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	a, err := u.QueryPort(Caller{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if a.State != verbs.PortActive || a.ActiveMTU != verbs.MTU4096 || a.LinkLayer != verbs.LinkEthernet || a.LID != 0 ||
		a.Flags&verbs.PortGRHRequired == 0 || a.GIDTblLen != 16 || a.PKeyTblLen != 1 || a.MaxMsgSize != 1<<30 {
		t.Errorf("%+v", a)
	}
	s.f.down = true
	if a, _ = u.QueryPort(Caller{}, 1); a.State != verbs.PortDown {
		t.Errorf("link down: %+v", a)
	}
	for _, port := range []int{0, 2} {
		_, err = u.QueryPort(Caller{}, port)
		wantErrno(t, "port", err, syscall.EINVAL)
	}
	if k, err := u.QueryPKey(Caller{}, 1, 0); k != 0xffff || err != nil {
		t.Errorf("P_Key %#x, %v", k, err)
	}
	_, err = u.QueryPKey(Caller{}, 1, 1)
	wantErrno(t, "P_Key 1", err, syscall.EINVAL)
	for net, want := range map[int]verbs.MTU{1500: verbs.MTU1024, 4191: verbs.MTU2048, 4192: verbs.MTU4096, 9000: verbs.MTU4096, 351: 0, 352: verbs.MTU256} {
		if got := activeMTU(net); got != want {
			t.Errorf("interface MTU %d: path MTU %d, want %d", net, got, want)
		}
	}
}

// The figures that 11.3 of the device notes observed on a ConnectX-5 follow from its caps.
func TestQueryDevice(t *testing.T) {
	p := testParams()
	p.Generation = Static
	s := newSetup(t, p)
	a, err := s.open().QueryDevice(Caller{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what      string
		got, want int
	}{
		{"max_qp", a.MaxQP, 262144}, {"max_qp_wr", a.MaxQPWR, 32768}, {"max_sge", a.MaxSGE, 30}, {"max_sge_rd", a.MaxSGERd, 30},
		{"max_cq", a.MaxCQ, 16777216}, {"max_cqe", a.MaxCQE, 4194303}, {"max_mr", a.MaxMR, 16777216},
		{"max_qp_rd_atom", a.MaxQPRdAtom, 16}, {"max_res_rd_atom", a.MaxResRdAtom, 16 * 262144},
		{"atomic", int(a.Atomic), int(verbs.AtomicHCA)}, {"clock", int(a.HCACoreClockKHz), 156250},
		{"max_mcast_qp_attach", a.MaxMcastQPAttach, 240}, {"max_total_mcast_qp_attach", a.MaxTotalMcastQPAttach, 503316480},
		{"max_dyn_bfregs", int(a.MaxDynBFRegs), 1024}, {"ports", int(a.PhysPortCntEx), 1},
	} {
		if x.got != x.want {
			t.Errorf("%s: %d, want %d", x.what, x.got, x.want)
		}
	}
	for rule, want := range map[QPWRRule]int{QPWRBlocks: 32768, QPWRRequests: 8192} {
		p := testParams()
		p.MaxQPWR = rule
		if a, _ := newSetup(t, p).open().QueryDevice(Caller{}); a.MaxQPWR != want {
			t.Errorf("max_qp_wr by rule %d: %d, want %d", rule, a.MaxQPWR, want)
		}
	}
}

// A call costs its entry, its kernel work and the firmware's time; a second caller's
// command waits for the first's.
func TestTimeOfCalls(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	s.f.took = 5 * sim.Microsecond
	var first, second sim.Time
	s.e.Go("a", func(p *sim.Proc) {
		if _, _, err := u.AllocPD(Caller{P: p}); err != nil {
			t.Error(err)
		}
		first = p.Now()
	})
	s.e.Go("b", func(p *sim.Proc) {
		if _, _, err := u.AllocPD(Caller{P: p}); err != nil {
			t.Error(err)
		}
		second = p.Now()
	})
	if err := s.e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	if want := 100*sim.Nanosecond + 5*sim.Microsecond; first != want || second != want+5*sim.Microsecond {
		t.Errorf("returned at %v and %v", first, second)
	}
}
