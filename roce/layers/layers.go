// Package layers adapts the wire formats of package roce to gopacket: a BTH layer
// that owns the extended headers its opcode selects, the pad and the ICRC; LRH and
// GRH layers; and IP and UDP layers that serialise the way RoCE wants them.
//
// gopacket keeps layer types, and which EtherType or port leads to which layer, in
// variables of its own packages. Importing this package claims three layer types
// there (that is what makes a type usable at all); it changes nothing about how
// packets are decoded until Register is called, which a program does once, at its
// start. Nothing else in the module imports this package for its side effects.
package layers

import (
	"sync"

	"github.com/google/gopacket"
	gplayers "github.com/google/gopacket/layers"

	"github.com/rdmasim/rdmasim/roce"
)

// Layer types, in gopacket's range for types of others (2000 and up; 4791 is the
// port of RoCEv2).
var (
	LayerTypeBTH = gopacket.RegisterLayerType(4791, gopacket.LayerTypeMetadata{Name: "BTH", Decoder: gopacket.DecodeFunc(decodeBTH)})
	LayerTypeGRH = gopacket.RegisterLayerType(4792, gopacket.LayerTypeMetadata{Name: "GRH", Decoder: gopacket.DecodeFunc(decodeGRH)})
	LayerTypeLRH = gopacket.RegisterLayerType(4793, gopacket.LayerTypeMetadata{Name: "LRH", Decoder: gopacket.DecodeFunc(decodeLRH)})
)

// LinkTypeInfiniBand is the capture link type of native InfiniBand packets
// (LINKTYPE_INFINIBAND). gopacket's table of link types ends before it, so such
// captures are decoded with LayerTypeLRH as the first layer.
const LinkTypeInfiniBand gplayers.LinkType = 247

// Register makes gopacket lead UDP port 4791 to BTH and EtherType 0x8915 to GRH.
// It changes gopacket's tables, once, and must not run while packets are decoded.
func Register() { registerOnce() }

var registerOnce = sync.OnceFunc(func() {
	gplayers.RegisterUDPPortLayerType(roce.UDPPort, LayerTypeBTH)
	gplayers.EthernetTypeMetadata[roce.EtherTypeRoCE] = gplayers.EnumMetadata{
		DecodeWith: gopacket.DecodeFunc(decodeGRH), Name: "RoCEv1", LayerType: LayerTypeGRH,
	}
})
