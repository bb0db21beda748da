package odp2014

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/verbs"
)

type context struct {
	verbs.UnimplementedContext
	attr verbs.DeviceAttrEx
}

func (c *context) QueryDeviceEx(verbs.Thread, uint32) (verbs.DeviceAttrEx, error) { return c.attr, nil }

type advice struct {
	Advice verbs.AdviseMRAdvice
	Flags  verbs.AdviseMRFlags
	Range  verbs.SGE
}

// domain keeps what it is asked for.
type domain struct {
	verbs.UnimplementedPD
	access verbs.AccessFlags
	asked  []advice
	err    error
}

func (d *domain) RegMR(_ verbs.Thread, addr, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	d.access = access
	return &region{addr: addr, length: length}, nil
}

func (d *domain) AdviseMR(_ verbs.Thread, a verbs.AdviseMRAdvice, f verbs.AdviseMRFlags, ranges []verbs.SGE) error {
	d.asked = append(d.asked, advice{a, f, ranges[0]})
	return d.err
}

type region struct {
	verbs.UnimplementedMR
	addr, length uint64
}

func (r *region) Addr() uint64   { return r.addr }
func (r *region) Length() uint64 { return r.length }
func (r *region) LKey() uint32   { return 0x1234 }

// Bits of today that were none then are left out.
func TestCaps(t *testing.T) {
	c := &context{}
	c.attr.ODPGeneralCaps = verbs.ODPSupport | verbs.ODPSupportImplicit
	c.attr.ODPRC, c.attr.ODPUD = verbs.ODPSend|verbs.ODPAtomic|verbs.ODPSRQRecv, verbs.ODPRecv
	got, err := QueryODPCaps(nil, c)
	if want := (ODPCaps{General, Send | Atomic, 0, Receive}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// On demand was bit 5, which means another thing today.
func TestRights(t *testing.T) {
	d := &domain{}
	if _, err := RegMR(nil, d, 0, 1, LocalWrite|MWBind|OnDemand); err != nil || d.access != verbs.AccessLocalWrite|verbs.AccessMWBind|verbs.AccessOnDemand {
		t.Errorf("%#x, %v", uint32(d.access), err)
	}
	if _, err := RegMR(nil, d, 0, 1, 1<<6); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	mr, err := AddressSpace(nil, d)
	if err != nil || mr.Length() != 1<<64-1 || d.access != verbs.AccessLocalWrite|verbs.AccessOnDemand {
		t.Errorf("%v, %v", mr, err)
	}
}

func TestPrefetch(t *testing.T) {
	mr := &region{addr: 0x1000, length: 5 << 30}
	for _, c := range []struct {
		addr, length uint64
		flags        PrefetchFlags
		want         error
		asked        []advice
	}{
		{0x1000, 1, 0, nil, []advice{{verbs.AdvisePrefetch, verbs.AdviseFlush, verbs.SGE{Addr: 0x1000, Length: 1, LKey: 0x1234}}}},
		{0x1000, 1<<30 + 5, PrefetchWrite, nil, []advice{
			{verbs.AdvisePrefetchWrite, verbs.AdviseFlush, verbs.SGE{Addr: 0x1000, Length: 1 << 30, LKey: 0x1234}},
			{verbs.AdvisePrefetchWrite, verbs.AdviseFlush, verbs.SGE{Addr: 0x40001000, Length: 5, LKey: 0x1234}},
		}},
		{0x1000, 0, 0, nil, nil},
		{0x1000 + 5<<30, 0, 0, nil, nil},
		{0xfff, 1, 0, syscall.EFAULT, nil},
		{0x1000 + 5<<30, 1, 0, syscall.EFAULT, nil},
		{0x1001, 1<<64 - 1, 0, syscall.EFAULT, nil},
		{0x1000, 1, 2, syscall.EINVAL, nil},
	} {
		d := &domain{}
		err := PrefetchMR(nil, d, mr, c.addr, c.length, c.flags)
		if diff := cmp.Diff(c.asked, d.asked); !errors.Is(err, c.want) || diff != "" {
			t.Errorf("[%#x, +%#x) flags %d: %v, %s", c.addr, c.length, c.flags, err, diff)
		}
	}
	d := &domain{err: syscall.EFAULT}
	if err := PrefetchMR(nil, d, mr, 0x1000, 3<<30, 0); !errors.Is(err, syscall.EFAULT) || len(d.asked) != 1 {
		t.Errorf("%v after %d ranges", err, len(d.asked))
	}
}
