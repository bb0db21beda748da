package roce

// PortState is the state of an InfiniBand port (IBTA Vol. 1, PortInfo), with the values
// of ibv_port_state.
type PortState uint8

// States.
const (
	PortDown PortState = 1 + iota
	PortInit
	PortArmed
	PortActive
)

// PortInfo is what a subnet manager sets of a port, as far as it is modelled. It
// travels as a value: management datagrams are not.
type PortInfo struct {
	State         PortState
	LID, SMLID    uint16
	LMC, SMSL     uint8
	SubnetTimeout uint8
	GIDPrefix     uint64
	MTU           MTU
	VLs           uint8 // data lanes in operation
	Reregister    bool  // the subnet manager has lost what clients had registered
}

// DefaultGIDPrefix is fe80::/64, the prefix of a subnet that has no other.
const DefaultGIDPrefix = 0xFE80000000000000

// GIDFromGUID is the GID of an InfiniBand port.
func GIDFromGUID(prefix, guid uint64) GID {
	var g GID
	be.PutUint64(g[0:8], prefix)
	be.PutUint64(g[8:16], guid)
	return g
}
