package kernel

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// readHCAVport reads the GUIDs of an InfiniBand device.
func (d *Device) readHCAVport(k *call) error {
	v, err := k.hcaVport()
	if err != nil {
		return err
	}
	d.caps.nodeGUID, d.caps.sysImageGUID = v.NodeGUID(), v.SystemImageGUID()
	return nil
}

func (k *call) hcaVport() (prm.HCAVportContext, error) {
	out, err := k.simple(prm.OpQueryHCAVportContext, 0)
	if err != nil {
		return nil, err
	}
	return prm.QueryHCAVportContextOut(out).Context(), nil
}

// readGIDs is config_non_roce_gid_cache: zero GIDs are empty slots.
func (d *Device) readGIDs(k *call) error {
	in, out := prm.NewIn(prm.OpQueryHCAVportGID, 0), prm.NewOut(prm.OpQueryHCAVportGID, 16*d.caps.gids)
	prm.QueryHCAVportGIDIn(in).SetGIDIndex(prm.AllVportEntries)
	if err := k.exec(in, out); err != nil {
		return err
	}
	d.gids = make([]gidEntry, d.caps.gids)
	o := prm.QueryHCAVportGIDOut(out)
	for i := range min(int(o.GIDsNum()), len(d.gids)) {
		g := verbs.GID(o.GID(i))
		d.gids[i] = gidEntry{valid: [8]byte(g[8:]) != [8]byte{} && [8]byte(g[:8]) != [8]byte{}, gid: g, typ: verbs.GIDTypeIB}
	}
	return nil
}

// queryIBPort is mlx5_query_hca_port. Width and speed, which the driver reads from the
// register PTYS, come from Params.
func (k *call) queryIBPort() (verbs.PortAttr, error) {
	d := k.d
	v, err := k.hcaVport()
	if err != nil {
		return verbs.PortAttr{}, err
	}
	return verbs.PortAttr{
		State: verbs.PortState(v.VportState()), PhysState: uint8(v.PortPhysicalState()),
		MaxMTU: verbs.MTU4096, ActiveMTU: verbs.MTU4096,
		GIDTblLen: len(d.gids), PKeyTblLen: uint16(d.caps.pkeys), MaxMsgSize: 1 << d.caps.logMaxMsg,
		PortCapFlags:  v.CapMask1() &^ portIPBasedGIDs, // make_port_cap_flags: programs know another meaning of the bit
		PortCapFlags2: uint16(v.CapMask2()),
		BadPKeyCntr:   v.PKeyViolationCounter(), QKeyViolCntr: v.QKeyViolationCounter(),
		LID: uint16(v.LID()), LMC: uint8(v.LMC()), SMLID: uint16(v.SMLID()), SMSL: uint8(v.SMSL()), SubnetTimeout: uint8(v.SubnetTimeout()),
		InitTypeReply: uint8(v.InitTypeReply()), MaxVLNum: maxVLCode,
		ActiveWidth: d.p.LinkWidth, ActiveSpeed: d.p.LinkSpeed, LinkLayer: verbs.LinkInfiniBand,
	}, nil
}

// maxVLCode is 4 data lanes as translate_max_vl_num codes them (__IB_MAX_VL_0_3), what
// ports of this family report.
const maxVLCode = 3

// queryIBPKey is mlx5_query_hca_vport_pkey.
func (k *call) queryIBPKey(index int) (uint16, error) {
	in, out := prm.NewIn(prm.OpQueryHCAVportPKey, 0), prm.NewOut(prm.OpQueryHCAVportPKey, 4)
	prm.QueryHCAVportPKeyIn(in).SetPKeyIndex(uint32(index))
	if err := k.exec(in, out); err != nil {
		return 0, err
	}
	return prm.QueryHCAVportPKeyOut(out).PKey(0), nil
}

// LinkLayer returns the link layer of the port.
func (d *Device) LinkLayer() verbs.LinkLayer {
	if d.caps.ib {
		return verbs.LinkInfiniBand
	}
	return verbs.LinkEthernet
}
