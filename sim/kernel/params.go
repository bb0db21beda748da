package kernel

import (
	"fmt"
	"reflect"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Generation selects a set of UAR rules, for the kernel or for a library.
type Generation uint8

// Generations.
const (
	// Dynamic is today's: no static bfregs, UAR objects on demand.
	Dynamic Generation = iota
	// Static is kernel 4.16: static uUARs, 1024 dynamic bfregs for thread domains.
	Static
)

// QPWRRule is how the kernel derives max_qp_wr from the size of the largest ring.
type QPWRRule uint8

// Rules.
const (
	// QPWRBlocks is a work request for each basic block, as Linux 6.1 says, which a send ring has
	// no room for.
	QPWRBlocks QPWRRule = iota
	// QPWRRequests is as many work requests as a send ring has room for, as Linux 6.12 says.
	QPWRRequests
)

// Params are the costs and limits of the kernel, and settings of the machine's administrator and
// PCI bus. The zero value is not usable; Validate says what is missing.
type Params struct {
	// Generation of the UAR rules.
	Generation Generation `words:"dynamic static"`
	// MKeyCache is the order in which memory keys of deregistered regions are taken again.
	MKeyCache MKeyCache `key:"mkey_cache" words:"lifo fifo none"`
	// Paging is the kernel's on-demand paging.
	Paging PagingEra `words:"6.2 6.14 5.16 5.5 5.0"`
	// XRC is who an XRC target QP belongs to.
	XRC XRCEra `words:"6.1 4.9 3.2 ofed-1.3 proposal creator"`
	// MaxQPWR is what max_qp_wr counts.
	MaxQPWR QPWRRule `key:"max_qp_wr" words:"blocks requests"`
	// PageSize of the host in bytes. sim/mem has pages of 4096.
	PageSize int `unit:"size"`
	// CacheLine of the host in bytes, as the kernel reports it to the library at open.
	CacheLine int `unit:"size"`
	// CompVectors is how many completion EQs are made, one MSI-X vector each: on a
	// real host the number of online CPUs. The device may allow fewer. MSI-X has 2048
	// (PCI Express Base, 7.7.2).
	CompVectors int `bounds:"1..2048"`
	// NetMTU is the MTU of the port's Ethernet interface in bytes. The active path
	// MTU is the largest that fits below it with 96 bytes of headers (iboe_get_mtu):
	// 1500 gives 1024, 4192 and more give 4096. 9978 is the largest that mlx5 interfaces take.
	NetMTU int `unit:"size" bounds:"1..9978"`
	// PCIDevice and PCIRevision are the function's identity (the table
	// mlx5_core_pci_table of Linux mlx5/core/main.c).
	PCIDevice   uint16 `unit:"hex"`
	PCIRevision uint8  `unit:"hex" bounds:"0..255"`
	// SQD: the driver has commands for RTS to SQD and SQD to SQD. False is what
	// mlx5_ib does.
	SQD bool
	// AtomicWrite: device_cap_flags_ex says that the device has atomic writes
	// (IB_UVERBS_DEVICE_ATOMIC_WRITE). False is what mlx5_ib does.
	AtomicWrite bool
	// Dmabuf: the driver has regions of DMA-BUFs (Linux 5.12 and later). False is what older
	// kernels, and drivers such as that of Soft-RoCE, have.
	Dmabuf bool
	// DmabufExport: programs can export device memory (Linux, core/uverbs_std_types_dmabuf.c, of
	// 2026). False is what older kernels do.
	DmabufExport bool
	// PinDmabuf: the driver pins what it attaches to, so that the exporter cannot move it. False is
	// what mlx5_ib does.
	PinDmabuf bool `profile:"-"`
	// LinkWidth and LinkSpeed are the active_width and active_speed codes of
	// ibv_port_attr: 2 is 4X; 4 QDR, 16 FDR, 32 EDR, 64 HDR, 128 NDR; the bound leaves
	// room for faster ones.
	LinkWidth uint8
	LinkSpeed uint32 `bounds:"1..2^16"`

	// Syscall is entry and exit of one call.
	Syscall sim.Time
	// CreateQP is the kernel's own part of making a QP, the device's command apart.
	CreateQP sim.Time
	// CreateCQ likewise for a CQ.
	CreateCQ sim.Time
	// RegMRBase and RegMRPage are the kernel's own part of registering memory: once,
	// and for each page that is pinned. The same is paid for the pages of rings.
	RegMRBase, RegMRPage sim.Time
	// Interrupt is from the MSI-X message to the first look at the event queue.
	Interrupt sim.Time
	// Wakeup is from the handler to the sleeping thread running again.
	Wakeup sim.Time
	// ARPTimeout is how long the core waits for a neighbour that does not answer
	// before a modify to RTR fails (rdma_resolve_ip: 1000 ms).
	ARPTimeout sim.Time

	// MinorFault and MajorFault are what a thread takes for a page fault of its own, on memory that
	// is mapped lazily: where the page is made or found in memory, and where it is read from swap
	// or from a file.
	MinorFault, MajorFault sim.Time
	// PageFault and PageFaultPage are what the driver takes to find the pages that an access needs:
	// once for an event or a prefetch, and for each page.
	PageFault, PageFaultPage sim.Time
	// PageUpdate and PageUpdatePage are what it takes at least to change the device's translations,
	// the device's part included: for each run of pages, and for each of its pages.
	PageUpdate, PageUpdatePage sim.Time
	// Invalidate and InvalidatePage likewise, to take pages away from the device.
	Invalidate, InvalidatePage sim.Time
}

// Validate returns an error for the first field that is missing or impossible.
func (p *Params) Validate() error {
	v := reflect.ValueOf(*p)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		checked := f.Type.Kind() == reflect.Bool || f.Tag.Get("words") != "" || f.Tag.Get("bounds") != ""
		if !checked && v.Field(i).IsZero() {
			return fmt.Errorf("kernel: parameter %s is missing: %w", f.Name, syscall.EINVAL)
		}
	}
	if errs := sim.OutOfBounds("kernel", p); errs != nil {
		return fmt.Errorf("%v: %w", errs[0], syscall.EINVAL) // one error, at the value that it names
	}
	if p.PageSize != mem.PageSize {
		return fmt.Errorf("kernel: page size %d: hosts have pages of %d bytes, and huge pages under the memory regions of a load that has page_size: 2MiB or 1GiB: %w",
			p.PageSize, mem.PageSize, syscall.EINVAL)
	}
	if p.CacheLine < 16 || p.CacheLine > p.PageSize || p.CacheLine&(p.CacheLine-1) != 0 {
		return fmt.Errorf("kernel: CacheLine is %d: want a power of two from 16 to the page size of %d: %w", p.CacheLine, p.PageSize, syscall.EINVAL)
	}
	// What is paid for each page is paid for as many as a region of 16 TiB has.
	const page = sim.Millisecond
	if s := sim.TooLong(p, map[string]sim.Time{"ARPTimeout": 1000 * sim.Second, "RegMRPage": page, "PageFaultPage": page, "PageUpdatePage": page,
		"InvalidatePage": page}); s != "" {
		return fmt.Errorf("kernel: %s: %w", s, syscall.EINVAL)
	}
	for i := range v.NumField() {
		if t, ok := v.Field(i).Interface().(sim.Time); ok && t < 0 {
			return fmt.Errorf("kernel: parameter %s is negative: %w", v.Type().Field(i).Name, syscall.EINVAL)
		}
	}
	return nil
}
