package hca

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// scriptedError is how a tester wants a request to end.
type scriptedError struct {
	syndrome prm.Syndrome
	vendor   uint8
}

// FailNext has the next request that the QP would finish with success end as a
// requester error instead, with everything that follows from it. It is a tester's
// hand in the device, not something that a host could do. ENOENT for an unknown QP.
func (d *Device) FailNext(qpn uint32, syndrome, vendor uint8) error {
	q := d.qpn(qpn)
	if q == nil {
		return fmt.Errorf("hca: no QP %#x: %w", qpn, syscall.ENOENT)
	}
	q.scripted = append(q.scripted, scriptedError{prm.Syndrome(syndrome), vendor})
	return nil
}

// failByScript ends the oldest message as FailNext asked.
func (q *qp) failByScript() {
	s := q.scripted[0]
	q.scripted = q.scripted[1:]
	if len(q.scripted) == 0 {
		q.scripted = nil
	}
	q.vendor = uint16(s.vendor) + 1
	q.failHead(s.syndrome)
}

// vendorSynd is the vendor byte of an error CQE: the script's for the error that it
// caused, once.
func (q *qp) vendorSynd(s prm.Syndrome) uint8 {
	if v := q.vendor; v != 0 {
		q.vendor = 0
		return uint8(v - 1)
	}
	if int(s) < len(vendorSyndromes) {
		return vendorSyndromes[s]
	}
	return 0
}
