package verbs

import (
	"errors"
	"time"
)

// Wire lets a case record and disturb what devices send, at each sending port. Both act on every
// frame that leaves a port; a case that needs them connects two nodes, since a frame that a device
// loops back internally may never reach its port. A testbed with only one of the capabilities
// answers EOPNOTSUPP for the other's calls.
type Wire interface {
	// StartTap begins a recording; one that runs already is dropped ("tap").
	StartTap(t Thread) error
	// StopTap ends the recording and returns its frames in the order in which they
	// were sent. An error means that the capture is not whole.
	StopTap(t Thread) ([]WireFrame, error)
	// Inject adds a rule ("inj"). Each frame is matched against the rules in the order in which
	// they were added; the first that matches acts.
	Inject(t Thread, r WireRule) error
	// ClearRules removes all rules and returns how many frames each has matched, in the
	// order in which they were added.
	ClearRules(t Thread) ([]int, error)
	// SetLink takes the port's link down or up ("linkctl").
	SetLink(t Thread, host, port int, up bool) error
}

// WireFrame is a frame as its sender sent it: what a rule did to it comes after.
type WireFrame struct {
	// At is when its first bit left, on the clock of the wire. On the simulator that is Thread.Now
	// of every thread. Where a process of its own simulates the link (verbs/remotewire: below
	// rdmasim exec, the host of guests), it is simulated time since that process began, and only
	// differences mean something beside Thread.Now. Between two real interfaces (hw/wire) it is
	// when the frame came to the link, on the monotonic clock of Thread.Now.
	At time.Duration
	// Data is the frame from the Ethernet destination to the ICRC, without the FCS; of
	// InfiniBand from the LRH to the VCRC.
	Data       []byte
	InfiniBand bool
	// Acted is what the injector then did to the frame; WirePass when nothing.
	Acted WireAction
}

// WireAction is what a rule does.
type WireAction uint8

// Actions of a rule.
const (
	WirePass      WireAction = iota
	WireDrop                 // the frame disappears
	WireCorrupt              // one payload or header bit flips and the ICRC is left: the receiver drops it
	WireEdit                 // the bytes of Edits are changed and the ICRC is made right again
	WireDelay                // it arrives later by Delay; others may overtake it
	WireDuplicate            // it arrives twice
	WireMark                 // it arrives marked "congestion experienced" (ECN)
	WireTruncate             // only its first Keep bytes arrive
	WireSpoil                // the bytes of Edits are changed and the ICRC stays, which is right only if it covers none of these bytes
)

// WireRule picks frames of RoCE and says what happens to them. A field without its Match bit
// matches everything.
type WireRule struct {
	Match   WireMatch
	DestQPN uint32 // of the base transport header
	Opcode  uint8  // of the base transport header
	PSN     uint32
	// Response is the direction. A flow is what one port sends to one QP; Flow numbers the flows in
	// the order in which they begin. Packet numbers the PSNs of a flow's requests, Message its
	// messages, and Iteration says how often this PSN was sent. All begin at 1, and count from the
	// first rule that uses one of them.
	Response                         bool
	Flow, Packet, Message, Iteration int
	// Skip lets that many matching frames pass first; Count is how many are then
	// acted upon, 0 for all.
	Skip, Count int
	// PerMillion, unless 0, is the chance in a million that the rule acts on each of these.
	PerMillion uint32
	Action     WireAction
	Edits      []ByteEdit
	Delay      time.Duration
	Keep       int
}

// WireMatch says which fields of a rule a frame must match.
type WireMatch uint16

// Fields of a rule.
const (
	WireMatchDestQPN WireMatch = 1 << iota
	WireMatchOpcode
	WireMatchPSN
	WireMatchDirection // Response
	WireMatchFlow
	WireMatchPacket
	WireMatchMessage
	WireMatchIteration
)

// ByteEdit sets one byte of a frame, counted from the first byte of the base transport header.
// Negative offsets reach the UDP header (-8 to -1) and the IP header before it, whose checksum is
// made right again.
type ByteEdit struct {
	Offset int
	Value  byte
}

// Faults are defects below the verbs that no program can cause. Each call adds faults,
// and each fault happens once.
type Faults interface {
	// TearBlueFlame lets only the first keep bytes (a multiple of 8, at least 8) of
	// the next n BlueFlame pushes to the device arrive, as an evicted
	// write-combining buffer does.
	TearBlueFlame(t Thread, n, keep int) error
	// SwapDoorbells makes the next n pairs of writes to bfregs arrive in the opposite
	// order: the first of a pair is held until the second has arrived.
	SwapDoorbells(t Thread, n int) error
	// FailNext makes the device complete the next request that this QP would finish
	// with success as a requester error with the given mlx5 syndrome and vendor
	// syndrome; the QP goes to ERR as after a real one.
	FailNext(t Thread, qpn uint32, syndrome, vendor uint8) error
}

// MappingLister is implemented by processes that can list what they map of the device,
// as /proc/self/maps does.
type MappingLister interface {
	// DeviceMappings counts the mappings of the device's file (UAR pages, clock).
	DeviceMappings(t Thread) (int, error)
}

// Preferrer is implemented by contexts for which the user chose the port and the GID index of
// connections. Port 0 and index -1 mean no preference.
type Preferrer interface {
	Preferred() (port, gidIndex int)
}

// ErrProcessDied is what Player.Do returns when the process has ended; the reply's
// Text then holds what it last wrote to its standard error, if that is known.
var ErrProcessDied = errors.New("the process has ended")

// SubnetControl is implemented by testbeds whose subnet manager a tester can configure
// ("sm").
type SubnetControl interface {
	// ConfigureSubnet changes what the subnet manager gives to ports, and gives it to them
	// all. Fields that are zero stay as they were.
	ConfigureSubnet(t Thread, c SubnetConfig) error
}

// SubnetConfig is what a subnet manager gives to ports.
type SubnetConfig struct {
	FirstLID   uint16 // of the first port; the others follow
	GIDPrefix  uint64
	PKeys      []uint16 // the table of every port
	Reregister bool     // once: what clients had registered is lost
}
