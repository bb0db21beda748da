package provider

import "github.com/rdmasim/rdmasim/sim/kernel"

// Device is an entry of the device list of a process.
type Device struct {
	proc   *Process
	kernel *kernel.Device
	name   string
	guid   uint64
}

// NewDevice makes the entry of proc for a kernel device.
func NewDevice(proc *Process, k *kernel.Device, name string, guid uint64) *Device {
	return &Device{proc, k, name, guid}
}

// Name is the name of the ib_device.
func (d *Device) Name() string { return d.name }

// GUID is the node GUID.
func (d *Device) GUID() uint64 { return d.guid }
