package hca

import "github.com/rdmasim/rdmasim/prm"

// steers says whether a type of general objects is of flow steering by programs, and the device has
// that.
func (d *Device) steers(typ uint32) bool {
	return d.nic != nil && d.p.SWSteering && (typ == prm.ObjTypeSWICM || typ == prm.ObjTypeFlowSampler)
}

func cmdCreateGeneralObject(d *Device, in, out []byte) prm.Status {
	m := prm.CreateGeneralObjectIn(in)
	if d.steers(m.ObjType()) {
		return d.createSteeringObject(m, out)
	}
	return d.reserveNumbers(m, out)
}

func cmdDestroyGeneralObject(d *Device, in, _ []byte) prm.Status {
	m := prm.DestroyGeneralObjectIn(in)
	if d.steers(m.ObjType()) {
		return d.destroySteeringObject(m.ObjType(), m.ObjID())
	}
	return d.releaseNumbers(m)
}
