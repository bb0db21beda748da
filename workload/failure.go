package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Failure is how a load ended before its time.
type Failure struct {
	Load string
	At   time.Duration // by the clock of threads
	What string        // what ended the load; empty for a completion in error
	// Status and VendorErr are those of the completion in error, Request names its request, and
	// Transmissions is how often that was sent: 0 where nothing can tell.
	Status        verbs.WCStatus
	VendorErr     uint32
	Request       string
	Transmissions int
}

// Error says what ended the load, and when.
func (f *Failure) Error() string {
	what := f.What
	if f.Status != verbs.WCSuccess {
		what = f.Status.String()
		if f.Transmissions > 0 && (f.Status == verbs.WCRetryExcErr || f.Status == verbs.WCRNRRetryExcErr) {
			what += fmt.Sprintf(", %d transmission%s", f.Transmissions, strings.Repeat("s", min(f.Transmissions-1, 1)))
		}
		what += fmt.Sprintf(" (%s, vendor error %#02x)", f.Request, f.VendorErr)
	}
	return fmt.Sprintf("load %s ended at %s: %s", f.Load, milliseconds(f.At), what)
}

// milliseconds is a time with four digits.
func milliseconds(d time.Duration) string {
	ms := d.Seconds() * 1e3
	if ms < 1000 {
		if v, err := strconv.ParseFloat(strconv.FormatFloat(ms, 'g', 4, 64), 64); err == nil {
			ms = v
		}
		return strconv.FormatFloat(ms, 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
}

// fail ends the load at a time.
func (s *Started) fail(now time.Duration, format string, args ...any) {
	if s.res.Failed == nil {
		s.res.Failed = &Failure{Load: s.l.Name, At: now, What: fmt.Sprintf(format, args...)}
	}
}

// died ends the load with a completion in error that was polled now, of a request.
func (s *Started) died(now time.Duration, w *verbs.WC, request string) {
	if s.res.Failed != nil {
		return
	}
	f := &Failure{Load: s.l.Name, At: now, Status: w.Status, VendorErr: w.VendorErr, Request: request}
	s.res.Failed = f
	if m, ok := s.tb.(verbs.DeliveryMeter); ok {
		qpn := w.QPN
		m.DeliveriesAt(now, func(of func(host int, qpn uint32) (verbs.Delivered, bool)) {
			if d, ok := of(s.l.From, qpn); ok {
				f.Transmissions = d.FailedSent
			}
		})
	}
}
