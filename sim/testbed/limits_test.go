package testbed

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
)

// A queue pair has as many receives as max_qp_wr says, and not one more. It takes memory for its
// ring and for what the library notes of each request, 16 bytes each, and no more. So many sends
// fit into no send ring of an RC queue pair (MLX-44), and none has more.
func TestQueuesOfTheLargestSize(t *testing.T) {
	run(t, config(t, noTap), func(x *rig) {
		ctx, pd, cq := x.domainAndCQ()
		a, err := ctx.QueryDevice(x.t)
		x.ok("query_device", err)
		create := func(send, recv int) (verbs.QP, error) {
			return pd.CreateQP(x.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq,
				Cap: verbs.QPCap{MaxSendWR: uint32(send), MaxRecvWR: uint32(recv), MaxSendSGE: 1, MaxRecvSGE: 1}})
		}
		if a.MaxQPWR != 32768 {
			t.Errorf("max_qp_wr is %d", a.MaxQPWR)
		}
		_, err = create(1, a.MaxQPWR+1)
		x.errno("one receive more", err, syscall.EINVAL)
		_, err = create(a.MaxQPWR+1, 1)
		x.errno("one send more", err, syscall.EINVAL)
		_, err = create(a.MaxQPWR, 1)
		x.errno("max_qp_wr sends", err, syscall.EINVAL)
		const n, ring = 64, 16 * 32768
		before := heap()
		for range n {
			_, err := create(1, a.MaxQPWR)
			x.ok("create_qp", err)
		}
		if grown := heap() - before; grown > n*ring*9/4 {
			t.Errorf("%d empty rings of %d bytes take %d bytes", n, ring, grown)
		}
	})
}

func noTap(c *Config) { c.NoTap = true }

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The kernel passes on each operation that the device pages. The cases of area ODP and XRC do them,
// those with atomics on connectx-6.
func TestPagingThatIsClaimed(t *testing.T) {
	p, err := profile.Load("connectx-6")
	if err != nil {
		t.Fatal(err)
	}
	c := Default(p)
	c.NoTap = true
	run(t, c, func(x *rig) {
		a, err := x.open(x.t).QueryDeviceEx(x.t, 0)
		x.ok("query_device_ex", err)
		const all = verbs.ODPSend | verbs.ODPWrite | verbs.ODPRead | verbs.ODPAtomic | verbs.ODPSRQRecv
		if a.ODPXRC != all || a.ODPRC != all|verbs.ODPRecv {
			t.Errorf("RC pages %#x, XRC %#x", a.ODPRC, a.ODPXRC)
		}
	})
}
