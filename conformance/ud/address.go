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
		a := e.AHTo(e.Own)
		a.Port = port
		_, err := e.PD.CreateAH(c.T, a)
		c.ErrnoIn("create_ah", err, syscall.EINVAL)
	}
}

func noRoute(c *spec.C) {
	e := kit.Open(c)
	a := e.AHTo(e.Own)
	a.IsGlobal = false
	_, err := e.PD.CreateAH(c.T, a)
	c.Errno("create_ah", err, syscall.EINVAL)
}

func nobodyThere(c *spec.C) {
	e := kit.Open(c)
	gid := roce.GID(e.GID.GID)
	if !gid.IsIPv4() {
		c.Errorf("the chosen GID %v is not of IPv4", e.GID.GID)
	}
	ip := gid.IPv4()
	ip[3] = 222 // on the port's own network, where nobody is
	_, err := e.PD.CreateAH(c.T, e.AHTo(kit.Addr{GID: verbs.GID(roce.GIDFromIPv4(ip))}))
	c.ErrnoIn("create_ah", err, syscall.ETIMEDOUT, syscall.ENETUNREACH, syscall.EHOSTUNREACH)
}

func emptyGID(c *spec.C) {
	e := kit.Open(c)
	attr, err := e.Ctx.QueryPort(c.T, int(e.Port))
	c.NoErr("query_port", err)
	a := e.AHTo(e.Own)
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
