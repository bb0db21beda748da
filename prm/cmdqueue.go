package prm

// CommandTransportPCI is the type of every entry of a command queue (MLX5_PCI_CMD_XPORT).
const CommandTransportPCI = 7

// CommandBlockAlign is what addresses of mailbox blocks are multiples of, in bytes
// (mlx5_cmd_enable).
const CommandBlockAlign = 1024

// CommandInline is how many bytes of each direction an entry itself has, and CommandBlockData how
// many a block has.
const (
	CommandInline    = 16
	CommandBlockData = 512
)

// CommandAnswer is the place in an entry from which on the device answers; the last byte says that
// it has.
const CommandAnswer = 0x20

// CommandDelivery says why a device could not take a command from its entry, in bits 7:1 of the
// last byte (MLX5_CMD_DELIVERY_STAT_*, core/cmd.c). The status of a command that was taken is in
// its mailbox.
type CommandDelivery uint32

// Delivery statuses.
const (
	DeliveryOK          CommandDelivery = 0
	DeliveryToken       CommandDelivery = 2
	DeliveryBlockNumber CommandDelivery = 3
	DeliveryOutPointer  CommandDelivery = 4
	DeliveryInPointer   CommandDelivery = 5
	DeliveryInLength    CommandDelivery = 7
	DeliveryOutLength   CommandDelivery = 8
	DeliveryDescriptor  CommandDelivery = 0x10
)

// RegisterWord reads a register of 32 bits at a place in BAR 0, and SetRegisterWord stores one.
func RegisterWord(b []byte) uint32 { return be32(b, 0) }

// SetRegisterWord stores what RegisterWord reads.
func SetRegisterWord(b []byte, v uint32) { putBE32(b, 0, v) }
