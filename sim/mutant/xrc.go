package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// xrc are mutants of XRC, in the kernel and in the device.
var xrc = []Mutant{
	{Name: "xrc-domain-of-its-own", Area: "XRC", broken: rule.DomainOfAFileIsShared, Killers: []string{"XRC-003", "XRC-001"}},
	{Name: "xrc-exclusive-ignored", Area: "XRC", broken: rule.ExclusiveOpenIsExclusive, Killers: []string{"XRC-003"}},
	{Name: "xrc-domain-always-made", Area: "XRC", broken: rule.DomainIsMadeOnRequest, Killers: []string{"XRC-002"}},
	{Name: "xrc-domain-closed-in-use", Area: "XRC", broken: rule.DomainHandleInUseIsBusy, Killers: []string{"XRC-005"}},
	{Name: "xrc-target-of-any-domain", Area: "XRC", broken: rule.TargetIsOpenedInItsDomain, Killers: []string{"XRC-012"}},
	{Name: "xrc-target-dies-with-first-handle", Area: "XRC", broken: rule.TargetLivesToItsLastHandle, Killers: []string{"XRC-013"}},
	{Name: "xrc-target-leaks", Area: "XRC", broken: rule.TargetEndsWithItsLastProcess, Killers: []string{"XRC-015"}},
	{Name: "xrc-event-to-nobody", Area: "XRC", broken: rule.TargetEventsReachItsHandles, Killers: []string{"XRC-016"}},

	{Name: "xrc-any-srq-number", Area: "XRC", broken: rule.RequestNamesAnXRCSRQ, Killers: []string{"XRC-007"}},
	{Name: "xrc-srq-of-any-domain", Area: "XRC", broken: rule.NamedSRQIsOfTheDomain, Killers: []string{"XRC-008"}},
	{Name: "xrc-message-changes-its-srq", Area: "XRC", broken: rule.MessageKeepsToItsSRQ, Killers: []string{"XRC-034"}},
	{Name: "xrc-receive-of-the-qp", Area: "XRC", broken: rule.ReceivesComeFromTheNamedSRQ, Killers: []string{"XRC-006"}},
	{Name: "xrc-remote-key-of-the-qp", Area: "XRC", broken: rule.RemoteKeysAreOfTheSRQsPD, Killers: []string{"XRC-018"}},
	{Name: "xrc-receive-key-of-the-qp", Area: "XRC", broken: rule.ReceiveKeysAreOfTheSRQsPD, Killers: []string{"XRC-018"}},
	{Name: "xrc-read-of-the-qp", Area: "XRC", broken: rule.ReadKeepsThePDOfItsRequest, Killers: []string{"XRC-035"}},
	{Name: "xrc-completion-to-the-qp", Area: "XRC", broken: rule.XRCReceivesReportToTheirCQ, Killers: []string{"XRC-006"}},
	{Name: "xrc-completion-of-nobody", Area: "XRC", broken: rule.SharedReceivesBearTheIndexOfTheirSRQ, Killers: []string{"XRC-006"}},
	{Name: "xrc-both-directions", Area: "XRC", broken: rule.InitiatorTakesNoRequests, Killers: []string{"XRC-036"}},
	{Name: "xrc-first-packet-only", Area: "XRC", broken: rule.EachPacketNamesTheSRQ, Killers: []string{"XRC-029"}},
	{Name: "xrc-resent-without-srq", Area: "XRC", broken: rule.RetransmissionNamesTheSRQ, Killers: []string{"XRC-029"}},
}
