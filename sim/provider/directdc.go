package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// queryDC is the part of mlx5dv_query_device for the dynamically connected transport.
func (c *Context) queryDC(uint64, *verbs.DirectAttr) {}

// checkDC is the part of create_qp for a QP of the driver's type, whose direct attributes name an end.
func (q *QP) checkDC(d *verbs.DirectQPAttr) error {
	if d.DCType != verbs.DCT && d.DCType != verbs.DCI {
		return fmt.Errorf("dc_type %d: %w", d.DCType, syscall.EINVAL)
	}
	return fmt.Errorf("dynamically connected transport is not modelled: %w", syscall.EOPNOTSUPP)
}

// ResetDCIStream is mlx5dv_dci_stream_id_reset.
func (q *QP) ResetDCIStream(verbs.Thread, uint16) error {
	return q.ctx.unmodelled("dci_stream_id_reset", "the device has no streams of DCIs")
}

// SetDCAddr is mlx5dv_wr_set_dc_addr.
func (e *qpEx) SetDCAddr(t verbs.Thread, _ verbs.AH, _ uint32, _ uint64) { e.noDirect(t, "dc_addr") }

// SetDCAddrStream is mlx5dv_wr_set_dc_addr_stream.
func (e *qpEx) SetDCAddrStream(t verbs.Thread, _ verbs.AH, _ uint32, _ uint64, _ uint16) {
	e.noDirect(t, "dc_addr_stream")
}
