// Package odp holds the cases of area ODP: on-demand paging, and what pinned memory does in
// its place.
package odp

import (
	"bytes"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("ODP-001", capsAgree)
	s.Case("ODP-002", withoutPaging)
	s.Case("ODP-003", pinsNothing)
	s.Case("ODP-004", untouchedSend)
	s.Case("ODP-005", untouchedWrite)
	s.Case("ODP-006", untouchedRead)
	s.Case("ODP-007", untouchedAtomic)
	s.Case("ODP-008", withoutOperation)
	s.Case("ODP-009", mixedSegments)
	s.Case("ODP-010", unmappedRange)
	s.Case("ODP-011", accessToAHole)
	s.Case("ODP-012", prefetchMapped)
	s.Case("ODP-013", prefetchHole)
	s.Case("ODP-014", prefetchHoleLater)
	s.Case("ODP-015", prefetchBeyond)
	s.Case("ODP-016", prefetchUnknownKey)
	s.Case("ODP-017", prefetchPinned)
	s.Case("ODP-018", prefetchWindow)
	s.Case("ODP-019", prefetchOtherPD)
	s.Case("ODP-020", prefetchReadOnlyRegion)
	s.Case("ODP-021", prefetchReadOnlyMapping)
	s.Case("ODP-022", unknownAdvice)
	s.Case("ODP-023", prefetchWithoutFaults)
	s.Case("ODP-024", prefetchTwo)
	s.Case("ODP-025", prefetchNothing)
	s.Case("ODP-026", withoutAdvice)
	s.Case("ODP-027", countedFaults)
	s.Case("ODP-028", countedInvalidations)
	s.Case("ODP-029", countedPrefetches)
	s.Case("ODP-030", uncountedPinned)
	s.Case("ODP-031", uncountedInvalidations)
	s.Case("ODP-032", twoRegionsOfAPage)
	s.Case("ODP-033", oneKeyForAll)
	s.Case("ODP-034", withoutImplicit)
	s.Case("ODP-035", fromAddressZero)
	s.Case("ODP-036", wholeSpaceFromElsewhere)
	s.Case("ODP-037", holeOfEverything)
	s.Case("ODP-038", acrossChildren)
	s.Case("ODP-039", manyPlaces)
	s.Case("ODP-040", aboveTheProgram)
	s.Case("ODP-041", remoteEverything)
	s.Case("ODP-042", prefetchImplicit)
	s.Case("ODP-043", remapped)
	s.Case("ODP-044", remappedUnderWrites)
	s.Case("ODP-045", movedAway)
	s.Case("ODP-046", anotherPartOfAFile)
	s.Case("ODP-047", discarded)
	s.Case("ODP-048", pinnedPagesStay)
	s.Case("ODP-049", pagedOut)
	s.Case("ODP-050", hugePages)
	s.Case("ODP-051", hugeEverything)
	s.Case("ODP-052", faultInTheMiddle)
	s.Case("ODP-053", onlyDelay)
	s.Case("ODP-054", manyFaultsOfAPage)
	s.Case("ODP-055", deregisteredUnderAFault)
	s.Case("ODP-056", killedUnderFaults)
	s.Case("ODP-057", reregistered)
	s.Case("ODP-058", datagramIntoAbsent)
	s.Case("ODP-059", sharedReceives)
	s.Case("ODP-060", beyondTheLastAddress)
	s.Case("ODP-061", discardedAtAnyMoment)
	s.Case("ODP-062", unmappedAfterARace)
}

// pinnedPagesStay puts other memory under a pinned region: the device keeps to the pages that
// were pinned, the program has the new ones.
func pinnedPagesStay(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	const n = 2 * 4096
	mem, other := p.Buffer(c, n, kit.AllAccess), p.Buffer(c, n, kit.AllAccess)
	remap, ok := mem.Mem.(verbs.Remapper)
	if !ok {
		c.Errorf("the target's memory cannot be mapped anew")
	}
	holds := func(step string, b *kit.Buffer, want []byte) {
		c.True(step, bytes.Equal(b.Get(c, 0, n), want), "other bytes")
	}
	old := mem.FillRandom(c)
	kit.Must(c, "map other memory in its place", remap.Remap(c.T))
	mem.FillRedZones(c)
	holds("the program sees fresh memory", mem, make([]byte, n))
	fresh := mem.FillRandom(c)
	c.Status("read by the device", p.A.PostAndPoll(c, kit.Read(1, mem, 0, other.All())), verbs.WCSuccess)
	holds("the device reads the old memory", other, old)
	c.Status("write by the device", p.A.PostAndPoll(c, kit.Write(2, mem, 0, other.SGE(n/2, n/2))), verbs.WCSuccess)
	holds("its write does not reach the new memory", mem, fresh)
	other.FillByte(c, 0)
	c.Status("read again", p.A.PostAndPoll(c, kit.Read(3, mem, 0, other.All())), verbs.WCSuccess)
	holds("it is in the old memory", other, append(bytes.Clone(old[n/2:]), old[n/2:]...))
}
