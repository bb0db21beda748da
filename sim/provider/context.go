package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// Context is an open device.
type Context struct {
	verbs.UnimplementedContext
	dev    *Device
	proc   *Process
	u      *kernel.Ucontext
	env    environ
	resp   kernel.UcontextResp
	attr   verbs.DeviceAttrEx
	bf     bfState
	cqReg  register // UAR whose CQ doorbell arms
	clock  *cpu.Mapping
	mapped int
	closed bool
	fds    [2]*descriptor // of its files; an imported context has one
	// imported: of the device file of another context, which lives until all are closed.
	imported bool

	uidx      slots[completer] // by user index, CQE version 1
	cookies   slots[verbs.CQ]  // by the cookie given to the kernel
	srqs      []verbs.SRQ      // likewise
	targets   slots[*TargetQP] // likewise
	dbPages   []*dbPage
	ports     *sim.Rand   // of datagrams; nil before the first
	broken    rule.Broken // see breaks
	qpnBlocks []*qpnBlock // of reserved numbers
}

// enter is what each control verb does first.
func (c *Context) enter(vt verbs.Thread) *Thread {
	t := Of(vt)
	t.Core.Run(t.P, c.proc.Params.Control)
	t.P.Sync()
	return t
}

// Device is the device that was opened.
func (c *Context) Device() verbs.Device { return c.dev }

// Close is ibv_close_device. What the context still has is destroyed by the kernel.
func (c *Context) Close(vt verbs.Thread) error {
	t := c.enter(vt)
	if c.closed {
		return fmt.Errorf("close %s: the context is closed: %w", c.dev.name, syscall.EBADF)
	}
	c.closed = true
	c.u.Close(t.caller)
	for _, file := range c.fds {
		c.proc.forgetFD(file)
	}
	for _, p := range c.dbPages {
		_ = c.proc.K.Space.Unmap(p.va, uint64(c.proc.PageSize))
	}
	c.dbPages = nil
	return nil
}

// QueryDevice is ibv_query_device.
func (c *Context) QueryDevice(vt verbs.Thread) (verbs.DeviceAttr, error) {
	a, err := c.u.QueryDevice(c.enter(vt).caller)
	return a.DeviceAttr, err
}

// QueryDeviceEx is ibv_query_device_ex; the input has no bits yet.
func (c *Context) QueryDeviceEx(vt verbs.Thread, compMask uint32) (_ verbs.DeviceAttrEx, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if compMask != 0 {
		return verbs.DeviceAttrEx{}, fmt.Errorf("query_device_ex: input comp_mask %#x: %w", compMask, syscall.EINVAL)
	}
	x, err := c.u.QueryDevice(t.caller)
	if t.breaks(rule.PortsAreCountedTwice) {
		x.PhysPortCntEx++
	}
	if t.breaks(rule.PagingCapsAreConsistent) {
		x.ODPGeneralCaps = 0
	}
	return x, err
}

// QueryPort is ibv_query_port.
func (c *Context) QueryPort(vt verbs.Thread, port int) (_ verbs.PortAttr, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	a, err := c.u.QueryPort(t.caller, port)
	if t.breaks(rule.PortHasItsLinkLayer) {
		a.LinkLayer = verbs.LinkEthernet + verbs.LinkInfiniBand - a.LinkLayer
	}
	return a, err
}

// QueryGID is ibv_query_gid. An empty slot reads as zeros.
func (c *Context) QueryGID(vt verbs.Thread, port, index int) (_ verbs.GID, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	e, err := c.u.QueryGIDEntry(t.caller, port, index)
	if verbs.ErrnoOf(err) == syscall.ENODATA || err != nil && t.breaks(rule.GIDTableHasAnEnd) {
		return verbs.GID{}, nil
	}
	return e.GID, err
}

// QueryGIDEx is ibv_query_gid_ex; no flag is defined, and the kernel refuses all.
func (c *Context) QueryGIDEx(vt verbs.Thread, port, index int, flags uint32) (_ verbs.GIDEntry, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if flags != 0 {
		return verbs.GIDEntry{}, fmt.Errorf("query_gid_ex: flags %#x: %w", flags, syscall.EINVAL)
	}
	e, err := c.u.QueryGIDEntry(t.caller, port, index)
	if t.breaks(rule.GIDHasItsType) {
		e.Type = (e.Type + 1) % 3
	}
	return e, err
}

// QueryGIDTable is ibv_query_gid_table: entries of all ports that hold data. EINVAL
// when entries has too little room; it is left alone then.
func (c *Context) QueryGIDTable(vt verbs.Thread, entries []verbs.GIDEntry, flags uint32) (_ int, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if flags != 0 {
		return 0, fmt.Errorf("query_gid_table: flags %#x: %w", flags, syscall.EINVAL)
	}
	var found []verbs.GIDEntry
	for port := 1; port <= int(c.resp.NumPorts); port++ {
		pa, err := c.u.QueryPort(t.caller, port)
		if err != nil {
			return 0, err
		}
		for i := range pa.GIDTblLen {
			e, err := c.u.QueryGIDEntry(t.caller, port, i)
			switch {
			case verbs.ErrnoOf(err) == syscall.ENODATA:
			case err != nil:
				return 0, err
			default:
				found = append(found, e)
			}
		}
	}
	if len(found) > len(entries) {
		return 0, fmt.Errorf("query_gid_table: %d entries, room for %d: %w", len(found), len(entries), syscall.EINVAL)
	}
	return copy(entries, found), nil
}

// QueryPKey is ibv_query_pkey, which reads a file of sysfs: what is not in the table has
// none.
func (c *Context) QueryPKey(vt verbs.Thread, port, index int) (_ uint16, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	k, err := c.u.QueryPKey(t.caller, port, index)
	if err != nil && !t.breaks(rule.PKeyTableHasAnEnd) {
		return 0, fmt.Errorf("query_pkey: port %d, index %d: %w", port, index, syscall.ENOENT)
	}
	return k, nil
}

// PKeyIndex is ibv_get_pkey_index: the first index that holds pkey.
func (c *Context) PKeyIndex(vt verbs.Thread, port int, pkey uint16) (_ int, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	pa, err := c.u.QueryPort(t.caller, port)
	if err != nil {
		return -1, err
	}
	for i := range int(pa.PKeyTblLen) {
		k, err := c.u.QueryPKey(t.caller, port, i)
		if err != nil {
			return -1, err
		}
		if k == pkey {
			return i, nil
		}
	}
	if t.breaks(rule.AbsentPKeyHasNoIndex) {
		return 0, nil
	}
	return -1, fmt.Errorf("pkey %#x is not in the table of port %d: %w", pkey, port, syscall.ENOENT)
}

// NumCompVectors is the context's num_comp_vectors.
func (c *Context) NumCompVectors() int { return c.u.NumCompVectors() }

// RawClock is ibv_query_rt_values_ex for the raw clock (mlx5_read_clock): both words of
// the mapped timer, again when the upper one has moved meanwhile.
func (c *Context) RawClock(vt verbs.Thread) (uint64, error) {
	t := Of(vt)
	word := func(off uint64) uint32 {
		var b [prm.TimerSize / 2]byte
		t.Core.Load(t.P, c.clock, off, b[:])
		return prm.TimerWord(b[:])
	}
	for {
		hi := word(0)
		lo := word(prm.TimerSize / 2)
		if word(0) == hi {
			return uint64(hi)<<32 | uint64(lo), nil
		}
	}
}

// breaks is that of a thread, for calls that have none.
func (c *Context) breaks(r rule.Rule) bool { return rule.Mutants && c.broken.Has(r) }

// unknownText is what the library says of a value that is not in its enumeration.
const unknownText = "unknown"

// EventTypeStr is ibv_event_type_str.
func (c *Context) EventTypeStr(typ verbs.EventType) string {
	if typ > verbs.EventWQFatal || typ == verbs.EventWQFatal && c.breaks(rule.LastEventHasAName) {
		return unknownText
	}
	return typ.String()
}

// WCStatusStr is ibv_wc_status_str.
func (c *Context) WCStatusStr(status verbs.WCStatus) string {
	if status > verbs.WCTMRndvIncomplete {
		return unknownText
	}
	return status.String()
}

// slots give numbers to things. Numbers that were given back are taken first, the latest before the
// others.
type slots[T any] struct {
	all  []T
	free []uint32
}

func (s *slots[T]) take(x T) uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.all[i] = x
		return i
	}
	s.all = append(s.all, x)
	return uint32(len(s.all) - 1)
}

func (s *slots[T]) put(i uint32) {
	var none T
	s.all[i] = none
	s.free = append(s.free, i)
}

// completerOf is the queue of a user index, or nil.
func (c *Context) completerOf(uidx uint32) completer {
	if uidx < uint32(len(c.uidx.all)) {
		return c.uidx.all[uidx]
	}
	return nil
}

// exit is the end of the process: the kernel closes the file.
func (c *Context) exit(k kernel.Caller) {
	if !c.closed {
		c.closed = true
		c.closeFile(k)
	}
}

// closeFile closes a descriptor of the device file.
func (c *Context) closeFile(k kernel.Caller) { c.u.Close(k) }

// mappings counts the device pages that the context maps.
func (c *Context) mappings() int {
	if c.closed && !c.breaks(rule.ClosedContextUnmaps) {
		return 0
	}
	return c.mapped
}

// noQueues refuses queues, registers for them and events on an imported context: its events
// would need a file of their own.
func (c *Context) noQueues() error {
	if c.imported {
		return fmt.Errorf("queues, registers and events of an imported context are not modelled: %w", syscall.EOPNOTSUPP)
	}
	return nil
}
