package hca

import "github.com/rdmasim/rdmasim/sim/mkey"

// Vendor bytes by cause, as ConnectX-5 and ConnectX-6 show them
// (github.com/unionxic/rdma-fault-characterization, 2026).
const (
	vendorKeyUnknown   = 0x52
	vendorKeyTooShort  = 0x53
	vendorKeyNoRight   = 0x33
	vendorFlushedFirst = 0xf5 // the request at the head when the QP was moved to ERR; those behind a head that failed or was flushed have 0xf9
)

// localVendor is the vendor byte of a request whose own key was refused, plus 1; 0: that of the
// syndrome.
func localVendor(r mkey.Result) uint16 {
	switch r {
	case mkey.NoKey, mkey.Free, mkey.OtherPD, mkey.OtherQP:
		return vendorKeyUnknown + 1
	case mkey.OutOfRange:
		return vendorKeyTooShort + 1
	case mkey.NoRight:
		return vendorKeyNoRight + 1
	}
	return 0
}
