package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// dmabuf are mutants of regions of DMA-BUFs, in the kernel.
var dmabuf = []Mutant{
	{Name: "dmabuf-at-any-offset", Area: "DMABUF", broken: rule.DmabufOffsetMatchesIova, Killers: []string{"DMABUF-004"}},
	{Name: "dmabuf-without-end", Area: "DMABUF", broken: rule.DmabufEndsWhereItEnds, Killers: []string{"DMABUF-006"}},
	{Name: "dmabuf-of-any-access", Area: "DMABUF", broken: rule.DmabufAccessIsLimited, Killers: []string{"DMABUF-005"}},
	{Name: "dmabuf-from-its-beginning", Area: "DMABUF", broken: rule.DmabufBeginsAtItsOffset, Killers: []string{"DMABUF-001"}},
	{Name: "dmabuf-leaks", Area: "DMABUF", broken: rule.DmabufIsGivenBack, Killers: []string{"DMABUF-018"}},
	{Name: "freed-device-memory-exported", Area: "DMABUF", broken: rule.FreedDMIsRevoked, Killers: []string{"DMABUF-014"}},
	{Name: "data-direct-without-function", Area: "DMABUF", broken: rule.DataDirectIsAsked, Killers: []string{"DMABUF-015"}},
	{Name: "buffer-of-any-pd", Area: "DMABUF", broken: rule.BuffersHaveTheirPD, Killers: []string{"DMABUF-017"}},
	{Name: "plain-buffer-with-fd", Area: "DMABUF", broken: rule.PlainBuffersHaveNoFD, Killers: []string{"DMABUF-017"}},
	{Name: "moved-dmabuf-remembered", Area: "DMABUF", broken: rule.MovedDmabufIsForgotten, Killers: []string{"DMABUF-019"}},
}
