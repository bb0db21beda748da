//go:build hw

package mlx5

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// absent are tokens for which verbs has no call yet, or that only a simulator has: no
// device of this target has them. A token that is named nowhere here is unknown.
var absent = map[string]bool{
	"mmio log": true, "mmio exact": true, "fault": true, "schedule": true, "locks": true, "bf lock": true, "exact time": true, "overrun.drop": true, "shared bf": true,
	"dmabuf.move": true, "counters": true,
	"reg_ex": true, "dmah": true, "hotunplug": true,
	"uar dmabuf": true, "ece": true, "cntr": true, "pfc": true, "ecn": true, "vlan": true, "huge": true, "ts.wall": true,
}

// capability answers from what was probed.
func (s *Setup) capability(token string) verbs.Capability {
	return s.capabilityFor(token, nil)
}

// capabilityFor is capability for a case with these needs.
func (s *Setup) capabilityFor(token string, needs []string) verbs.Capability {
	if s.far != nil {
		if c, decided := s.farCapability(token, needs); decided {
			return c
		}
	}
	return s.own(token)
}

// own is the capability of the first device and its machine.
func (s *Setup) own(token string) verbs.Capability {
	if c, ok := s.caps[token]; ok {
		return c
	}
	if absent[token] {
		return verbs.Absent
	}
	return verbs.Unknown
}

func has(ok bool) verbs.Capability {
	if ok {
		return verbs.Present
	}
	return verbs.Absent
}

// refusals mean that a call is missing; from any other error nothing follows.
var refusals = []error{syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EPROTONOSUPPORT, syscall.EINVAL, syscall.EPERM}

// answer is the capability that the outcome of a probe shows.
func answer(err error) verbs.Capability {
	if err == nil {
		return verbs.Present
	}
	for _, r := range refusals {
		if errors.Is(err, r) {
			return verbs.Absent
		}
	}
	return verbs.Unknown
}

// probeDevice opens the first device and fills in its description and capabilities.
func (s *Setup) probeDevice() error {
	s.caps = map[string]verbs.Capability{}
	tb := New(s)
	var err error
	run := tb.Run(0, func(t verbs.Thread) {
		var devs []verbs.Device
		if devs, err = t.Process().Devices(t); err != nil {
			return
		}
		var ctx verbs.Context
		if ctx, err = devs[0].Open(t); err != nil {
			return
		}
		p := &probe{s: s, t: t, ctx: ctx.(*context)}
		err = errors.Join(p.all(), ctx.Close(t))
	})
	return errors.Join(run, err, tb.Close())
}

// probe is a device that is being probed.
type probe struct {
	s    *Setup
	t    verbs.Thread
	ctx  *context
	attr verbs.DeviceAttrEx
	pd   verbs.PD
	mem  verbs.Buffer
	cq   verbs.CQ
}

func (p *probe) set(token string, c verbs.Capability) { p.s.caps[token] = c }

func (p *probe) all() error {
	var err error
	if p.attr, err = p.ctx.QueryDeviceEx(p.t, 0); err != nil {
		// A provider may have the plain call only.
		if p.attr.DeviceAttr, err = p.ctx.QueryDevice(p.t); err != nil {
			return err
		}
	}
	p.machine()
	p.queried()
	connects := has(p.connects() == nil)
	p.set("cm", connects)
	p.set("raw cm", connects)
	p.set("other net", has(p.otherNet()))
	if err := p.describe(); err != nil {
		return err
	}
	if p.pd, err = p.ctx.AllocPD(p.t); err != nil {
		return err
	}
	if p.mem, err = p.t.Process().Map(p.t, 4096, verbs.MapOptions{}); err != nil {
		return err
	}
	if p.cq, err = p.ctx.CreateCQ(p.t, verbs.CQAttr{CQE: 8}); err != nil {
		return fmt.Errorf("a CQ of 8 entries: %w", err)
	}
	p.domains()
	p.imports()
	p.queues()
	p.locks()
	p.extended()
	p.regions()
	p.exports()
	p.deviceMemory()
	p.statistics()
	p.keys()
	p.direct()
	if p.ctx.mlx5 {
		p.registers()
	}
	return errors.Join(p.cq.Destroy(p.t), p.mem.Unmap(p.t), p.pd.Dealloc(p.t))
}

// machine sets the tokens of the host.
func (p *probe) machine() {
	page := os.Getpagesize()
	p.set("4k page", has(page == 4096))
	p.set("64k page", has(page == 65536))
	root := os.Geteuid() == 0
	p.set("root", has(root))
	p.set("non-root", verbs.Present) // players give up the privileges that they have
	var info unix.Sysinfo_t
	const big = 10 << 30 // two regions of 2 GiB, and memory for all else
	p.set("bigmem", has(unix.Sysinfo(&info) == nil && uint64(info.Totalram)*uint64(info.Unit) >= big))
	p.set("2p", has(len(p.s.nodes) > 1))
	p.set("fork", verbs.Present)
	p.set("fork.copy", copiesOnFork(release()))
	_, err := interfaceOf(p.s.nodes[0])
	p.set("addr", tool("ip", err))
	_, err = resourceCounts(p.s.nodes[0].Device)
	p.set("restrack", tool("rdma", err))
}

// connects tries whether the connection manager knows the device by the address that connections
// use.
func (p *probe) connects() (err error) {
	port, index := p.ctx.Preferred()
	g, err := p.ctx.QueryGID(p.t, port, index)
	if err != nil {
		return err
	}
	ip := netip.AddrFrom16(g).Unmap()
	if a, err := p.ctx.QueryPort(p.t, port); err == nil && a.LinkLayer == verbs.LinkInfiniBand {
		if ip, err = verbs.InterfaceAddr(p.t, p.ctx, port); err != nil {
			return err
		}
	}
	ch, err := p.t.Process().(verbs.ConnectionManager).CreateEventChannel(p.t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ch.Destroy(p.t)) }()
	id, err := ch.CreateID(p.t, verbs.PortSpaceTCP, verbs.QPTRC, nil)
	if err != nil {
		return err
	}
	return errors.Join(id.BindAddr(p.t, netip.AddrPortFrom(ip, 0)), id.Destroy(p.t))
}

// otherNet says whether an interface of no device has an address that is not of the loopback
// interface.
func (p *probe) otherNet() bool {
	all, err := p.t.Process().(verbs.InterfaceLister).Interfaces(p.t)
	for _, i := range all {
		if i.Device == "" && slices.ContainsFunc(i.Addrs, netip.Addr.IsGlobalUnicast) {
			return err == nil
		}
	}
	return false
}

// tool is the answer of a probe by a command of iproute2, which may not be installed.
func tool(name string, err error) verbs.Capability {
	if _, missing := exec.LookPath(name); missing != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EINVAL) {
		return verbs.Absent
	}
	if err != nil {
		return verbs.Unknown
	}
	return verbs.Present
}

// copiesOnFork reports whether a kernel gives a forked child copies of pinned pages: Linux 5.12
// and later do (RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK).
func copiesOnFork(release string) verbs.Capability {
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n != 2 {
		return verbs.Unknown
	}
	return has(major > 5 || major == 5 && minor >= 12)
}

// measuredParts are ConnectX-5, ConnectX-5 Ex and ConnectX-6, whose failures others have measured,
// by their PCI device IDs.
var measuredParts = []uint32{0x1017, 0x1019, 0x101b}

// srqResize is IBV_DEVICE_SRQ_RESIZE.
const srqResize = 1 << 13

// queried sets the tokens that queries answer.
func (p *probe) queried() {
	n, a := p.s.nodes[0], p.attr
	eth := n.link == verbs.LinkEthernet
	p.s.ops = a.CapFlagsEx
	p.set("roce", has(eth))
	p.set("roce v2", has(eth && n.GIDType == verbs.GIDTypeRoCEv2))
	_, err := player.PickIPv6(p.t, p.ctx, uint32(n.Port))
	p.set("ipv6", has(err == nil))
	p.set("ib", has(n.link == verbs.LinkInfiniBand))
	p.set("speed", has(p.ctx.mlx5)) // of a card; Soft-RoCE and emulation are slow
	p.set("device time", has(p.ctx.mlx5))
	p.set("hw counters", has(p.ctx.mlx5 && p.s.counted()))
	p.set("card faults", has(p.ctx.mlx5 && slices.Contains(measuredParts, a.VendorPartID)))
	if p.ctx.mlx5 {
		p.set("sqd", verbs.Absent) // mlx5_ib has no transition into SQD
	}
	p.set("atomic", has(a.Atomic != verbs.AtomicNone))
	p.set("no atomic", has(a.Atomic == verbs.AtomicNone))
	p.set("atomic.glob", has(a.Atomic == verbs.AtomicGlob))
	p.set("srq.resize", has(a.DeviceCapFlags&srqResize != 0))
	p.set("mcast", has(a.MaxMcastGrp > 0))
	const odpSupport, odpImplicit = 1 << 0, 1 << 1 // IBV_ODP_SUPPORT, IBV_ODP_SUPPORT_IMPLICIT
	p.set("odp", has(a.ODPGeneralCaps&odpSupport != 0))
	p.set("no odp", has(a.ODPGeneralCaps&odpSupport == 0))
	p.set("advise", has(p.ctx.mlx5 && a.ODPGeneralCaps&odpSupport != 0))
	p.set("odp.implicit", has(a.ODPGeneralCaps&odpImplicit != 0))
	for token, bit := range map[string]uint32{"send": verbs.ODPSend, "recv": verbs.ODPRecv, "write": verbs.ODPWrite, "read": verbs.ODPRead,
		"atomic": verbs.ODPAtomic, "srq_recv": verbs.ODPSRQRecv} {
		p.set("odp.rc."+token, has(a.ODPRC&bit != 0))
		p.set("odp.xrc."+token, has(a.ODPXRC&bit != 0))
	}
	p.set("dm", has(a.MaxDMSize > 0))
	p.set("cq.moderation", has(a.MaxCQCount > 0))
	p.set("ts", has(a.CompletionTimestampMask != 0))
	p.set("dv.cqe_comp", has(a.CQEComp.MaxNum > 0))
	p.set("dv.cqe_comp.read", verbs.Absent) // rdma-core switches compression on, and reads no compressed entries
	mlx5 := has(p.ctx.mlx5)
	for _, token := range []string{"dv", "env", "raw db"} {
		p.set(token, mlx5)
	}
	for _, token := range []string{"bf", "devx", "devx.dedicated", "dyn uar", "legacy abi", "uar objects", "lib.dyn"} {
		p.set(token, verbs.Absent) // unless direct finds it
	}
	for _, token := range wireNeeds {
		p.set(token, has(p.s.wired()))
	}
	p.set(subnetNeed, has(p.s.wired() && p.s.subnet))
}

// deviceMemory tries to export device memory, and to have the library allocate a buffer.
func (p *probe) deviceMemory() {
	p.set("dm.export", verbs.Absent)
	if p.attr.MaxDMSize > 0 {
		if m, err := p.ctx.AllocDM(p.t, verbs.DMAttr{Length: 64}); err == nil {
			fd, err := m.(verbs.DMExporter).ExportDmabuf(p.t)
			if p.set("dm.export", answer(err)); err == nil {
				_ = unix.Close(fd)
			}
			_ = m.Free(p.t)
		}
	}
	b, err := p.pd.(verbs.BufAllocator).AllocBuf(p.t, 64)
	if p.set("buf", answer(err)); err == nil {
		_ = b.Unmap(p.t)
	}
}

// imports duplicates the context.
func (p *probe) imports() {
	proc := p.t.Process().(verbs.Importer)
	fd, err := proc.DupCommandFD(p.t, p.ctx)
	if err != nil {
		return
	}
	c, err := proc.ImportDevice(p.t, fd)
	if p.set("import", answer(err)); err == nil {
		_ = c.Close(p.t)
		return
	}
	_ = proc.CloseFD(p.t, fd)
}

func (p *probe) domains() {
	d, err := p.ctx.AllocTD(p.t, verbs.TDInitAttr{})
	if p.set("td", answer(err)); err == nil {
		_ = d.Dealloc(p.t)
	}
	d, err = p.ctx.AllocTD(p.t, verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1})
	if p.set("td.independent", answer(err)); err == nil {
		_ = d.Dealloc(p.t)
	}
	q, err := p.ctx.AllocParentDomain(p.t, verbs.ParentDomainAttr{PD: p.pd})
	if p.set("pdom", answer(err)); err == nil {
		_ = q.Dealloc(p.t)
	}
}

func (p *probe) queues() {
	ch, err := p.ctx.CreateCompChannel(p.t)
	if p.set("events", answer(err)); err == nil {
		_ = ch.Destroy(p.t)
	}
	p.createCQ("cq_ex", verbs.CQAttr{CQE: 8, Ex: true})
	p.createCQ("cq.ignore_overrun", verbs.CQAttr{CQE: 8, Ex: true, CompMask: 1, Flags: verbs.CQIgnoreOverrun})
	if p.s.caps["ts"] == verbs.Present {
		p.createCQ("ts", verbs.CQAttr{CQE: 8, Ex: true, WCFlags: verbs.WCExCompletionTimestamp})
	}
	_, err = p.ctx.RawClock(p.t)
	p.set("clock", answer(err))
	p.set("resize", answer(p.cq.Resize(p.t, 64)))
	p.set("overrun", verbs.Present) // every device has CQs with an end
	s, err := p.pd.CreateSRQ(p.t, verbs.SRQInitAttr{MaxWR: 8, MaxSGE: 1})
	if p.set("srq", answer(err)); err == nil {
		_ = s.Destroy(p.t)
	}
	x, err := p.ctx.OpenXRCD(p.t, verbs.XRCDInitAttr{CompMask: verbs.XRCDInitFD | verbs.XRCDInitOFlags, FD: -1, OFlags: syscall.O_CREAT})
	if p.set("xrc", answer(err)); err == nil {
		_ = x.Close(p.t)
	}
	for token, typ := range map[string]verbs.QPType{"uc": verbs.QPTUC, "ud": verbs.QPTUD, "raw": verbs.QPTRawPacket} {
		q, err := p.pd.CreateQP(p.t, verbs.QPInitAttr{Type: typ, SendCQ: p.cq, RecvCQ: p.cq,
			Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
		p.set(token, answer(err))
		if typ == verbs.QPTRawPacket {
			p.flows(q, err)
		}
		if err == nil {
			_ = q.Destroy(p.t)
		}
	}
}

// flows tries whether a rule can lead to a queue pair of raw packets: those of an experimental
// EtherType (IEEE 802.1) alone, so that the machine loses none.
func (p *probe) flows(q verbs.QP, err error) {
	if err != nil {
		p.set("flow", answer(err))
		return
	}
	const experimental = 0x88b5
	s := verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{EtherType: experimental}, Mask: verbs.FlowFilter{EtherType: 0xffff}}
	port, _ := p.ctx.Preferred()
	f, err := q.CreateFlow(p.t, verbs.FlowAttr{Port: uint8(port), Specs: []verbs.FlowSpec{s}})
	if p.set("flow", answer(err)); err == nil {
		_ = f.Destroy(p.t)
	}
}

// locks polls a queue and looks whether the lock that this takes is counted.
func (p *probe) locks() {
	var wc [1]verbs.WC
	before := p.cq.(verbs.LockCounter).LockStats().CQ
	_, err := p.cq.Poll(p.t, wc[:])
	p.set("locks", has(err == nil && p.cq.(verbs.LockCounter).LockStats().CQ == before+1))
}

// extended probes the extended way to post.
func (p *probe) extended() {
	p.builders("wr_ex", verbs.QPExSend)
	// The library of Soft-RoCE offers the call whatever its kernel carries out.
	if p.set("rc.atomic_write", verbs.Absent); p.attr.CapFlagsEx&verbs.DeviceAtomicWrite != 0 {
		p.builders("rc.atomic_write", verbs.QPExAtomicWrite)
	}
}

// builders tries whether a queue pair can be made with an extended way to post these operations.
func (p *probe) builders(token string, ops uint64) {
	q, err := p.pd.CreateQP(p.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: p.cq, RecvCQ: p.cq, CompMask: verbs.QPInitSendOpsFlags,
		SendOpsFlags: ops, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	if p.set(token, answer(err)); err == nil {
		_ = q.Destroy(p.t)
	}
}

func (p *probe) createCQ(token string, a verbs.CQAttr) {
	q, err := p.ctx.CreateCQ(p.t, a)
	if p.set(token, answer(err)); err == nil {
		_ = q.Destroy(p.t)
	}
}

func (p *probe) regions() {
	for token, typ := range map[string]verbs.MWType{"mw.t1": verbs.MWType1, "mw.t2": verbs.MWType2} {
		w, err := p.pd.AllocMW(p.t, typ)
		if p.set(token, answer(err)); err == nil {
			_ = w.Dealloc(p.t)
		}
	}
	p.set("mw", max(p.s.caps["mw.t1"], p.s.caps["mw.t2"]))
	m, err := p.pd.AllocNullMR(p.t)
	if p.set("nullmr", answer(err)); err == nil {
		_ = m.Dereg(p.t)
	}
	if m, err = p.pd.RegMR(p.t, p.mem.Addr(), p.mem.Len(), verbs.AccessLocalWrite); err != nil {
		return
	}
	p.set("rereg", answer(m.Rereg(p.t, verbs.ReregAccess, nil, 0, 0, verbs.AccessLocalWrite|verbs.AccessRemoteRead)))
	_ = m.Dereg(p.t)
	m, err = p.pd.RegMR(p.t, p.mem.Addr(), p.mem.Len(), verbs.AccessLocalWrite|verbs.AccessRelaxedOrdering)
	if p.set("ro", answer(err)); err == nil {
		_ = m.Dereg(p.t)
	}
}

// exports tries regions of memory that another driver exports.
func (p *probe) exports() {
	// A driver that has them looks for the descriptor.
	_, err := p.pd.RegDmabufMR(p.t, 0, 4096, 0, -1, verbs.AccessLocalWrite)
	p.set("dmabuf", has(errors.Is(err, syscall.EBADF)))
	for _, token := range []string{"exporter", "gpu", "udmabuf"} {
		p.set(token, verbs.Absent)
	}
	proc := p.t.Process().(verbs.MemoryOpener)
	for token, kind := range map[string]verbs.MemoryKind{"udmabuf": verbs.MemoryUdmabuf, "gpu": verbs.MemoryGPU} {
		m, err := proc.OpenMemory(p.t, kind, verbs.MemoryOptions{})
		if err != nil {
			continue
		}
		if b, err := m.Alloc(p.t, 4096, 0); err == nil {
			if c := p.exported(m, b); c != verbs.Absent {
				p.set(token, c)
				p.set("exporter", c)
			}
			_ = b.Unmap(p.t)
		}
		_ = m.Close(p.t)
	}
}

// exported registers memory by a DMA-BUF.
func (p *probe) exported(m verbs.Memory, b verbs.Buffer) verbs.Capability {
	d, err := m.Export(p.t, b, 0, b.Len())
	if err != nil {
		return verbs.Absent
	}
	r, err := p.pd.RegDmabufMR(p.t, d.Offset, b.Len(), b.Addr(), d.FD, verbs.AccessLocalWrite)
	if err == nil {
		_ = r.Dereg(p.t)
	}
	_ = unix.Close(d.FD)
	return answer(err)
}

// statistics sets the token of counters of regions, which only those of on-demand paging have.
func (p *probe) statistics() {
	p.set("stat", verbs.Absent)
	m, err := p.pd.RegMR(p.t, p.mem.Addr(), p.mem.Len(), verbs.AccessLocalWrite|verbs.AccessOnDemand)
	if err != nil {
		return
	}
	counters, err := m.Counters(p.t)
	p.set("stat", has(err == nil && len(counters) > 0))
	_ = m.Dereg(p.t)
}

// generations sets the tokens of the kernel's and of the library's rules for UARs apart. dynamic
// says that a QP has one on demand, which takes both.
func (p *probe) generations(dynamic bool) {
	if dynamic {
		p.set("lib.dyn", verbs.Present)
		p.set("uar objects", verbs.Present)
		return
	}
	lib, kernel := verbs.Unknown, verbs.Unknown
	var major, minor int
	if n, _ := fmt.Sscanf(libraries("mlx5").core, "%d.", &major); n == 1 {
		lib = has(major >= 29) // 7fdcd258b of March 2020
	}
	if lib == verbs.Present { // it would have had them
		kernel = verbs.Absent
	} else if n, _ := fmt.Sscanf(release(), "%d.%d", &major, &minor); n == 2 {
		kernel = has(major > 5 || major == 5 && minor >= 7)
	}
	p.set("lib.dyn", lib)
	p.set("uar objects", kernel)
}

// keys registers the probe's memory twice: the second region has the key of the first where the
// driver takes the key that was freed last.
func (p *probe) keys() {
	var keys [2]uint32
	for i := range keys {
		m, err := p.pd.RegMR(p.t, p.mem.Addr(), p.mem.Len(), verbs.AccessLocalWrite)
		if err != nil {
			return
		}
		keys[i] = m.RKey()
		_ = m.Dereg(p.t)
	}
	p.set("mkeys.lifo", has(p.ctx.mlx5 && keys[0] == keys[1]))
}

// registers sets the tokens of UARs, of which direct verbs tell.
func (p *probe) registers() {
	u, err := p.ctx.AllocUAR(p.t, verbs.UARNonCached)
	if p.set("devx", answer(err)); err == nil {
		_ = u.Free(p.t)
	}
	u, err = p.ctx.AllocUAR(p.t, verbs.UARNonCachedOwn)
	if p.set("devx.dedicated", answer(err)); err == nil {
		_ = u.Free(p.t)
	}
	q, err := p.pd.CreateQP(p.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: p.cq, RecvCQ: p.cq,
		Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	if err == nil {
		m := q.(*dvQP)
		p.set("bf", has(m.BFReg().Size > 0))
		p.set("dyn uar", has(m.dynamicUAR()))
		p.set("legacy abi", has(!m.dynamicUAR()))
		p.generations(m.dynamicUAR())
		_ = q.Destroy(p.t)
	}
}
