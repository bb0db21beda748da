package verbs

import (
	"fmt"
	"syscall"
	"time"
)

// The Unimplemented types are embedded by implementations, so that an interface
// can grow without breaking them. Their methods do nothing; those that can report
// it return EOPNOTSUPP.

// unimplemented is the answer of a method that an implementation does not have.
func unimplemented(method string) error {
	return fmt.Errorf("verbs: %s is not implemented here: %w", method, syscall.EOPNOTSUPP)
}

// UnimplementedTestbed implements Testbed.
type UnimplementedTestbed struct{}

func (UnimplementedTestbed) Hosts() (r0 []Host) { return }

func (UnimplementedTestbed) Capability(token string) (r0 Capability) { return }

func (UnimplementedTestbed) Target() (r0 Target) { return }

func (UnimplementedTestbed) Log() (r0 MMIOLog) { return }

func (UnimplementedTestbed) Wire() (r0 Wire) { return }

func (UnimplementedTestbed) Faults() (r0 Faults) { return }

func (UnimplementedTestbed) Player(t Thread, host int, env map[string]string) (r0 Player, err error) {
	err = unimplemented("Testbed.Player")
	return
}

// UnimplementedHost implements Host.
type UnimplementedHost struct{}

func (UnimplementedHost) Name() string { return "" }

func (UnimplementedHost) NewProcess(t Thread, env map[string]string) (r0 Process, err error) {
	err = unimplemented("Host.NewProcess")
	return
}

func (UnimplementedHost) Cores() int { return 0 }

func (UnimplementedHost) PageSize() int { return 0 }

// UnimplementedProcess implements Process.
type UnimplementedProcess struct{}

func (UnimplementedProcess) Host() (r0 Host) { return }

func (UnimplementedProcess) Name() string { return "" }

func (UnimplementedProcess) Start(t Thread, name string, core int, body func(Thread)) (r0 Thread) {
	return
}

func (UnimplementedProcess) Devices(t Thread) (r0 []Device, err error) {
	err = unimplemented("Process.Devices")
	return
}

func (UnimplementedProcess) Map(t Thread, length uint64, o MapOptions) (r0 Buffer, err error) {
	err = unimplemented("Process.Map")
	return
}

func (UnimplementedProcess) Kill(t Thread) {}

// UnimplementedBuffer implements Buffer.
type UnimplementedBuffer struct{}

func (UnimplementedBuffer) Addr() uint64 { return 0 }

func (UnimplementedBuffer) Len() uint64 { return 0 }

func (UnimplementedBuffer) ReadAt(t Thread, p []byte, off int64) (r0 int, err error) {
	err = unimplemented("Buffer.ReadAt")
	return
}

func (UnimplementedBuffer) WriteAt(t Thread, p []byte, off int64) (r0 int, err error) {
	err = unimplemented("Buffer.WriteAt")
	return
}

func (UnimplementedBuffer) Unmap(t Thread) (err error) {
	err = unimplemented("Buffer.Unmap")
	return
}

// UnimplementedThread implements Thread.
type UnimplementedThread struct{}

func (UnimplementedThread) Process() (r0 Process) { return }

func (UnimplementedThread) Name() string { return "" }

func (UnimplementedThread) Now() (r0 time.Duration) { return }

func (UnimplementedThread) Sleep(d time.Duration) {}

func (UnimplementedThread) Join(other Thread) {}

func (UnimplementedThread) Work(d time.Duration) {}

func (UnimplementedThread) Interrupt(other Thread) (err error) {
	err = unimplemented("Thread.Interrupt")
	return
}

// UnimplementedDevice implements Device.
type UnimplementedDevice struct{}

func (UnimplementedDevice) Name() string { return "" }

func (UnimplementedDevice) GUID() uint64 { return 0 }

func (UnimplementedDevice) Open(t Thread) (r0 Context, err error) {
	err = unimplemented("Device.Open")
	return
}

// UnimplementedContext implements Context.
type UnimplementedContext struct{}

func (UnimplementedContext) Device() (r0 Device) { return }

func (UnimplementedContext) Close(t Thread) (err error) {
	err = unimplemented("Context.Close")
	return
}

func (UnimplementedContext) QueryDevice(t Thread) (r0 DeviceAttr, err error) {
	err = unimplemented("Context.QueryDevice")
	return
}

func (UnimplementedContext) QueryDeviceEx(t Thread, compMask uint32) (r0 DeviceAttrEx, err error) {
	err = unimplemented("Context.QueryDeviceEx")
	return
}

func (UnimplementedContext) QueryPort(t Thread, port int) (r0 PortAttr, err error) {
	err = unimplemented("Context.QueryPort")
	return
}

func (UnimplementedContext) QueryGID(t Thread, port, index int) (r0 GID, err error) {
	err = unimplemented("Context.QueryGID")
	return
}

func (UnimplementedContext) QueryGIDEx(t Thread, port, index int, flags uint32) (r0 GIDEntry, err error) {
	err = unimplemented("Context.QueryGIDEx")
	return
}

func (UnimplementedContext) QueryGIDTable(t Thread, entries []GIDEntry, flags uint32) (r0 int, err error) {
	err = unimplemented("Context.QueryGIDTable")
	return
}

func (UnimplementedContext) QueryPKey(t Thread, port, index int) (r0 uint16, err error) {
	err = unimplemented("Context.QueryPKey")
	return
}

func (UnimplementedContext) PKeyIndex(t Thread, port int, pkey uint16) (r0 int, err error) {
	err = unimplemented("Context.PKeyIndex")
	return
}

func (UnimplementedContext) NumCompVectors() int { return 0 }

func (UnimplementedContext) InitAHFromWC(t Thread, port int, wc *WC, grh []byte) (r0 AHAttr, err error) {
	err = unimplemented("Context.InitAHFromWC")
	return
}

func (UnimplementedContext) RawClock(t Thread) (r0 uint64, err error) {
	err = unimplemented("Context.RawClock")
	return
}

func (UnimplementedContext) AllocPD(t Thread) (r0 PD, err error) {
	err = unimplemented("Context.AllocPD")
	return
}

func (UnimplementedContext) ImportPD(t Thread, handle uint32) (r0 PD, err error) {
	err = unimplemented("Context.ImportPD")
	return
}

func (UnimplementedContext) AllocTD(t Thread, attr TDInitAttr) (r0 TD, err error) {
	err = unimplemented("Context.AllocTD")
	return
}

func (UnimplementedContext) AllocParentDomain(t Thread, attr ParentDomainAttr) (r0 PD, err error) {
	err = unimplemented("Context.AllocParentDomain")
	return
}

func (UnimplementedContext) CreateCompChannel(t Thread) (r0 CompChannel, err error) {
	err = unimplemented("Context.CreateCompChannel")
	return
}

func (UnimplementedContext) CreateCQ(t Thread, attr CQAttr) (r0 CQ, err error) {
	err = unimplemented("Context.CreateCQ")
	return
}

func (UnimplementedContext) AllocDM(t Thread, attr DMAttr) (r0 DM, err error) {
	err = unimplemented("Context.AllocDM")
	return
}

func (UnimplementedContext) AllocUAR(t Thread, flags uint32) (r0 UAR, err error) {
	err = unimplemented("Context.AllocUAR")
	return
}

func (UnimplementedContext) AsyncEvent(t Thread, timeout time.Duration) (r0 AsyncEvent, err error) {
	err = unimplemented("Context.AsyncEvent")
	return
}

func (UnimplementedContext) AckAsyncEvent(t Thread, ev AsyncEvent) {}

func (UnimplementedContext) EventTypeStr(typ EventType) string { return "" }

func (UnimplementedContext) WCStatusStr(status WCStatus) string { return "" }

// UnimplementedPD implements PD.
type UnimplementedPD struct{}

func (UnimplementedPD) Context() (r0 Context) { return }

func (UnimplementedPD) Handle() (r0 uint32) { return }

func (UnimplementedPD) Unimport(t Thread) (err error) {
	err = unimplemented("PD.Unimport")
	return
}

func (UnimplementedPD) ImportMR(t Thread, handle uint32) (r0 MR, err error) {
	err = unimplemented("PD.ImportMR")
	return
}

func (UnimplementedPD) Dealloc(t Thread) (err error) {
	err = unimplemented("PD.Dealloc")
	return
}

func (UnimplementedPD) RegMR(t Thread, addr, length uint64, access AccessFlags) (r0 MR, err error) {
	err = unimplemented("PD.RegMR")
	return
}

func (UnimplementedPD) RegMRIova(t Thread, addr, length, iova uint64, access AccessFlags) (r0 MR, err error) {
	err = unimplemented("PD.RegMRIova")
	return
}

func (UnimplementedPD) AllocNullMR(t Thread) (r0 MR, err error) {
	err = unimplemented("PD.AllocNullMR")
	return
}

func (UnimplementedPD) RegDMMR(t Thread, dm DM, off, length uint64, access AccessFlags) (r0 MR, err error) {
	err = unimplemented("PD.RegDMMR")
	return
}

func (UnimplementedPD) CreateQP(t Thread, attr QPInitAttr) (r0 QP, err error) {
	err = unimplemented("PD.CreateQP")
	return
}

func (UnimplementedPD) CreateSRQ(t Thread, attr SRQInitAttr) (r0 SRQ, err error) {
	err = unimplemented("PD.CreateSRQ")
	return
}

func (UnimplementedPD) CreateAH(t Thread, attr AHAttr) (r0 AH, err error) {
	err = unimplemented("PD.CreateAH")
	return
}

func (UnimplementedPD) AllocMW(t Thread, typ MWType) (r0 MW, err error) {
	err = unimplemented("PD.AllocMW")
	return
}

// UnimplementedDM implements DM.
type UnimplementedDM struct{}

func (UnimplementedDM) CopyTo(t Thread, off uint64, p []byte) (err error) {
	err = unimplemented("DM.CopyTo")
	return
}

func (UnimplementedDM) CopyFrom(t Thread, p []byte, off uint64) (err error) {
	err = unimplemented("DM.CopyFrom")
	return
}

func (UnimplementedDM) Free(t Thread) (err error) {
	err = unimplemented("DM.Free")
	return
}

// UnimplementedTD implements TD.
type UnimplementedTD struct{}

func (UnimplementedTD) Dealloc(t Thread) (err error) {
	err = unimplemented("TD.Dealloc")
	return
}

// UnimplementedMR implements MR.
type UnimplementedMR struct{}

func (UnimplementedMR) LKey() uint32 { return 0 }

func (UnimplementedMR) RKey() uint32 { return 0 }

func (UnimplementedMR) Addr() uint64 { return 0 }

func (UnimplementedMR) Length() uint64 { return 0 }

func (UnimplementedMR) Handle() (r0 uint32) { return }

func (UnimplementedMR) Unimport(t Thread) (err error) {
	err = unimplemented("MR.Unimport")
	return
}

func (UnimplementedMR) Rereg(t Thread, flags ReregFlags, pd PD, addr, length uint64, access AccessFlags) (err error) {
	err = unimplemented("MR.Rereg")
	return
}

func (UnimplementedMR) Dereg(t Thread) (err error) {
	err = unimplemented("MR.Dereg")
	return
}

// UnimplementedCQ implements CQ.
type UnimplementedCQ struct{}

func (UnimplementedCQ) Cap() int { return 0 }

func (UnimplementedCQ) Context() (r0 any) { return }

func (UnimplementedCQ) Poll(t Thread, wc []WC) (r0 int, err error) {
	err = unimplemented("CQ.Poll")
	return
}

func (UnimplementedCQ) PollWait(t Thread, wc []WC, timeout time.Duration) (r0 int, err error) {
	err = unimplemented("CQ.PollWait")
	return
}

func (UnimplementedCQ) ReqNotify(t Thread, solicitedOnly bool) (err error) {
	err = unimplemented("CQ.ReqNotify")
	return
}

func (UnimplementedCQ) Resize(t Thread, cqe int) (err error) {
	err = unimplemented("CQ.Resize")
	return
}

func (UnimplementedCQ) Modify(t Thread, m CQModeration) (err error) {
	err = unimplemented("CQ.Modify")
	return
}

func (UnimplementedCQ) Destroy(t Thread) (err error) {
	err = unimplemented("CQ.Destroy")
	return
}

// UnimplementedCompChannel implements CompChannel.
type UnimplementedCompChannel struct{}

func (UnimplementedCompChannel) Event(t Thread, timeout time.Duration) (r0 CQ, err error) {
	err = unimplemented("CompChannel.Event")
	return
}

func (UnimplementedCompChannel) Ack(t Thread, cq CQ, n int) {}

func (UnimplementedCompChannel) Destroy(t Thread) (err error) {
	err = unimplemented("CompChannel.Destroy")
	return
}

// UnimplementedQP implements QP.
type UnimplementedQP struct{}

func (UnimplementedQP) QPN() uint32 { return 0 }

func (UnimplementedQP) Caps() (r0 QPCap) { return }

func (UnimplementedQP) State() (r0 QPState) { return }

func (UnimplementedQP) Context() (r0 any) { return }

func (UnimplementedQP) Modify(t Thread, attr *QPAttr, mask QPAttrMask) (err error) {
	err = unimplemented("QP.Modify")
	return
}

func (UnimplementedQP) Query(t Thread, mask QPAttrMask) (r0 QPAttr, r1 QPInitAttr, err error) {
	err = unimplemented("QP.Query")
	return
}

func (UnimplementedQP) PostSend(t Thread, wrs []SendWR) (r0 int, err error) {
	err = unimplemented("QP.PostSend")
	return
}

func (UnimplementedQP) PostRecv(t Thread, wrs []RecvWR) (r0 int, err error) {
	err = unimplemented("QP.PostRecv")
	return
}

func (UnimplementedQP) BindMW(t Thread, mw MW, bind MWBind) (err error) {
	err = unimplemented("QP.BindMW")
	return
}

func (UnimplementedQP) Destroy(t Thread) (err error) {
	err = unimplemented("QP.Destroy")
	return
}

func (UnimplementedQP) AttachMcast(t Thread, group GID, lid uint16) (err error) {
	err = unimplemented("QP.AttachMcast")
	return
}

func (UnimplementedQP) DetachMcast(t Thread, group GID, lid uint16) (err error) {
	err = unimplemented("QP.DetachMcast")
	return
}

func (UnimplementedQP) DataInOrder(t Thread, op WROpcode, flags uint32) (r0 int, err error) {
	err = unimplemented("QP.DataInOrder")
	return
}

func (UnimplementedQP) Ex() (r0 QPEx) { return }

// UnimplementedUAR implements UAR.
type UnimplementedUAR struct{}

func (UnimplementedUAR) Info() (r0 UARInfo) { return }

func (UnimplementedUAR) Store(t Thread, off uint32, v uint64) (err error) {
	err = unimplemented("UAR.Store")
	return
}

func (UnimplementedUAR) Free(t Thread) (err error) {
	err = unimplemented("UAR.Free")
	return
}

// UnimplementedMlx5QP implements Mlx5QP.
type UnimplementedMlx5QP struct{}

func (UnimplementedMlx5QP) BFReg() (r0 BFReg) { return }

func (UnimplementedMlx5QP) DoorbellRecord(t Thread) (r0 uint32, r1 uint32) { return }

func (UnimplementedMlx5QP) WriteSendQueue(t Thread, off int, p []byte) (err error) {
	err = unimplemented("Mlx5QP.WriteSendQueue")
	return
}

func (UnimplementedMlx5QP) SendQueue(t Thread, off int, p []byte) (err error) {
	err = unimplemented("Mlx5QP.SendQueue")
	return
}

func (UnimplementedMlx5QP) WriteDoorbellRecord(t Thread, sendCounter uint16) (err error) {
	err = unimplemented("Mlx5QP.WriteDoorbellRecord")
	return
}

func (UnimplementedMlx5QP) RingDoorbell(t Thread, ctrl uint64) (err error) {
	err = unimplemented("Mlx5QP.RingDoorbell")
	return
}

// UnimplementedLockCounter implements LockCounter.
type UnimplementedLockCounter struct{}

func (UnimplementedLockCounter) LockStats() (r0 LockStats) { return }

// UnimplementedMMIOLog implements MMIOLog.
type UnimplementedMMIOLog struct{}

func (UnimplementedMMIOLog) Start() {}

func (UnimplementedMMIOLog) Stop() (r0 []MMIOWrite) { return }

// UnimplementedPlayer implements Player.
type UnimplementedPlayer struct{}

func (UnimplementedPlayer) Do(t Thread, cmd PlayerCommand) (r0 PlayerReply, err error) {
	err = unimplemented("Player.Do")
	return
}

func (UnimplementedPlayer) Kill(t Thread) {}

// UnimplementedSRQ implements SRQ.
type UnimplementedSRQ struct{}

func (UnimplementedSRQ) Num(t Thread) (r0 uint32, err error) {
	err = unimplemented("SRQ.Num")
	return
}

func (UnimplementedSRQ) Caps() (r0 SRQAttr) { return }

func (UnimplementedSRQ) PostRecv(t Thread, wrs []RecvWR) (bad int, err error) {
	err = unimplemented("SRQ.PostRecv")
	return
}

func (UnimplementedSRQ) Modify(t Thread, attr SRQAttr, mask SRQAttrMask) (err error) {
	err = unimplemented("SRQ.Modify")
	return
}

func (UnimplementedSRQ) Query(t Thread) (r0 SRQAttr, err error) {
	err = unimplemented("SRQ.Query")
	return
}

func (UnimplementedSRQ) Destroy(t Thread) (err error) {
	err = unimplemented("SRQ.Destroy")
	return
}

// UnimplementedAH implements AH.
type UnimplementedAH struct{}

func (UnimplementedAH) Destroy(t Thread) (err error) {
	err = unimplemented("AH.Destroy")
	return
}

// UnimplementedMW implements MW.
type UnimplementedMW struct{}

func (UnimplementedMW) Type() (r0 MWType) { return }

func (UnimplementedMW) RKey() (r0 uint32) { return }

func (UnimplementedMW) SetRKey(rkey uint32) {}

func (UnimplementedMW) Dealloc(t Thread) (err error) {
	err = unimplemented("MW.Dealloc")
	return
}
