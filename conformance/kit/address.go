package kit

import (
	"net/netip"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// SpareAddress is an address that no machine of a testbed has: of a network for benchmarks
// (RFC 2544).
var SpareAddress = netip.MustParseAddr("198.18.77.1")

// AddAddress gives the interface of the first host's device an address, which it loses at the
// end of the case.
func AddAddress(c *spec.C, ctl verbs.AddressControl, ip netip.Addr) {
	ok(c, "add the address", ctl.AddAddress(c.T, 0, ip))
	c.Defer(func() { _ = ctl.RemoveAddress(c.T, 0, ip) })
}

// AwaitGID is the RoCEv2 entry of an address that the port was given, which the kernel makes
// in its own time.
func AwaitGID(c *spec.C, e *Env, ip netip.Addr) verbs.GIDEntry {
	var found verbs.GIDEntry
	awaitGID(c, e, ip, func(all []verbs.GIDEntry) bool {
		for _, g := range all {
			if g.Type == verbs.GIDTypeRoCEv2 {
				found = g
			}
		}
		return found.GID != verbs.GID{}
	})
	return found
}

// AwaitNoGID waits until the entries of an address are gone.
func AwaitNoGID(c *spec.C, e *Env, ip netip.Addr) {
	awaitGID(c, e, ip, func(all []verbs.GIDEntry) bool { return len(all) == 0 })
}

func awaitGID(c *spec.C, e *Env, ip netip.Addr, done func([]verbs.GIDEntry) bool) {
	for end := c.T.Now() + Patience; c.T.Now() < end; c.T.Sleep(Silence) {
		var tab [256]verbs.GIDEntry
		n, err := e.Ctx.QueryGIDTable(c.T, tab[:], 0)
		ok(c, "query_gid_table", err)
		own := slices.DeleteFunc(tab[:n], func(g verbs.GIDEntry) bool { return g.GID != verbs.GID(ip.As16()) || g.Port != uint32(e.Port) })
		if done(own) {
			return
		}
	}
	c.Failf("the GID table does not follow the address %v in %v", ip, Patience)
}
