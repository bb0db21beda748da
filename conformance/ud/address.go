package ud

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

func badPort(c *spec.C) {
	e := kit.Open(c)
	attr, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	for _, port := range []uint8{0, attr.PhysPortCnt + 1, 255} {
		a := e.AHTo(e.LocalAddr)
		a.Port = port
		_, err := e.PD.CreateAH(c.T, a)
		c.ErrnoIn("create_ah", err, syscall.EINVAL)
	}
}

func noRoute(c *spec.C) {
	e := kit.Open(c)
	a := e.AHTo(e.LocalAddr)
	a.IsGlobal = false
	_, err := e.PD.CreateAH(c.T, a)
	c.Errno("create_ah", err, syscall.EINVAL)
}

func unreachableGID(c *spec.C) {
	e := kit.Open(c)
	gid := roce.GID(e.GID.GID)
	if !gid.IsIPv4() {
		c.Errorf("the chosen GID %v is not an IPv4 address", e.GID.GID)
	}
	ip := gid.IPv4()
	ip[3] = 222 // an address of the port's own network that no host has
	_, err := e.PD.CreateAH(c.T, e.AHTo(kit.Addr{GID: verbs.GID(roce.GIDFromIPv4(ip))}))
	c.ErrnoIn("create_ah", err, syscall.ETIMEDOUT, syscall.ENETUNREACH, syscall.EHOSTUNREACH)
}

func emptyGID(c *spec.C) {
	e := kit.Open(c)
	attr, err := e.Ctx.QueryPort(c.T, int(e.Port))
	c.NoErr("query_port", err)
	a := e.AHTo(e.LocalAddr)
	for i := attr.GIDTblLen - 1; ; i-- {
		if i < 0 {
			c.Errorf("every entry of the GID table is in use")
		}
		gid, err := e.Ctx.QueryGID(c.T, int(e.Port), i)
		c.NoErr("query_gid", err)
		if gid == (verbs.GID{}) {
			a.GRH.SGIDIndex = uint8(i)
			break
		}
	}
	_, err = e.PD.CreateAH(c.T, a)
	c.ErrnoIn("create_ah", err, syscall.EINVAL, syscall.ENODATA)
}

// handleDestroyed destroys an address handle behind the completion of a send, and one while
// sends by it are on their way.
func handleDestroyed(c *spec.C) {
	const n = 8
	d := newUDPair(c)
	mem := d.Buffer(c, 256, kit.AllAccess)
	for i := range uint64(n + 1) {
		d.b.RecvInto(c, i, mem.SGE(128, 128))
	}
	create := func() verbs.AH {
		ah, err := d.PD.CreateAH(c.T, d.AHTo(d.LocalAddr))
		c.NoErr("create_ah", err)
		return ah
	}
	ah := create()
	c.Status("send", d.a.PostAndPoll(c, kit.Datagram(1, ah, d.b.QPN(), mem.SGE(0, 8))), verbs.WCSuccess)
	c.NoErr("destroy_ah behind the completion", ah.Destroy(c.T))
	kit.ExpectSuccess(c, d.b.RecvCQ, 1)
	ah = create()
	for i := range uint64(n) {
		d.a.Post(c, kit.Datagram(i, ah, d.b.QPN(), mem.SGE(0, 8)))
	}
	kit.RecordErrno(c, "destroy_ah before the completions", ah.Destroy(c.T))
	kit.RecordCompletions(c, "send whose handle is gone", d.a.SendCQ, n)
	c.Observe("receives of these", len(kit.PollWithin(c, d.b.RecvCQ, n, kit.QuietPeriod)))
}
