package hca

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// FailNext has the next request that the QP would finish with success end as a
// requester error instead, with everything that follows from it. It is a tester's
// hand in the device, not something that a host could do. ENOENT for an unknown QP.
func (d *Device) FailNext(qpn uint32, syndrome, vendor uint8) error {
	q := d.qpn(qpn)
	if q == nil {
		return fmt.Errorf("hca: no QP %#x: %w", qpn, syscall.ENOENT)
	}
	q.script = append(q.script, scriptedError{prm.Syndrome(syndrome), vendor})
	q.requester.scripted = true
	return nil
}
