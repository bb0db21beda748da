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

// PortInfo is what a subnet manager sets in a port, as far as it is modelled; SubnetTimeout is a
// code t of 4.096 us * 2^t. It travels as a value, because the datagrams of subnet management are
// not modelled.
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

// DefaultGIDPrefix is fe80::/64, the prefix of a subnet to which no other was given.
const DefaultGIDPrefix = 0xFE80000000000000

// GIDFromGUID returns the GID of an InfiniBand port: the subnet prefix and the port GUID.
func GIDFromGUID(prefix, guid uint64) GID {
	var g GID
	be.PutUint64(g[0:8], prefix)
	be.PutUint64(g[8:16], guid)
	return g
}
