package nldev

import (
	"github.com/rdmasim/rdmasim/attach/exec/ucm"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/uapi"
)

// storageSize is the length of struct __kernel_sockaddr_storage.
const storageSize = 128

// cmIDs are the ids of the connection manager on a device.
func (s *Server) cmIDs(d *Device) []cm.TrackedID {
	if s.CM == nil {
		return nil
	}
	return s.CM.Tracked(d.Kern)
}

// cmID is RES_CM_ID_GET of one.
func (r *request) cmID() error {
	id, given := r.attrs.U32(uapi.NLAttrCMIDN)
	i, d, err := r.named()
	if err != nil || !given {
		return errInvalid
	}
	if n, err := r.portNumber(d); err != nil || n == 0 {
		return errInvalid
	}
	for _, t := range r.s.cmIDs(d) {
		if t.ID == id {
			r.message(r.cmd, func(w *uapi.NetlinkWriter) {
				handle(w, i, d)
				r.fillCMID(w, &t)
			})
			return nil
		}
	}
	return errNone
}

func (r *request) cmIDsOfDevice() error {
	i, d, err := r.named()
	if err != nil {
		return err
	}
	port, err := r.portNumber(d)
	if err != nil {
		return err
	}
	for all := r.s.cmIDs(d); len(all) > 0; {
		r.message(r.cmd, func(w *uapi.NetlinkWriter) {
			handle(w, i, d)
			w.Nest(uapi.NLAttrCMID, func() {
				for len(all) > 0 && len(w.B) < entriesEnd {
					t := &all[0]
					all = all[1:]
					if port == 0 || port == uint32(t.Port) {
						w.Nest(uapi.NLAttrCMIDEntry, func() { r.fillCMID(w, t) })
					}
				}
			})
		})
	}
	return nil
}

// fillCMID is fill_res_cm_id_entry.
func (r *request) fillCMID(w *uapi.NetlinkWriter, t *cm.TrackedID) {
	w.U32(uapi.NLAttrPortIndex, uint32(t.Port))
	if t.QPN != 0 {
		w.U32(uapi.NLAttrLQPN, t.QPN)
		w.U8(uapi.NLAttrType, uint8(t.Type))
	}
	w.U32(uapi.NLAttrPS, uint32(t.PS))
	w.U8(uapi.NLAttrState, t.State)
	var src, dst [storageSize]byte
	if ucm.PutAddress(src[:], t.Src) > 0 {
		w.Bytes(uapi.NLAttrSrcAddr, src[:])
	}
	if ucm.PutAddress(dst[:], t.Dst) > 0 {
		w.Bytes(uapi.NLAttrDstAddr, dst[:])
	}
	w.U32(uapi.NLAttrCMIDN, t.ID)
	if pid := r.s.PID(t.Process); pid != 0 {
		w.U32(uapi.NLAttrPID, uint32(pid))
	}
}
