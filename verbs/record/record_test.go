package record_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/record"
)

// bed is a testbed that answers from a script: numbers are drawn from base, so that
// two beds give different ones.
type bed struct {
	verbs.UnimplementedTestbed
	base uint32
}

type host struct {
	verbs.UnimplementedHost
	b *bed
}

type process struct {
	verbs.UnimplementedProcess
	b *bed
}

type thread struct {
	verbs.UnimplementedThread
	p *process
}

type device struct {
	verbs.UnimplementedDevice
	b *bed
}

type context struct {
	verbs.UnimplementedContext
	b *bed
}

type pd struct {
	verbs.UnimplementedPD
	b *bed
}

type cq struct {
	verbs.UnimplementedCQ
	b *bed
}

type qp struct {
	verbs.UnimplementedQP
	b *bed
}

type mr struct {
	verbs.UnimplementedMR
	b *bed
}

type buffer struct {
	verbs.UnimplementedBuffer
	b *bed
}

func (b *bed) Hosts() []verbs.Host            { return []verbs.Host{&host{b: b}} }
func (t *thread) Name() string                { return "main" }
func (t *thread) Process() verbs.Process      { return t.p }
func (b *buffer) Addr() uint64                { return uint64(b.b.base) << 20 }
func (b *buffer) Len() uint64                 { return 4096 }
func (m *mr) LKey() uint32                    { return m.b.base + 1 }
func (m *mr) RKey() uint32                    { return m.b.base + 2 }
func (q *qp) QPN() uint32                     { return m24(q.b.base + 77) }
func m24(v uint32) uint32                     { return v & 0xffffff }
func (q *cq) Cap() int                        { return 15 }
func (q *qp) Destroy(t verbs.Thread) error    { bareOnly(t); return syscall.EBUSY }
func (c *context) Close(t verbs.Thread) error { bareOnly(t); return nil }
func (p *pd) Context() verbs.Context          { return nil }
func (c *context) Device() verbs.Device       { return nil }
func (p *process) Host() verbs.Host           { return nil }
func (d *device) Name() string                { return "mlx5_0" }
func (c *context) AllocPD(t verbs.Thread) (verbs.PD, error) {
	bareOnly(t)
	return &pd{b: c.b}, nil
}

// bareOnly fails when a wrapper reaches the inner testbed.
func bareOnly(t verbs.Thread) {
	switch t.(type) {
	case *thread, *memThread:
	default:
		panic("the recorder passed its own thread on")
	}
}

func (p *process) Devices(t verbs.Thread) ([]verbs.Device, error) {
	bareOnly(t)
	return []verbs.Device{&device{b: p.b}}, nil
}

func (p *process) Map(t verbs.Thread, _ uint64, _ verbs.MapOptions) (verbs.Buffer, error) {
	bareOnly(t)
	return &buffer{b: p.b}, nil
}

func (d *device) Open(t verbs.Thread) (verbs.Context, error) {
	bareOnly(t)
	return &context{b: d.b}, nil
}

func (c *context) CreateCQ(t verbs.Thread, _ verbs.CQAttr) (verbs.CQ, error) {
	bareOnly(t)
	return &cq{b: c.b}, nil
}

func (p *pd) RegMR(t verbs.Thread, _, _ uint64, _ verbs.AccessFlags) (verbs.MR, error) {
	bareOnly(t)
	return &mr{b: p.b}, nil
}

func (p *pd) CreateQP(t verbs.Thread, a verbs.QPInitAttr) (verbs.QP, error) {
	bareOnly(t)
	if _, ok := a.SendCQ.(*cq); !ok {
		panic("the recorder passed its own CQ on")
	}
	return &qp{b: p.b}, nil
}

func (q *qp) PostSend(t verbs.Thread, w []verbs.SendWR) (int, error) {
	bareOnly(t)
	if len(w) > 1 {
		return 1, syscall.ENOMEM
	}
	return 1, nil
}

func (q *cq) Poll(t verbs.Thread, wc []verbs.WC) (int, error) {
	bareOnly(t)
	wc[0] = verbs.WC{ID: 5, QPN: m24(q.b.base + 77), Opcode: verbs.WCOpRDMAWrite}
	wc[1] = verbs.WC{ID: 6, QPN: m24(q.b.base + 77), Status: verbs.WCWRFlushErr, VendorErr: q.b.base}
	return 2, nil
}

// program makes a few calls, some of which fail.
func program(t *testing.T, base uint32) string {
	b := &bed{base: base}
	r := record.New(b)
	th := r.Thread(&thread{p: &process{b: b}})
	devs, err := th.Process().Devices(th)
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := devs[0].Open(th)
	p, _ := ctx.AllocPD(th)
	c, _ := ctx.CreateCQ(th, verbs.CQAttr{CQE: 10})
	m, _ := th.Process().Map(th, 4096, verbs.MapOptions{})
	k, _ := p.RegMR(th, m.Addr(), m.Len(), verbs.AccessLocalWrite)
	q, _ := p.CreateQP(th, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: c, RecvCQ: c})
	w := verbs.SendWR{ID: 5, Opcode: verbs.WRRDMAWrite, SGEs: []verbs.SGE{{Addr: m.Addr() + 16, Length: 8, LKey: k.LKey()}}, RemoteAddr: m.Addr(), RKey: k.RKey()}
	_, _ = q.PostSend(th, []verbs.SendWR{w})
	_, _ = q.PostSend(th, []verbs.SendWR{w, w})
	_, _ = c.Poll(th, make([]verbs.WC, 4))
	_ = q.Destroy(th)
	_ = ctx.Close(th)
	return r.Text()
}

func TestRecording(t *testing.T) {
	got := program(t, 1000)
	want := `main: get_device_list() = 1
main: open_device(mlx5_0)
main: alloc_pd()
main: create_cq(10, 0, false) = 15
main: map(4096) = addr1
main: reg_mr(addr1, 4096, 0x1) = key1, key2
main: create_qp(2, {MaxSendWR:0 MaxRecvWR:0 MaxSendSGE:0 MaxRecvSGE:0 MaxInline:0}, false, 0x0, 0x0, 0x0) = qpn1, {MaxSendWR:0 MaxRecvWR:0 MaxSendSGE:0 MaxRecvSGE:0 MaxInline:0}
main: post_send(qpn1, {wr_id 5 op 0 flags 0x0 [addr1+0x10:8:key1] to addr1:key2})
main: post_send(qpn1, {wr_id 5 op 0 flags 0x0 [addr1+0x10:8:key1] to addr1:key2}, {wr_id 5 op 0 flags 0x0 [addr1+0x10:8:key1] to addr1:key2}, bad 1) = ENOMEM
main: poll_cq() = {wr_id 5 SUCCESS qpn1 op 1 flags 0x0}, {wr_id 6 WR_FLUSH_ERR qpn1}
main: destroy_qp(qpn1) = EBUSY
main: close_device()
`
	if got != want {
		t.Errorf("recorded\n%s\nwant\n%s", got, want)
	}
}

// Two targets with different numbers give one recording.
func TestSymbolsHideNumbers(t *testing.T) {
	if a, b := program(t, 1000), program(t, 54321); a != b {
		t.Errorf("recordings differ:\n%s\n%s", a, b)
	}
	if strings.Contains(program(t, 1000), "1077") {
		t.Error("a QP number is in the recording")
	}
}

// tester is the wire, the faults and another process of the testbed below: whoever calls it must
// bring the inner thread.
type tester struct{ calls []string }

func (x *tester) note(t verbs.Thread, call string) error {
	bareOnly(t)
	x.calls = append(x.calls, call)
	return nil
}

func (x *tester) StartTap(t verbs.Thread) error                     { return x.note(t, "tap") }
func (x *tester) Inject(t verbs.Thread, _ verbs.WireRule) error     { return x.note(t, "inject") }
func (x *tester) SetLink(t verbs.Thread, _, _ int, _ bool) error    { return x.note(t, "link") }
func (x *tester) TearBlueFlame(t verbs.Thread, _, _ int) error      { return x.note(t, "tear") }
func (x *tester) SwapDoorbells(t verbs.Thread, _ int) error         { return x.note(t, "swap") }
func (x *tester) Kill(t verbs.Thread)                               { _ = x.note(t, "kill") }
func (x *tester) ClearRules(t verbs.Thread) ([]int, error)          { return []int{3}, x.note(t, "clear") }
func (x *tester) StopTap(t verbs.Thread) ([]verbs.WireFrame, error) { return nil, x.note(t, "untap") }
func (x *tester) FailNext(t verbs.Thread, _ uint32, _, _ uint8) error {
	return x.note(t, "fail")
}
func (x *tester) Do(t verbs.Thread, c verbs.PlayerCommand) (verbs.PlayerReply, error) {
	return verbs.PlayerReply{Errno: 22}, x.note(t, c.Op)
}

// disturbed is a testbed with a tester's hands.
type disturbed struct {
	bed
	x *tester
}

func (b *disturbed) Wire() verbs.Wire     { return b.x }
func (b *disturbed) Faults() verbs.Faults { return b.x }
func (b *disturbed) Player(t verbs.Thread, _ int, _ map[string]string) (verbs.Player, error) {
	return b.x, b.x.note(t, "player")
}

// What a tester does reaches the testbed below with its own thread; only what the other process is
// told is recorded.
func TestTester(t *testing.T) {
	b := &disturbed{x: &tester{}}
	r := record.New(b)
	tb := r
	th := r.Thread(&thread{p: &process{b: &b.bed}})
	p, err := tb.Player(th, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := p.Do(th, verbs.PlayerCommand{Op: "connect"}); err != nil || reply.Errno != 22 {
		t.Errorf("reply %+v, %v", reply, err)
	}
	p.Kill(th)
	w, f := tb.Wire(), tb.Faults()
	_ = w.StartTap(th)
	_ = w.Inject(th, verbs.WireRule{})
	_ = w.SetLink(th, 0, 1, false)
	if met, err := w.ClearRules(th); err != nil || len(met) != 1 || met[0] != 3 {
		t.Errorf("rules met %v, %v", met, err)
	}
	_, _ = w.StopTap(th)
	_ = f.TearBlueFlame(th, 1, 8)
	_ = f.SwapDoorbells(th, 1)
	_ = f.FailNext(th, 1, 2, 3)
	if got, want := strings.Join(b.x.calls, " "), "player connect kill tap inject link clear untap tear swap fail"; got != want {
		t.Errorf("calls below: %s, want %s", got, want)
	}
	if got, want := r.Text(), "main: player(1)\nmain: player.connect() = 22\nmain: player.kill()\n"; got != want {
		t.Errorf("recorded\n%s\nwant\n%s", got, want)
	}
	plain := record.New(&bed{})
	if plain.Wire() != nil || plain.Faults() != nil {
		t.Error("a testbed without a wire or faults has some in its recording")
	}
}
