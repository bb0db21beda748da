package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.DirectQPEx = (*qpEx)(nil)

// noDirect ends the process: the call goes through a pointer that mlx5_qp_fill_wr_pfns has left null.
func (e *qpEx) noDirect(vt verbs.Thread, call string) {
	panic(Abort{fmt.Sprintf("segmentation fault: %q calls mlx5dv_wr_%s on a QP that does not have it", Of(vt).name, call)})
}

// WRRawWQE is mlx5dv_wr_raw_wqe.
func (e *qpEx) WRRawWQE(vt verbs.Thread, _ []byte) { e.noDirect(vt, "raw_wqe") }
