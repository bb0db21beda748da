package perf

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// cudaMemory is memory of a GPU (cuda_memory.c): registered by its address, which needs a
// peer-memory module, or as a DMA-BUF.
type cudaMemory struct {
	e      *End
	m      verbs.Memory
	opener verbs.MemoryOpener
	n      int // regions
}

// say prints a line of perftest's about the GPU, which it does with a short output too.
func (c *cudaMemory) say(format string, args ...any) { fmt.Fprintf(c.e.env.Out, format, args...) }

func (c *cudaMemory) init(t verbs.Thread) (err error) {
	o := &c.e.o.Memory
	opener, ok := t.Process().(verbs.MemoryOpener)
	if !ok {
		return c.failed(fmt.Errorf("this target has no memory but the host's: %w", syscall.EOPNOTSUPP))
	}
	c.opener = opener
	if o.BusID != "" {
		c.say("Got PCIe address of: %s\n", o.BusID)
	}
	c.say("initializing CUDA\n")
	which := verbs.MemoryOptions{GPU: o.Device, BusID: o.BusID}
	c.m, err = opener.OpenMemory(t, verbs.MemoryGPU, which)
	if errors.Is(err, syscall.EOPNOTSUPP) { // an integrated part has the host's memory instead
		if m, other := opener.OpenMemory(t, verbs.MemoryGPUHost, which); other == nil {
			c.m, err = m, nil
		}
	}
	if err != nil {
		return c.failed(err)
	}
	info := c.m.Info()
	if o.DMABuf && !info.Dmabuf {
		err := c.failed(errors.New("the GPU's driver does not export memory as a DMA-BUF"))
		err.Words, err.Hint = "DMA-BUF is not supported on this GPU\n"+err.Words, "leave --use_cuda_dmabuf out and load nvidia-peermem, or take the open kernel modules of the driver"
		return errors.Join(err, c.m.Close(t))
	}
	c.say("Listing all CUDA devices in system:\n")
	number := o.Device
	for i, id := range info.GPUs {
		c.say("CUDA device %d: PCIe address is %s\n", i, shortBusID(id))
		if id == info.BusID {
			number = i
		}
	}
	c.say("\nPicking device No. %d\n[dev = %d] device name = [%s]\ncreating CUDA Ctx\nmaking it the current CUDA Ctx\n", number, number, info.Name)
	return nil
}

// shortBusID is bus and device of a PCI address in capital digits.
func shortBusID(id string) string {
	if parts := strings.Split(id, ":"); len(parts) == 3 {
		device, _, _ := strings.Cut(parts[2], ".")
		return strings.ToUpper(parts[1] + ":" + device)
	}
	return id
}

// failed is what perftest prints behind the reason why there is no such memory, which its programs
// only find once they are connected.
func (c *cudaMemory) failed(err error) *StepError {
	s := &StepError{Step: stepMemory, Err: err, Hint: "choose a GPU that is there, or leave --use_cuda out: buffers lie in host memory then"}
	var m *verbs.MemoryError
	if errors.As(err, &m) {
		s.Words = fmt.Sprintf("%s() returned %d\nCouldn't init GPU context: 1\n", m.Call, m.Code)
	}
	s.Words += "Failed to init memory\n Couldn't create IB resources\n"
	return s
}

func (c *cudaMemory) destroy(t verbs.Thread) error {
	c.say("destroying current CUDA Ctx\n")
	return c.m.Close(t)
}

func (c *cudaMemory) touchable() bool { return false }

// gpuPage is to what perftest rounds the size of an allocation.
const gpuPage = 64 << 10

func (c *cudaMemory) allocate(t verbs.Thread, n uint64) (verbs.Buffer, error) {
	info := c.m.Info()
	n = roundUp(n, gpuPage)
	c.say("CUDA device integrated: %d\n", map[bool]int{true: 1}[info.Integrated])
	b, err := c.m.Alloc(t, n, 0)
	if err != nil {
		s := &StepError{Step: stepMR, Err: fmt.Errorf("%d bytes of the GPU's memory: %w", n, err), Hint: "give a smaller -s or -q", Words: "Couldn't allocate work buf.\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n"}
		var m *verbs.MemoryError
		if errors.As(err, &m) {
			s.Words = fmt.Sprintf("%s error=%d\n", m.Call, m.Code) + s.Words
		}
		return nil, s
	}
	c.say("allocated GPU buffer of a %d address at %#x for type CUDA_MEM_DEVICE\n", n, b.Addr())
	return b, nil
}

func (c *cudaMemory) free(t verbs.Thread, b verbs.Buffer) error {
	c.say("deallocating GPU buffer %016x\n", b.Addr())
	return b.Unmap(t)
}

// register takes the address as it is, or a DMA-BUF of the pages around it.
func (c *cudaMemory) register(t verbs.Thread, pd verbs.PD, b verbs.Buffer, n uint64, access verbs.AccessFlags) (verbs.MR, error) {
	of := c.n
	c.n++
	if !c.e.o.Memory.DMABuf {
		mr, err := pd.RegMR(t, b.Addr(), n, access)
		if errors.Is(err, syscall.EFAULT) {
			err = fmt.Errorf("%w: memory of a GPU cannot be pinned without nvidia-peermem: load it (on the simulator --set gpu.peermem=true), or give --use_cuda_dmabuf", err)
		}
		return mr, err
	}
	d, err := c.m.Export(t, b, 0, n)
	if err != nil {
		return nil, fmt.Errorf("export of the GPU's memory: %w", err)
	}
	page := uint64(c.e.page)
	aligned := b.Addr() / page * page
	c.say("using DMA-BUF for GPU buffer address at %#x aligned at %#x with aligned size %d\n", b.Addr(), aligned, roundUp(n+b.Addr()-aligned, page))
	c.say("Calling ibv_reg_dmabuf_mr(offset=%d, size=%d, addr=%#x, fd=%d) for QP #%d\n", d.Offset, n, b.Addr(), d.FD, of)
	mr, err := pd.RegDmabufMR(t, d.Offset, n, b.Addr(), d.FD, access)
	return mr, errors.Join(err, c.opener.CloseFD(t, d.FD)) // the region keeps the memory
}

// Environment is what the process of an end needs: libmlx5 has the processor copy small messages
// out of a completion, which it cannot into the memory of a GPU.
func (o *Options) Environment() map[string]string {
	if o.scatters() {
		return map[string]string{"MLX5_SCATTER_TO_CQE": "0"}
	}
	return nil
}

func (o *Options) scatters() bool {
	return o.Memory.Kind == "cuda" && o.Test.Verb == Send && (o.Size <= 64 || o.Method == AllSizes)
}
