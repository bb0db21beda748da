package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// queryMkey is the part of mlx5dv_query_device for memory keys and copies.
func (c *Context) queryMkey(uint64, *verbs.DirectAttr) {}

// checkMkeyOps refuses operations of which nothing is modelled.
func (q *QP) checkMkeyOps(ops uint64) error {
	if ops&^verbs.DirectQPExRawWQE != 0 {
		return fmt.Errorf("direct send_ops_flags %#x are not modelled: %w", ops, syscall.EOPNOTSUPP)
	}
	return nil
}

// CreateMkey is mlx5dv_create_mkey.
func (c *Context) CreateMkey(verbs.Thread, verbs.PD, uint32, uint16) (verbs.Mkey, error) {
	return nil, c.unmodelled("create_mkey", "not modelled")
}

// RegDirectDmabufMR is mlx5dv_reg_dmabuf_mr.
func (c *Context) RegDirectDmabufMR(verbs.Thread, verbs.PD, uint64, uint64, uint64, int, verbs.AccessFlags, uint32) (verbs.MR, error) {
	return nil, c.unmodelled("reg_dmabuf_mr", "not modelled")
}

// WRMRList is mlx5dv_wr_mr_list.
func (e *qpEx) WRMRList(t verbs.Thread, _ verbs.Mkey, _ verbs.AccessFlags, _ []verbs.SGE) {
	e.noDirect(t, "mr_list")
}

// WRMRInterleaved is mlx5dv_wr_mr_interleaved.
func (e *qpEx) WRMRInterleaved(t verbs.Thread, _ verbs.Mkey, _ verbs.AccessFlags, _ uint32, _ []verbs.MRInterleaved) {
	e.noDirect(t, "mr_interleaved")
}

// WRMemcpy is mlx5dv_wr_memcpy.
func (e *qpEx) WRMemcpy(t verbs.Thread, _ uint32, _ uint64, _ uint32, _ uint64, _ uint64) {
	e.noDirect(t, "memcpy")
}
