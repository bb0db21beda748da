package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/roce/oracle"
)

// mostKinds is how many kinds of packets a message names.
const mostKinds = 4

// withoutRDMA is the error of a capture in which there is nothing to judge, or nil.
func withoutRDMA(name string, runs []oracle.Capture, judged []*oracle.Result) error {
	for _, res := range judged {
		if res.RDMA > 0 {
			return nil
		}
	}
	kinds, all, unknown := map[string]int{}, 0, 0
	for _, c := range runs {
		unknown += c.Read.Unknown
		for i := range c.Frames {
			kinds[kindOf(&c.Frames[i])]++
			all++
		}
	}
	if all == 0 && unknown > 0 {
		return usagef("%s: all %d packets have link types that are not read: capture on an interface of Ethernet or InfiniBand, or on all (tcpdump -i any)", name, unknown)
	}
	if all == 0 {
		return usagef("%s: the capture has no packets: capture while RDMA traffic flows, where it passes", name)
	}
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Or(kinds[b]-kinds[a], strings.Compare(a, b)) })
	var seen []string
	for _, k := range names[:min(mostKinds, len(names))] {
		seen = append(seen, fmt.Sprintf("%d of %s", kinds[k], k))
	}
	if n := len(names) - mostKinds; n > 0 {
		seen = append(seen, plain.Count(n, "other kind"))
	}
	return usagef("%s: no RDMA among %s: %s. RoCEv2 is UDP to port %d and RoCEv1 EtherType %#x, behind any number of VLAN tags; capture where such traffic passes",
		name, plain.Count(all, "packet"), strings.Join(seen, ", "), roce.UDPPort, roce.EtherTypeRoCE)
}

// kindOf says what a packet is that is not of RDMA.
func kindOf(f *oracle.Frame) string {
	if f.InfiniBand {
		return "InfiniBand, of another kind"
	}
	h := ether.Parse(f.Data)
	ip := fmt.Sprintf("IPv%d", h.Version)
	switch {
	case len(f.Data) < roce.EthernetSize:
		return "frames too short for Ethernet"
	case h.Version == 0:
		return fmt.Sprintf("EtherType %#04x", h.Type)
	case h.Fragment:
		return "fragments of " + ip
	case h.Transport > 0 && h.Proto == roce.ProtoUDP:
		return "UDP over " + ip
	case h.Proto == ether.ProtoTCP:
		return "TCP over " + ip
	}
	return fmt.Sprintf("protocol %d over %s", h.Proto, ip)
}
