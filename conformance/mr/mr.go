// Package mr holds the cases of area MR: memory regions.
package mr

import (
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("MR-001", bounds, spec.Deadline(4*time.Minute)) // 4 GiB are pinned
	s.Case("MR-002", remoteWriteAlone)
	s.Case("MR-003", remoteAtomicAlone)
	s.Case("MR-004", overflow)
	s.Case("MR-005", emptyRegion)
	s.Case("MR-006", unmapped)
	s.Case("MR-007", readOnlyForWrite)
	s.Case("MR-008", readOnlyForRead)
	s.Case("MR-009", overMemlock)
	s.Case("MR-010", noMemlock)
	s.Case("MR-011", undefinedBits)
	s.Case("MR-012", optionalBits)
	s.Case("MR-013", otherIova)
	s.Case("MR-014", iovaOffset)
	s.Case("MR-015", iovaZero)
	s.Case("MR-016", badLKeySend)
	s.Case("MR-017", beyondEndSend)
	s.Case("MR-018", noLocalWrite)
	s.Case("MR-019", badLKeyReceive)
	s.Case("MR-020", deregisteredRKey)
	s.Case("MR-021", eightKeys)
	s.Case("MR-022", deregInFlight)
	s.Case("MR-023", reregTranslation)
	s.Case("MR-024", reregPD)
	s.Case("MR-025", reregAccess)
	s.Case("MR-026", reregInput)
	s.Case("MR-027", reregNothing)
	s.Case("MR-028", reregWriteAlone)
	s.Case("MR-029", reregOther)
	s.Case("MR-030", nullRegion)
	s.Case("MR-031", noNullRegion)
	s.Case("MR-032", dmAboveMaximum)
	s.Case("MR-033", dmRegistration)
	s.Case("MR-034", dmUnaligned)
	s.Case("MR-035", dmFreeInUse)
	s.Case("MR-036", dmAccess)
	s.Case("MR-037", importedRegion)
	s.Case("MR-043", relaxedOrdering)
	s.Case("MR-044", forkedChild)
	s.Case("MR-045", thousands)
	s.Case("MR-046", staleKey)
	s.Case("MR-047", lastKeyFirst)
	s.Case("MR-048", anotherKey)
	s.Case("MR-049", acrossFourGiB)
}

// register registers a page-aligned range of fresh memory; the region lives only as
// long as the call.
func register(c *spec.C, e *kit.Env, access verbs.AccessFlags) error {
	m := kit.Map(c, 8192)
	return tryRegister(c, e, m.Addr(), 4096, access)
}

func tryRegister(c *spec.C, e *kit.Env, addr, length uint64, access verbs.AccessFlags) error {
	mr, err := e.PD.RegMR(c.T, addr, length, access)
	if err == nil {
		kit.Must(c, "dereg_mr", mr.Dereg(c.T))
	}
	return err
}

// reconnect takes both ends back to RTS after an error.
func reconnect(c *spec.C, p *kit.Pair) {
	p.A.ModifyState(c, verbs.QPSReset)
	p.B.ModifyState(c, verbs.QPSReset)
	p.Connect(c)
}

func remoteWriteAlone(c *spec.C) {
	e := kit.Open(c)
	c.Errno("REMOTE_WRITE", register(c, e, verbs.AccessRemoteWrite), syscall.EINVAL)
	c.Errno("REMOTE_WRITE and REMOTE_READ", register(c, e, verbs.AccessRemoteWrite|verbs.AccessRemoteRead), syscall.EINVAL)
	c.Errno("with LOCAL_WRITE", register(c, e, verbs.AccessRemoteWrite|verbs.AccessLocalWrite), 0)
}

func remoteAtomicAlone(c *spec.C) {
	e := kit.Open(c)
	c.Errno("REMOTE_ATOMIC", register(c, e, verbs.AccessRemoteAtomic), syscall.EINVAL)
	c.Errno("REMOTE_ATOMIC and REMOTE_READ", register(c, e, verbs.AccessRemoteAtomic|verbs.AccessRemoteRead), syscall.EINVAL)
	c.Errno("with LOCAL_WRITE", register(c, e, verbs.AccessRemoteAtomic|verbs.AccessLocalWrite), 0)
}

func overflow(c *spec.C) {
	e := kit.Open(c)
	m := kit.Map(c, 4096)
	top := ^uint64(0)
	c.Errno("last page and one more", tryRegister(c, e, top-4095, 8192, verbs.AccessLocalWrite), syscall.EINVAL)
	c.Errno("length that wraps", tryRegister(c, e, m.Addr(), top-m.Addr()+2, verbs.AccessLocalWrite), syscall.EINVAL)
	c.Errno("rounding to pages wraps", tryRegister(c, e, top-100, 100, verbs.AccessLocalWrite), syscall.EINVAL)
}

func emptyRegion(c *spec.C) {
	e := kit.Open(c)
	m := kit.Map(c, 4096)
	c.ErrnoIn("length 0", tryRegister(c, e, m.Addr(), 0, verbs.AccessLocalWrite), syscall.EINVAL)
}

func unmapped(c *spec.C) {
	e := kit.Open(c)
	m, err := c.Process().Map(c.T, 1<<20, verbs.MapOptions{})
	c.NoErr("map", err)
	addr := m.Addr()
	c.NoErr("unmap", m.Unmap(c.T))
	c.Errno("no page mapped", tryRegister(c, e, addr, 4096, verbs.AccessLocalWrite), syscall.EFAULT)
	c.Errno("many pages, none mapped", tryRegister(c, e, addr, 1<<20, verbs.AccessLocalWrite), syscall.EFAULT)
	c.Errno("no page mapped, read only", tryRegister(c, e, addr, 4096, verbs.AccessRemoteRead), syscall.EFAULT)
}

// readOnly maps memory that the process may not write.
func readOnly(c *spec.C) verbs.Buffer {
	m, err := c.Process().Map(c.T, 8192, verbs.MapOptions{ReadOnly: true})
	c.NoErr("map read-only", err)
	c.Defer(func() { kit.Must(c, "unmap", m.Unmap(c.T)) })
	return m
}

func readOnlyForWrite(c *spec.C) {
	e := kit.Open(c)
	m := readOnly(c)
	c.Errno("LOCAL_WRITE on a read-only mapping", tryRegister(c, e, m.Addr(), 4096, verbs.AccessLocalWrite), syscall.EFAULT)
}

func readOnlyForRead(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	m := readOnly(c)
	mr, err := p.PD.RegMR(c.T, m.Addr(), 4096, verbs.AccessRemoteRead)
	c.Errno("REMOTE_READ on a read-only mapping", err, 0)
	c.Defer(func() { kit.Must(c, "dereg_mr", mr.Dereg(c.T)) })
	want := make([]byte, 512)
	_, err = m.ReadAt(c.T, want, 100)
	c.NoErr("read by the process", err)
	dst := p.Buffer(c, 512, kit.AllAccess)
	dst.FillRandom(c)
	wr := verbs.SendWR{ID: 1, Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{dst.All()},
		RemoteAddr: m.Addr() + 100, RKey: mr.RKey()}
	c.Status("RDMA read", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes", want)
}

func undefinedBits(c *spec.C) {
	e := kit.Open(c)
	for _, bit := range []uint{10, 12, 15, 19, 30, 31} {
		c.ErrnoIn("undefined mandatory access bit", register(c, e, verbs.AccessLocalWrite|1<<bit), syscall.EINVAL, syscall.EOPNOTSUPP)
	}
}

func optionalBits(c *spec.C) {
	e := kit.Open(c)
	for bit := uint(21); bit <= 29; bit++ {
		c.Errno("undefined optional access bit", register(c, e, verbs.AccessLocalWrite|1<<bit), 0)
	}
	c.Errno("all optional access bits", register(c, e, verbs.AccessLocalWrite|verbs.AccessOptionalRange), 0)
}
