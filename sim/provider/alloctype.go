package provider

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// allocVariables are the variables that say what memory queues get, by resource (mlx5.h,
// MLX5_QP_PREFIX and its neighbours; buf.c, mlx5_get_alloc_type). The library reads them whenever
// it creates a queue.
var allocVariables = map[uint64]string{resQP: "MLX_QP_ALLOC_TYPE", resCQ: "MLX_CQ_ALLOC_TYPE", resSRQ: "MLX_SRQ_ALLOC_TYPE"}

// hugePage is the size of huge pages that queues are put into.
const hugePage = 2 << 20

// queueMemory maps n bytes for a queue: pages of the host, or huge ones if the process asks for
// them (mlx5_alloc_prefered_buf). Here each queue has huge pages of its own, where the library puts
// several into one. The contiguous pages of old kernels are refused by those of today; ENOSYS: the
// process wants nothing else.
func (p *Process) queueMemory(t *Thread, n, resource uint64) (va mem.VA, mapped uint64, err error) {
	kind := strings.ToUpper(p.Env[allocVariables[resource]])
	switch kind {
	case "HUGE", "PREFER_HUGE", "ALL":
		mapped = (n + hugePage - 1) &^ (hugePage - 1)
		if va, err = p.K.Space.MapPages(mapped, hugePage, mem.Read|mem.Write); err == nil || kind == "HUGE" {
			return va, mapped, err
		}
	case "CONTIG":
		return 0, 0, fmt.Errorf("contiguous pages of the device file: %w", syscall.ENOSYS)
	}
	va, err = p.K.Space.Map(n, mem.Read|mem.Write)
	return va, n, err
}
