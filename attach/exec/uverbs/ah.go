//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// createAH is CREATE_AH. The library makes address handles by itself, and asks for the
// Ethernet address that the kernel finds for the GID.
func (f *File) createAH(k *uapi.Call, w *uapi.Write) error {
	b, err := w.Request(uapi.CreateAHSize)
	if err != nil {
		return err
	}
	if n := k.Len(uapi.AttrUHWOut); n < uapi.CreateAHRespLeast {
		return fmt.Errorf("%s: %d bytes for driver data: %w", w.Name, n, syscall.EINVAL)
	}
	r := uapi.CreateAH(b)
	h, mac, err := f.u.CreateAH(noCaller, kernelHandle(r.PDHandle()), uverbsAH(r.Attr()))
	if err != nil {
		return err
	}
	d := uapi.MLX5CreateAHResp(make([]byte, uapi.MLX5CreateAHRespSize))
	d.SetResponseLength(uapi.CreateAHRespLeast)
	copy(d.DMAC(), mac[:])
	a := uapi.CreateAHResp(make([]byte, uapi.CreateAHRespSize))
	a.SetAHHandle(uint32(h))
	return undo(errors.Join(k.Out(uapi.AttrUHWOut, d[:uapi.CreateAHRespLeast]), w.Respond(a)), func() error { return f.u.DestroyAH(noCaller, h) })
}

func uverbsAH(r uapi.AHAttr) verbs.AHAttr {
	a := verbs.AHAttr{
		DLID: r.DLID(), SL: r.SL(), SrcPathBits: r.SrcPathBits(), StaticRate: r.StaticRate(), IsGlobal: r.IsGlobal() != 0, Port: r.Port(),
	}
	if a.IsGlobal {
		a.GRH = verbs.GRH{FlowLabel: r.FlowLabel(), SGIDIndex: r.SGIDIndex(), HopLimit: r.HopLimit(), TrafficClass: r.TrafficClass()}
		copy(a.GRH.DGID[:], r.DGID())
	}
	return a
}

// attachMcast is ATTACH_MCAST.
func (f *File) attachMcast(w *uapi.Write) error {
	h, gid, lid, err := mcast(w)
	if err != nil {
		return err
	}
	return f.u.AttachMcast(noCaller, kernelHandle(h), gid, lid)
}

// detachMcast is DETACH_MCAST.
func (f *File) detachMcast(w *uapi.Write) error {
	h, gid, lid, err := mcast(w)
	if err != nil {
		return err
	}
	return f.u.DetachMcast(noCaller, kernelHandle(h), gid, lid)
}

func mcast(w *uapi.Write) (h uint32, gid verbs.GID, lid uint16, err error) {
	b, err := w.Request(uapi.AttachMcastSize)
	if err != nil {
		return 0, gid, 0, err
	}
	r := uapi.AttachMcast(b)
	copy(gid[:], r.GID())
	return r.QPHandle(), gid, r.MLID(), nil
}
