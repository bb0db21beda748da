package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

type fileState struct{}

var errMissing = fmt.Errorf("rdma_cm: %w", syscall.ENOSYS)

func (f *fileState) onReadable(func())   {}
func (f *fileState) readable() bool      { return false }
func (f *fileState) close(kernel.Caller) {}
func (f *fileState) createID(kernel.Caller, uint64, verbs.PortSpace, verbs.QPType) (uint32, error) {
	return 0, errMissing
}
func (f *fileState) destroyID(kernel.Caller, uint32) (uint32, error)            { return 0, errMissing }
func (f *fileState) bind(kernel.Caller, uint32, netip.AddrPort) error           { return errMissing }
func (f *fileState) resolveRoute(kernel.Caller, uint32, sim.Time) error         { return errMissing }
func (f *fileState) queryAddr(kernel.Caller, uint32) (Addr, error)              { return Addr{}, errMissing }
func (f *fileState) queryGID(kernel.Caller, uint32) (GIDs, error)               { return GIDs{}, errMissing }
func (f *fileState) listen(kernel.Caller, uint32, int) error                    { return errMissing }
func (f *fileState) reject(kernel.Caller, uint32, uint8, []byte) error          { return errMissing }
func (f *fileState) disconnect(kernel.Caller, uint32) error                     { return errMissing }
func (f *fileState) getEvent(kernel.Caller, sim.Time) (Event, error)            { return Event{}, errMissing }
func (f *fileState) notify(kernel.Caller, uint32, verbs.EventType) error        { return errMissing }
func (f *fileState) leaveMulticast(kernel.Caller, uint32) (uint32, error)       { return 0, errMissing }
func (f *fileState) migrateID(kernel.Caller, uint32, *File) (uint32, error)     { return 0, errMissing }
func (f *fileState) connect(kernel.Caller, uint32, *verbs.ConnParam, ECE) error { return errMissing }
func (f *fileState) queryPath(kernel.Caller, uint32) ([]verbs.PathRecord, error) {
	return nil, errMissing
}
func (f *fileState) resolveAddr(kernel.Caller, uint32, netip.AddrPort, netip.AddrPort, sim.Time) error {
	return errMissing
}
func (f *fileState) initQPAttr(kernel.Caller, uint32, verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	return verbs.QPAttr{}, 0, errMissing
}
func (f *fileState) accept(kernel.Caller, uint32, uint64, *verbs.ConnParam, ECE) error {
	return errMissing
}
func (f *fileState) setOption(kernel.Caller, uint32, verbs.CMOptionLevel, int, []byte) error {
	return errMissing
}
func (f *fileState) joinMulticast(kernel.Caller, uint32, uint64, netip.Addr, verbs.MulticastFlags) (uint32, error) {
	return 0, errMissing
}
