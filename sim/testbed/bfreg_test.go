package testbed

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/verbs"
)

// registers makes n QPs on pd and describes the register of each.
func (x *rig) registers(n int, pd func(i int) verbs.PD, cq verbs.CQ) []verbs.BFReg {
	x.Helper()
	var out []verbs.BFReg
	for i := range n {
		out = append(out, x.qp(x.t, pd(i), cq).(verbs.Mlx5QP).BFReg())
	}
	return out
}

func (x *rig) domainAndCQ() (verbs.Context, verbs.PD, verbs.CQ) {
	x.Helper()
	ctx := x.open(x.t)
	pd, err := ctx.AllocPD(x.t)
	x.ok("pd", err)
	cq, err := ctx.CreateCQ(x.t, verbs.CQAttr{CQE: 100})
	x.ok("cq", err)
	return ctx, pd, cq
}

// Kernel 4.16 and rdma-core 1eee3c83 by hand: bfregs 12 to 15, then 1 to 11 and again from 1.
func TestStaticRegisters(t *testing.T) {
	run(t, config(t, static), func(x *rig) {
		_, pd, cq := x.domainAndCQ()
		regs := x.registers(20, func(int) verbs.PD { return pd }, cq)
		bfregs := []int{12, 13, 14, 15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3, 4, 5}
		first := regs[0].UARPage - 6
		var got, want []string
		for i, r := range regs {
			b := bfregs[i]
			off, class, lock := 0x800+b%2*0x200, "high", false
			if i >= 4 {
				class, lock = "medium", true
			}
			want = append(want, fmt.Sprintf("QP %d: bfreg %d UAR %d offset %#x %s lock %v", i+1, b, b/2, off, class, lock))
			got = append(got, fmt.Sprintf("QP %d: bfreg %d UAR %d offset %#x %s lock %v", i+1, r.Index, r.UARPage-first, r.Offset, r.Class, r.NeedLock))
		}
		if d := cmp.Diff(want, got); d != "" {
			x.Errorf("-want +got\n%s", d)
		}
	})
}

// mlx5_get_qp_uar by hand: A0 A1 B0 B1, then C0 C1 D0 .. H1 and again from C0.
func TestDynamicRegisters(t *testing.T) {
	run(t, config(t), func(x *rig) {
		_, pd, cq := x.domainAndCQ()
		regs := x.registers(20, func(int) verbs.PD { return pd }, cq)
		pages := map[uint32]byte{}
		var got, want []string
		for i, r := range regs {
			if _, ok := pages[r.UARPage]; !ok {
				pages[r.UARPage] = 'A' + byte(len(pages))
			}
			n := i
			if i >= 16 {
				n = i - 12
			}
			class := "dedicated"
			if i >= 4 {
				class = "shared"
			}
			want = append(want, fmt.Sprintf("QP %d: %c%d %s lock %v", i+1, 'A'+n/2, n%2, class, i >= 4))
			got = append(got, fmt.Sprintf("QP %d: %c%d %s lock %v", i+1, pages[r.UARPage], (r.Offset-0x800)/(2*r.Size), r.Class, r.NeedLock))
		}
		if d := cmp.Diff(want, got); d != "" {
			x.Errorf("-want +got\n%s", d)
		}
	})
}

// With kernels and libraries of both generations thread domains take the registers of new pages in
// pairs, and with the extension independent ones take a page each.
func TestThreadDomainRegisters(t *testing.T) {
	for _, gen := range []func(*Config){static, oldKernel, oldLibrary, func(*Config) {}} {
		for _, independent := range []bool{false, true} {
			c := config(t, gen)
			c.Profile.Provider.IndependentTD = independent
			c.Profile.Provider.IndependentTDMax = 64
			run(t, c, func(x *rig) {
				ctx, base, cq := x.domainAndCQ()
				attr := verbs.TDInitAttr{}
				if independent {
					attr = verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1}
				}
				regs := x.registers(20, func(int) verbs.PD {
					td, err := ctx.AllocTD(x.t, attr)
					x.ok("td", err)
					pd, err := ctx.AllocParentDomain(x.t, verbs.ParentDomainAttr{PD: base, TD: td})
					x.ok("parent domain", err)
					return pd
				}, cq)
				first := regs[0].UARPage
				for i, r := range regs {
					page, half := i/2, i%2
					if independent {
						page, half = i, 0
					}
					if int(r.UARPage-first) != page || int(r.Offset-0x800)/int(2*r.Size) != half || r.NeedLock || !r.Dynamic {
						x.Errorf("independent %v, TD %d: %+v, want page %d half %d without lock", independent, i+1, r, page, half)
					}
				}
			})
		}
	}
}

// Thread domains end where the kernel's table of dynamic registers does: ENOENT from the table
// of an old library, EINVAL from the mmap of today's on an old kernel. One freed permits one more.
func TestThreadDomainsEnd(t *testing.T) {
	for _, tc := range []struct {
		name string
		gen  func(*Config)
		want syscall.Errno
	}{{"old library, old kernel", static, syscall.ENOENT}, {"old library", oldLibrary, syscall.ENOENT}, {"old kernel", oldKernel, syscall.EINVAL}} {
		run(t, config(t, tc.gen), func(x *rig) {
			ctx := x.open(x.t)
			const most = 1024
			var last verbs.TD
			for range most {
				td, err := ctx.AllocTD(x.t, verbs.TDInitAttr{})
				x.ok("td", err)
				last = td
			}
			_, err := ctx.AllocTD(x.t, verbs.TDInitAttr{})
			if verbs.ErrnoOf(err) != tc.want {
				x.Errorf("%s: thread domain %d: %v, want %v", tc.name, most+1, err, tc.want)
			}
			x.ok("dealloc", last.Dealloc(x.t))
			_, err = ctx.AllocTD(x.t, verbs.TDInitAttr{})
			x.ok(tc.name+": one more", err)
		})
	}
}

// An imported context asks a kernel that gave static registers in vain; UARs of mlx5 direct
// verbs came after the old library, and non-cached ones need a kernel with UAR objects.
func TestStaticContextsLack(t *testing.T) {
	for _, tc := range []struct {
		name   string
		gen    func(*Config)
		bf, nc syscall.Errno
	}{{"old library", oldLibrary, syscall.EOPNOTSUPP, syscall.EOPNOTSUPP}, {"old kernel", oldKernel, 0, syscall.EOPNOTSUPP}} {
		run(t, config(t, tc.gen), func(x *rig) {
			ctx := x.open(x.t)
			for flags, want := range map[uint32]syscall.Errno{verbs.UARBlueFlame: tc.bf, verbs.UARNonCached: tc.nc, verbs.UARNonCachedOwn: tc.nc} {
				if _, err := ctx.AllocUAR(x.t, flags); verbs.ErrnoOf(err) != want {
					x.Errorf("%s: UAR with flags %#x: %v, want %v", tc.name, flags, err, want)
				}
			}
			p := x.t.Process().(verbs.Importer)
			fd, err := p.DupCommandFD(x.t, ctx)
			x.ok("dup", err)
			if _, err := p.ImportDevice(x.t, fd); verbs.ErrnoOf(err) != syscall.EINVAL {
				x.Errorf("%s: import: %v, want EINVAL", tc.name, err)
			}
		})
	}
}

// A stock library refuses the attribute.
func TestIndependentTDIsOff(t *testing.T) {
	run(t, config(t), func(x *rig) {
		ctx := x.open(x.t)
		_, err := ctx.AllocTD(x.t, verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1})
		if fmt.Sprint(verbs.ErrnoOf(err)) != "invalid argument" {
			x.Errorf("alloc_td: %v, want EINVAL", err)
		}
	})
}
