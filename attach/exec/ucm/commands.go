//go:build linux

package ucm

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// commands are ucma_cmd_table by their numbers. GET_OPTION has no function in the kernel either.
var commands = [...]struct {
	name string
	run  func(*command) error
}{
	{"CREATE_ID", (*command).createID},
	{"DESTROY_ID", (*command).destroyID},
	{"BIND_IP", (*command).bindIP},
	{"RESOLVE_IP", (*command).resolveIP},
	{"RESOLVE_ROUTE", (*command).resolveRoute},
	{"QUERY_ROUTE", (*command).queryRoute},
	{"CONNECT", (*command).connect},
	{"LISTEN", (*command).listen},
	{"ACCEPT", (*command).accept},
	{"REJECT", (*command).reject},
	{"DISCONNECT", (*command).disconnect},
	{"INIT_QP_ATTR", (*command).initQPAttr},
	{"GET_EVENT", (*command).getEvent},
	{"GET_OPTION", nil},
	{"SET_OPTION", (*command).setOption},
	{"NOTIFY", (*command).notify},
	{"JOIN_IP_MCAST", (*command).joinIPMcast},
	{"LEAVE_MCAST", (*command).leaveMcast},
	{"MIGRATE_ID", (*command).migrateID},
	{"QUERY", (*command).query},
	{"BIND", (*command).bind},
	{"RESOLVE_ADDR", (*command).resolveAddr},
	{"JOIN_MCAST", (*command).joinMcast},
}

// Reasons that a program may reject with (enum ib_cm_rej_reason).
const (
	rejectConsumer = 28
	rejectECE      = 35
)

// longestOption is more than any option has.
const longestOption = 64 << 10

// qpnMask has the bits that the number of a QP has.
const qpnMask = 0xffffff

// millisecond is the unit of the ABI's times.
const millisecond = 1_000_000_000

// timeout is a number of milliseconds as the model has times.
func timeout(ms uint32) sim.Time { return sim.Time(ms) * millisecond }

func (k *command) createID() error {
	if err := k.room(uapi.CMCreateIDRespSize); err != nil {
		return err
	}
	b, err := k.read(uapi.CMCreateIDSize)
	if err != nil {
		return err
	}
	in := uapi.CMCreateID(b)
	if err := k.f.take(); err != nil {
		return err
	}
	id, err := k.f.cm.CreateID(noCaller, in.UID(), verbs.PortSpace(in.PortSpace()), verbs.QPType(in.QPType()))
	if err != nil {
		k.f.Objects.Give(1)
		return err
	}
	k.f.keep(object{number: id}, true)
	if err := k.answerNumber(in.Response(), id); err != nil {
		k.f.drop(object{number: id})
		_, gone := k.f.cm.DestroyID(noCaller, id)
		return errors.Join(err, gone)
	}
	return nil
}

// answerNumber answers with a number, that of a new object or a count.
func (k *command) answerNumber(at uint64, n uint32) error {
	out := uapi.CMCreateIDResp(make([]byte, uapi.CMCreateIDRespSize))
	out.SetID(n)
	return k.answer(at, out)
}

func (k *command) destroyID() error {
	return k.end(false, func(id uint32) (uint32, error) { return k.f.cm.DestroyID(noCaller, id) })
}

func (k *command) leaveMcast() error {
	return k.end(true, func(id uint32) (uint32, error) { return k.f.cm.LeaveMulticast(noCaller, id) })
}

// end ends an object and answers with the events of it that the program was given.
func (k *command) end(group bool, end func(uint32) (uint32, error)) error {
	if err := k.room(uapi.CMEventsReportedSize); err != nil {
		return err
	}
	b, err := k.read(uapi.CMDestroyIDSize)
	if err != nil {
		return err
	}
	in := uapi.CMDestroyID(b)
	n, err := end(in.ID())
	if err != nil {
		return err
	}
	k.f.drop(object{in.ID(), group})
	return k.answerNumber(in.Response(), n)
}

func (k *command) bindIP() error {
	b, err := k.read(uapi.CMBindIPSize)
	if err != nil {
		return err
	}
	in := uapi.CMBindIP(b)
	a, err := k.sized(in.Addr(), min(addrSize(in.Addr()), uapi.SockaddrIn6Size))
	if err != nil {
		return err
	}
	return k.f.cm.Bind(noCaller, in.ID(), a)
}

func (k *command) bind() error {
	b, err := k.read(uapi.CMBindSize)
	if err != nil {
		return err
	}
	in := uapi.CMBind(b)
	if in.Reserved() != 0 {
		return k.errorf(syscall.EINVAL, "reserved field %#x", in.Reserved())
	}
	a, err := k.sized(in.Addr(), int(in.AddrSize()))
	if errors.Is(err, errAFIB) {
		return fmt.Errorf("%w: %w", errProbe, err)
	}
	if err != nil {
		return err
	}
	return k.f.cm.Bind(noCaller, in.ID(), a)
}

func (k *command) resolveIP() error {
	b, err := k.read(uapi.CMResolveIPSize)
	if err != nil {
		return err
	}
	in := uapi.CMResolveIP(b)
	var src netip.AddrPort
	if uapi.SockaddrIn(in.Src()).Family() != syscall.AF_UNSPEC {
		if src, err = k.sized(in.Src(), min(addrSize(in.Src()), uapi.SockaddrIn6Size)); err != nil {
			return err
		}
	}
	dst, err := k.sized(in.Dst(), min(addrSize(in.Dst()), uapi.SockaddrIn6Size))
	if err != nil {
		return err
	}
	return k.f.cm.ResolveAddr(noCaller, in.ID(), src, dst, timeout(in.Timeout()))
}

func (k *command) resolveAddr() error {
	b, err := k.read(uapi.CMResolveAddrSize)
	if err != nil {
		return err
	}
	in := uapi.CMResolveAddr(b)
	if in.Reserved() != 0 {
		return k.errorf(syscall.EINVAL, "reserved field %#x", in.Reserved())
	}
	var src netip.AddrPort
	if in.SrcSize() != 0 {
		if src, err = k.sized(in.Src(), int(in.SrcSize())); err != nil {
			return err
		}
	}
	dst, err := k.sized(in.Dst(), int(in.DstSize()))
	if err != nil {
		return err
	}
	return k.f.cm.ResolveAddr(noCaller, in.ID(), src, dst, timeout(in.Timeout()))
}

func (k *command) resolveRoute() error {
	b, err := k.read(uapi.CMResolveRouteSize)
	if err != nil {
		return err
	}
	in := uapi.CMResolveRoute(b)
	return k.f.cm.ResolveRoute(noCaller, in.ID(), timeout(in.Timeout()))
}

func (k *command) listen() error {
	b, err := k.read(uapi.CMListenSize)
	if err != nil {
		return err
	}
	in := uapi.CMListen(b)
	return k.f.cm.Listen(noCaller, in.ID(), int(int32(in.Backlog())))
}

func (k *command) connect() error {
	b, err := k.readUpTo(uapi.CMConnectSize)
	if err != nil {
		return err
	}
	in := uapi.CMConnect(b)
	p := uapi.CMConnParam(in.Param())
	if p.Valid() == 0 {
		return k.errorf(syscall.EINVAL, "without parameters")
	}
	return k.f.cm.Connect(noCaller, in.ID(), connParam(p), ece(in.ECE()))
}

func (k *command) accept() error {
	b, err := k.readUpTo(uapi.CMAcceptSize)
	if err != nil {
		return err
	}
	in := uapi.CMAccept(b)
	p := uapi.CMConnParam(in.Param())
	if p.Valid() == 0 {
		return k.f.cm.Accept(noCaller, in.ID(), 0, nil, ece(in.ECE()))
	}
	return k.f.cm.Accept(noCaller, in.ID(), in.UID(), connParam(p), ece(in.ECE()))
}

func ece(b []byte) cm.ECE {
	e := uapi.CMECE(b)
	return cm.ECE{Vendor: e.Vendor(), Options: e.Options()}
}

// connParam is ucma_copy_conn_param.
func connParam(p uapi.CMConnParam) *verbs.ConnParam {
	return &verbs.ConnParam{
		PrivateData: p.PrivateData()[:p.PrivateDataLen()], ResponderResources: p.ResponderResources(), InitiatorDepth: p.InitiatorDepth(),
		FlowControl: p.FlowControl() != 0, RetryCount: p.RetryCount(), RNRRetryCount: p.RNRRetryCount(), SRQ: p.SRQ() != 0, QPN: p.QPN() & qpnMask,
		QKey: p.QKey(),
	}
}

func (k *command) reject() error {
	b, err := k.read(uapi.CMRejectSize)
	if err != nil {
		return err
	}
	in := uapi.CMReject(b)
	reason := in.Reason()
	switch reason {
	case 0:
		reason = rejectConsumer
	case rejectConsumer, rejectECE:
	default:
		return k.errorf(syscall.EINVAL, "reason %d is not for programs", reason)
	}
	return k.f.cm.Reject(noCaller, in.ID(), reason, in.PrivateData()[:in.PrivateDataLen()])
}

func (k *command) disconnect() error {
	b, err := k.read(uapi.CMDisconnectSize)
	if err != nil {
		return err
	}
	return k.f.cm.Disconnect(noCaller, uapi.CMDisconnect(b).ID())
}

func (k *command) setOption() error {
	b, err := k.read(uapi.CMSetOptionSize)
	if err != nil {
		return err
	}
	in := uapi.CMSetOption(b)
	if in.Length() > longestOption {
		return k.errorf(syscall.EINVAL, "value of %d bytes", in.Length())
	}
	value := make([]byte, in.Length())
	if len(value) > 0 && k.Read(in.Value(), value) != nil {
		return k.errorf(syscall.EFAULT, "value of %d bytes at %#x", len(value), in.Value())
	}
	return k.f.cm.SetOption(noCaller, in.ID(), verbs.CMOptionLevel(in.Level()), int(in.Name()), value)
}

func (k *command) notify() error {
	b, err := k.read(uapi.CMNotifySize)
	if err != nil {
		return err
	}
	in := uapi.CMNotify(b)
	return k.f.cm.Notify(noCaller, in.ID(), verbs.EventType(in.Event()))
}

func (k *command) joinIPMcast() error {
	if err := k.room(uapi.CMCreateIDRespSize); err != nil {
		return err
	}
	b, err := k.read(uapi.CMJoinIPMcastSize)
	if err != nil {
		return err
	}
	in := uapi.CMJoinIPMcast(b)
	return k.join(in.ID(), in.UID(), in.Response(), in.Addr(), min(addrSize(in.Addr()), uapi.SockaddrIn6Size), verbs.MulticastFullMember)
}

func (k *command) joinMcast() error {
	if err := k.room(uapi.CMCreateIDRespSize); err != nil {
		return err
	}
	b, err := k.read(uapi.CMJoinMcastSize)
	if err != nil {
		return err
	}
	in := uapi.CMJoinMcast(b)
	return k.join(in.ID(), in.UID(), in.Response(), in.Addr(), int(in.AddrSize()), verbs.MulticastFlags(in.Flags()))
}

// join is ucma_process_join.
func (k *command) join(id uint32, uid, response uint64, addr []byte, size int, flags verbs.MulticastFlags) error {
	group, err := k.sized(addr, size)
	if err != nil {
		return err
	}
	if flags > verbs.MulticastSendOnly {
		return k.errorf(syscall.EINVAL, "flags %#x", flags)
	}
	if err := k.f.take(); err != nil {
		return err
	}
	handle, err := k.f.cm.JoinMulticast(noCaller, id, uid, group.Addr(), flags)
	if err != nil {
		k.f.Objects.Give(1)
		return err
	}
	o := object{handle, true}
	k.f.keep(o, true)
	if err := k.answerNumber(response, handle); err != nil {
		k.f.drop(o)
		_, gone := k.f.cm.LeaveMulticast(noCaller, handle)
		return errors.Join(err, gone)
	}
	return nil
}

// migrateID takes an id over from another file of the process.
func (k *command) migrateID() error {
	if err := k.room(uapi.CMEventsReportedSize); err != nil {
		return err
	}
	b, err := k.read(uapi.CMMigrateIDSize)
	if err != nil {
		return err
	}
	in := uapi.CMMigrateID(b)
	from, err := k.Channel(int(int32(in.FD())))
	if err != nil {
		return k.errorf(syscall.ENOENT, "descriptor %d", int32(in.FD()))
	}
	if from == nil {
		return k.errorf(syscall.EINVAL, "descriptor %d is no channel", int32(in.FD()))
	}
	n, err := k.f.cm.MigrateID(noCaller, in.ID(), from.cm)
	if err != nil {
		return err
	}
	if o := (object{number: in.ID()}); from != k.f && from.counted[o] {
		from.drop(o)
		k.f.keep(o, false)
	}
	return k.answerNumber(in.Response(), n)
}
