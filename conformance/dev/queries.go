package dev

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// ports is how many ports the device has.
func ports(c *spec.C, ctx verbs.Context) int {
	a, err := ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	c.True("ports", a.PhysPortCnt > 0, "the device has no port")
	return int(a.PhysPortCnt)
}

func portOutside(c *spec.C) {
	ctx := c.Open()
	n := ports(c, ctx)
	_, err := ctx.QueryPort(c.T, 0)
	c.Errno("query_port 0", err, syscall.EINVAL)
	_, err = ctx.QueryPort(c.T, n+1)
	c.Errno("query_port count+1", err, syscall.EINVAL)
	for p := 1; p <= n; p++ {
		_, err = ctx.QueryPort(c.T, p)
		c.Errno("query_port inside", err, 0)
	}
}

func ethernetPort(c *spec.C) {
	ctx := c.Open()
	p, err := ctx.QueryPort(c.T, 1)
	c.NoErr("query_port", err)
	c.Equal("link_layer", p.LinkLayer, verbs.LinkEthernet)
	c.Equal("LID", p.LID, uint16(0))
	c.True("MTU", p.ActiveMTU.Bytes() > 0 && p.ActiveMTU <= p.MaxMTU, "active %d, max %d", p.ActiveMTU, p.MaxMTU)
	c.Equal("GRH required", p.Flags&verbs.PortGRHRequired, verbs.PortGRHRequired)
}

func gidOutside(c *spec.C) {
	ctx := c.Open()
	p, err := ctx.QueryPort(c.T, 1)
	c.NoErr("query_port", err)
	_, err = ctx.QueryGID(c.T, 1, 0)
	c.NoErr("query_gid 0", err)
	_, err = ctx.QueryGID(c.T, 1, p.GIDTblLen)
	expectRefused(c, "query_gid at the table's length", err)
	_, err = ctx.QueryGID(c.T, 1, -1)
	expectRefused(c, "query_gid -1", err)
	_, err = ctx.QueryGID(c.T, 0, 0)
	expectRefused(c, "query_gid on port 0", err)
}

func gidEmptySlot(c *spec.C) {
	ctx := c.Open()
	p, err := ctx.QueryPort(c.T, 1)
	c.NoErr("query_port", err)
	empty := 0
	for i := range p.GIDTblLen {
		g, err := ctx.QueryGID(c.T, 1, i)
		if err == nil && g != (verbs.GID{}) {
			continue
		}
		empty++
		_, err = ctx.QueryGIDEx(c.T, 1, i, 0)
		if empty == 1 || verbs.ErrnoOf(err) != syscall.ENODATA {
			c.Errno("query_gid_ex of an empty slot", err, syscall.ENODATA)
		}
	}
	c.True("empty slots", empty > 0, "all %d slots are in use", p.GIDTblLen)
}

func gidFlags(c *spec.C) {
	ctx := c.Open()
	for bit := range 32 {
		_, err := ctx.QueryGIDEx(c.T, 1, 0, 1<<bit)
		c.ErrnoIn("query_gid_ex with a flag", err, syscall.EINVAL, syscall.EOPNOTSUPP)
	}
}

// entries are the non-empty entries that query_gid_ex returns, port by port.
func entries(c *spec.C, ctx verbs.Context) []verbs.GIDEntry {
	var out []verbs.GIDEntry
	for port := 1; port <= ports(c, ctx); port++ {
		p, err := ctx.QueryPort(c.T, port)
		c.NoErr("query_port", err)
		for i := range p.GIDTblLen {
			e, err := ctx.QueryGIDEx(c.T, port, i, 0)
			if verbs.ErrnoOf(err) == syscall.ENODATA {
				continue
			}
			if err != nil {
				c.NoErr("query_gid_ex", err)
			}
			out = append(out, e)
		}
	}
	return out
}

func gidTable(c *spec.C) {
	ctx := c.Open()
	want := entries(c, ctx)
	table := make([]verbs.GIDEntry, len(want)+8)
	n, err := ctx.QueryGIDTable(c.T, table, 0)
	c.NoErr("query_gid_table", err)
	c.Equal("count", n, len(want))
	for i, e := range want {
		c.Equal("type", table[i].Type, e.Type)
		c.True("entry", table[i] == e, "entry %d: %+v by the table, %+v by query_gid_ex", i, table[i], e)
		g, err := ctx.QueryGID(c.T, int(e.Port), int(e.Index))
		c.NoErr("query_gid", err)
		c.True("GID", g == e.GID, "entry %d: %v by query_gid, %v by query_gid_ex", i, g, e.GID)
	}
}

func gidTableShort(c *spec.C) {
	ctx := c.Open()
	n := len(entries(c, ctx))
	c.True("entries", n > 0, "the GID table is empty")
	mark := verbs.GIDEntry{Index: 0xdeadbeef, NetDevice: 0xdeadbeef}
	table := make([]verbs.GIDEntry, n+4)
	for i := range table {
		table[i] = mark
	}
	_, err := ctx.QueryGIDTable(c.T, table[:n-1:n-1], 0)
	c.Errno("query_gid_table with one entry too few", err, syscall.EINVAL)
	for i := n - 1; i < len(table); i++ {
		c.True("beyond the buffer", table[i] == mark, "entry %d was written", i)
	}
}

func pkeys(c *spec.C) {
	ctx := c.Open()
	p, err := ctx.QueryPort(c.T, 1)
	c.NoErr("query_port", err)
	if p.LinkLayer == verbs.LinkEthernet {
		k, err := ctx.QueryPKey(c.T, 1, 0)
		c.NoErr("query_pkey 0", err)
		c.Equal("default P_Key", k, uint16(0xffff))
	}
	_, err = ctx.QueryPKey(c.T, 1, int(p.PKeyTblLen))
	expectRefused(c, "query_pkey at the table's length", err)
	_, err = ctx.QueryPKey(c.T, 1, -1)
	expectRefused(c, "query_pkey -1", err)
}

func pkeyAbsent(c *spec.C) {
	ctx := c.Open()
	p, err := ctx.QueryPort(c.T, 1)
	c.NoErr("query_port", err)
	present := map[uint16]bool{}
	for i := range int(p.PKeyTblLen) {
		k, err := ctx.QueryPKey(c.T, 1, i)
		c.NoErr("query_pkey", err)
		at, err := ctx.PKeyIndex(c.T, 1, k)
		c.NoErr("get_pkey_index of a key that is there", err)
		c.True("index", at <= i, "key %#x is at %d, get_pkey_index says %d", k, i, at)
		present[k] = true
	}
	absent := uint16(0x8001)
	for present[absent] {
		absent++
	}
	_, err = ctx.PKeyIndex(c.T, 1, absent)
	expectRefused(c, "get_pkey_index of an absent key", err)
}

func queryExCompMask(c *spec.C) {
	ctx := c.Open()
	_, err := ctx.QueryDeviceEx(c.T, 0)
	c.Errno("query_device_ex", err, 0)
	for _, bit := range []uint{0, 1, 16, 31} {
		_, err := ctx.QueryDeviceEx(c.T, 1<<bit)
		c.Errno("query_device_ex with an input comp_mask", err, syscall.EINVAL)
	}
}

func portCounts(c *spec.C) {
	ctx := c.Open()
	a, err := ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device_ex", err)
	b, err := ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	c.Equal("same 8-bit count", a.PhysPortCnt, b.PhysPortCnt)
	if a.PhysPortCntEx < 255 {
		c.Equal("phys_port_cnt_ex", a.PhysPortCntEx, uint32(b.PhysPortCnt))
	}
}

// clockReads is how often the raw clock is read.
const clockReads = 100_000

func rawClock(c *spec.C) {
	ctx := c.Open()
	first, err := ctx.RawClock(c.T)
	c.NoErr("query_rt_values_ex", err)
	last := first
	for i := range clockReads {
		now, err := ctx.RawClock(c.T)
		if err != nil {
			c.NoErr("query_rt_values_ex", err)
		}
		if now < last {
			c.Failf("read %d: %d after %d", i, now, last)
		}
		last = now
	}
	c.True("the clock runs", last > first, "%d at first, %d after %d reads", first, last, clockReads)
}

// attributes records the limits that the device reports, to be compared with cards of its kind.
func attributes(c *spec.C) {
	a, err := c.Open().QueryDevice(c.T)
	c.NoErr("query_device", err)
	for _, x := range []struct {
		name string
		v    int
	}{
		{"max_qp", a.MaxQP}, {"max_qp_wr", a.MaxQPWR}, {"max_sge", a.MaxSGE}, {"max_sge_rd", a.MaxSGERd}, {"max_cq", a.MaxCQ}, {"max_cqe", a.MaxCQE},
		{"max_mr", a.MaxMR}, {"max_pd", a.MaxPD}, {"max_mw", a.MaxMW}, {"max_ah", a.MaxAH}, {"max_qp_rd_atom", a.MaxQPRdAtom}, {"max_res_rd_atom", a.MaxResRdAtom},
		{"max_qp_init_rd_atom", a.MaxQPInitRdAtom}, {"max_srq", a.MaxSRQ}, {"max_srq_wr", a.MaxSRQWR}, {"max_srq_sge", a.MaxSRQSGE}, {"max_mcast_grp", a.MaxMcastGrp},
		{"max_mcast_qp_attach", a.MaxMcastQPAttach}, {"max_total_mcast_qp_attach", a.MaxTotalMcastQPAttach}, {"max_pkeys", int(a.MaxPKeys)},
		{"local_ca_ack_delay", int(a.LocalCAAckDelay)},
	} {
		c.Observe(x.name, x.v)
	}
}
