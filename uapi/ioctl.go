package uapi

// VerbsIoctl is RDMA_VERBS_IOCTL, the only ioctl of a uverbs file
// (rdma_user_ioctl_cmds.h).
const VerbsIoctl = 0xc0181b01

// DriverMLX5 is the driver id of mlx5 (enum rdma_driver_id).
const DriverMLX5 = 1

// Flags of an attribute.
const (
	AttrMandatory   = 1 << 0 // fail if it is not known
	AttrValidOutput = 1 << 1 // set by the kernel: the room was filled
)

// Header is the fixed part of the argument of RDMA_VERBS_IOCTL; its attributes follow (struct ib_uverbs_ioctl_hdr).
type Header []byte

// HeaderSize is the size of the structure.
const HeaderSize = 24

func (h Header) Length() uint16        { return le.Uint16(h[0:]) }
func (h Header) SetLength(v uint16)    { le.PutUint16(h[0:], v) }
func (h Header) ObjectID() uint16      { return le.Uint16(h[2:]) }
func (h Header) SetObjectID(v uint16)  { le.PutUint16(h[2:], v) }
func (h Header) MethodID() uint16      { return le.Uint16(h[4:]) }
func (h Header) SetMethodID(v uint16)  { le.PutUint16(h[4:], v) }
func (h Header) NumAttrs() uint16      { return le.Uint16(h[6:]) }
func (h Header) SetNumAttrs(v uint16)  { le.PutUint16(h[6:], v) }
func (h Header) Reserved1() uint64     { return le.Uint64(h[8:]) }
func (h Header) SetReserved1(v uint64) { le.PutUint64(h[8:], v) }
func (h Header) DriverID() uint32      { return le.Uint32(h[16:]) }
func (h Header) SetDriverID(v uint32)  { le.PutUint32(h[16:], v) }
func (h Header) Reserved2() uint32     { return le.Uint32(h[20:]) }
func (h Header) SetReserved2(v uint32) { le.PutUint32(h[20:], v) }

// Attr is one attribute of a call. Data is a value of up to 8 bytes, the address of a longer one or
// of room for an answer, an object handle, or a file descriptor (struct ib_uverbs_attr).
type Attr []byte

// AttrSize is the size of the structure.
const AttrSize = 16

func (a Attr) ID() uint16        { return le.Uint16(a[0:]) }
func (a Attr) SetID(v uint16)    { le.PutUint16(a[0:], v) }
func (a Attr) Len() uint16       { return le.Uint16(a[2:]) }
func (a Attr) SetLen(v uint16)   { le.PutUint16(a[2:], v) }
func (a Attr) Flags() uint16     { return le.Uint16(a[4:]) }
func (a Attr) SetFlags(v uint16) { le.PutUint16(a[4:], v) }
func (a Attr) Elem() uint16      { return le.Uint16(a[6:]) }
func (a Attr) SetElem(v uint16)  { le.PutUint16(a[6:], v) }
func (a Attr) Data() uint64      { return le.Uint64(a[8:]) }
func (a Attr) SetData(v uint64)  { le.PutUint64(a[8:], v) }
