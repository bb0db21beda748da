package player

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// PickGID finds the entry that connections of the suite use: RoCEv2 with an IPv4 address if there
// is one, else any RoCEv2, else index 0 (InfiniBand). A preference of the user comes first.
func PickGID(t verbs.Thread, ctx verbs.Context, port uint32) (verbs.GIDEntry, error) {
	var tab [256]verbs.GIDEntry
	n, err := ctx.QueryGIDTable(t, tab[:], 0)
	if err != nil {
		return verbs.GIDEntry{}, fmt.Errorf("player: GID table: %w", err)
	}
	want := -1
	if p, ok := ctx.(verbs.Preferrer); ok {
		_, want = p.Preferred()
	}
	var v2 *verbs.GIDEntry
	for i := range tab[:n] {
		e := &tab[i]
		if want >= 0 && e.Port == port && int(e.Index) == want {
			return *e, nil
		}
		if want >= 0 || e.Port != port || e.Type != verbs.GIDTypeRoCEv2 {
			continue
		}
		if isIPv4(e.GID) {
			return *e, nil
		}
		v2 = cmp.Or(v2, e)
	}
	if v2 != nil {
		return *v2, nil
	}
	g, err := ctx.QueryGID(t, int(port), 0)
	return verbs.GIDEntry{GID: g, Port: port}, err
}

// LID is the LID of the port of an entry that PickGID found; 0 on Ethernet.
func LID(t verbs.Thread, ctx verbs.Context, g verbs.GIDEntry) (uint16, error) {
	if g.Type != verbs.GIDTypeIB {
		return 0, nil
	}
	a, err := ctx.QueryPort(t, int(g.Port))
	if err != nil || a.LinkLayer != verbs.LinkInfiniBand {
		return 0, err
	}
	return a.LID, nil
}

// PickIPv6 finds an entry of RoCEv2 with an IPv6 address, ENODATA if there is none.
func PickIPv6(t verbs.Thread, ctx verbs.Context, port uint32) (verbs.GIDEntry, error) {
	return pickGID(t, ctx, port, "IPv6 address", func(g verbs.GID) bool { return !isIPv4(g) })
}

// PickIPv4 finds the RoCEv2 entry of an IPv4 address, which is a number with its first byte on top.
func PickIPv4(ip uint32) func(t verbs.Thread, ctx verbs.Context, port uint32) (verbs.GIDEntry, error) {
	return func(t verbs.Thread, ctx verbs.Context, port uint32) (verbs.GIDEntry, error) {
		want := verbs.GID{10: 0xff, 11: 0xff, 12: byte(ip >> 24), 13: byte(ip >> 16), 14: byte(ip >> 8), 15: byte(ip)}
		return pickGID(t, ctx, port, fmt.Sprintf("address %#08x", ip), func(g verbs.GID) bool { return g == want })
	}
}

// pickGID finds a RoCEv2 entry of a port. ENODATA when there is none.
func pickGID(t verbs.Thread, ctx verbs.Context, port uint32, what string, is func(g verbs.GID) bool) (verbs.GIDEntry, error) {
	var tab [256]verbs.GIDEntry
	n, err := ctx.QueryGIDTable(t, tab[:], 0)
	if err != nil {
		return verbs.GIDEntry{}, fmt.Errorf("player: GID table: %w", err)
	}
	for _, e := range tab[:n] {
		if e.Port == port && e.Type == verbs.GIDTypeRoCEv2 && is(e.GID) {
			return e, nil
		}
	}
	return verbs.GIDEntry{}, fmt.Errorf("player: port %d has no %s: %w", port, what, syscall.ENODATA)
}

func isIPv4(g verbs.GID) bool {
	for _, b := range g[:10] {
		if b != 0 {
			return false
		}
	}
	return g[10] == 0xff && g[11] == 0xff
}
