package bfreg

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func env(kv ...string) func(string) (string, bool) {
	return func(k string) (string, bool) {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == k {
				return kv[i+1], true
			}
		}
		return "", false
	}
}

func defaults(t testing.TB) Env {
	e, err := ParseEnv(env(), 4096)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestParseEnv(t *testing.T) {
	const tot, low = "MLX5_TOTAL_UUARS", "MLX5_NUM_LOW_LAT_UUARS"
	def := Env{Total: 16, LowLat: 4, PreferBF: true}
	with := func(f func(*Env)) Env { e := def; f(&e); return e }
	for _, c := range []struct {
		name string
		kv   []string
		page int
		want Env
		err  syscall.Errno
	}{
		{"defaults", nil, 4096, def, 0},
		{"odd total", []string{tot, "17"}, 4096, with(func(e *Env) { e.Total, e.LowLat = 18, 6 }), 0},
		{"total 0", []string{tot, "0"}, 4096, Env{}, syscall.EINVAL},
		{"total garbage", []string{tot, "many"}, 4096, Env{}, syscall.EINVAL},
		{"total with a tail", []string{tot, " 32x"}, 4096, with(func(e *Env) { e.Total, e.LowLat = 32, 20 }), 0},
		{"total at most", []string{tot, "512"}, 4096, with(func(e *Env) { e.Total, e.LowLat = 512, 500 }), 0},
		{"total too large", []string{tot, "513"}, 4096, Env{}, syscall.ENOMEM},
		{"huge", []string{tot, "99999999999999999999"}, 4096, Env{}, syscall.ENOMEM},
		{"total 2 leaves no room for 4 low latency", []string{tot, "2"}, 4096, Env{}, syscall.ENOMEM},
		{"total 2 with 1", []string{tot, "2", low, "1"}, 4096, with(func(e *Env) { e.Total, e.LowLat = 2, 1 }), 0},
		{"64 KiB pages raise the total", []string{tot, "2"}, 65536, with(func(e *Env) { e.Total, e.LowLat = 32, 20 }), 0},
		{"low negative", []string{low, "-1"}, 4096, Env{}, syscall.EINVAL},
		{"low 0 is raised", []string{low, "0"}, 4096, with(func(e *Env) { e.LowLat = 4 }), 0},
		{"low 15", []string{low, "15"}, 4096, with(func(e *Env) { e.LowLat = 15 }), 0},
		{"low 16", []string{low, "16"}, 4096, Env{}, syscall.ENOMEM},
		{"single threaded", []string{"MLX5_SINGLE_THREADED", "1"}, 4096, with(func(e *Env) { e.SingleThreaded = true }), 0},
		{"single threaded 2", []string{"MLX5_SINGLE_THREADED", "2"}, 4096, def, 0},
		{"shut up", []string{"MLX5_SHUT_UP_BF", ""}, 4096, with(func(e *Env) { e.ShutUpBF = true }), 0},
		{"shut up 0", []string{"MLX5_SHUT_UP_BF", "0"}, 4096, def, 0},
		{"prefer 0", []string{"MLX5_POST_SEND_PREFER_BF", "0"}, 4096, with(func(e *Env) { e.PreferBF = false }), 0},
	} {
		got, err := ParseEnv(env(c.kv...), c.page)
		if c.err != 0 {
			if !errors.Is(err, c.err) {
				t.Errorf("%s: error %v, want %v", c.name, err, c.err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

type row struct {
	QP, BFReg, UUARN, Slot, Half uint32
	Lock                         bool
	Users                        uint32
}

// The worked example: 4 KiB pages, all defaults, QPs 1 to 20 without a thread domain.
func TestStaticWorkedExample(t *testing.T) {
	want := []row{
		{1, 12, 24, 6, 0, false, 1}, {2, 13, 25, 6, 1, false, 1}, {3, 14, 28, 7, 0, false, 1}, {4, 15, 29, 7, 1, false, 1},
		{5, 1, 1, 0, 1, true, 1}, {6, 2, 4, 1, 0, true, 1}, {7, 3, 5, 1, 1, true, 1}, {8, 4, 8, 2, 0, true, 1},
		{9, 5, 9, 2, 1, true, 1}, {10, 6, 12, 3, 0, true, 1}, {11, 7, 13, 3, 1, true, 1}, {12, 8, 16, 4, 0, true, 1},
		{13, 9, 17, 4, 1, true, 1}, {14, 10, 20, 5, 0, true, 1}, {15, 11, 21, 5, 1, true, 1},
		{16, 1, 1, 0, 1, true, 2}, {17, 2, 4, 1, 0, true, 2}, {18, 3, 5, 1, 1, true, 2}, {19, 4, 8, 2, 0, true, 2}, {20, 5, 9, 2, 1, true, 2},
	}
	l, err := NewLayout(16, 4, 4096, false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Layout{Total: 16, LowLat: 4, Dyn: 1024, UARsPerSysPage: 1, StaticSysPages: 8, SysPages: 520}, l); d != "" {
		t.Fatal(d)
	}
	tab := NewTable(l, 2)
	for i := range l.StaticSysPages {
		tab.SetPage(i, 100+i)
	}
	var got []row
	for qp := uint32(1); qp <= 20; qp++ {
		b := tab.Alloc()
		uar, err := tab.UARIndex(b, false)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row{qp, b, Gross(b), uar - 100, b % PerUAR, NeedLock2018(Gross(b), 16, 4, false), tab.Users(b)})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestStaticEdges(t *testing.T) {
	l, _ := NewLayout(16, 15, 4096, false)
	tab := NewTable(l, 2)
	for i := range 15 {
		if b := tab.Alloc(); b != uint32(i)+1 || l.Class(b) != High {
			t.Fatalf("QP %d got bfreg %d", i+1, b)
		}
	}
	for range 2 { // no medium class: the rest shares bfreg 0
		if b := tab.Alloc(); b != 0 {
			t.Fatalf("got bfreg %d, want 0", b)
		}
	}
	tab.Free(3)
	if b := tab.Alloc(); b != 3 {
		t.Errorf("freed bfreg 3 was not taken again: %d", b)
	}
	old := NewTable(l, 1)
	if a, b := old.Alloc(), old.Alloc(); a != 0 || b != 0 {
		t.Errorf("ABI version below 2 got bfregs %d, %d", a, b)
	}
	for _, c := range []struct {
		total, low uint32
		err        error
	}{{0, 0, syscall.EINVAL}, {16, 16, syscall.EINVAL}, {513, 4, syscall.ENOMEM}, {512, 511, nil}} {
		if _, err := NewLayout(c.total, c.low, 4096, false); !errors.Is(err, c.err) {
			t.Errorf("NewLayout(%d, %d): %v, want %v", c.total, c.low, err, c.err)
		}
	}
	big, err := NewLayout(16, 4, 65536, true)
	if err != nil || big.Total != 32 || big.StaticSysPages != 1 || big.Dyn != 1024 {
		t.Errorf("64 KiB pages with 4 KiB UARs: %+v, %v", big, err)
	}
	big, _ = NewLayout(16, 4, 65536, false)
	if big.Dyn != 512 {
		t.Errorf("64 KiB pages and UARs: %d dynamic bfregs", big.Dyn)
	}
}

func TestDynPages(t *testing.T) {
	l, _ := NewLayout(16, 4, 4096, false)
	tab := NewTable(l, 2)
	slot, err := tab.ReserveDynPage(0)
	if err != nil || slot != 8 {
		t.Fatalf("slot %d, %v", slot, err)
	}
	tab.SetPage(slot, 77)
	if _, err := tab.ReserveDynPage(0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("mapping twice: %v", err)
	}
	if _, err := tab.ReserveDynPage(512); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("page 512 of 512: %v", err)
	}
	if u, err := tab.UARIndex(1, true); err != nil || u != 77 {
		t.Errorf("dynamic bfreg 1: %d, %v", u, err)
	}
	for _, b := range []uint32{2, 1024, 1 << 31} { // not mapped, beyond, far beyond
		if _, err := tab.UARIndex(b, true); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("dynamic bfreg %d: %v", b, err)
		}
	}
	tab.ReleaseDynPage(slot)
	if _, err := tab.ReserveDynPage(0); err != nil {
		t.Errorf("after release: %v", err)
	}
}

// The lock rules of the two eras differ only for an odd number of bfregs below the
// high class; bfreg 11 of 16 with 5 low-latency ones is the example.
func TestLockRules(t *testing.T) {
	if !NeedLock2018(21, 16, 5, false) || NeedLock(21, 16, 5, false) {
		t.Error("uuarn 21 with 5 low-latency bfregs: locked in 2018 and not today")
	}
	rapid.Check(t, func(t *rapid.T) {
		total := 2 * rapid.Uint32Range(1, 256).Draw(t, "half")
		low := rapid.Uint32Range(0, total-1).Draw(t, "low")
		l := Layout{Total: total, LowLat: low}
		for b := range total {
			u := Gross(b)
			if back, ok := FromGross(u); !ok || back != b {
				t.Fatalf("FromGross(Gross(%d)) = %d", b, back)
			}
			if got, want := NeedLock(u, total, low, false), l.Class(b) == Medium; got != want {
				t.Fatalf("total %d low %d bfreg %d: lock %v, class %v", total, low, b, got, l.Class(b))
			}
			if (total-low)%2 == 0 && NeedLock2018(u, total, low, false) != NeedLock(u, total, low, false) {
				t.Fatalf("total %d low %d bfreg %d: the eras differ", total, low, b)
			}
			if NeedLock(u, total, low, true) || NeedLock2018(u, total, low, true) {
				t.Fatal("a single-threaded program takes a lock")
			}
		}
	})
}

// The kernel's counts must always be those of the QPs that live.
func TestStaticModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := NewLayout(rapid.Uint32Range(1, 40).Draw(t, "total"), 0, 4096, false)
		if err != nil {
			t.Skip()
		}
		l.LowLat = rapid.Uint32Range(0, l.Total-1).Draw(t, "low")
		tab := NewTable(l, 2)
		live := []uint32{}
		users := map[uint32]uint32{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				tab.Free(live[i])
				users[live[i]]--
				live = append(live[:i], live[i+1:]...)
				continue
			}
			b := tab.Alloc()
			switch l.Class(b) {
			case High:
				if users[b] != 0 {
					t.Fatalf("high bfreg %d has two QPs", b)
				}
			case Medium:
				for m := uint32(1); m < l.FirstHigh(); m++ {
					if users[m] < users[b] {
						t.Fatalf("medium bfreg %d taken with %d users while %d has %d", b, users[b], m, users[m])
					}
				}
				fallthrough
			case BFReg0:
				for h := l.FirstHigh(); h < l.Total; h++ {
					if users[h] == 0 {
						t.Fatalf("bfreg %d taken while high bfreg %d is free", b, h)
					}
				}
			}
			users[b]++
			live = append(live, b)
			if tab.Users(b) != users[b] {
				t.Fatalf("bfreg %d: %d users, want %d", b, tab.Users(b), users[b])
			}
		}
	})
}
