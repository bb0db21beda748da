//go:build linux

package uverbs

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// queryDevice is the command QUERY_DEVICE.
func (f *File) queryDevice(w *uapi.Write) error {
	a, err := f.u.QueryDevice(noCaller)
	if err != nil {
		return err
	}
	r := uapi.QueryDeviceResp(make([]byte, uapi.QueryDeviceRespSize))
	fillDevice(r, &a)
	return w.Respond(r)
}

// queryDeviceEx is the extended QUERY_DEVICE with mlx5's driver data, which says that
// the device has no offloads but compressed CQEs.
func (f *File) queryDeviceEx(k *uapi.Call, w *uapi.Write) error {
	b, err := w.Request(uapi.ExQueryDeviceSize)
	if err != nil {
		return err
	}
	if q := uapi.ExQueryDevice(b); q.CompMask() != 0 || q.Reserved() != 0 {
		return fmt.Errorf("%s: comp_mask %#x: %w", w.Name, q.CompMask(), syscall.EINVAL)
	}
	room := k.Len(uapi.AttrUHWOut)
	if room != 0 && room < 8 { // comp_mask and response_length
		return fmt.Errorf("%s: %d bytes for driver data: %w", w.Name, room, syscall.EINVAL)
	}
	a, err := f.u.QueryDevice(noCaller)
	if err != nil {
		return err
	}
	var d uapi.MLX5QueryDeviceResp
	if room != 0 {
		d = uapi.MLX5QueryDeviceResp(make([]byte, uapi.MLX5QueryDeviceRespSize))
		d.SetResponseLength(uint32(min(room, len(d))))
		d.SetCQECompMaxNum(a.CQEComp.MaxNum)
		d.SetCQECompFormats(a.CQEComp.Formats)
		d.SetFlags(f.cqe128())
		s := f.u.DCIStreams()
		d.SetLogStreams(s.LogConcurrent)
		d.SetLogErroredStreams(s.LogErrored)
	}
	r := uapi.ExQueryDeviceResp(make([]byte, uapi.ExQueryDeviceRespSize))
	fillDevice(r.Base(), &a)
	r.SetResponseLength(uint32(w.Room(len(r))))
	r.SetODPGeneralCaps(a.ODPGeneralCaps)
	r.SetRCODPCaps(a.ODPRC)
	r.SetUCODPCaps(a.ODPUC)
	r.SetUDODPCaps(a.ODPUD)
	r.SetXRCODPCaps(a.ODPXRC)
	r.SetTimestampMask(a.CompletionTimestampMask)
	r.SetHCACoreClock(a.HCACoreClockKHz)
	r.SetMaxDMSize(a.MaxDMSize)
	r.SetMaxCQCount(uint16(a.MaxCQCount))
	r.SetMaxCQPeriod(uint16(a.MaxCQPeriod))
	r.SetDeviceCapFlagsEx(uint64(a.DeviceCapFlags) | a.CapFlagsEx)
	f.fillPackets(r, d)
	if room != 0 {
		if err := k.Out(uapi.AttrUHWOut, d); err != nil {
			return err
		}
	}
	return w.Respond(r)
}

// cqe128 is what the device can do with entries of 128 bytes.
func (f *File) cqe128() (flags uint32) {
	if f.u.CompressesCQEs128() {
		flags |= uapi.QueryDevCQE128BComp
	}
	if f.u.PadsCQEs() {
		flags |= uapi.QueryDevCQE128BPad
	}
	return flags
}

// fillDevice is copy_query_dev_fields.
func fillDevice(r uapi.QueryDeviceResp, a *verbs.DeviceAttrEx) {
	r.SetFWVer(firmware(a.FWVer))
	r.SetNodeGUID(a.NodeGUID)
	r.SetSysImageGUID(a.SysImageGUID)
	r.SetMaxMRSize(a.MaxMRSize)
	r.SetPageSizeCap(a.PageSizeCap)
	r.SetVendorID(a.VendorID)
	r.SetVendorPartID(a.VendorPartID)
	r.SetHWVer(a.HWVer)
	r.SetMaxQP(uint32(a.MaxQP))
	r.SetMaxQPWR(uint32(a.MaxQPWR))
	r.SetDeviceCapFlags(a.DeviceCapFlags)
	r.SetMaxSGE(uint32(a.MaxSGE))
	r.SetMaxSGERd(uint32(a.MaxSGERd))
	r.SetMaxCQ(uint32(a.MaxCQ))
	r.SetMaxCQE(uint32(a.MaxCQE))
	r.SetMaxMR(uint32(a.MaxMR))
	r.SetMaxPD(uint32(a.MaxPD))
	r.SetMaxQPRdAtom(uint32(a.MaxQPRdAtom))
	r.SetMaxResRdAtom(uint32(a.MaxResRdAtom))
	r.SetMaxQPInitRdAtom(uint32(a.MaxQPInitRdAtom))
	r.SetAtomicCap(uint32(a.Atomic))
	r.SetMaxMW(uint32(a.MaxMW))
	r.SetMaxMcastGrp(uint32(a.MaxMcastGrp))
	r.SetMaxMcastQPAttach(uint32(a.MaxMcastQPAttach))
	r.SetMaxTotalMcastQPAttach(uint32(a.MaxTotalMcastQPAttach))
	r.SetMaxAH(uint32(a.MaxAH))
	r.SetMaxSRQ(uint32(a.MaxSRQ))
	r.SetMaxSRQWR(uint32(a.MaxSRQWR))
	r.SetMaxSRQSGE(uint32(a.MaxSRQSGE))
	r.SetMaxPKeys(a.MaxPKeys)
	r.SetLocalCAAckDelay(a.LocalCAAckDelay)
	r.SetPhysPortCnt(a.PhysPortCnt)
}

// firmware packs a version as the driver does (fw_rev_maj << 32 | min << 16 | sub).
func firmware(s string) uint64 {
	var major, minor, sub uint64
	if _, err := fmt.Sscanf(s, "%d.%d.%d", &major, &minor, &sub); err != nil {
		return 0
	}
	return major<<32 | minor<<16 | sub
}

// queryPort is the method QUERY_PORT.
func (f *File) queryPort(k *uapi.Call) error {
	a, err := f.port(k.Value(uapi.QueryPortNum))
	if err != nil {
		return err
	}
	r := uapi.QueryPortRespEx(make([]byte, uapi.QueryPortRespExSize))
	fillPort(r.Legacy(), &a)
	r.SetPortCapFlags2(a.PortCapFlags2)
	return k.OutStruct(uapi.QueryPortRsp, r)
}

// queryPortDriver is the driver's QUERY_PORT, which tells of a port's part in an embedded switch
// that the driver of the host steers: there is none.
func (f *File) queryPortDriver(k *uapi.Call) error {
	if _, err := f.port(k.Value(uapi.MLX5QueryPortNum)); err != nil {
		return err
	}
	return k.OutStruct(uapi.MLX5QueryPortRsp, make([]byte, uapi.MLX5PortSize))
}

// queryPortOld is the command QUERY_PORT.
func (f *File) queryPortOld(w *uapi.Write) error {
	b, err := w.Request(uapi.QueryPortSize)
	if err != nil {
		return err
	}
	a, err := f.port(uint64(uapi.QueryPort(b).PortNum()))
	if err != nil {
		return err
	}
	r := uapi.QueryPortResp(make([]byte, uapi.QueryPortRespSize))
	fillPort(r, &a)
	return w.Respond(r)
}

// port is a port by a number that may be anything.
func (f *File) port(n uint64) (verbs.PortAttr, error) {
	if n > 255 {
		return verbs.PortAttr{}, fmt.Errorf("port %d: %w", n, syscall.EINVAL)
	}
	return f.u.QueryPort(noCaller, int(n))
}

// fillPort is copy_port_attr_to_resp.
func fillPort(r uapi.QueryPortResp, a *verbs.PortAttr) {
	r.SetPortCapFlags(a.PortCapFlags)
	r.SetMaxMsgSize(a.MaxMsgSize)
	r.SetBadPKeyCntr(a.BadPKeyCntr)
	r.SetQKeyViolCntr(a.QKeyViolCntr)
	r.SetGIDTblLen(uint32(a.GIDTblLen))
	r.SetPKeyTblLen(a.PKeyTblLen)
	r.SetLID(a.LID)
	r.SetSMLID(a.SMLID)
	r.SetState(uint8(a.State))
	r.SetMaxMTU(uint8(a.MaxMTU))
	r.SetActiveMTU(uint8(a.ActiveMTU))
	r.SetLMC(a.LMC)
	r.SetMaxVLNum(a.MaxVLNum)
	r.SetSMSL(a.SMSL)
	r.SetSubnetTimeout(a.SubnetTimeout)
	r.SetInitTypeReply(a.InitTypeReply)
	r.SetActiveWidth(a.ActiveWidth)
	r.SetActiveSpeed(uint8(min(a.ActiveSpeed, 128))) // at most NDR in this field
	r.SetPhysState(a.PhysState)
	r.SetLinkLayer(uint8(a.LinkLayer))
	r.SetFlags(a.Flags)
}

// queryGIDEntry is QUERY_GID_ENTRY; it has no flags yet.
func (f *File) queryGIDEntry(k *uapi.Call) error {
	if _, err := k.Flags32(uapi.QueryGIDEntryFlags, 0); err != nil {
		return err
	}
	port, index := k.Value(uapi.QueryGIDEntryPort), k.Value(uapi.QueryGIDEntryIndex)
	if port > 255 || index > 1<<16 {
		return fmt.Errorf("GID %d of port %d: %w", index, port, syscall.EINVAL)
	}
	g, err := f.u.QueryGIDEntry(noCaller, int(port), int(index))
	if err != nil {
		return err
	}
	return k.OutStruct(uapi.QueryGIDEntryRsp, gidEntry(&g))
}

func gidEntry(g *verbs.GIDEntry) uapi.GIDEntry {
	e := uapi.GIDEntry(make([]byte, uapi.GIDEntrySize))
	copy(e.GID(), g.GID[:])
	e.SetIndex(g.Index)
	e.SetPort(g.Port)
	e.SetType(uint32(g.Type))
	e.SetNetdevIfindex(g.NetDevice)
	return e
}

// queryGIDTable is QUERY_GID_TABLE: the entries that are in use, of all ports, as many
// as there is room for (UVERBS_HANDLER(UVERBS_METHOD_QUERY_GID_TABLE)).
func (f *File) queryGIDTable(k *uapi.Call) error {
	if _, err := k.Flags32(uapi.QueryGIDTableFlags, 0); err != nil {
		return err
	}
	size, room := k.Value(uapi.QueryGIDTableEntrySize), uint64(k.Len(uapi.QueryGIDTableEntries))
	if size == 0 || room == 0 || room%size != 0 {
		return fmt.Errorf("QUERY_GID_TABLE: %d bytes for entries of %d: %w", room, size, syscall.EINVAL)
	}
	a, err := f.u.QueryDevice(noCaller)
	if err != nil {
		return err
	}
	var b []byte
	n := uint64(0)
	for port := 1; port <= int(a.PhysPortCnt); port++ {
		p, err := f.u.QueryPort(noCaller, port)
		if err != nil {
			return err
		}
		for i := 0; i < p.GIDTblLen; i++ {
			g, err := f.u.QueryGIDEntry(noCaller, port, i)
			if err != nil {
				continue // an empty slot
			}
			if n == room/size {
				return fmt.Errorf("QUERY_GID_TABLE: more than %d entries: %w", n, syscall.EINVAL)
			}
			e := make([]byte, size)
			copy(e, gidEntry(&g))
			b = append(b, e...)
			n++
		}
	}
	if err := k.Out(uapi.QueryGIDTableEntries, b); err != nil {
		return err
	}
	return k.Out64(uapi.QueryGIDTableNumEntries, n)
}
