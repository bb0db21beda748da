package kernel

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
)

// mmapFirstEntry is the page offset of the first object that is mapped by an offset
// which the kernel hands out: command 9, argument 0.
const mmapFirstEntry = 9 << 8

func (k *call) allocUAR() (uint32, error) {
	out, err := k.simple(prm.OpAllocUAR, 0)
	if err != nil {
		return 0, err
	}
	return prm.AllocUAROut(out).UAR(), nil
}

func (k *call) freeUAR(uar uint32) error {
	in := prm.NewIn(prm.OpDeallocUAR, 0)
	prm.DeallocUARIn(in).SetUAR(uar)
	return k.destroy(in)
}

// mapUAR is a mapping of a UAR page.
func (d *Device) mapUAR(uar uint32, kind cpu.MapKind) *cpu.Mapping {
	return &cpu.Mapping{Dev: d.link, Off: uint64(uar) * prm.UARPageSize, Kind: kind}
}
