package hca

import "github.com/rdmasim/rdmasim/prm"

// setODP takes the capability page of paging on demand: what a driver may set there is the scheme,
// and operations that the device has.
func (d *Device) setODP(c *capPage, body []byte) prm.Status {
	want, top := prm.ODPCap(body), prm.ODPCap(c.max[:])
	if want.MemPageFault() && !top.MemPageFault() {
		return prm.StatusBadParam
	}
	for _, x := range [][2]prm.ODPSchemeCap{{want.Transport(), top.Transport()}, {want.Memory(), top.Memory()}} {
		if (x[0].RC()&^x[1].RC())|(x[0].UD()&^x[1].UD())|(x[0].XRC()&^x[1].XRC()) != 0 {
			return prm.StatusBadParam
		}
	}
	copy(c.cur[:], body)
	if d.faults != nil {
		d.faults.ChooseMemoryScheme(want.MemPageFault())
	}
	return prm.StatusOK
}

// cmdPageFaultResume is the driver's answer to a page fault.
func cmdPageFaultResume(d *Device, in, _ []byte) prm.Status {
	if d.faults == nil {
		return prm.StatusBadParam
	}
	d.faults.Answer(in)
	return prm.StatusOK
}
