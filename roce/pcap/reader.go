package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Packet is a captured packet.
type Packet struct {
	Time      int64 // nanoseconds since the epoch of the file: 1970, or the start of a run
	Interface int
	Data      []byte
	Length    int // on the wire; more than len(Data) if the capture was cut
	Comment   string
	Offset    int64 // of the packet's record in the file
	// LinkType is that of the interface; a packet of InfiniBand in an ERF record has been
	// taken out of it and says LinkTypeInfiniBand.
	LinkType uint16
	// Untimed: the file has no time for it (a simple packet block of pcapng).
	Untimed bool
	// Outgoing: the capture says that its host sent the packet. HostInterface is the number of the
	// host's interface, in a capture of all interfaces; link.Frame reads it from the cooked header.
	Outgoing      bool
	HostInterface uint32
}

// Interface is where packets were captured. Classic pcap has one, without a name.
type Interface struct {
	Name     string
	LinkType uint16
	SnapLen  uint32
	// Dropped is how many packets the capture lost, as far as the file says.
	Dropped uint64
	// Received is how many packets the capture saw, including those that it lost. Counted: the file
	// says so.
	Received uint64
	Counted  bool

	between   uint64 // lost, as packet blocks say
	perSecond uint64 // timestamp units
	offset    int64  // seconds added to timestamps
}

// Link types: Ethernet frames without FCS; ERF records; InfiniBand packets from the LRH,
// with their VCRC.
const (
	LinkTypeEthernet   = 1
	LinkTypeERF        = 197
	LinkTypeInfiniBand = 247
)

// Link types of captures without Ethernet headers (tcpdump.org/linktypes.html): bare IP packets,
// and those of "tcpdump -i any", whose cooked header names the direction and, in SLL2, the
// interface of the host.
const (
	LinkTypeRawBSD     = 12 // as DLT_RAW is on most systems, and on OpenBSD
	LinkTypeRawOpenBSD = 14
	LinkTypeRaw        = 101
	LinkTypeSLL        = 113
	LinkTypeIPv4       = 228
	LinkTypeIPv6       = 229
	LinkTypeSLL2       = 276
)

// Outgoing is the packet type in cooked headers of packets that the host sent (PACKET_OUTGOING of
// linux/if_packet.h).
const Outgoing = 4

// Framed reports whether packets of a link type are, or can be turned into, frames of Ethernet or
// InfiniBand.
func Framed(linkType uint16) bool {
	switch linkType {
	case LinkTypeEthernet, LinkTypeERF, LinkTypeInfiniBand, LinkTypeSLL, LinkTypeSLL2, LinkTypeRaw, LinkTypeRawBSD, LinkTypeRawOpenBSD, LinkTypeIPv4, LinkTypeIPv6:
		return true
	}
	return false
}

// BrokenError says where and why a file cannot be read on. The packets before it are good.
type BrokenError struct {
	Offset  int64 // of the block or record that cannot be read
	Packets int   // packets before it
	Zipped  bool  // Offset counts in what the gzip file holds
	Reason  string
}

// Error returns the place, the packets before it and the reason.
func (e *BrokenError) Error() string {
	s := "s"
	if e.Packets == 1 {
		s = ""
	}
	at := ""
	if e.Zipped {
		at = " of what is unpacked"
	}
	return fmt.Sprintf("broken capture at byte %d%s, after %d packet%s: %s", e.Offset, at, e.Packets, s, e.Reason)
}

// ErrNotCapture is wrapped by the error of NewReader and Read for a file that does not begin like a
// capture.
var ErrNotCapture = errors.New("not a pcap or pcapng file")

// maxRecord bounds a block or packet, so that a broken length cannot ask for all
// memory.
const maxRecord = 16 << 20

// Bounds of what Read keeps in memory: about 4 GiB for the worst file.
const (
	mostBytes      = 1 << 30
	mostPackets    = 10_000_000
	mostInterfaces = 1 << 16 // of every reader
)

// Reader reads a capture packet by packet.
type Reader struct {
	Format     string // "pcap" or "pcapng"
	Interfaces []Interface
	// Application is the program that wrote the file, if each of its sections says so.
	Application string

	r       *bufio.Reader
	zipped  bool
	at      int64 // offset of what is read next
	most    int64 // how far it may be; 0: without end
	header  int   // bytes before a packet of classic pcap
	packets int
	order   binary.ByteOrder
	base    int // first interface of the current section
	// sections counts them: those of one program are of that program, and others of none.
	sections int
	err      error
}

// NewReader reads the beginning of a capture, which may be compressed with gzip. The error wraps
// ErrNotCapture, is a
// *BrokenError, or wraps that of r.
func NewReader(r io.Reader) (*Reader, error) {
	c := &Reader{}
	var err error
	if c.r, c.zipped, err = unzip(bufio.NewReaderSize(r, 1<<16)); err != nil {
		return nil, err
	}
	magic, err := c.r.Peek(4)
	if err != nil {
		if err == io.EOF || errors.As(err, new(*brokenZip)) {
			return nil, fmt.Errorf("%w: it has %d bytes", ErrNotCapture, len(magic))
		}
		return nil, fmt.Errorf("pcap: %w", err)
	}
	switch m := binary.LittleEndian.Uint32(magic); m {
	case blockSection:
		c.Format = "pcapng"
		return c, nil
	case magicMicro, magicNano, magicModified:
		return c, c.classicHeader(binary.LittleEndian)
	default:
		if m := binary.BigEndian.Uint32(magic); m == magicMicro || m == magicNano || m == magicModified {
			return c, c.classicHeader(binary.BigEndian)
		}
		return nil, fmt.Errorf("%w: it begins with % x", ErrNotCapture, magic)
	}
}

// Next returns the next packet, io.EOF at the end of the file, or a *BrokenError where it cannot be
// read on. The first error is returned again by all later calls.
func (c *Reader) Next() (Packet, error) {
	if c.err != nil {
		return Packet{}, c.err
	}
	var p Packet
	if c.Format == "pcap" {
		p, c.err = c.nextClassic()
	} else {
		p, c.err = c.nextNg()
	}
	if c.err == nil {
		c.packets++
		p.LinkType = c.Interfaces[p.Interface].LinkType
		unwrap(&p)
	}
	return p, c.err
}

// Read reads a whole capture of at most 1 GiB and 10,000,000 packets. With an error it returns the
// packets before it. The error is that of NewReader or Next; a longer capture gives a *BrokenError.
func Read(r io.Reader) (*Reader, []Packet, error) { return read(r, mostBytes, mostPackets) }

func read(r io.Reader, bytes int64, packets int) (*Reader, []Packet, error) {
	c, err := NewReader(r)
	if err != nil {
		return nil, nil, err
	}
	c.most = bytes
	tooLong := func() error {
		return c.broken(c.at, "it has more than %d packets or %d bytes, the most that is read at once: cut it with editcap -c", packets, bytes)
	}
	var all []Packet
	for {
		p, err := c.Next()
		if err == errTooLong {
			return c, all, tooLong()
		}
		if err == io.EOF {
			return c, all, nil
		}
		if err != nil {
			return c, all, err
		}
		if all = append(all, p); len(all) > packets || c.at > bytes {
			return c, all[:len(all)-1], tooLong()
		}
	}
}

func (c *Reader) broken(at int64, format string, a ...any) error {
	return &BrokenError{Offset: at, Packets: c.packets, Zipped: c.zipped, Reason: fmt.Sprintf(format, a...)}
}

// take reads n bytes of the record that began at start. A file that ends at a
// record's start is whole.
func (c *Reader) take(n int, start int64, what string) ([]byte, error) {
	b := make([]byte, n)
	got, err := io.ReadFull(c.r, b)
	c.at += int64(got)
	switch err {
	case nil:
		return b, nil
	case io.EOF:
		if c.at == start {
			return nil, io.EOF
		}
		fallthrough
	case io.ErrUnexpectedEOF:
		return nil, c.broken(start, "the file ends in %s, which needs %d more bytes", what, n-got)
	}
	if zip := (*brokenZip)(nil); errors.As(err, &zip) {
		return nil, c.broken(start, "%s", zip.reason)
	}
	return nil, fmt.Errorf("pcap: %w", err)
}

// errTooLong ends the reading of a file of which only so much is wanted.
var errTooLong = errors.New("pcap: the file is too long")

// First words of classic pcap. The third is that of a libpcap of old distributions of Linux, whose
// packets say after their lengths on which interface and in which direction they went.
const (
	magicMicro    = 0xA1B2C3D4
	magicNano     = 0xA1B23C4D
	magicModified = 0xA1B2CD34
)

const (
	classicHeader  = 16
	modifiedHeader = 24
	modifiedType   = 22 // where the direction is, by the numbers of SLL
)

func (c *Reader) classicHeader(order binary.ByteOrder) error {
	c.Format, c.order = "pcap", order
	h, err := c.take(24, 0, "the file header")
	if err != nil {
		return err
	}
	if v := order.Uint16(h[4:]); v != 2 {
		return c.broken(0, "pcap version %d.%d, known is 2.4", v, order.Uint16(h[6:]))
	}
	intf := Interface{LinkType: uint16(order.Uint32(h[20:])), SnapLen: order.Uint32(h[16:]), perSecond: 1e6}
	if order.Uint32(h) == magicNano {
		intf.perSecond = 1e9
	}
	c.header = classicHeader
	if order.Uint32(h) == magicModified {
		c.header = modifiedHeader
	}
	c.Interfaces = []Interface{intf}
	return nil
}

func (c *Reader) nextClassic() (Packet, error) {
	start := c.at
	h, err := c.take(c.header, start, "a packet header")
	if err != nil {
		return Packet{}, err
	}
	perSecond := c.Interfaces[0].perSecond
	sec, frac := c.order.Uint32(h), uint64(c.order.Uint32(h[4:]))
	n, length := c.order.Uint32(h[8:]), c.order.Uint32(h[12:])
	if n > maxRecord || length > maxRecord {
		return Packet{}, c.broken(start, "a packet of %d bytes, %d captured", length, n)
	}
	if n > length {
		return Packet{}, c.broken(start, "%d bytes captured of a packet of %d", n, length)
	}
	if frac >= perSecond {
		return Packet{}, c.broken(start, "a time of %d parts of a second that has %d", frac, perSecond)
	}
	data, err := c.take(int(n), start, "a packet")
	if err != nil {
		return Packet{}, err
	}
	return Packet{
		Time: int64(sec)*1e9 + int64(frac*(1e9/perSecond)), Data: data, Length: int(length), Offset: start,
		Outgoing: c.header == modifiedHeader && h[modifiedType] == Outgoing,
	}, nil
}
