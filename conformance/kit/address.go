package kit

import (
	"net/netip"
	"slices"

	"github.com/onsi/gomega/types"

	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// SpareAddress is an address that no machine of a testbed has, from the network for benchmarks (RFC
// 2544).
var SpareAddress = netip.MustParseAddr("198.18.77.1")

// AddAddress gives the interface of the first host's device an address and removes it when the case
// ends.
func AddAddress(c *spec.C, ctl verbs.AddressControl, ip netip.Addr) {
	ok(c, "add the address", ctl.AddAddress(c.T, 0, ip))
	c.Defer(func() { _ = ctl.RemoveAddress(c.T, 0, ip) })
}

// AwaitGID waits until the kernel has made the RoCEv2 GID entry of an address, and returns it.
func AwaitGID(c *spec.C, e *Env, ip netip.Addr) verbs.GIDEntry {
	var found []verbs.GIDEntry
	awaitGIDs(c, e, ip, match.Satisfy("an entry of RoCE v2", func(all []verbs.GIDEntry) bool {
		found = slices.DeleteFunc(all, func(g verbs.GIDEntry) bool { return g.Type != verbs.GIDTypeRoCEv2 })
		return len(found) > 0
	}))
	return found[len(found)-1]
}

// AwaitNoGID waits until the port has no GID entry of an address.
func AwaitNoGID(c *spec.C, e *Env, ip netip.Addr) {
	awaitGIDs(c, e, ip, match.Satisfy("no entry", func(all []verbs.GIDEntry) bool { return len(all) == 0 }))
}

// awaitGIDs waits until the entries of an address are as they should be.
func awaitGIDs(c *spec.C, e *Env, ip netip.Addr, m types.GomegaMatcher) {
	c.Eventually("GIDs of "+ip.String(), func() []verbs.GIDEntry {
		var tab [256]verbs.GIDEntry
		n, err := e.Ctx.QueryGIDTable(c.T, tab[:], 0)
		ok(c, "query_gid_table", err)
		return slices.DeleteFunc(tab[:n], func(g verbs.GIDEntry) bool { return g.GID != verbs.GID(ip.As16()) || g.Port != uint32(e.Port) })
	}).Within(CompletionTimeout).ProbeEvery(QuietPeriod).Should(m)
}
