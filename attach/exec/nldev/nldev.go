// Package nldev answers requests of NETLINK_RDMA, as ib_core does (core/nldev.c of Linux 6.12): by
// them libraries find devices, and the program rdma of iproute2 shows devices, links, resources and
// statistics. It knows nothing of sockets: a datagram comes in, datagrams go out.
//
// Requests that change something are refused. ib_core's own objects, those of its management
// datagrams, are not among the resources.
package nldev

import (
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// Device is an adapter.
type Device struct {
	Name  string
	Kern  *kernel.Device
	Attr  verbs.DeviceAttr
	Ports []verbs.PortAttr // port 1 first

	SubnetPrefix uint64 // of an InfiniBand port
	NetDevIndex  uint32 // of the interface of an Ethernet port
	NetDevName   string

	Chardev     uint64 // number of the device file (huge_encode_dev)
	ChardevName string // uverbs0
}

// Server answers for the devices of a machine, numbered from 0.
type Server struct {
	Devices   []Device
	CMChardev uint64 // number of rdma_cm's device file (huge_encode_dev); 0: there is none
	CM        *cm.Manager
	// PID is the number of a process, 0 of one that has ended.
	PID func(*kernel.Process) int
}

// request is one message of a datagram.
type request struct {
	s     *Server
	h     uapi.NetlinkHeader
	cmd   int
	attrs uapi.NetlinkAttrs
	admin bool
	busy  bool // another dump has begun
	out   [][]byte
}

// command is how a command is carried out: for one object, and for all (dump). nil: there is no
// such form.
type command struct {
	admin bool // needs CAP_NET_ADMIN
	one   func(*request) error
	dump  func(*request) error
}

// errors of the kernel, by their number alone.
const (
	errInvalid     = syscall.EINVAL
	errPermission  = syscall.EPERM
	errUnsupported = syscall.EOPNOTSUPP
	errNone        = syscall.ENOENT
	errBusy        = syscall.EBUSY
)

func refuse(*request) error { return errUnsupported }

// commands are nldev_cb_table.
var commands = map[int]command{
	uapi.NLDevGet:        {one: (*request).device, dump: (*request).devices},
	uapi.NLDevPortGet:    {one: (*request).port, dump: (*request).ports},
	uapi.NLDevSysGet:     {one: (*request).system},
	uapi.NLDevGetChardev: {one: (*request).chardev},
	uapi.NLDevResGet:     {one: (*request).summary, dump: (*request).summaries},
	uapi.NLDevResQPGet:   {one: objectOf(kinds[kernel.TrackedQP]), dump: objectsOf(kinds[kernel.TrackedQP])},
	uapi.NLDevResCQGet:   {one: objectOf(kinds[kernel.TrackedCQ]), dump: objectsOf(kinds[kernel.TrackedCQ])},
	uapi.NLDevResMRGet:   {one: objectOf(kinds[kernel.TrackedMR]), dump: objectsOf(kinds[kernel.TrackedMR])},
	uapi.NLDevResPDGet:   {one: objectOf(kinds[kernel.TrackedPD]), dump: objectsOf(kinds[kernel.TrackedPD])},
	uapi.NLDevResCtxGet:  {one: objectOf(kinds[kernel.TrackedContext]), dump: objectsOf(kinds[kernel.TrackedContext])},
	uapi.NLDevResSRQGet:  {one: objectOf(kinds[kernel.TrackedSRQ]), dump: objectsOf(kinds[kernel.TrackedSRQ])},
	uapi.NLDevResCMIDGet: {one: (*request).cmID, dump: (*request).cmIDsOfDevice},
	uapi.NLDevStatGet:    {one: (*request).statistic, dump: (*request).statistics},

	uapi.NLDevSet: {admin: true, one: refuse}, uapi.NLDevNewLink: {admin: true, one: refuse}, uapi.NLDevDelLink: {admin: true, one: refuse},
	uapi.NLDevSysSet: {admin: true, one: refuse}, uapi.NLDevStatSet: {admin: true, one: refuse}, uapi.NLDevStatDel: {admin: true, one: refuse},
}

// Answer carries out the requests of a datagram (rdma_nl_rcv_skb) and returns the datagrams that
// answer them, each no longer than 4 KiB where its parts allow it. port is the address of the
// socket that asks, admin whether it may see what CAP_NET_ADMIN shows. A dump waits for its reader,
// and so a second one in the same datagram is refused with EBUSY (netlink_dump_start).
func (s *Server) Answer(datagram []byte, port uint32, admin bool) (out [][]byte) {
	dumps := false
	for h, payload := range uapi.NetlinkMessages(datagram) {
		if h.Flags&uapi.NetlinkRequest == 0 || h.Type < uapi.NetlinkMinType {
			if h.Flags&uapi.NetlinkAck != 0 {
				out = append(out, ack(h, payload, port, nil))
			}
			continue
		}
		h.PID = port
		r := &request{s: s, h: h, admin: admin, busy: dumps}
		dumped, err := r.carryOut(payload)
		dumps = dumps || dumped
		out = append(out, r.out...)
		switch {
		case dumped:
			var w uapi.NetlinkWriter
			w.Done(h, number(err))
			out = append(out, w.B)
		case err != nil || h.Flags&uapi.NetlinkAck != 0:
			out = append(out, ack(h, payload, port, err))
		}
	}
	return out
}

func ack(h uapi.NetlinkHeader, payload []byte, port uint32, err error) []byte {
	var w uapi.NetlinkWriter
	h.PID = port
	w.Ack(h, payload, number(err))
	return w.B
}

func number(err error) int {
	if e, ok := err.(syscall.Errno); ok {
		return int(e)
	}
	return 0
}

// carryOut is rdma_nl_rcv_msg. dumped says that the answer is a dump, which ends with a message of
// its own.
func (r *request) carryOut(payload []byte) (dumped bool, err error) {
	cmd, ok := uapi.NetlinkCommand(r.h.Type)
	c, known := commands[cmd]
	if !ok || !known {
		return false, errInvalid
	}
	if c.admin && !r.admin {
		return false, errPermission
	}
	r.cmd = cmd
	if r.attrs, ok = uapi.ParseNetlinkAttrs(payload); !ok {
		return false, errInvalid
	}
	if r.h.Flags&uapi.NetlinkDump != 0 {
		if c.dump == nil {
			return false, errInvalid
		}
		if r.busy {
			return false, errBusy
		}
		return true, c.dump(r)
	}
	return false, c.one(r)
}

// message adds a datagram of one message of a command.
func (r *request) message(cmd int, fill func(w *uapi.NetlinkWriter)) {
	var flags uint16
	if r.h.Flags&uapi.NetlinkDump != 0 {
		flags = uapi.NetlinkMulti
	}
	var w uapi.NetlinkWriter
	w.Begin(uapi.NetlinkHeader{Type: uapi.NetlinkType(cmd), Flags: flags, Seq: r.h.Seq, PID: r.h.PID})
	fill(&w)
	r.out = append(r.out, w.B)
}

// named finds the device that the request names.
func (r *request) named() (index uint32, d *Device, err error) {
	index, ok := r.attrs.U32(uapi.NLAttrDevIndex)
	if !ok || int64(index) >= int64(len(r.s.Devices)) {
		return 0, nil, errInvalid
	}
	return index, &r.s.Devices[index], nil
}

// portNumber is the port that the request names; 0: none.
func (r *request) portNumber(d *Device) (n uint32, err error) {
	if _, given := r.attrs[uapi.NLAttrPortIndex]; !given {
		return 0, nil
	}
	n, ok := r.attrs.U32(uapi.NLAttrPortIndex)
	if !ok || n < 1 || int64(n) > int64(len(d.Ports)) {
		return 0, errInvalid
	}
	return n, nil
}

// handle is fill_nldev_handle.
func handle(w *uapi.NetlinkWriter, index uint32, d *Device) {
	w.U32(uapi.NLAttrDevIndex, index)
	w.String(uapi.NLAttrDevName, d.Name)
}

// counters are a table of them.
func counters(w *uapi.NetlinkWriter, all []verbs.NamedCounter) {
	w.Nest(uapi.NLAttrHWCounters|uapi.NetlinkNested, func() {
		for _, c := range all {
			w.Nest(uapi.NLAttrHWCounterEntry|uapi.NetlinkNested, func() {
				w.String(uapi.NLAttrHWCounterName, c.Name)
				w.U64(uapi.NLAttrHWCounterValue, c.Value)
			})
		}
	})
}
