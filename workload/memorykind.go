package workload

import (
	"errors"
	"fmt"
	"maps"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// memoryAt is the kind of memory under the regions of a side.
func (l *Load) memoryAt(target bool) verbs.MemoryKind {
	if l.MemoryAt == map[bool]End{false: Peer, true: Local}[target] {
		return verbs.MemoryHost
	}
	return l.Memory
}

// checkMemory reports what cannot be done with memory that is not the host's.
func (l *Load) checkMemory() error {
	timed := func(target bool) bool { return l.Latency && l.polled() && l.memoryAt(target) == verbs.MemoryGPU }
	switch {
	case l.Memory == verbs.MemoryHost && l.MemoryAt != Both:
		return fmt.Errorf("memory_at chooses the hosts to which memory applies: give memory as well, such as memory: gpu")
	case l.Memory == verbs.MemoryHost:
	case l.PageSize > 4096:
		return fmt.Errorf("memory is %v, whose pages its driver chooses: leave page_size out", l.Memory)
	case l.OnDemand != Pinned:
		return fmt.Errorf("memory is %v, which is registered by a DMA-BUF, without on-demand paging: leave on_demand out", l.Memory)
	case l.Churn != "":
		return fmt.Errorf("memory is %v, and churn registers memory of the host: leave one out", l.Memory)
	case l.Inline && l.memoryAt(false) == verbs.MemoryGPU:
		return fmt.Errorf("inline makes the processor copy the payload, and it cannot read the memory of a GPU: leave inline out, or let memory_at be to")
	case timed(false) || timed(true):
		return fmt.Errorf("the latency of writes is measured by polling memory, and the processor cannot poll the memory of a GPU: let verb be write_imm, send or read")
	}
	return nil
}

// polled says whether a load that measures latency polls memory.
func (l *Load) polled() bool { return len(l.Mix) == 1 && l.Mix[0].Verb == Write }

// environment is that of a side's process. libmlx5 has the processor copy small responses and
// messages out of the CQE, which it cannot into memory of a GPU.
func (l *Load) environment(target bool) map[string]string {
	var env map[string]string
	if !target {
		env = l.Env
	}
	const key = "MLX5_SCATTER_TO_CQE"
	if _, given := env[key]; given || l.memoryAt(target) != verbs.MemoryGPU {
		return env
	}
	if env = maps.Clone(env); env == nil {
		env = map[string]string{}
	}
	env[key] = "0"
	return env
}

// ofKind allocates and registers a region in memory that is not the host's.
func (l *Load) ofKind(t verbs.Thread, p verbs.Process, pd verbs.PD, kind verbs.MemoryKind, size uint64, access verbs.AccessFlags) (region, error) {
	o, ok := p.(verbs.MemoryOpener)
	if !ok {
		return region{}, fmt.Errorf("memory of kind %v on this target: %w", kind, syscall.EOPNOTSUPP)
	}
	m, err := o.OpenMemory(t, kind, verbs.MemoryOptions{})
	if err != nil {
		return region{}, fmt.Errorf("memory of kind %v: %w", kind, err)
	}
	b, err := m.Alloc(t, size, 0)
	if err != nil {
		return region{}, fmt.Errorf("allocate %d bytes of %v memory: %w", size, kind, err)
	}
	if !m.Info().Dmabuf {
		mr, err := pd.RegMR(t, b.Addr(), size, access)
		if errors.Is(err, syscall.EFAULT) && kind == verbs.MemoryGPU {
			err = fmt.Errorf("%w: ibv_reg_mr takes an address of a GPU only with nvidia-peermem (gpu.peermem of the profile); or let its driver export memory (gpu.dmabuf)", err)
		}
		return region{b, mr}, err
	}
	d, err := m.Export(t, b, 0, size)
	if err != nil {
		return region{}, fmt.Errorf("export %d bytes of %v memory: %w", size, kind, err)
	}
	mr, err := pd.RegDmabufMR(t, d.Offset, size, b.Addr(), d.FD, access)
	if err != nil {
		return region{}, err
	}
	return region{b, mr}, o.CloseFD(t, d.FD) // the region keeps the memory
}
