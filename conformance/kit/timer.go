package kit

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
)

// tick is the longest period of the clock by which a kernel counts (CONFIG_HZ=100).
const tick = 10 * time.Millisecond

// TimerSlack returns how much too early a timer of the target may expire. A kernel counts whole
// ticks, and a timer starts between two of them.
func TimerSlack(c *spec.C) time.Duration {
	if c.Has(ExactTime) {
		return 0
	}
	return 2 * tick
}

// The devices that may retransmit adaptively: their vendor, and the first of their parts.
const (
	vendorMellanox = 0x2c9
	partConnectX5  = 0x1017
)

// MayAdapt reports whether the device may retransmit by a schedule of its firmware, before the QP's
// ACK timeout. ConnectX-5 and later do so on Ethernet unless bit roce_adp_retrans_en of a register,
// which programs cannot read, is cleared. That was seen on ConnectX-5, ConnectX-6 and ConnectX-6 Dx
// and is assumed of later parts. Nothing is published for InfiniBand: there the ACK timeout is
// taken to hold.
func (e *Env) MayAdapt(c *spec.C) bool {
	if e.IB {
		return false
	}
	attr, err := e.Ctx.QueryDevice(c.T)
	ok(c, "query_device", err)
	return attr.VendorID == vendorMellanox && attr.VendorPartID >= partConnectX5
}

// AckTimer is what a case may expect of a requester's ACK timer.
type AckTimer struct {
	Timeout time.Duration // by the formula of the specification
	Least   time.Duration // the shortest wait before an unanswered request is sent again
	Adapts  bool          // Least is that of adaptive retransmission, and Timeout does not bound the wait
}

// AckTimer returns what to expect of a QP's ACK timer with a timeout code other than 0.
func (e *Env) AckTimer(c *spec.C, code uint8) AckTimer {
	timeout := time.Duration(roce.AckTimeout(code))
	t := AckTimer{Timeout: timeout, Least: max(timeout-TimerSlack(c), timeout/2)}
	if timeout > 2*roce.AdaptiveLeast && e.MayAdapt(c) { // it makes no wait shorter than the timeout of code 10
		t.Adapts, t.Least = true, roce.AdaptiveLeast
	}
	return t
}
